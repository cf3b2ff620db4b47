"""Results of runs on tests: does each run pass, does it end within its limit, and is its program correct.

Three-valued: what depends on something never seen is undecided. `Rules` holds what a problem and a criterion fix before
any program is graded. No program is ranked here, and no verdict made.
"""

from dataclasses import dataclass, replace

import numpy as np

from lapledger.replay.criteria import Criterion
from lapledger.replay.judging.limits import kept_tests, limits
from lapledger.replay.judging.ranks import FAILED, KILLED, Pool, spans
from lapledger.replay.measurements import ABSENT, Bools, Bytes, Ints, Outcome, ProblemMeasurements, Readings, Tests


@dataclass(frozen=True, slots=True, eq=False)
class Rules:
    """What a problem and a criterion fix before any program is graded."""

    criterion: Criterion
    tests: Tests
    kept: Bytes  # [T] 1 where a test stays as an optimization test, 0 where not, -1 undecided
    limiting: Pool  # the references that shape the limits, on the tests that may be kept [T']

    @property
    def ranked(self) -> Bools:
        """The optimization tests that may be kept [T]; T' of them."""
        return np.not_equal(self.kept, 0)

    @property
    def certain(self) -> bool:
        """Whether it is known of every test that it is kept or not."""
        return bool((self.kept >= 0).all())

    @property
    def excluded(self) -> bool:
        """Whether the filter keeps no optimization test, so that the problem leaves the environment."""
        return self.criterion.filters and not bool(self.ranked.any())

    @property
    def stays(self) -> bool:
        """Whether the problem is in the environment for certain."""
        return not self.criterion.filters or bool((self.kept == 1).any())

    @property
    def counted(self) -> Bytes:
        """Whether each test counts for correctness [T]: 1, 0, or -1 where the filter is undecided."""
        if self.criterion.correctness == "original":
            return self.tests.original.astype(np.int8)
        return np.where(self.tests.original | self.tests.correctness, 1, self.kept).astype(np.int8)


@dataclass(frozen=True, slots=True, eq=False)
class TestResults:
    """M programs on their tests, T of them, T' optimization tests that may be kept."""

    cells: Bytes  # [M, T] whether a run passes its test: 1, 0, -1 undecided
    c: Bytes  # [M] correct by its tests: 1, 0, -1 undecided
    within: Bools  # [M, T'] ended within its limit for certain
    over: Bools  # [M, T'] did not, for certain
    censored_below_limit: Bools  # [M, T] killed below the criterion's limit, which is longer than the one in force
    lo: Ints  # [M, T'] where each duration lies, in half ns
    hi: Ints  # [M, T']
    unseen: Bools  # [M, T'] might have ended in any way: no result, or killed below the criterion's limit
    lacking: Bools  # [M, T'] no result, and excluded of the judgement

    @property
    def in_time(self) -> Bytes:
        """Whether every optimization test that may be kept ended within its limit [M]: 1, 0, -1 undecided."""
        late, timely = (self.over & ~self.lacking).any(axis=1), (self.within | self.lacking).all(axis=1)
        return np.where(late, 0, np.where(timely & ~self.lacking.all(axis=1), 1, -1)).astype(np.int8)

    @property
    def crashed(self) -> Bools:
        """Runs [M, T'] that crashed for certain, and wrong answers where the criterion ranks them as failed."""
        return np.equal(self.lo, FAILED)

    @property
    def open(self) -> Bools:
        """Runs [M, T'] that might have crashed: never run, or killed below the criterion's limit."""
        return self.unseen & ~self.crashed

    def no_crash(self, kept: Bytes) -> Bytes:
        """Whether no test that is kept crashed [M]: 1, 0, -1 undecided. `kept` [T'] is 1, or -1 for a test in doubt."""
        seen = ~self.lacking
        broken = (self.crashed & seen & (kept == 1)).any(axis=1)
        doubt = ((self.open | self.crashed) & seen).any(axis=1)
        return np.where(broken, 0, np.where(doubt, -1, 1)).astype(np.int8)

    @property
    def none_finished(self) -> Bools:
        """Whether no optimization test that may be kept was finished, for certain [M]: all crashed or were killed.

        A run that was killed below the criterion's limit might have been.
        """
        stopped = (self.lo == FAILED) | (self.hi == KILLED)
        nothing: Bools = (stopped | self.lacking).all(axis=1) & ~self.lacking.all(axis=1)
        return nothing


def make_rules(m: ProblemMeasurements, readings: Readings, criterion: Criterion) -> Rules:
    """The rules for a problem. Filters and limits come from the references that are correct without them."""
    nothing = np.zeros((0, int(m.tests.optimization.sum())), dtype=np.int64)
    none = Pool(nothing, nothing, np.zeros(0, dtype=np.int64))
    free = Rules(criterion, m.tests, m.tests.optimization.astype(np.int8), none)
    if not (criterion.filters or criterion.limits):
        return free
    free = replace(free, criterion=criterion.unfiltered())
    pool = reference_pool(grade_runs(free, readings, m.duplicate), m)
    kept = kept_tests(m.tests, pool, criterion)
    return Rules(criterion, m.tests, kept, pool.on(kept[m.tests.optimization] != 0))


