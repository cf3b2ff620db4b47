"""What follows from a judged campaign: rewards as events, and the digest of what each depends on.

The online rewarder and every audit call these functions. Nothing is appended here.
"""

import numpy as np

from lapledger.ledger.codec.canonical import sha256_fields
from lapledger.ledger.events import RewardAssigned
from lapledger.replay.judging.gates import Status, Verdicts
from lapledger.replay.judging.rewards import reward
from lapledger.replay.loading.calibrations import Calibration
from lapledger.replay.loading.judged_campaign import JudgedCampaign
from lapledger.replay.loading.snapshots import KERNEL, Snapshot
from lapledger.replay.measurements import Outcome, ProblemMeasurements, Tests


def is_closed(m: ProblemMeasurements) -> bool:
    """Whether every candidate has an accepted outcome on every test, so that a reward may be derived."""
    return bool((m.outcome[m.candidate] != Outcome.MISSING).all())


def evidence(snapshot: Snapshot, m: ProblemMeasurements, program: str, calibration: Calibration | None = None) -> str:
    """Digest of all that a verdict on `program` depends on: the tests, the frozen pool's rows and its own row."""
    pool = sorted(p for p, member in zip(m.programs, m.reference, strict=True) if member)
    stored = calibration.stored.rows if calibration else {}
    rows = [snapshot.rows.get(p) or stored[p] for p in pool]
    return sha256_fields("evidence", m.problem, _tests_digest(m.tests), len(pool), *rows, snapshot.rows[program])


def references_digest(snapshot: Snapshot) -> str:
    """Digest of what a calibration reads of one campaign: every problem's tests and every reference's row."""
    fields: list[str | int] = ["references"]
    for m in snapshot.problems:
        pool = sorted(p for p, member in zip(m.programs, m.reference, strict=True) if member)
        fields += [m.problem, _tests_digest(m.tests), len(pool), *(snapshot.rows[p] for p in pool)]
    return sha256_fields(*fields)


def _tests_digest(tests: Tests) -> str:
    kinds = zip(tests.ids, tests.original, tests.correctness, tests.optimization, strict=True)
    return sha256_fields(
        *(f"{int(original)}{int(correct)}{int(ranked)} {name}" for name, original, correct, ranked in kinds)
    )


def rewards(judged: JudgedCampaign) -> tuple[list[RewardAssigned], int]:
    """(rewards of every closed problem's candidates, number of candidates that are open or undecided)."""
    assigned: list[RewardAssigned] = []
    waiting = 0
    for m, verdicts in zip(judged.measurements, judged.verdicts, strict=True):
        given = _problem_rewards(judged, m, verdicts) if is_closed(m) else []
        assigned += given
        waiting += int(m.candidate.sum()) - len(given)
    return assigned, waiting


def _problem_rewards(judged: JudgedCampaign, m: ProblemMeasurements, verdicts: Verdicts) -> list[RewardAssigned]:
    lookups, criterion = judged.snapshot.lookups, judged.criterion
    group = lookups.groups(verdicts.programs) if criterion.reward == "multitask" and lookups else None
    values = reward(verdicts, criterion, group=group)
    chosen = np.flatnonzero(verdicts.candidate & ~np.isnan(values))
    return [_assigned(judged, m, verdicts, int(row), value=float(values[row])) for row in chosen]


def _assigned(
    judged: JudgedCampaign, m: ProblemMeasurements, verdicts: Verdicts, row: int, *, value: float
) -> RewardAssigned:
    program = verdicts.programs[row]
    proof = evidence(judged.snapshot, m, program, judged.calibration)
    return RewardAssigned(
        reward_id=reward_id(judged.campaign, program, verdicts.criterion, judged.calibration_id, proof),
        problem_id=m.problem,
        program_id=program,
        campaign_id=judged.campaign,
        criterion_hash=verdicts.criterion,
        calibration_id=judged.calibration_id,
        value=value,
        c=_known(verdicts.c[row]),
        g=_known(verdicts.g[row]),
        q_numerator=int(verdicts.q_hi[row]),
        q_denominator=int(verdicts.q_den[row]),
        pool_size=int(verdicts.pool_size[row]),
        evidence_digest=proof,
        kernel=KERNEL,
        cut=judged.cut,
    )


def _known(gate: int) -> bool | None:
    return None if gate == Status.UNDECIDED else bool(gate == Status.PASS)


def reward_id(campaign: str, program: str, criterion: str, calibration: str | None, proof: str) -> str:
    """The id of a reward: what it is about and what it depends on, never a cut, a clock or a release."""
    return sha256_fields("reward", campaign, program, criterion, calibration or "", proof, KERNEL)
