"""Pairs of durations of references that were measured in two campaigns, problem by problem.

Problems, programs and tests match by id. Only runs that finished right in both campaigns make a pair: what was killed,
failed or never run fits no map.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from lapledger.replay.criteria import Criterion
from lapledger.replay.errors import ReplayError
from lapledger.replay.measurements import (
    ABSENT,
    Bools,
    Floats,
    Ints,
    Outcome,
    ProblemMeasurements,
    durations,
    kill_bounds,
)


@dataclass(frozen=True, slots=True, eq=False)
class Match:
    """References of one problem measured in both campaigns: n references, t tests, N in the stored pool."""

    stored: Floats  # [n, t] ns
    fresh: Floats  # [n, t]
    both: Bools  # [n, t] finished in both campaigns
    pool: Floats  # [N, t] stored durations of all stored references, nan where not finished
    killed: Floats  # [N, t] lower bounds of their killed runs, nan where not killed or nothing is known
    rankers: Bools  # [n, N] neither the program nor its duplicate
    pool_rows: Ints  # [n] where each reference stands in the pool

    @property
    def moved(self) -> Floats:
        """Stored durations and kill bounds of references that were not re-run [m]: what a map would move."""
        left = np.concatenate([np.delete(durations, self.pool_rows, axis=0) for durations in (self.pool, self.killed)])
        known: Floats = left[~np.isnan(left)]
        return known


def match(
    stored: Sequence[ProblemMeasurements], fresh: Sequence[ProblemMeasurements], criterion: Criterion
) -> list[Match]:
    """One match a problem of both campaigns, in the order of the fresh ones; ReplayError when one is given twice."""
    old, new = _by_problem(stored), _by_problem(fresh)
    return [_match(old[name], new[name], criterion) for name in new if name in old]


def _match(stored: ProblemMeasurements, fresh: ProblemMeasurements, criterion: Criterion) -> Match:
    known = set(stored.tests.ids)
    flags = zip(fresh.tests.ids, fresh.tests.optimization, strict=True)
    kept = [test for test, optimization in flags if optimization and test in known]
    pool_ids = [stored.programs[i] for i in np.flatnonzero(stored.reference)]
    rerun = {fresh.programs[i] for i in np.flatnonzero(fresh.reference)}
    rerun_rows = np.array([j for j, name in enumerate(pool_ids) if name in rerun], dtype=np.int64)
    pool = _finished(stored, criterion, pool_ids, kept)
    again = _finished(fresh, criterion, [pool_ids[j] for j in rerun_rows], kept)
    duplicate = stored.duplicate[stored.reference]
    rankers = duplicate[rerun_rows][:, None] != duplicate[None, :]
    killed = _killed(stored, criterion, pool_ids, kept)
    return Match(pool[rerun_rows], again, ~np.isnan(pool[rerun_rows] + again), pool, killed, rankers, rerun_rows)


def _finished(m: ProblemMeasurements, criterion: Criterion, programs: list[str], tests: list[str]) -> Floats:
    """Durations in ns of the programs on the tests, nan where a run did not finish right."""
    read_ns = durations(m, criterion)
    return _picked(m, np.where((m.outcome == Outcome.OK) & (read_ns != ABSENT), read_ns, np.nan), programs, tests)


def _killed(m: ProblemMeasurements, criterion: Criterion, programs: list[str], tests: list[str]) -> Floats:
    """Lower bounds in ns of the killed runs of the programs on the tests, nan elsewhere and for a bound of 0."""
    bounds = kill_bounds(m, criterion)
    return _picked(m, np.where(bounds > 0, bounds, np.nan), programs, tests)


def _picked(m: ProblemMeasurements, values: Floats, programs: list[str], tests: list[str]) -> Floats:
    """Values [P, T] of some programs on some tests, in their order."""
    rows, columns = {p: i for i, p in enumerate(m.programs)}, {t: i for i, t in enumerate(m.tests.ids)}
    picked = values[[rows[p] for p in programs], :] if programs else values[:0]
    return picked[:, [columns[t] for t in tests]]


def _by_problem(measurements: Sequence[ProblemMeasurements]) -> dict[str, ProblemMeasurements]:
    by_problem = {m.problem: m for m in measurements}
    if len(by_problem) < len(measurements):
        raise ReplayError("calibration: a problem appears twice in one campaign; give each problem once")
    return by_problem
