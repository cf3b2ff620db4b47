"""Facts about running programs: campaigns, workers, requests, attempts and their raw timings.

All durations are integer nanoseconds of monotonic clocks; wall time appears only as a label.
"""

from dataclasses import dataclass
from typing import Annotated

from lapledger.ledger.events.base import CONTROL, PARTITIONS, REQUESTS, fact

OUTCOMES = (
    "accepted",
    "wrong_answer",
    "run_time_error",
    "time_limit",
    "memory_limit",
    "output_limit",
    "sandbox_fault",
)
"""How an attempt may end."""
UNSPECIFIED_FAILURE = "failed"
"""Outcome of an imported attempt that the other tool reports as failed without a reason."""


@fact("campaign.opened", 1, stream=CONTROL)
@dataclass(frozen=True, slots=True, kw_only=True)
class CampaignOpened:
    """One shared execution activity was planned: all its programs and references, shuffled together."""

    campaign_id: Annotated[str, "the user's name for it, or `c-` and 12 hex digits of the plan digest"]
    plan_digest: Annotated[
        str, "SHA-256 of the plan's settings, its works in shuffled order, and who shares whose executions"
    ]
    service: Annotated[str, "worker class: only timings of one class are compared"]
    problems: Annotated[tuple[str, ...], "problem ids"]
    programs: Annotated[tuple[str, ...], "program ids of all members"]
    references: Annotated[tuple[str, ...], "program ids of the frozen reference pool"]
    reference_rule: Annotated[str, "how the pool was chosen"]
    shuffle_seed: Annotated[int, "seed of the order"]
    hard_limit_ns: Annotated[int, "wall time at which a run is killed"]
    memory_bytes: Annotated[int, "address space of one process"]
    output_bytes: Annotated[int, "largest output"]
    process_limit: Annotated[int, "most processes and threads at once"]
    repetitions: Annotated[int, "timed runs per work"]
    warmups: Annotated[int, "warm-up runs before them, recorded but not scored"]
    works: Annotated[int, "number of works requested"]


@fact("execution.shared", 1)
@dataclass(frozen=True, slots=True, kw_only=True)
class ExecutionShared:
    """A program of a campaign is not run: another has the same source, and its executions count for both."""

    campaign_id: Annotated[str, "the campaign, of which both are members"]
    problem_id: Annotated[str, "the problem of both"]
    program_id: Annotated[str, "the program that is not run"]
    executed_program_id: Annotated[str, "the program that is run"]
    source_blob: Annotated[str, "SHA-256 of the source of both"]


@fact("campaign.closed", 1, stream=CONTROL)
@dataclass(frozen=True, slots=True, kw_only=True)
class CampaignClosed:
    """Every work of a campaign has an accepted outcome, or it was given up."""

    campaign_id: Annotated[str, "the campaign"]
    accepted: Annotated[int, "works with an accepted attempt"]
    surplus: Annotated[int, "finished attempts beyond the accepted one"]
    faults: Annotated[int, "attempts that ended in a sandbox fault"]
    reason: Annotated[str, "`complete` or why it was given up"]


@fact("worker.started", 1, stream=CONTROL)
@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerStarted:
    """A sandbox worker came up and measured its own start-up."""

    worker_id: Annotated[str, "producer epoch of the worker"]
    campaign_id: Annotated[str, "the campaign it works for"]
    host: Annotated[str, "fingerprint of the machine: hash of its processor, cores, kernel and memory"]
    host_description: Annotated[str, "the same, readable"]
    interpreter: Annotated[str, "SHA-256 of the interpreter's binary"]
    interpreter_version: Annotated[str, "for instance `3.11.7`"]
    isolation: Annotated[str, "`bubblewrap` or `plain`"]
    slots: Annotated[int, "runs side by side"]
    startup_ns: Annotated[int, "median wall time of an empty program"]
    started_at: Annotated[str, "label: UTC time"]


@fact("execution.requested", 1, stream=REQUESTS)
@dataclass(frozen=True, slots=True, kw_only=True)
class ExecutionRequestedV1:
    """A work, before requests were spread over lanes."""

    work_id: Annotated[str, "SHA-256 of campaign, program, test and repetition block"]
    campaign_id: Annotated[str, "the campaign"]
    problem_id: Annotated[str, "the problem"]
    program_id: Annotated[str, "the program"]
    test_id: Annotated[str, "the test"]
    block: Annotated[int, "repetition block, from 0"]
    position: Annotated[int, "position in the shuffled order, from 0"]


@fact("execution.requested", 2, stream=REQUESTS, key="lane", added={"lane": "4"})
@dataclass(frozen=True, slots=True, kw_only=True)
class ExecutionRequestedV2:
    """A work, before problems' own limits were in force."""

    work_id: Annotated[str, "SHA-256 of campaign, program, test and repetition block"]
    campaign_id: Annotated[str, "the campaign"]
    problem_id: Annotated[str, "the problem"]
    program_id: Annotated[str, "the program"]
    test_id: Annotated[str, "the test"]
    block: Annotated[int, "repetition block, from 0"]
    position: Annotated[int, "position in the shuffled order, from 0"]
    lane: Annotated[str, "lane of the request stream: the position modulo the number of lanes, so that workers share"]


