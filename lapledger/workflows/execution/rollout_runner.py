"""Runs what a trainer sampled beside references: here in the sandbox, or by workers elsewhere, up to a time.

What has no outcome when time is up stays open in its campaign, and no reward is made of it.
"""

import fcntl
import platform
import tempfile
import time
from collections.abc import Sequence
from contextlib import closing, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from lapledger.consumers.services.service_loop import NamedLease, ServiceContext
from lapledger.ledger.codec.canonical import sha256_fields
from lapledger.ledger.errors import UserError
from lapledger.ledger.events import ProgramAdded, WorkerStarted
from lapledger.ledger.questions.queries import ATTEMPTS, Questions
from lapledger.producers.campaigns.attempts import WorkerFacts
from lapledger.producers.campaigns.plan import is_reference
from lapledger.producers.campaigns.worker import Worker
from lapledger.settings import Settings
from lapledger.workflows.execution.plan_campaign import Chosen, Planned, choose, plan_campaign
from lapledger.workflows.execution.run_campaign import LEASE_MS, RUN_LEASE, closing_of, submit_plan
from lapledger.workflows.execution.worker_setup import (
    Site,
    check_blobs,
    find_sandbox,
    material_of,
    start_worker,
    worker_context,
)
from lapledger.workflows.session import LedgerWriter, new_id, now_ms, utc_now

if TYPE_CHECKING:
    from collections.abc import Iterator


LOOK_SECONDS = 0.2
"""How often the wait looks at what is done."""


class Runner:
    """Runs batches of programs, each batch as a campaign of its own. See `consumers.training.scoring.Runner`."""

    def __init__(self, writer: LedgerWriter, settings: Settings, *, here: bool, timeout: float, every: int) -> None:
        """`every` N-th reference of a problem is run beside the programs; 0 for none."""
        self._open, self._settings = writer, settings
        self._here, self._timeout, self._every = here, timeout, every
        self._sandbox: Any = None
        self._begun: tuple[WorkerFacts, WorkerStarted] | None = None

    def new_id(self) -> str:
        """A fresh UUIDv7."""
        return new_id()

    def admit(self) -> int:
        """Brings what was appended into the ledger."""
        return self._open.admit()

    def run(self, programs: Sequence[ProgramAdded]) -> str:
        """The campaign of a batch, run as far as the time went. Fault when the sandbox itself keeps failing."""
        until = time.monotonic() + self._timeout
        with closing(Questions(self._open.ledger)) as questions:
            planned = plan_campaign(questions, self._chosen(questions, programs), self._settings, None, once=True)
        campaign = planned.plan.opening.campaign_id
        if self._here:
            with self._alone(campaign) as lease:
                submit_plan(self._open, planned, wait=False)
                with self._turn(until) as mine:
                    if mine:
                        self._run_here(planned, lease, until)
        else:
            submit_plan(self._open, planned, wait=False)
            self._wait(planned, until)
        return campaign

    def _chosen(self, questions: Questions, programs: Sequence[ProgramAdded]) -> Chosen:
        """The programs with every N-th reference of their problems, and all tests."""
        problems = sorted({program.problem_id for program in programs})
        chosen = choose(questions, problems)
        kept: list[ProgramAdded] = []
        for problem in problems if self._every else ():
            kept += [p for p in chosen.programs if p.problem_id == problem and is_reference(p)][:: self._every]
        return replace(chosen, programs=(*programs, *kept))

    @contextmanager
    def _alone(self, campaign: str) -> "Iterator[NamedLease]":
        """Holds the campaign, so that workers leave it alone."""
        holder = sha256_fields("run", platform.node(), self._open.producer.epoch)[:16]
        lease = NamedLease(
            self._open.ledger,
            f"{RUN_LEASE}{campaign}",
            ServiceContext(holder, LEASE_MS, now_ms, time.monotonic, utc_now, _silent),
        )
        lease.hold()
        try:
            yield lease
        finally:
            lease.drop()

    @contextmanager
    def _turn(self, until: float) -> "Iterator[bool]":
        """Waits while another process of this machine runs programs: two at once disturb each other's timings.

        False when time was up before; the lock is that of `lap run`.
        """
        with (self._open.ledger.root / "run.lock").open("w") as handle:
            while not _locked(handle):
                if time.monotonic() >= until:
                    yield False
                    return
                time.sleep(LOOK_SECONDS)
            yield True

    def _run_here(self, planned: Planned, lease: NamedLease, until: float) -> None:
        with tempfile.TemporaryDirectory(prefix="lap-trainer-") as scratch:
            worker = self._worker(planned, Path(scratch))
            worker.start()
            try:
                while not worker.wait(LOOK_SECONDS) and time.monotonic() < until:
                    lease.hold()
                    self.admit()
            finally:
                worker.stop()
                while not worker.wait(LOOK_SECONDS):  # a run ends at its own limit
                    lease.hold()
        if worker.failure is not None:
            raise worker.failure
        self._close(planned)

    def _worker(self, planned: Planned, scratch: Path) -> Worker:
        opening, chosen, blobs = planned.plan.opening, planned.chosen, self._open.ledger.blobs
        if self._sandbox is None:
            self._sandbox = find_sandbox(self._open.ledger.root, self._settings, self._open.reporter)
        material = material_of(chosen.programs, chosen.tests, chosen.flags)
        check_blobs(material, blobs)
        site = Site(self._sandbox, self._settings.slots, scratch)
        if self._begun is None:  # once a process: batches follow one another, and the start-up takes a second
            self._begun = start_worker(opening, site.sandbox, worker_id=self._open.producer.epoch, slots=site.slots)
        facts, started = self._begun
        self._open.producer.append([replace(started, campaign_id=opening.campaign_id)])
        context = worker_context(opening, facts, site, blobs=blobs, material=material)
        return Worker(context, self._open.producer, planned.plan.requests, ready=self._open.ready)

    def _wait(self, planned: Planned, until: float) -> None:
        while self._accepted(planned) < len(planned.plan.requests) and time.monotonic() < until:
            time.sleep(LOOK_SECONDS)
            self.admit()

    def _accepted(self, planned: Planned) -> int:
        with closing(Questions(self._open.ledger)) as questions:
            return int(questions.rows(ATTEMPTS, campaign=planned.plan.opening.campaign_id)[0]["accepted"])

    def _close(self, planned: Planned) -> None:
        """Tells that the campaign is complete, once it is."""
        self.admit()
        campaign = planned.plan.opening.campaign_id
        with closing(Questions(self._open.ledger)) as questions:
            counts = questions.rows(ATTEMPTS, campaign=campaign)[0]
        if counts["accepted"] == len(planned.plan.requests):
            self._open.producer.append([closing_of(campaign, counts)])
            self.admit()


def hold_training(root: Path, training: str) -> IO[str]:
    """The open lock of a training run: who holds it sees every answer of a group. UserError while another one does."""
    handle = (root / f"trainer-{sha256_fields('training', training)[:12]}.lock").open("w")
    if not _locked(handle):
        handle.close()
        raise UserError(
            f"another process scores the answers of training run {training!r} one by one, so that a group would be"
            " split between them; let one do it (verl: reward.num_workers=1)"
        )
    return handle


def _locked(handle: IO[str]) -> bool:
    """Whether the lock was free; it is given back with the file."""
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _silent(event: str, *, level: str = "info", **fields: Any) -> None:
    """A trainer keeps its own log."""
