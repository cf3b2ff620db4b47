"""Follows rewards down to raw timings and weighs them again: `lap trace`, and the rewards' half of `lap verify`.

Everything is recomputed at the reward's own recorded cut by the functions that assigned it.
"""

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass
from itertools import groupby
from typing import Any

import numpy as np

from consumers.calibrator import stored_calibration
from ledger.errors import UserError
from ledger.events import RewardAssigned
from ledger.questions import ATTEMPT_TIMINGS, Questions
from ledger.store.cuts import Cut
from ledger.store.opened import Ledger
from replay.criteria import Criterion
from replay.gates import Verdicts
from replay.measurements import ProblemMeasurements, durations
from replay.shell import Snapshot, judge_all, load, rewards


@dataclass(frozen=True, slots=True)
class TestTrace:
    """One test of a traced reward: outcome, the duration that was ranked, its rank, and the raw timings under it."""

    __test__ = False  # pytest must not collect it

    test_id: str
    roles: tuple[str, ...]
    outcome: str
    detail: str
    attempt_id: str
    duration_ns: int
    rank: int | None
    """Integer rank 2 * #{ref < d} + #{ref = d}; None where it was not ranked or is an interval."""
    percentile: float | None
    timings: tuple[Mapping[str, Any], ...]


@dataclass(frozen=True, slots=True)
class Trace:
    """A reward with all that it rests on, and what came out when it was computed again."""

    reward: Mapping[str, Any]
    criterion: Mapping[str, Any]
    calibration: Mapping[str, Any] | None
    program: Mapping[str, Any]
    pool: tuple[str, ...]
    tests: tuple[TestTrace, ...]
    reason: str
    recomputed: Mapping[str, Any] | None
    differences: tuple[str, ...]


def find_reward(questions: Questions, prefix: str) -> dict[str, Any]:
    """The reward whose id starts with `prefix`; UserError when there is none or more than one."""
    rows = questions.rows("SELECT * FROM reward WHERE starts_with(reward_id, $prefix) LIMIT 2", prefix=prefix)
    if len(rows) == 1:
        return rows[0]
    if not rows:
        raise UserError(f"no reward {prefix!r} at this cut; the view `verdict` of `lap sql` lists them")
    raise UserError(f"more than one reward starts with {prefix!r}; give more digits")


def trace(ledger: Ledger, questions: Questions, prefix: str) -> Trace:
    """The trace of one reward, recomputed at its recorded cut."""
    row = find_reward(questions, prefix)
    then = Questions(ledger, Cut.parse(row["cut"]))
    try:
        criterion = criterion_of(questions, row["criterion_hash"])
        snapshot, again = _again(then, questions, row, criterion)
        calibration = row["calibration_id"] and stored_calibration(then, row["calibration_id"])
        measured, verdicts = judge_all(snapshot, criterion, calibration or None)
        at = [m.problem for m in measured].index(row["problem_id"])
        timings = then.rows(ATTEMPT_TIMINGS, campaign=row["campaign_id"], program=row["program_id"])
        outcomes = then.rows(
            "SELECT test_id, outcome, detail, attempt_id FROM execution "
            "WHERE accepted AND campaign_id = $campaign AND program_id = $program",
            campaign=row["campaign_id"],
            program=row["program_id"],
        )
        return Trace(
            reward=row,
            criterion=_one(questions, "SELECT * FROM criterion WHERE criterion_hash = $id", row["criterion_hash"]),
            calibration=_calibration_row(questions, row["calibration_id"]),
            program=_one(questions, "SELECT * FROM program WHERE program_id = $id", row["program_id"]),
            pool=tuple(p for p, member in zip(measured[at].programs, measured[at].reference, strict=True) if member),
            tests=tuple(_tests(measured[at], verdicts[at], row["program_id"], criterion, (outcomes, timings))),
            reason=verdicts[at].reason[measured[at].row(row["program_id"])],
            recomputed=asdict(again) if again else None,
            differences=differences(row, again),
        )
    finally:
        then.close()


def criterion_of(questions: Questions, criterion_hash: str) -> Criterion:
    """The declared criterion of a hash; UserError when it was never declared."""
    row = _one(questions, "SELECT * FROM criterion WHERE criterion_hash = $id", criterion_hash)
    return Criterion.from_mapping(json.loads(row["canonical"]))


