"""One attempt at one work: run it in the sandbox, check its answer, and say what was seen as events.

Whatever the program does is data. Only the sandbox's own failure is a fault, and it is never charged to the program.
"""

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from lapledger.ledger.codec.canonical import rows_digest, sha256
from lapledger.ledger.events import ExecutionFinished, ExecutionRequested, TimingMeasured, to_batch
from lapledger.producers.sandbox.limits import Execution, Limits
from lapledger.producers.sandbox.output_checker import AnswerFlags, check

NO_TIMINGS = sha256()
"""Digest that stands for an attempt without timings."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerFacts:
    """What is the same for every run of one worker; it goes into every timing."""

    worker_id: str
    host: str
    interpreter: str
    isolation: str
    startup_ns: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Circumstances:
    """What surrounded one attempt."""

    attempt_id: str
    offset_ns: int
    slot: int
    neighbours: int
    finished_at: str


@dataclass(frozen=True, slots=True)
class Judged:
    """One finished run with the verdict on its answer."""

    execution: Execution
    outcome: str
    detail: str
    output_digest: str | None


def judge_run(execution: Execution, output: Path, answer: bytes, flags: AnswerFlags) -> Judged:
    """The outcome of a run: its own failure, or `accepted` / `wrong_answer` by the default answer check."""
    if execution.outcome == "sandbox_fault":
        return Judged(execution, execution.outcome, execution.fault, None)
    if execution.outcome != "ok":
        return Judged(execution, execution.outcome, _last_line(execution.stderr_tail), None)
    written = output.read_bytes()
    judgement = check(written, answer, flags)
    outcome = "accepted" if judgement.accepted else "wrong_answer"
    return Judged(execution, outcome, judgement.detail, hashlib.sha256(written).hexdigest())


def charged(judged: Judged) -> Judged:
    """The run, charged to its program when each try ended with the machine out of memory and the run taking much of it.

    Once may be its neighbours' doing, so it is tried again; a program that brings it about each time must not escape.
    """
    execution = judged.execution
    if execution.outcome != "sandbox_fault" or execution.cut != "memory":
        return judged
    detail = f"the machine ran out of memory at every try ({execution.fault})"
    return Judged(replace(execution, outcome="memory_limit", fault=""), "memory_limit", detail[:200], None)


def _last_line(text: str) -> str:
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return lines[-1][:200] if lines else ""


def run_block(run: Callable[[], Judged], repetitions: int) -> list[Judged]:
    """Runs up to `repetitions` times; the first run that is not accepted ends the block."""
    runs: list[Judged] = []
    while len(runs) < repetitions:
        runs.append(run())
        if runs[-1].outcome != "accepted":
            break
    return runs


def attempt_events(
    request: ExecutionRequested,
    runs: Sequence[Judged],
    worker: WorkerFacts,
    *,
    around: Circumstances,
    limits: Limits,
    warmups: int,
) -> list[TimingMeasured | ExecutionFinished]:
    """The events of an attempt: one timing for each run that the sandbox completed, then the finish that shows them."""
    timings = [
        _timing(request, run.execution, worker, around=around, limits=limits, repetition=i, warmup=i < warmups)
        for i, run in enumerate(runs)
        if run.outcome != "sandbox_fault"
    ]
    if runs[-1].outcome == "sandbox_fault":
        timings = []
    return [*timings, _finished(request, runs[-1], timings, worker, around)]


def _timing(
    request: ExecutionRequested,
    execution: Execution,
    worker: WorkerFacts,
    *,
    around: Circumstances,
    limits: Limits,
    repetition: int,
    warmup: bool,
) -> TimingMeasured:
    return TimingMeasured(
        work_id=request.work_id,
        attempt_id=around.attempt_id,
        campaign_id=request.campaign_id,
        problem_id=request.problem_id,
        program_id=request.program_id,
        test_id=request.test_id,
        block=request.block,
        repetition=repetition,
        warmup=warmup,
        wall_ns=execution.wall_ns,
        user_ns=execution.user_ns,
        system_ns=execution.system_ns,
        peak_memory_bytes=execution.peak_memory_bytes,
        voluntary_switches=execution.voluntary_switches,
        forced_switches=execution.forced_switches,
        judged_limit_ns=limits.wall_ns,
        hard_limit_ns=limits.wall_ns,
        cut=execution.cut,
        position=request.position,
        offset_ns=around.offset_ns,
        core=None,
        slot=around.slot,
        neighbours=around.neighbours,
        startup_ns=worker.startup_ns,
        interpreter=worker.interpreter,
        isolation=worker.isolation,
        host=worker.host,
    )


def _finished(
    request: ExecutionRequested,
    last: Judged,
    timings: Sequence[TimingMeasured],
    worker: WorkerFacts,
    around: Circumstances,
) -> ExecutionFinished:
    return ExecutionFinished(
        work_id=request.work_id,
        attempt_id=around.attempt_id,
        campaign_id=request.campaign_id,
        problem_id=request.problem_id,
        program_id=request.program_id,
        test_id=request.test_id,
        block=request.block,
        outcome=last.outcome,
        detail=last.detail,
        exit_code=last.execution.exit_code,
        signal=last.execution.signal,
        output_digest=last.output_digest,
        output_bytes=last.execution.output_bytes,
        timings=len(timings),
        timings_digest=rows_digest(to_batch(timings)) if timings else NO_TIMINGS,
        worker_id=worker.worker_id,
        isolation=worker.isolation,
        finished_at=around.finished_at,
    )
