"""The runs that a result file holds as events: timings with what was measured, then what finishes each attempt.

Pure. What a file does not say is null; ids follow from the campaign, the program and the test.
"""

import uuid
from collections.abc import Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from hashlib import sha256
from itertools import pairwise

from lapledger.ledger.codec.canonical import canonical, sha256_fields, work_id
from lapledger.ledger.events import ExecutionFinishedV2, TimingMeasuredV2, to_batch
from lapledger.producers.campaigns.attempts import NO_TIMINGS
from lapledger.producers.importers.model import Repetition, ResultProgram, Run


@dataclass(frozen=True, slots=True)
class Known:
    """What the ledger holds: ids of problems, tests and programs; finished works; attempts that timings name."""

    ids: AbstractSet[str]
    works: AbstractSet[str]
    attempts: AbstractSet[str]


@dataclass(frozen=True, slots=True)
class RunContext:
    """The campaign, problem and host of some runs."""

    campaign: str
    problem: str
    host: str


def executions(
    context: RunContext, programs: Mapping[str, ResultProgram], known: Known
) -> tuple[list[TimingMeasuredV2], list[ExecutionFinishedV2]]:
    """The timings of all runs that are not held, and what finishes each run."""
    timings: list[TimingMeasuredV2] = []
    ends: list[tuple[_Ids, Run]] = []
    bounds = [0]
    for key, run in ((key, run) for key, program in programs.items() for run in program.runs):
        test = f"{context.problem}/{run.test}"
        work = work_id(context.campaign, key, test, 0)
        if work not in known.works:
            ids = _Ids(work, next(attempt for attempt in _attempts(work) if attempt not in known.attempts), key, test)
            timings += [_timing(context, ids, number, repetition) for number, repetition in enumerate(run.repetitions)]
            ends.append((ids, run))
            bounds.append(len(timings))
    digests = _digests(timings, bounds)
    return timings, [_finished(context, *end, digest) for end, digest in zip(ends, digests, strict=True)]


def _digests(timings: Sequence[TimingMeasuredV2], bounds: Sequence[int]) -> list[str]:
    """`rows_digest` of the timings between each two bounds, made in one go."""
    edges = sorted(set(bounds))  # slices without a row have no canonical form
    encoded = canonical(to_batch(timings).columns, edges) if timings else iter(())
    return [sha256(next(encoded)).hexdigest() if start < end else NO_TIMINGS for start, end in pairwise(bounds)]


@dataclass(frozen=True, slots=True)
class _Ids:
    """What names one run."""

    work: str
    attempt: str
    program: str
    test: str


def _finished(context: RunContext, ids: _Ids, run: Run, digest: str) -> ExecutionFinishedV2:
    return ExecutionFinishedV2(
        work_id=ids.work,
        attempt_id=ids.attempt,
        campaign_id=context.campaign,
        problem_id=context.problem,
        program_id=ids.program,
        test_id=ids.test,
        block=0,
        outcome=run.outcome,
        detail=run.detail,
        exit_code=None,
        signal=None,
        output_digest=None,
        output_bytes=None,
        timings=len(run.repetitions),
        timings_digest=digest,
        worker_id="",
        isolation="",
        finished_at=run.finished_at,
    )


def _attempts(work: str) -> Iterator[str]:
    """Ids for the attempts at a work (UUIDv8, RFC 9562): the next is for an import that died in the middle of it."""
    number = 0
    while True:
        digits = bytearray.fromhex(sha256_fields("imported attempt", work, number)[:32])
        digits[6], digits[8] = 0x80 | digits[6] & 0x0F, 0x80 | digits[8] & 0x3F
        yield str(uuid.UUID(bytes=bytes(digits)))
        number += 1


def _timing(context: RunContext, ids: _Ids, number: int, repetition: Repetition) -> TimingMeasuredV2:
    return TimingMeasuredV2(
        work_id=ids.work,
        attempt_id=ids.attempt,
        campaign_id=context.campaign,
        problem_id=context.problem,
        program_id=ids.program,
        test_id=ids.test,
        block=0,
        repetition=number,
        warmup=repetition.warmup,
        wall_ns=repetition.wall_ns,
        user_ns=None,
        system_ns=None,
        peak_memory_bytes=repetition.peak_memory_bytes,
        voluntary_switches=None,
        forced_switches=None,
        judged_limit_ns=None,
        hard_limit_ns=None,
        cut="",
        position=None,
        offset_ns=None,
        core=None,
        slot=None,
        neighbours=None,
        startup_ns=None,
        interpreter="",
        isolation="",
        host=context.host,
        instructions=repetition.instructions,
    )
