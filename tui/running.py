"""Drives a campaign on this machine: what is left, the worker's facts, progress, Ctrl-C, and the closing fact."""

import fcntl
import os
import platform
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ledger.digests import sha256_words
from ledger.errors import UserError
from ledger.events import CampaignClosed, CampaignOpened, ExecutionRequested, ProgramAdded, TestAdded, WorkerStarted
from ledger.questions import ATTEMPTS, DONE_WORKS, DURATIONS, Questions
from ledger.store.blobs import Blobs
from producers.campaigns.attempts import WorkerFacts
from producers.campaigns.plan import Plan, PlanSettings, estimate_ns, is_reference, make_plan
from producers.campaigns.worker import Bench, Material, Worker
from producers.sandbox.answers import AnswerFlags
from producers.sandbox.choose import measure_startup, open_sandbox
from producers.sandbox.limits import MIB, Limits, Sandbox
from tui.output import progress, say
from tui.session import Writing, new_id, utc_now
from tui.settings import Settings

STARTUP_RUNS = 21
TYPICAL_RUN_NS = 300_000_000
OVERHEAD_NS = 30_000_000
TELL_SECONDS = 15
"""How often progress is told in words where no bar can be drawn."""


@dataclass(frozen=True, slots=True)
class Chosen:
    """The programs and tests of a campaign, and the answer flags of their problems."""

    programs: tuple[ProgramAdded, ...]
    tests: tuple[TestAdded, ...]
    flags: dict[str, str]


@dataclass(frozen=True, slots=True)
class Left:
    """The works of a plan without an accepted outcome, with an estimate of their time on one slot.

    `stored` says whether the estimate stands on any stored duration.
    """

    campaign: str
    works: int
    requests: tuple[ExecutionRequested, ...]
    estimate_ns: int
    unknown: int
    stored: bool


def choose(questions: Questions, problems: Sequence[str], *, references_only: bool = False, every: int = 1) -> Chosen:
    """The members of a campaign: all problems, or those whose id or slug is named; UserError for an unknown one."""
    stored = questions.rows("SELECT * FROM problem ORDER BY problem_id")
    ids = [_find_problem(name, stored) for name in problems] or [row["problem_id"] for row in stored]
    programs = [ProgramAdded(**row) for row in questions.rows("SELECT * FROM program ORDER BY problem_id, program_id")]
    kept = [p for p in programs if p.problem_id in ids and (not references_only or is_reference(p))]
    tests = [TestAdded(**row) for row in questions.rows("SELECT * FROM test ORDER BY problem_id, ordinal")]
    flags = {row["problem_id"]: row["validator_flags"] for row in stored}
    return Chosen(tuple(_thin(kept, every)), tuple(t for t in tests if t.problem_id in ids), flags)


def _find_problem(name: str, stored: Sequence[dict[str, Any]]) -> str:
    found = [row["problem_id"] for row in stored if name in (row["problem_id"], row["slug"])]
    if len(found) == 1:
        return str(found[0])
    if found:
        raise UserError(f"problem {name!r} is stored in several versions: {', '.join(found)}; name one of these")
    known = ", ".join(sorted({row["slug"] for row in stored})) or "none; import some with `lap corpus import`"
    raise UserError(f"no problem {name!r} in the ledger; known: {known}")


def _thin(programs: Sequence[ProgramAdded], every: int) -> list[ProgramAdded]:
    seen: dict[str, int] = {}
    kept = []
    for program in programs:
        place = seen[program.problem_id] = seen.get(program.problem_id, -1) + 1
        if place % every == 0:
            kept.append(program)
    return kept


def plan_campaign(questions: Questions, chosen: Chosen, settings: Settings, name: str | None) -> tuple[Plan, Chosen]:
    """The plan, checked against a stored campaign of that name; UserError when that one had another plan."""
    wanted = PlanSettings(
        service=settings.service,
        seed=settings.seed,
        hard_limit_ns=round(settings.limit * 1e9),
        memory_bytes=settings.memory_mb * MIB,
        output_bytes=settings.output_mb * MIB,
        process_limit=settings.processes,
        repetitions=settings.repetitions,
        warmups=settings.warmups,
    )
    plan = make_plan(chosen.programs, chosen.tests, wanted, name=name)
    campaign = plan.opened.campaign_id
    stored = questions.rows("SELECT plan_digest FROM campaign WHERE campaign_id = $id", id=campaign)
    if stored and stored[0]["plan_digest"] != plan.opened.plan_digest:
        raise UserError(
            f"campaign {campaign!r} was opened with other programs, tests or settings; name a new one with --campaign"
        )
    return plan, chosen


