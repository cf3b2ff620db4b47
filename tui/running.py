"""Drives a campaign on this machine: what is left, the worker's facts, progress, Ctrl-C, and the closing fact."""

import fcntl
import os
import platform
import signal
import tempfile
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

from ledger.digests import sha256_words
from ledger.errors import UserError
from ledger.events import CampaignClosed, CampaignOpened, WorkerStarted
from ledger.questions import ATTEMPTS, Questions
from ledger.store.blobs import Blobs
from producers.campaigns.attempts import WorkerFacts
from producers.campaigns.plan import Plan
from producers.campaigns.worker import Bench, Material, Worker
from producers.sandbox.answers import AnswerFlags
from producers.sandbox.choose import measure_startup, open_sandbox
from producers.sandbox.limits import Limits, Sandbox
from tui.output import progress, say
from tui.planning import Chosen, Left, Planned
from tui.session import Writing, new_id, utc_now
from tui.settings import Settings

STARTUP_RUNS = 21
TELL_SECONDS = 15
"""How often progress is told in words where no bar can be drawn."""


@contextmanager
def alone(root: Path) -> Iterator[None]:
    """Holds the run lock of a ledger; UserError while another `lap run` on this machine holds it.

    Two at once would run every work twice and disturb each other's timings.
    """
    with (root / "run.lock").open("w") as handle:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise UserError(f"another `lap run` works on the ledger in {root}; wait for it or stop it") from None
        yield


def run_plan(open_: Writing, planned: Planned, left: Left, settings: Settings) -> dict[str, Any]:
    """Runs what is left and says what came of it; the campaign is closed when every work has an outcome."""
    plan = planned.plan
    outcomes: dict[str, int] = {}
    interrupted = False
    if left.requests:
        sandbox = _open_sandbox(open_, plan.opened, settings)
        _request(open_, plan)
        with tempfile.TemporaryDirectory(prefix="lap-run-") as scratch:
            bench = _bench(open_, planned, sandbox, settings=settings, scratch=Path(scratch))
            worker = Worker(bench, open_.producer, left.requests)
            worker.start()
            try:
                interrupted = _watch(worker, open_, len(left.requests))
            finally:
                worker.stop()
        outcomes = dict(worker.progress.outcomes)
    counts = _close(open_, plan)
    return {
        "campaign": plan.opened.campaign_id,
        "works": len(plan.requests),
        "left": len(plan.requests) - counts["accepted"],
        "surplus": counts["surplus"],
        "faults": counts["faults"],
        "outcomes": outcomes,
        "interrupted": interrupted,
    }


def _open_sandbox(open_: Writing, opened: CampaignOpened, settings: Settings) -> Sandbox:
    """The sandbox of this worker; UserError when the campaign was begun in another kind of place.

    Timings of two machines, interpreters or isolations are two measurement classes and must not be ranked together.
    """
    sandbox = open_sandbox(isolation=settings.isolation, hidden=(open_.ledger.root.resolve(),))
    if sandbox.warning:
        say(f"lap: warning: {sandbox.warning}")
    here = {"host": host_fingerprint()[0], "interpreter": sandbox.interpreter.sha256, "isolation": sandbox.isolation}
    with closing(Questions(open_.ledger)) as questions:
        begun = questions.rows(_WORKERS, campaign=opened.campaign_id)
    for worker in begun:
        differs = [name for name, value in here.items() if worker[name] != value]
        if differs:
            raise UserError(
                f"campaign {opened.campaign_id!r} was begun with another {' and '.join(differs)}, whose timings do not "
                "mix with these; go on there, or name a new one with --campaign"
            )
    return sandbox


_WORKERS = "SELECT DISTINCT host, interpreter, isolation FROM worker WHERE campaign_id = $campaign"


def _request(open_: Writing, plan: Plan) -> None:
    """Opens the campaign and requests its works, as far as the ledger does not hold that already."""
    campaign = plan.opened.campaign_id
    with closing(Questions(open_.ledger)) as questions:
        opened = questions.rows("SELECT 1 FROM campaign WHERE campaign_id = $id", id=campaign)
        asked = questions.ask("SELECT work_id FROM request WHERE campaign_id = $id", id=campaign)
    held = set(asked["work_id"].to_pylist())
    requests = [request for request in plan.requests if request.work_id not in held]
    open_.producer.append([*([] if opened else [plan.opened]), *requests])
    open_.admit()


