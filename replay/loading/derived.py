"""What follows from a snapshot: verdicts of every problem, rewards as events, and the digest of what each rests on.

The online rewarder and every offline replay call these functions. Nothing is read from the ledger and nothing appended.
"""

from dataclasses import dataclass, replace

import numpy as np

from lapledger.ledger.codec.canonical import sha256_words
from lapledger.ledger.events import RewardAssigned
from lapledger.replay.calibration import with_stored
from lapledger.replay.criteria import Criterion
from lapledger.replay.judging.gates import Status, Verdicts, judge
from lapledger.replay.judging.rewards import reward
from lapledger.replay.loading.snapshots import KERNEL, Calibration, Snapshot
from lapledger.replay.measurements import Outcome, ProblemMeasurements, Tests
from lapledger.replay.studies.problem_batches import is_common, judge_many

COMPILED_FROM = 16_000_000
"""Runs from which on machine code is worth its loading for one criterion."""


def is_closed(m: ProblemMeasurements) -> bool:
    """Whether every candidate has an accepted outcome on every test, so that a reward may be derived."""
    return bool((m.outcome[m.candidate] != Outcome.MISSING).all())


def pooled(m: ProblemMeasurements, calibration: Calibration | None) -> ProblemMeasurements:
    """The measurements with the stored references that the calibration adds; unchanged without one."""
    if calibration is None:
        return m
    stored = {problem.problem: problem for problem in calibration.stored.problems}
    return with_stored(m, stored[m.problem], calibration.fit) if m.problem in stored else m


def prepared(
    snapshot: Snapshot, m: ProblemMeasurements, criterion: Criterion, calibration: Calibration | None = None
) -> ProblemMeasurements:
    """What a criterion is put to: the pooled measurements, with each program's interface looked at where it asks."""
    full = pooled(m, calibration)
    if criterion.interface == "ignored" or snapshot.lookups is None:
        return full
    return replace(full, interface=snapshot.lookups.interfaces(full))


def judge_all(
    snapshot: Snapshot, criterion: Criterion, calibration: Calibration | None = None
) -> tuple[list[ProblemMeasurements], list[Verdicts]]:
    """The pooled measurements and the verdicts of every problem of a snapshot."""
    measured = [prepared(snapshot, m, criterion, calibration) for m in snapshot.problems]
    if is_common(criterion) and sum(m.outcome.size for m in measured) >= COMPILED_FROM:
        return measured, judge_many(measured, criterion)
    return measured, [judge(m, criterion, hold=False) for m in measured]


def evidence(snapshot: Snapshot, m: ProblemMeasurements, program: str, calibration: Calibration | None = None) -> str:
    """Digest of all that a verdict on `program` rests on: the tests, the frozen pool's rows and its own row."""
    pool = sorted(p for p, member in zip(m.programs, m.reference, strict=True) if member)
    stored = calibration.stored.rows if calibration else {}
    rows = [snapshot.rows.get(p) or stored[p] for p in pool]
    return sha256_words("evidence", m.problem, _tests_digest(m.tests), len(pool), *rows, snapshot.rows[program])


def references_digest(snapshot: Snapshot) -> str:
    """Digest of what a calibration reads of one campaign: every problem's tests and every reference's row."""
    words: list[str | int] = ["references"]
    for m in snapshot.problems:
        pool = sorted(p for p, member in zip(m.programs, m.reference, strict=True) if member)
        words += [m.problem, _tests_digest(m.tests), len(pool), *(snapshot.rows[p] for p in pool)]
    return sha256_words(*words)


def _tests_digest(tests: Tests) -> str:
    kinds = zip(tests.ids, tests.original, tests.correctness, tests.optimization, strict=True)
    return sha256_words(
        *(f"{int(original)}{int(correct)}{int(ranked)} {name}" for name, original, correct, ranked in kinds)
    )


def rewards(
    snapshot: Snapshot, criterion: Criterion, calibration: Calibration | None = None
) -> tuple[list[RewardAssigned], int]:
    """(rewards of every closed problem's candidates, number of candidates that are open or undecided)."""
    assigned: list[RewardAssigned] = []
    waiting = 0
    for m in snapshot.problems:
        if not is_closed(m):
            waiting += int(m.candidate.sum())
            continue
        full = prepared(snapshot, m, criterion, calibration)
        given = _problem_rewards(_Judged(snapshot, full, judge(full, criterion), calibration), criterion)
        assigned += given
        waiting += int(m.candidate.sum()) - len(given)
    return assigned, waiting


@dataclass(frozen=True, slots=True, eq=False)
class _Judged:
    """One problem with its verdicts and what they rest on."""

    snapshot: Snapshot
    m: ProblemMeasurements
    verdicts: Verdicts
    calibration: Calibration | None


def _problem_rewards(judged: _Judged, criterion: Criterion) -> list[RewardAssigned]:
    lookups, programs = judged.snapshot.lookups, judged.verdicts.programs
    group = lookups.groups(programs) if criterion.reward == "multitask" and lookups else None
    values = reward(judged.verdicts, criterion, group=group)
    chosen = np.flatnonzero(judged.verdicts.candidate & ~np.isnan(values))
    return [_assigned(judged, int(row), float(values[row])) for row in chosen]


def _assigned(judged: _Judged, row: int, value: float) -> RewardAssigned:
    snapshot, verdicts, calibration = judged.snapshot, judged.verdicts, judged.calibration
    program = verdicts.programs[row]
    proof = evidence(snapshot, judged.m, program, calibration)
    calibration_id = calibration.calibration_id if calibration else None
    return RewardAssigned(
        reward_id=reward_id(snapshot.name, program, verdicts.criterion, calibration_id, proof),
        problem_id=judged.m.problem,
        program_id=program,
        campaign_id=snapshot.name,
        criterion_hash=verdicts.criterion,
        calibration_id=calibration_id,
        value=value,
        c=_known(verdicts.c[row]),
        g=_known(verdicts.g[row]),
        q_numerator=int(verdicts.q_hi[row]),
        q_denominator=int(verdicts.q_den[row]),
        pool_size=int(verdicts.pool_size[row]),
        evidence_digest=proof,
        kernel=KERNEL,
        cut=snapshot.cut,
    )


def _known(gate: int) -> bool | None:
    return None if gate == Status.UNDECIDED else bool(gate == Status.PASS)


def reward_id(campaign: str, program: str, criterion: str, calibration: str | None, proof: str) -> str:
    """The id of a reward: what it is about and what it rests on, never a cut, a clock or a release."""
    return sha256_words("reward", campaign, program, criterion, calibration or "", proof, KERNEL)
