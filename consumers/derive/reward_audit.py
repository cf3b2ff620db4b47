"""Follows rewards down to raw timings and recomputes them: `lap trace`, and the rewards' half of `lap verify`.

Everything is recomputed at the reward's own recorded cut by the functions that assigned it.
"""

import json
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass
from itertools import groupby
from typing import Any

import numpy as np

from lapledger.ledger.errors import UserError
from lapledger.ledger.events import RewardAssigned
from lapledger.ledger.questions.queries import ATTEMPT_TIMINGS, Questions
from lapledger.ledger.store.cuts import Cut
from lapledger.ledger.store.open_ledger import Ledger
from lapledger.replay.criteria import Criterion
from lapledger.replay.judging.gates import Verdicts
from lapledger.replay.loading import (
    KERNEL,
    JudgedCampaign,
    executed_by,
    false_shares,
    judge_snapshot,
    load,
    rewards,
    stored_calibration,
)
from lapledger.replay.measurements import Outcome, ProblemMeasurements, durations


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
    references_ns: tuple[int, ...]
    """Finished durations of the references that it was ranked among, sorted; empty where it was not ranked."""
    timings: tuple[Mapping[str, Any], ...]


@dataclass(frozen=True, slots=True)
class Trace:
    """A reward with all that it depends on, and what came out when it was recomputed."""

    reward: Mapping[str, Any]
    criterion: Mapping[str, Any]
    calibration: Mapping[str, Any] | None
    program: Mapping[str, Any]
    executed: str
    """The program that was run: itself, or the one of the same source whose executions it shares."""
    pool: tuple[str, ...]
    tests: tuple[TestTrace, ...]
    reason: str
    recomputed: Mapping[str, Any] | None
    differences: tuple[str, ...]
    note: str
    """Why it was not recomputed; empty when it was."""


def find_reward(questions: Questions, prefix: str) -> dict[str, Any]:
    """The reward whose id starts with `prefix`; UserError when there is none or more than one."""
    rows = questions.rows("SELECT * FROM reward WHERE starts_with(reward_id, $prefix) LIMIT 2", prefix=prefix)
    if len(rows) == 1:
        return rows[0]
    if not rows:
        raise UserError(f"no reward {prefix!r} at this cut; the view `verdict` of `lap sql` lists them")
    raise UserError(f"more than one reward starts with {prefix!r}; give more digits")


def trace(ledger: Ledger, questions: Questions, prefix: str) -> Trace:
    """The trace of one reward, recomputed at its recorded cut; UserError when what it names is not stored."""
    row = find_reward(questions, prefix)
    then = Questions(ledger, Cut.parse(row["cut"]))
    try:
        judged = _judge(then, row, criterion_of(questions, row["criterion_hash"]))
        m, verdicts = _problem_of(judged, row)
        runs = _stored_runs(then, row)
        foreign = row["kernel"] != KERNEL
        again = None if foreign else _rewards_by_program(judged).get(row["program_id"])
        return Trace(
            reward=row,
            criterion=_stored_row(
                questions, "SELECT * FROM criterion WHERE criterion_hash = $id", row["criterion_hash"]
            ),
            calibration=_calibration_row(questions, row["calibration_id"]),
            program=_stored_row(questions, "SELECT * FROM program WHERE program_id = $id", row["program_id"]),
            executed=runs.executed,
            pool=tuple(p for p, member in zip(m.programs, m.reference, strict=True) if member),
            tests=tuple(_tests(m, verdicts, judged.criterion, runs)),
            reason=verdicts.reason[m.row(row["program_id"])],
            recomputed=asdict(again) if again else None,
            differences=() if foreign else differences(row, again),
            note=_FOREIGN_KERNEL.format(kernel=row["kernel"], here=KERNEL) if foreign else "",
        )
    finally:
        then.close()


_FOREIGN_KERNEL = "not recomputed (kernel {kernel}; this release has {here})"


def _problem_of(judged: JudgedCampaign, row: Mapping[str, Any]) -> tuple[ProblemMeasurements, Verdicts]:
    for m, verdicts in zip(judged.measurements, judged.verdicts, strict=True):
        if m.problem == row["problem_id"] and row["program_id"] in m.programs:
            return m, verdicts
    raise UserError(
        f"campaign {judged.campaign!r} holds no program {row['program_id']!r} at the cut of this reward;"
        " run `lap verify`"
    )


def criterion_of(questions: Questions, criterion_hash: str) -> Criterion:
    """The declared criterion of a hash; UserError when it was never declared, ReplayError when it is unknown here."""
    row = _stored_row(questions, "SELECT * FROM criterion WHERE criterion_hash = $id", criterion_hash)
    return Criterion.from_mapping(json.loads(row["canonical"]))


@dataclass(frozen=True, slots=True)
class _Group:
    """What the rewards that are recomputed together have in common."""

    cut: str
    campaign: str
    criterion: str
    calibration: str | None


