"""One run under a criterion: its duration, the limit in force, its rank, and the references just faster and slower.

Nothing is judged here: every rank comes from the verdicts.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from lapledger.replay.criteria import Criterion
from lapledger.replay.judging.gates import Status, Verdicts
from lapledger.replay.judging.graded_runs import Rules, TestResults, grade_runs, make_rules
from lapledger.replay.judging.limits import limits
from lapledger.replay.judging.ranks import KILLED
from lapledger.replay.measurements import ABSENT, Bools, Ints, Outcome, ProblemMeasurements, Readings, read


@dataclass(frozen=True, slots=True)
class Neighbour:
    """A reference beside a run, with its duration on the same test in ns (bytes on the clock `memory`)."""

    program: str
    duration: int


@dataclass(frozen=True, slots=True)
class Timing:
    """One run as a criterion reads it, among its references; durations in ns, or bytes on the clock `memory`."""

    test: str
    outcome: Outcome
    duration: int | None  # None where none was recorded
    longer_than: int | None  # where it was killed: what its duration is known to exceed
    limit: tuple[int, int | None] | None  # the criterion's own limit, from and to (None: open); None without one
    hard_limit_ns: int | None  # at which the run would be killed; None where it was not run
    rank: tuple[int, int] | None  # smallest and largest k of 2 n; None where the test does not rank
    references: int  # n, those it was ranked among
    next_faster: Neighbour | None  # the slowest reference that finished faster
    next_slower: Neighbour | None  # the fastest reference that did not

    @property
    def percentile(self) -> tuple[float, float] | None:
        """The percentile rank in [0, 100], smallest and largest; None where the test does not rank."""
        if self.rank is None or not self.references:
            return None
        low, high = (100 * k / (2 * self.references) for k in self.rank)
        return low, high


@dataclass(frozen=True, slots=True, eq=False)
class JudgedProblem:
    """One judged problem with its readings and test results, to explain its timings."""

    m: ProblemMeasurements
    criterion: Criterion
    verdicts: Verdicts
    readings: Readings
    rules: Rules
    results: TestResults
    pool: Bools  # [P] the references that rank

    @classmethod
    def of(cls, m: ProblemMeasurements, criterion: Criterion, verdicts: Verdicts) -> "JudgedProblem":
        """The problem under the criterion that it was judged by."""
        readings = read(m, criterion)
        rules = make_rules(m, readings, criterion)
        results = grade_runs(rules, readings, m.duplicate)
        pool = m.reference & (results.c == 1) & ~results.lacking.any(axis=1)
        return cls(m, criterion, verdicts, readings, rules, results, pool)

    def deciding(self, row: int) -> str | None:
        """The test that decided a program's verdict; None where no single one did."""
        test = deciding(self.rules, self.results, self.verdicts, row=row, at=row)
        return None if test is None else self.m.tests.ids[test]

    def percentiles(self, row: int) -> Mapping[str, tuple[float, float]]:
        """The percentile in [0, 100], smallest and largest, on every test that ranks the program."""
        v, size = self.verdicts, 2 * int(self.verdicts.pool_size[row])
        if not size:
            return {}
        tests = np.flatnonzero(v.k_lo[row] >= 0).tolist()
        return {self.m.tests.ids[t]: (100 * v.k_lo[row, t] / size, 100 * v.k_hi[row, t] / size) for t in tests}

    def timing(self, row: int, name: str) -> Timing | None:
        """The run of a program on a test; None where the problem has no such test."""
        if name not in self.m.tests.ids:
            return None
        test = self.m.tests.ids.index(name)
        v, readings = self.verdicts, self.readings
        outcome = Outcome(int(readings.outcome[row, test]))
        duration, hard = int(readings.duration_ns[row, test]), int(self.m.limit_ns[row, test])
        killed = outcome == Outcome.TIME_LIMIT
        ranked = v.k_lo[row, test] >= 0 and v.pool_size[row] > 0
        faster, slower = self._around(row, test, int(readings.bound_ns[row, test]) if killed else duration)
        return Timing(
            test=name,
            outcome=outcome,
            duration=None if killed or duration == ABSENT else duration,
            longer_than=int(readings.bound_ns[row, test]) if killed else None,
            limit=self._limit(row, test),
            hard_limit_ns=None if hard == ABSENT else hard,
            rank=(int(v.k_lo[row, test]), int(v.k_hi[row, test])) if ranked else None,
            references=int(v.pool_size[row]),
            next_faster=faster,
            next_slower=slower,
        )

    def _around(self, row: int, test: int, duration: int) -> tuple[Neighbour | None, Neighbour | None]:
        """The next faster and next slower finished reference, the program and its exact duplicates excluded."""
        m, mine = self.m, self.readings.duration_ns[:, test]
        finished = (self.readings.outcome[:, test] == Outcome.OK) & (mine != ABSENT)
        rankers = np.flatnonzero(self.pool & finished & (m.duplicate != m.duplicate[row]))
        if duration == ABSENT or not rankers.size:
            return None, None
        faster, slower = rankers[mine[rankers] < duration], rankers[mine[rankers] >= duration]
        return (
            self._neighbour(faster[np.argmax(mine[faster])], test) if faster.size else None,
            self._neighbour(slower[np.argmin(mine[slower])], test) if slower.size else None,
        )

    def _neighbour(self, row: int, test: int) -> Neighbour:
        return Neighbour(self.m.programs[row], int(self.readings.duration_ns[row, test]))

    def _limit(self, row: int, test: int) -> tuple[int, int | None] | None:
        criterion = self.criterion
        if not (criterion.limits or criterion.timeout_ms):
            return None
        column = np.flatnonzero(np.flatnonzero(self.rules.ranked) == test)
        if not column.size:
            return None if criterion.limit_ns is None else (criterion.limit_ns, criterion.limit_ns)
        group: Ints = self.rules.limiting.column(self.m.duplicate[[row]])
        program_limits = limits(self.rules.limiting, group, criterion)
        low, high = int(program_limits.lo[0, column[0]]), int(program_limits.hi[0, column[0]])
        return max(low // 2, 0), None if high >= KILLED else high // 2


def deciding(rules: Rules, results: TestResults, verdicts: Verdicts, *, row: int, at: int) -> int | None:
    """The deciding test of a program: `row` in the verdicts, `at` in the test results; None where no single test did.

    The first test that fails correctness, crashes where that matters, or fails its limit, or that leaves correctness
    open; else the one whose rank is widest open; else the one with the best (pass) or the worst percentile.
    """
    gate = int(verdicts.c[row])
    if gate == 0 or (gate == -1 and verdicts.g[row] != 0):
        short = np.flatnonzero((results.cells[at] == gate) & (rules.counted == 1))
        return int(short[0]) if short.size else None
    for applies, bad in (
        (rules.criterion.ranks_wrong, results.crashed),
        (rules.criterion.in_time == "required", results.over),
    ):
        failed = np.flatnonzero(rules.ranked)[bad[at] & ~results.lacking[at]]
        if applies and verdicts.status[row] == Status.FAIL and failed.size:
            return int(failed[0])
    ranked = np.flatnonzero(verdicts.k_lo[row] >= 0)
    if not ranked.size or not verdicts.q_den[row] or rules.criterion.threshold == 1:
        return None
    low, high = verdicts.k_lo[row, ranked], verdicts.k_hi[row, ranked]
    if verdicts.status[row] == Status.UNDECIDED and (high > low).any():
        return int(ranked[np.argmax(high - low)])
    return int(ranked[np.argmin(low if verdicts.status[row] == Status.PASS else -high)])