_NO_LIMITS = {"limit_ns": None, "memory_bytes": None, "output_limit_bytes": None}


@fact("execution.requested", 3, stream=REQUESTS, key="lane", added=_NO_LIMITS)
@dataclass(frozen=True, slots=True, kw_only=True)
class ExecutionRequested:
    """A work: run this program on this test, once for each repetition of the block."""

    work_id: Annotated[str, "SHA-256 of campaign, program, test and repetition block"]
    campaign_id: Annotated[str, "the campaign"]
    problem_id: Annotated[str, "the problem"]
    program_id: Annotated[str, "the program"]
    test_id: Annotated[str, "the test"]
    block: Annotated[int, "repetition block, from 0"]
    position: Annotated[int, "position in the shuffled order, from 0"]
    lane: Annotated[str, "lane of the request stream: the position modulo the number of lanes, so that workers share"]
    limit_ns: Annotated[int | None, "the problem's own time limit where it is in force; null: the campaign's"] = None
    memory_bytes: Annotated[int | None, "the problem's own memory limit where it is in force"] = None
    output_limit_bytes: Annotated[int | None, "the problem's own limit of the output where it is in force"] = None


LANES = PARTITIONS[REQUESTS]
"""Each lane has a partition of its own; requests of version 1 share the partition of lane 4."""


@fact("timing.measured", 1)
@dataclass(frozen=True, slots=True, kw_only=True)
class TimingMeasured:
    """One repetition of one attempt, unaveraged. It counts once its attempt's `execution.finished` is admitted."""

    work_id: Annotated[str, "the work"]
    attempt_id: Annotated[str, "the attempt (UUIDv7)"]
    campaign_id: Annotated[str, "the campaign"]
    problem_id: Annotated[str, "the problem"]
    program_id: Annotated[str, "the program"]
    test_id: Annotated[str, "the test"]
    block: Annotated[int, "repetition block"]
    repetition: Annotated[int, "repetition in the block, from 0, warm-ups included"]
    warmup: Annotated[bool, "true for a warm-up"]
    wall_ns: Annotated[int, "wall time from fork to exit"]
    user_ns: Annotated[int, "processor time in user mode"]
    system_ns: Annotated[int, "processor time in system mode"]
    peak_memory_bytes: Annotated[int, "largest resident size"]
    voluntary_switches: Annotated[int, "context switches the program asked for by waiting"]
    forced_switches: Annotated[int, "context switches forced on it"]
    judged_limit_ns: Annotated[int, "time limit that decides the outcome"]
    hard_limit_ns: Annotated[int, "wall time at which it would be killed"]
    cut: Annotated[str, "why it was cut short: empty, `wall`, `cpu`, `output` or `memory`"]
    position: Annotated[int, "position in the shuffled order"]
    offset_ns: Annotated[int, "monotonic time since this worker started on the campaign"]
    core: Annotated[int | None, "core it was bound to; null when it was free to move"]
    slot: Annotated[int, "worker slot, from 0"]
    neighbours: Annotated[int, "other slots that were busy when it started"]
    startup_ns: Annotated[int, "the worker's start-up baseline"]
    interpreter: Annotated[str, "SHA-256 of the interpreter's binary"]
    isolation: Annotated[str, "isolation level of this run"]
    host: Annotated[str, "fingerprint of the machine"]


@fact("execution.finished", 1)
@dataclass(frozen=True, slots=True, kw_only=True)
class ExecutionFinished:
    """An attempt ended. The first admitted one of a work that is no sandbox fault is the accepted attempt."""

    work_id: Annotated[str, "the work"]
    attempt_id: Annotated[str, "the attempt (UUIDv7)"]
    campaign_id: Annotated[str, "the campaign"]
    problem_id: Annotated[str, "the problem"]
    program_id: Annotated[str, "the program"]
    test_id: Annotated[str, "the test"]
    block: Annotated[int, "repetition block"]
    outcome: Annotated[
        str,
        "`accepted`, `wrong_answer`, `run_time_error`, `time_limit`, `memory_limit`, `output_limit`; "
        "`sandbox_fault` is never charged to the program",
    ]
    detail: Annotated[str, "one line: the first difference, the last line of the error, or the fault"]
    exit_code: Annotated[int | None, "exit code, where it ended by itself"]
    signal: Annotated[int | None, "signal that ended it"]
    output_digest: Annotated[str | None, "SHA-256 of what it wrote"]
    output_bytes: Annotated[int, "bytes that it wrote"]
    timings: Annotated[int, "number of its timing events"]
    timings_digest: Annotated[str, "digest of its timing events in order of repetition"]
    worker_id: Annotated[str, "the worker"]
    isolation: Annotated[str, "isolation level"]
    finished_at: Annotated[str, "label: UTC time"]
