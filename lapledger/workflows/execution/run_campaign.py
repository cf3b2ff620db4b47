"""Drives a campaign from one command: runs what is left here, or asks workers to, with progress, Ctrl-C and the close.

`lap run` holds a lease on its campaign while it lives, so that workers leave it alone.
"""

import fcntl
import platform
import tempfile
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Any

from lapledger.consumers.services.service_loop import NamedLease, ServiceContext
from lapledger.ledger.codec.canonical import sha256_fields
from lapledger.ledger.errors import Unavailable, UserError
from lapledger.ledger.events import CampaignClosed, CampaignOpened, Event
from lapledger.ledger.questions.queries import ATTEMPTS, Questions
from lapledger.producers.campaigns.plan import Plan
from lapledger.producers.campaigns.worker import MAX_FAULTS_PER_WORK, Worker, WorkerContext
from lapledger.producers.sandbox.limits import Sandbox
from lapledger.settings import Settings
from lapledger.workflows.execution.plan_campaign import Left, Planned
from lapledger.workflows.execution.worker_setup import (
    Site,
    check_blobs,
    class_here,
    class_of,
    find_sandbox,
    material_of,
    start_worker,
    worker_context,
)
from lapledger.workflows.session import LedgerWriter, now_ms, stopping, utc_now

LEASE_MS = 30_000
RUN_LEASE = "run:"
"""Before the campaign's id: the lease of the `lap run` that works on it."""

_STUCK = """
SELECT count(*) AS n FROM (
  SELECT work_id FROM execution WHERE campaign_id = $id
  GROUP BY work_id HAVING NOT bool_or(accepted) AND count(*) >= $most
)
"""


@contextmanager
def alone(root: Path) -> Iterator[None]:
    """Holds the run lock of a ledger; UserError while another `lap run` on this machine holds it.

    Two at once would run every work twice and disturb each other's timings.
    """
    root.mkdir(parents=True, exist_ok=True)
    with (root / "run.lock").open("w") as handle:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise UserError(f"another `lap run` works on the ledger in {root}; wait for it or stop it") from None
        yield


def run_plan(writer: LedgerWriter, planned: Planned, left: Left, settings: Settings) -> dict[str, Any]:
    """Runs what is left and says what came of it; the campaign is closed when every job has an outcome."""
    plan = planned.plan
    outcomes: dict[str, int] = {}
    interrupted = False
    with _campaign_lease(writer, plan.opening) as lease:
        if left.requests:
            sandbox = _open_sandbox(writer, plan.opening, settings)
            _request(writer, plan)
            with tempfile.TemporaryDirectory(prefix="lap-run-") as scratch:
                context = _worker_context(writer, planned, Site(sandbox, settings.slots, Path(scratch)))
                worker = Worker(context, writer.producer, left.requests, ready=writer.ready)
                interrupted = _run(worker, writer, lease, total=len(left.requests))
            outcomes = dict(worker.progress.outcomes)
        counts = _close(writer, plan)
    return _summary(plan, counts) | {"outcomes": outcomes, "interrupted": interrupted}


def _run(worker: Worker, writer: LedgerWriter, lease: NamedLease, *, total: int) -> bool:
    """Runs all that the worker was given; True when a signal ended it early."""
    worker.start()
    try:
        return _watch(worker, writer, lease, total=total)
    finally:
        worker.stop()


def submit_plan(writer: LedgerWriter, planned: Planned, *, wait: bool) -> dict[str, Any]:
    """Asks workers to run a plan and says how far they are; with `wait`, at the campaign's close or at Ctrl-C.

    The wait ends early when every work that is left has failed in the sandbox too often.
    """
    plan = planned.plan
    _request(writer, plan)
    counts, interrupted = _counts(writer, plan), False
    if wait:
        with stopping() as stop, writer.reporter.progress("waiting for workers", len(plan.requests)) as bar:
            while not counts["closed"] and not stop.is_set():
                bar.update(counts["accepted"], note=f"{counts['faults']} faults")
                if counts["stuck"] and counts["accepted"] + counts["stuck"] == len(plan.requests):
                    break
                time.sleep(1)
                writer.admit()
                counts = _counts(writer, plan)
            interrupted = stop.is_set()
    return _summary(plan, counts) | {"closed": bool(counts["closed"]), "interrupted": interrupted}


def _summary(plan: Plan, counts: dict[str, int]) -> dict[str, Any]:
    return {
        "campaign": plan.opening.campaign_id,
        "works": len(plan.requests),
        "left": len(plan.requests) - counts["accepted"],
        "surplus": counts["surplus"],
        "faults": counts["faults"],
    }


