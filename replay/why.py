"""Why a program got its verdict, and the least change of its durations that would flip it.

A verdict only ever falls as a duration grows, so every answer is found by bisection over whole ns and is exact: one
step less does not flip. The rules themselves live in `gates` and `ranks`; this module only asks them "what if".
"""

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from replay.criteria import Criterion
from replay.gates import Status, Verdicts, combine, correct, counted, fast, judge, run_gates
from replay.measurements import ABSENT, Bools, Bytes, Ints, Outcome, ProblemMeasurements, Readings, read
from replay.ranks import KILLED, Pool, Ranks, quality, rank, spans, versus

FACTOR_STEPS = 10**6
"""A common factor is a whole number of millionths."""


@dataclass(frozen=True, slots=True)
class Explanation:
    """Why one program got its verdict, and the least change of its durations that would flip it."""

    problem: str
    program: str
    status: Status
    reason: str  # as in Verdicts
    deciding_test: str | None  # the failed test, the one whose timing flips the verdict, or the one that weighs most
    q_lo: Fraction | None  # quality in [0, 1], None without a pool or an optimization test
    q_hi: Fraction | None
    distance_q: Fraction | None  # q - tau/100 (> 0: too slow); None where q is an interval or undefined
    distance_points: float | None  # mean percentile minus the largest that passes, in percentile points
    change_test: str | None  # test of the smallest single change that flips the verdict
    change_ns: int | None  # that change of the ranked duration, signed, in ns
    factor: Fraction | None  # else: the factor nearest to 1 (steps of 1e-6) on all durations that flips it
    note: str  # one sentence about what could flip the verdict


def explain(m: ProblemMeasurements, criterion: Criterion, program: str) -> Explanation:
    """The explanation of one program's verdict; ReplayError when the program is not there.

    A change is one of the ranked duration (after estimator and start-up); only finished runs can change, and a pass
    flips to a fail or back. An undecided verdict is not explained by a timing: it lacks evidence.
    """
    row = m.row(program)
    verdicts = judge(m, criterion)
    status = Status(verdicts.status[row])
    case = _case(m, criterion, row, verdicts)
    single = None if status == Status.UNDECIDED else _single(case, status)
    factor = None if status == Status.UNDECIDED or single else _factor(case, status)
    q_lo, q_hi = (_fraction(q[row], verdicts.q_den[row]) for q in (verdicts.q_lo, verdicts.q_hi))
    certain = q_lo is not None and q_lo == q_hi
    test = single[0] if single else _deciding(case, verdicts, row)
    return Explanation(
        problem=m.problem,
        program=program,
        status=status,
        reason=verdicts.reason[row],
        deciding_test=None if test is None else m.tests.ids[test],
        q_lo=q_lo,
        q_hi=q_hi,
        distance_q=q_lo - criterion.threshold if certain and q_lo is not None else None,
        distance_points=_points(case, verdicts, row) if certain else None,
        change_test=m.tests.ids[single[0]] if single else None,
        change_ns=single[1] if single else None,
        factor=factor,
        note=_note(verdicts.reason[row], status, m.tests.ids[single[0]] if single else "", single, factor),
    )


@dataclass(frozen=True, slots=True, eq=False)
class _Case:
    """One program before its judge: what is asked again and again with other durations."""

    m: ProblemMeasurements
    criterion: Criterion
    readings: Readings  # [1, T]
    pool: Pool
    member: Bools  # [1, N]
    column: Ints  # [1]
    far: int  # ns; no longer duration changes anything more

    @property
    def changeable(self) -> Bools:
        """The tests with a finished, measured run [T]."""
        finished: Bools = (self.readings.outcome[0] == Outcome.OK) & (self.readings.duration_ns[0] != ABSENT)
        return finished

    def statuses(self, duration_ns: Ints) -> Bytes:
        """Verdicts [M] of the program with other durations [M, T]."""
        many = duration_ns.shape
        outcome = np.broadcast_to(self.readings.outcome, many)
        readings = Readings(outcome, duration_ns, np.broadcast_to(self.readings.bound_ns, many))
        c = correct(run_gates(readings, self.m.tests, self.criterion), self.m.tests, self.criterion)
        lo, hi = (span[:, self.m.tests.optimization] for span in spans(readings, self.criterion))
        k_lo, k_hi = self._ranks(lo, self.pool.hi), self._ranks(hi, self.pool.lo)
        q = quality(k_lo, k_hi, pool=self.pool, member=self.member, column=self.column, criterion=self.criterion)
        size = np.broadcast_to(self.member.sum(axis=1), many[:1])
        q_lo, q_hi, q_den = (np.broadcast_to(part, many[:1]) for part in q)
        return combine(c, fast(q_lo, q_hi, q_den, pool_size=size, criterion=self.criterion))

    def _ranks(self, mine: Ints, theirs: Ints) -> Ints:
        pairwise = versus(mine[:, None, :], theirs[None, self.member[0], :])
        return np.asarray(pairwise.sum(axis=1, dtype=np.int64))