def reference_pool(results: TestResults, m: ProblemMeasurements) -> Pool:
    """The references that are correct by their tests, on the optimization tests that may be kept.

    An undecided one is excluded, and so is, where lacking tests are skipped, one that lacks any.
    """
    members = m.reference & (results.c == 1) & ~results.lacking.any(axis=1)
    return Pool(results.lo[members], results.hi[members], m.duplicate[members])


def grade_runs(rules: Rules, readings: Readings, duplicate: Ints) -> TestResults:
    """How the runs of M programs [M, T] stand; a program of the pool is held to limits made without its group [M].

    A timeout is a kill at the hard limit, or a duration above the limit judged on every test or (unless tolerated) the
    test's own. A run killed below a limit might have ended in any way. A known failure stays one, however long it took;
    an unspecified one is taken for a kill at an unknown limit, and never passes.
    """
    criterion, ranked = rules.criterion, rules.ranked
    lo, hi = (span[:, ranked] for span in spans(readings, criterion))
    within, over = _in_time(rules, readings, duplicate, (lo, hi))
    outcome, pure = readings.outcome, rules.tests.only_optimization
    unspecified, missing = outcome == Outcome.FAILED, outcome == Outcome.MISSING
    killed = unspecified | (outcome == Outcome.TIME_LIMIT)
    timeout, censored_below_limit = _timeouts(readings, criterion)
    failed, unknown = (outcome > Outcome.OK) & ~killed, missing | censored_below_limit | unspecified
    unknown |= (outcome == Outcome.OK) & (readings.duration_ns == ABSENT) & (criterion.limit_ns is not None)
    if criterion.limits:
        killed_early = killed[:, ranked] & ~over
        censored_below_limit[:, ranked] |= killed_early
        unknown |= censored_below_limit
        timeout[:, ranked] &= ~(killed_early & pure[ranked])
    failed |= timeout & ~(pure & (criterion.timeouts == "tolerated"))
    if criterion.limits and criterion.timeouts == "fail":
        failed[:, ranked] |= over & ~missing[:, ranked]
        unknown[:, ranked] |= ~over & ~within
    if criterion.missing == "fail":
        failed |= missing
    cells = np.where(failed, 0, np.where(unknown, -1, 1)).astype(np.int8)
    lacking = missing & (criterion.missing == "skip")
    unseen = (missing | censored_below_limit | unspecified)[:, ranked] & ~over
    hi = np.where(unseen & killed[:, ranked], FAILED, hi)  # with more time it might have crashed
    c, censored_below_limit = _correct(rules, cells, lacking), censored_below_limit & ~unspecified
    return TestResults(cells, c, within, over, censored_below_limit, lo, hi, unseen, lacking[:, ranked])


def _timeouts(readings: Readings, criterion: Criterion) -> tuple[Bools, Bools]:
    """Runs that timed out [M, T], and runs killed below the limit judged on every test."""
    unspecified, limit = readings.outcome == Outcome.FAILED, criterion.limit_ns
    killed = unspecified | (readings.outcome == Outcome.TIME_LIMIT)
    if limit is None:
        return killed, np.zeros_like(killed)
    censored_below_limit = unspecified | (killed & (readings.bound_ns < limit))
    return (killed & ~censored_below_limit) | (
        (readings.outcome == Outcome.OK) & (readings.duration_ns > limit)
    ), censored_below_limit


def _in_time(rules: Rules, readings: Readings, duplicate: Ints, ends: tuple[Ints, Ints]) -> tuple[Bools, Bools]:
    """Runs [M, T'] that ended within their limit for certain, and those that did not for certain.

    The limit is the smallest of the criterion's own; without one it is the run's hard limit.
    """
    outcome = readings.outcome[:, rules.ranked]
    failed = ends[0] == FAILED
    ended = ~failed & ((outcome == Outcome.OK) | (outcome == Outcome.WRONG_ANSWER))
    if not (rules.criterion.limits or rules.criterion.timeout_ms):
        unspecified = (outcome == Outcome.FAILED) & (not rules.criterion.ranks_wrong)  # a wrong answer may be in time
        return ended, failed | (outcome == Outcome.TIME_LIMIT) | unspecified
    allowed = limits(rules.limiting, rules.limiting.column(duplicate), rules.criterion)
    return ended & (ends[1] <= allowed.lo), failed | (ends[0] > allowed.hi)


def _correct(rules: Rules, cells: Bytes, lacking: Bools) -> Bytes:
    """The correctness gate c [M] from the cells [M, T]; undecided where no test with a result counts."""
    counts = np.where(lacking, 0, rules.counted[None, :])
    wrong = ((cells == 0) & (counts == 1)).any(axis=1)
    open_ = ((cells == -1) & (counts == 1)).any(axis=1) | ((cells != 1) & (counts == -1)).any(axis=1)
    proven = (counts == 1).any(axis=1)
    return np.where(wrong, 0, np.where(open_ | ~proven, -1, 1)).astype(np.int8)