def verify_rewards(
    ledger: Ledger, questions: Questions, tick: Callable[[int], None] = lambda count: None
) -> tuple[int, list[str], list[str]]:
    """(rewards recomputed, one line for each that differs, one note for each kernel whose rewards are not recomputed).

    Rewards of another kernel version may rightly differ here. `tick` hears how many rewards each step has done.
    """
    rows = questions.rows("SELECT * FROM reward ORDER BY cut, campaign_id, criterion_hash, calibration_id, reward_id")
    problems = [_CONTRADICTION.format(**row) for row in questions.rows(_STORED_TWICE)]
    problems += false_shares(questions)
    foreign = Counter(row["kernel"] for row in rows if row["kernel"] != KERNEL)
    tick(foreign.total())
    notes = [
        f"{n} rewards {_FOREIGN_KERNEL.format(kernel=kernel, here=KERNEL)}" for kernel, n in sorted(foreign.items())
    ]
    for group, batch in groupby((row for row in rows if row["kernel"] == KERNEL), key=_group):
        members = list(batch)
        problems += _verify_group(ledger, questions, group, members)
        tick(len(members))
    return len(rows) - foreign.total(), problems, notes


_STORED_TWICE = """
SELECT left(reward_id, 12) AS id, min(program_id) AS program FROM reward_assigned
GROUP BY reward_id HAVING count(DISTINCT (value, c, g, q_numerator, q_denominator, pool_size)) > 1 ORDER BY reward_id
"""
_CONTRADICTION = "reward {id} of {program}: stored with two values, which no two derivations give"


def _group(row: Mapping[str, Any]) -> _Group:
    return _Group(row["cut"], row["campaign_id"], row["criterion_hash"], row["calibration_id"])


def _verify_group(ledger: Ledger, questions: Questions, group: _Group, batch: list[dict[str, Any]]) -> list[str]:
    """One line for each difference, or one for all when they cannot be judged: one bad event stops nothing else."""
    try:
        criterion = criterion_of(questions, group.criterion)
        then = Questions(ledger, Cut.parse(group.cut))
        try:
            derived = _rewards_by_program(_judge(then, batch[0], criterion))
        finally:
            then.close()
    except UserError as error:
        return [f"{len(batch)} rewards at cut {group.cut}: {error}"]
    return [
        f"reward {row['reward_id'][:12]} of {row['program_id']}: {difference}"
        for row in batch
        for difference in differences(row, derived.get(row["program_id"]))
    ]


def differences(row: Mapping[str, Any], again: RewardAssigned | None) -> tuple[str, ...]:
    """What a recomputed reward says differently, one line a column; empty when every column agrees."""
    if again is None:
        return ("no reward follows from the facts at its cut",)
    values = asdict(again)
    return tuple(
        f"{name} is {row[name]!r}, recomputed {values[name]!r}" for name in values if row[name] != values[name]
    )


def _judge(then: Questions, row: Mapping[str, Any], criterion: Criterion) -> JudgedCampaign:
    """The campaign of a reward at the reward's cut, under its criterion and with its calibration."""
    calibration = stored_calibration(then, row["calibration_id"]) if row["calibration_id"] else None
    return judge_snapshot(load(then, row["campaign_id"]), criterion, calibration)


def _rewards_by_program(judged: JudgedCampaign) -> dict[str, RewardAssigned]:
    derived, _ = rewards(judged)
    return {reward.program_id: reward for reward in derived}


@dataclass(frozen=True, slots=True)
class _Runs:
    """What is stored of one program's runs: the accepted outcome of each test, and the timings of each attempt."""

    program: str
    executed: str
    outcomes: Mapping[str, Mapping[str, Any]]
    timings: Mapping[str, tuple[Mapping[str, Any], ...]]


def _stored_runs(then: Questions, row: Mapping[str, Any]) -> _Runs:
    executed = executed_by(then, row["campaign_id"], row["program_id"])
    of = {"campaign": row["campaign_id"], "program": executed}
    timings: dict[str, tuple[Mapping[str, Any], ...]] = {}
    for timing in then.rows(ATTEMPT_TIMINGS, **of):
        timings[timing["attempt_id"]] = (*timings.get(timing["attempt_id"], ()), timing)
    outcomes = then.rows(
        "SELECT test_id, outcome, detail, attempt_id FROM execution "
        "WHERE accepted AND campaign_id = $campaign AND program_id = $program",
        **of,
    )
    return _Runs(row["program_id"], executed, {outcome["test_id"]: outcome for outcome in outcomes}, timings)


def _tests(m: ProblemMeasurements, verdicts: Verdicts, criterion: Criterion, runs: _Runs) -> Iterator[TestTrace]:
    row = m.row(runs.program)
    ranked = durations(m, criterion)
    pool = m.reference & (verdicts.c == 1) & (m.duplicate != m.duplicate[row])
    finished = m.outcome == Outcome.OK
    for column, test in enumerate(m.tests.ids):
        outcome = runs.outcomes.get(test, _NO_OUTCOME)
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
            references_ns=tuple(sorted(ranked[pool & finished[:, column], column].tolist())) if counted else (),
            timings=runs.timings.get(outcome["attempt_id"], ()),
        )


_NO_OUTCOME: Mapping[str, Any] = {"outcome": "missing", "detail": "", "attempt_id": ""}  # only under a forged reward


def _roles(m: ProblemMeasurements, column: int) -> tuple[str, ...]:
    kinds = ("original", "correctness", "optimization")
    return tuple(kind for kind in kinds if bool(np.asarray(getattr(m.tests, kind))[column]))


def _stored_row(questions: Questions, sql: str, key: str) -> Mapping[str, Any]:
    rows = questions.rows(sql, id=key)
    if not rows:
        raise UserError(f"{key[:12]} is named by a reward but not stored at this cut; run `lap verify`")
    return rows[0]


def _calibration_row(questions: Questions, key: str | None) -> Mapping[str, Any] | None:
    return _stored_row(questions, "SELECT * FROM calibration WHERE calibration_id = $id", key) if key else None