def _bench(open_: Writing, planned: Planned, sandbox: Sandbox, *, settings: Settings, scratch: Path) -> Bench:
    """All that the worker works with; its start is told as a fact."""
    opened = planned.plan.opened
    host, words = host_fingerprint()
    facts = WorkerFacts(
        worker_id=open_.producer.epoch,
        host=host,
        interpreter=sandbox.interpreter.sha256,
        isolation=sandbox.isolation,
        startup_ns=measure_startup(sandbox, STARTUP_RUNS),
    )
    open_.producer.append([_started(facts, opened, sandbox, words, settings.slots)])
    return Bench(
        sandbox=sandbox,
        limits=_limits(opened),
        repetitions=opened.repetitions,
        warmups=opened.warmups,
        slots=settings.slots,
        blobs=open_.ledger.blobs,
        material=_material(planned.chosen, open_.ledger.blobs),
        facts=facts,
        scratch=scratch,
        monotonic_ns=time.monotonic_ns,
        new_id=new_id,
        utc_now=utc_now,
    )


def _watch(worker: Worker, open_: Writing, total: int) -> bool:
    """Shows progress and admits outcomes until the worker ends; True when Ctrl-C ended it early."""
    ended, said = False, False
    told = time.monotonic()
    with _interrupts(worker) as interrupts, progress("running", total) as bar:
        while not ended:
            ended = worker.wait(0.5)
            open_.admit()
            bar.update(bar.task_ids[0], completed=worker.progress.finished, note=_note(worker))
            if interrupts and not said:
                said = True
                say("finishing the programs that run now; press Ctrl-C again to drop them")
            if bar.disable and time.monotonic() - told > TELL_SECONDS:
                told = time.monotonic()
                say(f"{worker.progress.finished} of {total} done: {_note(worker)}")
    if worker.failure is not None:
        raise worker.failure
    return bool(interrupts)


@contextmanager
def _interrupts(worker: Worker) -> Iterator[list[int]]:
    """The Ctrl-C's so far: the first stops the worker and raises nowhere, so no transaction or lock is cut in two."""
    seen: list[int] = []

    def on_interrupt(number: int, _frame: object) -> None:
        seen.append(number)
        worker.stop()
        if len(seen) > 1:
            raise KeyboardInterrupt

    before = signal.signal(signal.SIGINT, on_interrupt)
    try:
        yield seen
    finally:
        signal.signal(signal.SIGINT, before)


def _note(worker: Worker) -> str:
    return ", ".join(f"{count} {name}" for name, count in sorted(worker.progress.outcomes.items()))


def _close(open_: Writing, plan: Plan) -> dict[str, int]:
    """Counts of the campaign's attempts; the closing fact is appended once every work has an accepted outcome."""
    open_.admit()
    campaign = plan.opened.campaign_id
    with closing(Questions(open_.ledger)) as questions:
        counts: dict[str, int] = questions.rows(ATTEMPTS, campaign=campaign)[0]
        closed = questions.rows("SELECT 1 FROM closing WHERE campaign_id = $id", id=campaign)
    if not closed and counts["accepted"] == len(plan.requests):
        open_.producer.append([CampaignClosed(campaign_id=campaign, reason="complete", **counts)])
    return counts


def _limits(opened: CampaignOpened) -> Limits:
    return Limits(
        wall_ns=opened.hard_limit_ns,
        memory_bytes=opened.memory_bytes,
        output_bytes=opened.output_bytes,
        processes=opened.process_limit,
    )


def _material(chosen: Chosen, blobs: Blobs) -> Material:
    for digest in {t.input_blob for t in chosen.tests} | {p.source_blob for p in chosen.programs}:
        if not blobs.has(digest):
            blobs.get(digest)  # raises the fault that says which blob is missing and what to do
    return Material(
        sources={p.program_id: p.source_blob for p in chosen.programs},
        inputs={t.test_id: t.input_blob for t in chosen.tests},
        answers={t.test_id: t.answer_blob for t in chosen.tests},
        flags={problem: AnswerFlags.parse(words) for problem, words in chosen.flags.items()},
    )


def _started(facts: WorkerFacts, opened: CampaignOpened, sandbox: Sandbox, words: str, slots: int) -> WorkerStarted:
    return WorkerStarted(
        worker_id=facts.worker_id,
        campaign_id=opened.campaign_id,
        host=facts.host,
        host_words=words,
        interpreter=facts.interpreter,
        interpreter_version=sandbox.interpreter.version,
        isolation=facts.isolation,
        slots=slots,
        startup_ns=facts.startup_ns,
        started_at=utc_now(),
    )


def host_fingerprint() -> tuple[str, str]:
    """(hash, words) of what decides speed here: processor, cores, kernel and memory; no host name."""
    model = platform.processor() or platform.machine()
    cpuinfo = Path("/proc/cpuinfo")
    if cpuinfo.is_file():
        lines = cpuinfo.read_text(errors="replace").splitlines()
        model = next((line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")), model)
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // (1 << 30)
    words = f"{model}, {os.cpu_count()} cores, {platform.system()} {platform.release()}, {memory} GiB"
    return sha256_words("host", words)[:16], words