def _case(m: ProblemMeasurements, criterion: Criterion, row: int, verdicts: Verdicts) -> _Case:
    readings = read(m, criterion)
    ranks: Ranks = rank(m, readings, m.reference & (verdicts.c == 1), criterion)
    one = slice(row, row + 1)
    mine = Readings(readings.outcome[one], readings.duration_ns[one], readings.bound_ns[one])
    ends = [span[span < KILLED].max(initial=0) // 2 for span in (ranks.pool.lo, ranks.pool.hi)]
    far = max(*map(int, ends), int(mine.duration_ns.max(initial=0)), criterion.limit_ns or 0) + 1
    return _Case(m, criterion, mine, ranks.pool, ranks.member[one], ranks.column[one], far)


def _single(case: _Case, status: Status) -> tuple[int, int] | None:
    """The test and the signed change in ns of the smallest single change that flips the verdict."""
    tests = np.flatnonzero(case.changeable)
    now = case.readings.duration_ns[0]
    sign = 1 if status == Status.PASS else -1
    most = case.far - now[tests] if status == Status.PASS else now[tests] - 1

    def flipped(change: Ints) -> Bools:
        durations = np.repeat(now[None, :], len(tests), axis=0)
        durations[np.arange(len(tests)), tests] += sign * change
        return np.equal(case.statuses(durations), 1 - status)

    least = _least(flipped, most)
    if not (least > 0).any():
        return None
    best = int(np.argmin(np.where(least > 0, least, np.iinfo(np.int64).max)))
    return int(tests[best]), sign * int(least[best])


def _factor(case: _Case, status: Status) -> Fraction | None:
    """The factor nearest to 1 on all durations that flips the verdict, None when none does."""
    now = case.readings.duration_ns
    steps = now[0][case.changeable]
    if not steps.size:
        return None
    sign = 1 if status == Status.PASS else -1
    most = FACTOR_STEPS * case.far // int(steps.min()) + 1 if status == Status.PASS else FACTOR_STEPS

    def flipped(change: Ints) -> Bools:
        scaled = _scaled(now, FACTOR_STEPS + sign * int(change[0]), case)
        return np.equal(case.statuses(scaled), 1 - status)

    least = int(_least(flipped, np.array([most], dtype=np.int64))[0])
    return Fraction(FACTOR_STEPS + sign * least, FACTOR_STEPS) if least > 0 else None


def _scaled(now: Ints, millionths: int, case: _Case) -> Ints:
    """Durations [1, T] times a factor, rounded down to whole ns, from 1 to as far as anything can change."""
    scaled = [min(max(value * millionths // FACTOR_STEPS, 1), case.far) for value in now[0].tolist()]
    return np.where(case.changeable, np.array(scaled, dtype=np.int64), now)


def _least(flipped: Callable[[Ints], Bools], most: Ints) -> Ints:
    """The least change in 1..most that flips, for each entry [M]; 0 where even the largest does not."""
    below, above = np.zeros_like(most), most.copy()
    possible = (most > 0) & flipped(most) if most.size else np.zeros(0, dtype=np.bool_)
    while ((above - below > 1) & possible).any():
        middle = (below + above) // 2
        yes = flipped(middle)
        below, above = np.where(yes, below, middle), np.where(yes, middle, above)
    return np.where(possible, above, 0)


def _deciding(case: _Case, verdicts: Verdicts, row: int) -> int | None:
    """The first test that fails correctness, else the one with the best (pass) or worst (else) percentile."""
    cells = run_gates(case.readings, case.m.tests, case.criterion)[0]
    gate = int(verdicts.c[row])
    if gate == 0 or (gate == -1 and verdicts.g[row] != 0):
        bad = np.flatnonzero((cells == gate) & counted(case.m.tests, case.criterion))
        return int(bad[0]) if bad.size else None
    ranked = np.flatnonzero(case.m.tests.optimization)
    if not ranked.size or not verdicts.q_den[row] or case.criterion.threshold == 1:
        return None
    k = verdicts.k_lo[row, ranked] if verdicts.status[row] == Status.PASS else -verdicts.k_hi[row, ranked]
    return int(ranked[np.argmin(k)])


def _points(case: _Case, verdicts: Verdicts, row: int) -> float | None:
    """Percentile points between the mean percentile and the largest that passes; None at tau 100 or with doubt.

    Reading `leaderboard`: the largest is the own score of the first reference with more than tau% of the pool at or
    below it.
    """
    threshold, size = case.criterion.threshold, int(verdicts.pool_size[row])
    ranked = verdicts.k_lo[row, case.m.tests.optimization]
    if threshold == 1:
        return None
    score = float(ranked.sum() / (2 * size * len(ranked)))
    if case.criterion.reading == "score":
        return 100 * (score - float(threshold))
    mine, column = case.member[0], case.column[0]
    low, high = (own[mine, column] for own in (case.pool.score_lo, case.pool.score_hi))
    if not np.array_equal(low, high) or not np.array_equal(ranked, verdicts.k_hi[row, case.m.tests.optimization]):
        return None
    own = np.sort(low / (2 * case.pool.size[mine, column] * len(ranked)))
    return 100 * (score - float(own[int(threshold * size)]))


def _fraction(numerator: int, denominator: int) -> Fraction | None:
    return Fraction(int(numerator), int(denominator)) if denominator else None


def _note(reason: str, status: Status, test: str, single: tuple[int, int] | None, factor: Fraction | None) -> str:
    if status == Status.UNDECIDED:
        return f"undecided ({reason}): more evidence settles it, not another timing"
    if single:
        return f"{abs(single[1])} ns {'faster' if single[1] < 0 else 'slower'} on {test} would flip the verdict"
    if factor is not None:
        return f"no single timing flips the verdict; all durations times {float(factor):.6f} would"
    return f"no timing can flip the verdict ({reason})"