def verify_rewards(
    ledger: Ledger, questions: Questions, tick: Callable[[int], None] = lambda count: None
) -> tuple[int, list[str]]:
    """(rewards recomputed, one line for each that differs). `tick` hears how many rewards each step has done."""
    rows = questions.rows("SELECT * FROM reward ORDER BY cut, campaign_id, criterion_hash, calibration_id, reward_id")
    problems = [_CONTRADICTION.format(**row) for row in questions.rows(_TOLD_TWICE)]
    for (cut, *_), group in groupby(
        rows, key=lambda r: (r["cut"], r["campaign_id"], r["criterion_hash"], r["calibration_id"])
    ):
        batch = list(group)
        problems += _verify_at(ledger, cut, questions, batch)
        tick(len(batch))
    return len(rows), problems


_TOLD_TWICE = """
SELECT left(reward_id, 12) AS id, min(program_id) AS program FROM reward_assigned
GROUP BY reward_id HAVING count(DISTINCT (value, c, g, q_numerator, q_denominator, pool_size)) > 1 ORDER BY reward_id
"""
_CONTRADICTION = "reward {id} of {program}: told with two values, which no two derivations give"


def _verify_at(ledger: Ledger, cut: str, questions: Questions, batch: list[dict[str, Any]]) -> list[str]:
    try:
        then = Questions(ledger, Cut.parse(cut))
    except UserError as error:
        return [f"{len(batch)} rewards at cut {cut}: {error}"]
    try:
        return list(_verify_batch(then, questions, batch))
    finally:
        then.close()


def _verify_batch(then: Questions, questions: Questions, batch: list[dict[str, Any]]) -> Iterator[str]:
    try:
        criterion = criterion_of(questions, batch[0]["criterion_hash"])
        derived = _derive(then, batch[0], criterion)
    except UserError as error:
        yield f"{len(batch)} rewards at cut {batch[0]['cut']}: {error}"
        return
    for row in batch:
        for difference in differences(row, derived.get(row["program_id"])):
            yield f"reward {row['reward_id'][:12]} of {row['program_id']}: {difference}"


def differences(row: Mapping[str, Any], again: RewardAssigned | None) -> tuple[str, ...]:
    """What a recomputed reward says differently, one line a column; empty when every column agrees."""
    if again is None:
        return ("no reward follows from the facts at its cut",)
    values = asdict(again)
    return tuple(
        f"{name} is {row[name]!r}, recomputed {values[name]!r}" for name in values if row[name] != values[name]
    )


def _again(
    then: Questions, questions: Questions, row: Mapping[str, Any], criterion: Criterion
) -> tuple[Snapshot, RewardAssigned | None]:
    return load(then, row["campaign_id"]), _derive(then, row, criterion).get(row["program_id"])


def _derive(then: Questions, row: Mapping[str, Any], criterion: Criterion) -> dict[str, RewardAssigned]:
    calibration = stored_calibration(then, row["calibration_id"]) if row["calibration_id"] else None
    derived, _ = rewards(load(then, row["campaign_id"]), criterion, calibration)
    return {reward.program_id: reward for reward in derived}


def _tests(
    m: ProblemMeasurements,
    verdicts: Verdicts,
    program: str,
    criterion: Criterion,
    found: tuple[list[dict[str, Any]], list[dict[str, Any]]],
) -> Iterator[TestTrace]:
    row = m.row(program)
    ranked = durations(m, criterion)
    outcomes = {outcome["test_id"]: outcome for outcome in found[0]}
    for column, test in enumerate(m.tests.ids):
        outcome = outcomes[test]
        low, high = int(verdicts.k_lo[row, column]), int(verdicts.k_hi[row, column])
        counted = low >= 0 and low == high and verdicts.pool_size[row] > 0
        yield TestTrace(
            test_id=test,
            roles=_roles(m, column),
            outcome=outcome["outcome"],
            detail=outcome["detail"],
            attempt_id=outcome["attempt_id"],
            duration_ns=int(ranked[row, column]),
            rank=low if counted else None,
            percentile=100 * low / (2 * int(verdicts.pool_size[row])) if counted else None,
            timings=tuple(t for t in found[1] if t["attempt_id"] == outcome["attempt_id"]),
        )


def _roles(m: ProblemMeasurements, column: int) -> tuple[str, ...]:
    kinds = ("original", "correctness", "optimization")
    return tuple(kind for kind in kinds if bool(np.asarray(getattr(m.tests, kind))[column]))


def _one(questions: Questions, sql: str, key: str) -> Mapping[str, Any]:
    rows = questions.rows(sql, id=key)
    if not rows:
        raise UserError(f"{key[:12]} is named by a reward but not stored at this cut; run `lap verify`")
    return rows[0]


def _calibration_row(questions: Questions, key: str | None) -> Mapping[str, Any] | None:
    return _one(questions, "SELECT * FROM calibration WHERE calibration_id = $id", key) if key else None