def left_of(questions: Questions, planned: tuple[Plan, Chosen]) -> Left:
    """What is left of a plan at the questions' cut."""
    plan, _ = planned
    campaign = plan.opened.campaign_id
    done = set(questions.ask(DONE_WORKS, campaign=campaign)["work_id"].to_pylist())
    left = tuple(request for request in plan.requests if request.work_id not in done)
    known = {(r["program_id"], r["test_id"]): r["wall_ns"] + OVERHEAD_NS for r in questions.rows(DURATIONS)}
    total, unknown = estimate_ns(left, known, TYPICAL_RUN_NS)
    return Left(campaign, len(plan.requests), left, total * plan.opened.repetitions, unknown, stored=bool(known))


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


def run_plan(open_: Writing, planned: tuple[Plan, Chosen], left: Left, settings: Settings) -> dict[str, Any]:
    """Runs what is left and says what came of it; the campaign is closed when every work has an outcome."""
    plan, chosen = planned
    _request(open_, plan)
    outcomes: dict[str, int] = {}
    interrupted = False
    if left.requests:
        worker, scratch = _start(open_, plan, chosen, left, settings)
        try:
            interrupted = _watch(worker, open_, len(left.requests))
        finally:
            worker.stop()
            scratch.cleanup()
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


def _request(open_: Writing, plan: Plan) -> None:
    """Opens the campaign and requests its works, as far as the ledger does not hold that already."""
    questions = Questions(open_.ledger)
    try:
        campaign = plan.opened.campaign_id
        opened = questions.rows("SELECT 1 FROM campaign WHERE campaign_id = $id", id=campaign)
        held = questions.ask("SELECT work_id FROM request WHERE campaign_id = $id", id=campaign)["work_id"].to_pylist()
    finally:
        questions.close()
    missing = set(held)
    requests = [request for request in plan.requests if request.work_id not in missing]
    open_.producer.append([*([] if opened else [plan.opened]), *requests])
    open_.admit()


def _start(
    open_: Writing, plan: Plan, chosen: Chosen, left: Left, settings: Settings
) -> tuple[Worker, tempfile.TemporaryDirectory[str]]:
    sandbox = open_sandbox(isolation=settings.isolation, hidden=(open_.ledger.root.resolve(),))
    if sandbox.warning:
        say(f"lap: warning: {sandbox.warning}")
    startup_ns = measure_startup(sandbox, STARTUP_RUNS)
    host, words = host_fingerprint()
    facts = WorkerFacts(
        worker_id=open_.producer.epoch,
        host=host,
        interpreter=sandbox.interpreter.sha256,
        isolation=sandbox.isolation,
        startup_ns=startup_ns,
    )
    open_.producer.append([_started(facts, plan.opened, sandbox, words, settings.slots)])
    scratch = tempfile.TemporaryDirectory(prefix="lap-run-")
    bench = Bench(
        sandbox=sandbox,
        limits=_limits(plan.opened),
        repetitions=plan.opened.repetitions,
        warmups=plan.opened.warmups,
        slots=settings.slots,
        blobs=open_.ledger.blobs,
        material=_material(chosen, open_.ledger.blobs),
        facts=facts,
        scratch=Path(scratch.name),
        monotonic_ns=time.monotonic_ns,
        new_id=new_id,
        utc_now=utc_now,
    )
    worker = Worker(bench, open_.producer, left.requests)
    worker.start()
    return worker, scratch


def _watch(worker: Worker, open_: Writing, total: int) -> bool:
    """Shows progress and admits outcomes until the worker ends; True when Ctrl-C ended it early."""
    interrupted, ended = False, False
    told = time.monotonic()
    with progress("running", total) as bar:
        while not ended:
            try:
                ended = worker.wait(0.5)
                open_.admit()
                bar.update(bar.task_ids[0], completed=worker.progress.finished, note=_note(worker))
                if bar.disable and time.monotonic() - told > TELL_SECONDS:
                    told = time.monotonic()
                    say(f"{worker.progress.finished} of {total} done: {_note(worker)}")
            except KeyboardInterrupt:
                if interrupted:
                    raise
                interrupted = True
                worker.stop()
                say("finishing the programs that run now; press Ctrl-C again to drop them")
    if worker.failure is not None:
        raise worker.failure
    return interrupted


def _note(worker: Worker) -> str:
    return ", ".join(f"{count} {name}" for name, count in sorted(worker.progress.outcomes.items()))


def _close(open_: Writing, plan: Plan) -> dict[str, int]:
    open_.admit()
    questions = Questions(open_.ledger)
    try:
        campaign = plan.opened.campaign_id
        counts: dict[str, int] = questions.rows(ATTEMPTS, campaign=campaign)[0]
        closed = questions.rows("SELECT 1 FROM closing WHERE campaign_id = $id", id=campaign)
    finally:
        questions.close()
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
