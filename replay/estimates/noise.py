"""What to hold a speed-up against: the same code timed twice (A/A), and programs slower than every reference.

Facts about the service and the pool, whatever model made the programs.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from lapledger.replay.criteria import Criterion
from lapledger.replay.estimates.intervals import Interval, mean_interval
from lapledger.replay.estimators import ABSENT
from lapledger.replay.judging.gates import Status, Verdicts
from lapledger.replay.measurements import (
    Bools,
    Floats,
    Ints,
    Outcome,
    ProblemMeasurements,
    durations,
    one_duration,
    read,
)


@dataclass(frozen=True, slots=True)
class SameCode:
    """How much faster the same code seems to be than itself, between two times that it was run."""

    between: str
    programs: int
    problems: int
    pairs: int  # (program, test) finished both times
    speedup: float  # of first total / second total, 1 where nothing drifted: the geometric mean over problems of the
    # geometric mean over a problem's programs, so that each problem counts alike
    interval: Interval | None  # 95% over problems, of the same
    usual: float  # the median program's larger over its smaller total
    p95: float  # 95% of the programs seem faster or slower than themselves by at most this factor
    largest: float


@dataclass(frozen=True, slots=True)
class SlowShare:
    """How many correct programs are slower than every reference of their pool."""

    problems: int
    correct: int
    slower: int
    undecided: int  # may or may not be
    value: float | None  # slower / correct; None without a correct program


def between_campaigns(
    first: Sequence[ProblemMeasurements], second: Sequence[ProblemMeasurements], criterion: Criterion
) -> SameCode | None:
    """The A/A figure of the programs that were run in two campaigns; None where they share no finished run."""
    second_by_problem = {m.problem: m for m in second}
    totals: dict[str, Floats] = {}
    pairs = 0
    for m in first:
        if m.problem not in second_by_problem:
            continue
        first_ns, second_ns = _shared(m, second_by_problem[m.problem], criterion)
        totals[m.problem], counted = _totals(first_ns, second_ns)
        pairs += counted
    names = " and ".join(sorted({m.campaign for m in (*first, *second)}))
    return _figure(f"campaigns {names}", totals, pairs)


def between_halves(measurements: Sequence[ProblemMeasurements], criterion: Criterion) -> SameCode | None:
    """The A/A figure of the odd against the even repetitions of one campaign; None where nothing was repeated.

    Each half is read as the criterion reads all: by its clock and estimator, the start-up subtracted where it says so.
    """
    totals: dict[str, Floats] = {}
    pairs = 0
    for m in measurements:
        repetitions = m.on_clock(criterion.clock)
        if repetitions.shape[2] < 2:
            continue
        done = m.outcome == Outcome.OK
        halves = [one_duration(repetitions[:, :, i::2], m.startup_ns, criterion) for i in (0, 1)]
        totals[m.problem], counted = _totals(*(np.where(done & (half > 0), half, np.nan) for half in halves))
        pairs += counted
    return _figure("odd and even repetitions", totals, pairs)


def slower_than_all(
    verdicts: Sequence[Verdicts],
    measurements: Sequence[ProblemMeasurements],
    criterion: Criterion,
    run: str | None = None,
) -> SlowShare:
    """The share of correct candidates, of one model or of all, whose total time exceeds that of every reference.

    Totals over the optimization tests, against the correct references without the program and its exact duplicates. A
    killed run took its limit at least. A program without such a reference, or without a duration, is not counted.
    """
    problems, counts = 0, np.zeros(3, dtype=np.int64)
    for v, m in zip(verdicts, measurements, strict=True):
        mine = (m.candidate if run is None else m.candidate & (np.array(m.models) == run)) & (v.c == Status.PASS)
        problem_counts = np.zeros(3, dtype=np.int64) if v.excluded else _slower(mine, v, m, criterion)
        problems += bool(problem_counts[0])
        counts += problem_counts
    correct, slower, undecided = counts.tolist()
    return SlowShare(problems, correct, slower, undecided, slower / correct if correct else None)


def _slower(mine: Bools, v: Verdicts, m: ProblemMeasurements, criterion: Criterion) -> Ints:
    """(counted, slower than every reference, perhaps) of some candidates [P] of one problem [3]."""
    low, high = _spans(v, m, criterion)
    known = ~np.isnan(low)
    pool = np.flatnonzero(m.reference & (v.c == Status.PASS) & known)
    rows = np.flatnonzero(mine & known)
    ranked_by = m.duplicate[pool][None, :] != m.duplicate[rows][:, None]
    rows, ranked_by = rows[ranked_by.any(axis=1)], ranked_by[ranked_by.any(axis=1)]
    slowest, slowest_perhaps = (np.where(ranked_by, end[pool], 0).max(axis=1, initial=0) for end in (low, high))
    certain, never = low[rows] > slowest_perhaps, high[rows] <= slowest
    return np.array([len(rows), certain.sum(), (~certain & ~never).sum()], dtype=np.int64)


def _spans(v: Verdicts, m: ProblemMeasurements, criterion: Criterion) -> tuple[Floats, Floats]:
    """Total time over the kept optimization tests, from and to [P]; nan where some run has no duration."""
    kept = m.tests.optimization & (v.kept != 0)
    readings = read(m, criterion)
    killed = readings.outcome == Outcome.TIME_LIMIT
    known = np.where(readings.duration_ns == ABSENT, np.nan, readings.duration_ns)
    low, high = np.where(killed, readings.bound_ns, known), np.where(killed, np.inf, known)
    return low[:, kept].sum(axis=1), high[:, kept].sum(axis=1)


def _shared(first: ProblemMeasurements, second: ProblemMeasurements, criterion: Criterion) -> tuple[Floats, Floats]:
    """Durations [n, t] of the programs and tests of both, nan where a run did not finish right."""
    programs = [p for p in first.programs if p in set(second.programs)]
    tests = [t for t in first.tests.ids if t in set(second.tests.ids)]
    durations_of = []
    for m in (first, second):
        read = durations(m, criterion)
        done = np.where((m.outcome == Outcome.OK) & (read > 0), read, np.nan)
        rows = [m.programs.index(p) for p in programs]
        columns = [m.tests.ids.index(t) for t in tests]
        durations_of.append(done[np.ix_(rows, columns)])
    return durations_of[0], durations_of[1]


def _totals(first: Floats, second: Floats) -> tuple[Floats, int]:
    """(log of first total / second total [n] over the tests that both finished, number of such tests)."""
    both = ~np.isnan(first + second)
    sums = [np.where(both, durations_ns, 0).sum(axis=1) for durations_ns in (first, second)]
    kept = both.any(axis=1)
    return np.log(sums[0][kept]) - np.log(sums[1][kept]), int(both.sum())


def _figure(between: str, totals: Mapping[str, Floats], pairs: int) -> SameCode | None:
    by_problem = [logs for logs in totals.values() if len(logs)]
    if not by_problem:
        return None
    logs = np.concatenate(by_problem)
    interval = mean_interval(np.array([problem_logs.mean() for problem_logs in by_problem]))
    apart = np.abs(logs)
    figure = SameCode(
        between,
        programs=len(logs),
        problems=len(by_problem),
        pairs=pairs,
        speedup=float(np.exp(np.mean([problem_logs.mean() for problem_logs in by_problem]))),
        interval=None,
        usual=float(np.exp(np.median(apart))),
        p95=float(np.exp(np.quantile(apart, 0.95))),
        largest=float(np.exp(apart.max())),
    )
    return figure if interval is None else replace(figure, interval=(math.exp(interval[0]), math.exp(interval[1])))