@contextmanager
def _campaign_lease(writer: LedgerWriter, opening: CampaignOpened) -> Iterator[NamedLease]:
    """The lease on a campaign, given back at the end; UserError while a `lap run` elsewhere holds it.

    Its holder is this machine's folder, which is locked: after a kill the same command goes on at once.
    """
    root = writer.ledger.root.resolve()
    holder = sha256_fields("run", platform.node(), str(root))[:16]
    context = ServiceContext(holder, LEASE_MS, now_ms, time.monotonic, utc_now, _silent)
    lease = NamedLease(writer.ledger, f"{RUN_LEASE}{opening.campaign_id}", context)
    if not lease.hold():
        raise UserError(f"a `lap run` on another machine works on campaign {opening.campaign_id!r}; wait for it")
    try:
        yield lease
    finally:
        lease.drop()


def _silent(event: str, *, level: str = "info", **fields: Any) -> None:
    """A command talks to its user and keeps no log."""


def _open_sandbox(writer: LedgerWriter, opening: CampaignOpened, settings: Settings) -> Sandbox:
    """The sandbox of this worker; UserError when the campaign was begun in another kind of place."""
    sandbox = find_sandbox(writer.ledger.root, settings, writer.reporter)
    with closing(Questions(writer.ledger)) as questions:
        begun = class_of(questions, opening.campaign_id)
    differs = class_here(sandbox).differs(begun) if begun else ""
    if differs:
        raise UserError(
            f"campaign {opening.campaign_id!r} was begun with another {differs}, whose timings do not "
            "mix with these; go on there, or name a new one with --campaign"
        )
    return sandbox


def _request(writer: LedgerWriter, plan: Plan) -> None:
    """Opens the campaign and requests its works, as far as the ledger does not hold that already."""
    campaign = plan.opening.campaign_id
    with closing(Questions(writer.ledger)) as questions:
        opening = questions.rows("SELECT 1 FROM campaign WHERE campaign_id = $id", id=campaign)
        requested = questions.query("SELECT work_id FROM request WHERE campaign_id = $id", id=campaign)
    held = set(requested["work_id"].to_pylist())
    requests = [request for request in plan.requests if request.work_id not in held]
    first: list[Event] = [] if opening else [*plan.shared, plan.opening]
    writer.producer.append([*first, *requests])
    writer.admit()


def _worker_context(writer: LedgerWriter, planned: Planned, site: Site) -> WorkerContext:
    """All that the worker works with; its start is stored as an event."""
    opening, chosen, blobs = planned.plan.opening, planned.chosen, writer.ledger.blobs
    material = material_of(chosen.programs, chosen.tests, chosen.flags)
    check_blobs(material, blobs)
    facts, started = start_worker(opening, site.sandbox, worker_id=writer.producer.epoch, slots=site.slots)
    writer.producer.append([started])
    return worker_context(opening, facts, site, blobs=blobs, material=material)


def _watch(worker: Worker, writer: LedgerWriter, lease: NamedLease, *, total: int) -> bool:
    """Shows progress and admits outcomes until the worker ends; True when a signal ended it early."""
    ended, announced = False, False
    with stopping(worker.stop) as stop, writer.reporter.progress("running", total) as bar:
        while not ended:
            ended = worker.wait(0.5)
            with suppress(Unavailable):  # what a server that is away does not take now waits
                lease.hold()
                writer.admit()
            bar.update(worker.progress.finished, note=_note(worker))
            if stop.is_set() and not announced:
                announced = True
                writer.reporter.message("waiting for running programs; press Ctrl-C again to abort")
    if worker.failure is not None:
        raise worker.failure
    return stop.is_set()


def _note(worker: Worker) -> str:
    return ", ".join(f"{count} {name}" for name, count in sorted(worker.progress.outcomes.items()))


def _counts(writer: LedgerWriter, plan: Plan) -> dict[str, int]:
    """Counts of the campaign's attempts, whether it is closed, and its works that only ever failed in the sandbox."""
    campaign = plan.opening.campaign_id
    with closing(Questions(writer.ledger)) as questions:
        counts: dict[str, int] = questions.rows(ATTEMPTS, campaign=campaign)[0]
        closed = len(questions.rows("SELECT 1 FROM closing WHERE campaign_id = $id", id=campaign))
        stuck = questions.rows(_STUCK, id=campaign, most=MAX_FAULTS_PER_WORK)[0]["n"]
    return {**counts, "closed": closed, "stuck": stuck}


def _close(writer: LedgerWriter, plan: Plan) -> dict[str, int]:
    """Counts of the campaign's attempts; the closing fact is appended once every job has an accepted outcome."""
    writer.admit()
    counts = _counts(writer, plan)
    if not counts["closed"] and counts["accepted"] == len(plan.requests):
        writer.producer.append([closing_of(plan.opening.campaign_id, counts)])
        writer.admit()
    return counts


def closing_of(campaign: str, counts: dict[str, int]) -> CampaignClosed:
    """The fact that every work of a campaign has an accepted outcome."""
    return CampaignClosed(
        campaign_id=campaign,
        reason="complete",
        accepted=counts["accepted"],
        surplus=counts["surplus"],
        faults=counts["faults"],
    )
