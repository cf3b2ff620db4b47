"""Why a program got its verdict, and the least change of its durations that would flip it.

A verdict only ever falls as a duration grows, so every answer is found by bisection over whole ns and is exact: one
step less does not flip. Where that does not hold nothing is searched, and the note says so. The rules are those of
`judging.context`, evaluated with other durations.
"""

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from lapledger.replay.criteria import NS_PER_MS, Criterion
from lapledger.replay.explanations.decisive_runs import deciding
from lapledger.replay.fields import OF_TIMES
from lapledger.replay.judging.context import RAW_SCALE_NS, JudgingContext, build_context, combine, evaluate
from lapledger.replay.judging.gates import Status, Verdicts, judge
from lapledger.replay.judging.graded_runs import TestResults, grade_runs, make_rules
from lapledger.replay.judging.ranks import KILLED
from lapledger.replay.judging.statistics import MONOTONE
from lapledger.replay.measurements import ABSENT, Bools, Bytes, Ints, Outcome, ProblemMeasurements, Readings, read

FACTOR_STEPS = 10**6
"""A common factor is a whole number of millionths."""
FARTHEST = 2**50
"""Longest duration in ns (thirteen days) that is searched where any duration might still matter."""


@dataclass(frozen=True, slots=True)
class Explanation:
    """Why one program got its verdict, and the least change of its durations that would flip it."""

    problem: str
    program: str
    status: Status
    reason: str  # as in Verdicts
    deciding_test: str | None  # the failed test, the one whose timing flips the verdict, or the one that matters most
    q_lo: Fraction | None  # quality in [0, 1], None without a pool or an optimization test
    q_hi: Fraction | None
    distance_q: Fraction | None  # q - tau/100 (> 0: too slow); None where q is an interval or undefined
    distance_points: float | None  # mean percentile minus the largest that passes, in percentile points
    change_test: str | None  # test of the smallest single change that flips the verdict
    change_ns: int | None  # that change of the ranked duration, signed, in ns (bytes on the clock `memory`)
    factor: Fraction | None  # else: the factor nearest to 1 (steps of 1e-6) on all durations that flips it
    note: str  # one sentence about what could flip the verdict


def explain(m: ProblemMeasurements, criterion: Criterion, program: str) -> Explanation:
    """The explanation of one program's verdict; ReplayError when the program is not there.

    A change is one of the ranked duration (after estimator and start-up); only finished runs can change, and a pass
    flips to a fail or back. An undecided verdict is not explained by a timing: it lacks evidence. Nothing is searched
    either under a statistic that may fall as a duration grows, or for a reference whose durations shape the filter.
    """
    row = m.row(program)
    verdicts = judge(m, criterion)
    status = Status(verdicts.status[row])
    case = _case(m, criterion, row)
    blocked = case.unsearchable(status, verdicts.reason[row])
    single = None if blocked else _single(case, status)
    factor = None if blocked or single else _factor(case, status)
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
        note=blocked or _note(case, verdicts.reason[row], single, factor),
    )


@dataclass(frozen=True, slots=True, eq=False)
class _Case:
    """One program with its judging context, to be evaluated again and again with other durations."""

    m: ProblemMeasurements
    criterion: Criterion
    row: int
    readings: Readings  # [1, T]
    context: JudgingContext
    far: int  # ns; no longer duration is searched

    @property
    def changeable(self) -> Bools:
        """The tests with a finished, measured run [T]."""
        ended = self.readings.outcome[0] == Outcome.OK
        if self.criterion.ranks_wrong:
            ended |= self.readings.outcome[0] == Outcome.WRONG_ANSWER
        finished: Bools = ended & (self.readings.duration_ns[0] != ABSENT)
        return finished

    def unsearchable(self, status: Status, reason: str) -> str:
        """Why no change of a duration is searched, as text; empty when one is."""
        if status == Status.UNDECIDED:
            return f"undecided ({reason}): more evidence settles it, not another timing"
        if self.criterion.reading == "leaderboard" and self.criterion.statistic not in MONOTONE:
            return f"not searched: under the statistic {self.criterion.statistic!r} a slower run may rank better"
        timed = self.criterion.keep_ms is not None or self.criterion.keep_share is not None
        if timed and self.m.reference[self.row]:
            return "not searched: as a reference it takes part in choosing the tests that are kept"
        return ""

    def results(self, duration_ns: Ints) -> TestResults:
        """How the program's runs stand with other durations [M, T]."""
        repeated = np.zeros(len(duration_ns), dtype=np.int64)  # the one row, again and again
        readings = Readings(self.readings.outcome[repeated], duration_ns, self.readings.bound_ns[repeated])
        return grade_runs(self.context.rules, readings, self.m.duplicate[self.row + repeated])

    def statuses(self, duration_ns: Ints) -> Bytes:
        """Verdicts [M] of the program with other durations [M, T]."""
        rows = np.full(len(duration_ns), self.row)
        interface = None if self.m.interface is None else self.m.interface[rows]
        evaluation = evaluate(self.context, self.results(duration_ns), self.m.duplicate[rows], interface=interface)
        return combine(evaluation.c, evaluation.gate(self.criterion))


def _case(m: ProblemMeasurements, criterion: Criterion, row: int) -> _Case:
    readings = read(m, criterion)
    rules = make_rules(m, readings, criterion)
    context = build_context(rules, grade_runs(rules, readings, m.duplicate), m, judged=np.array([row]))
    own_row = slice(row, row + 1)
    mine = Readings(readings.outcome[own_row], readings.duration_ns[own_row], readings.bound_ns[own_row])
    return _Case(m, criterion, row, mine, context, _far(context, mine, criterion))


def _far(context: JudgingContext, mine: Readings, criterion: Criterion) -> int:
    """A duration in ns above which no change matters, or the longest that is searched."""
    factor = Fraction(criterion.limit_factor)
    pools = [(pooled.pool, Fraction(1)) for pooled in context.pools.values()] + [(context.rules.limiting, factor)]
    spans = [(int(end[end < KILLED].max(initial=0)), scale) for pool, scale in pools for end in (pool.lo, pool.hi)]
    ends = [int(longest // 2 * scale) + 1 for longest, scale in spans]
    ends += [NS_PER_MS * limit for limit in (criterion.timeout_ms, criterion.limit_ms) if limit is not None]
    if criterion.reading == "raw-duration":
        ends.append(RAW_SCALE_NS * len(context.rules.kept))
    if criterion.needs_pool and criterion.statistic in OF_TIMES:
        ends.append(FARTHEST)
    return max(*ends, int(mine.duration_ns.max(initial=0))) + 1


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
    most = FACTOR_STEPS
    if status == Status.PASS:
        most = min(FACTOR_STEPS * case.far // max(int(steps.min()), 1) + 1, KILLED // 2)

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
    return deciding(case.context.rules, case.results(case.readings.duration_ns), verdicts, row=row, at=0)


def _points(case: _Case, verdicts: Verdicts, row: int) -> float | None:
    """Percentile points between the score and the largest that passes; None at tau 100, with doubt, or without such.

    Reading `leaderboard`, of mean percentiles: the largest is the own score of the first reference with more than tau%
    of the pool at or below it.
    """
    criterion, size = case.criterion, int(verdicts.pool_size[row])
    if criterion.threshold == 1 or not criterion.needs_pool:
        return None
    if criterion.reading == "score":
        return 100 * float(Fraction(int(verdicts.q_lo[row]), int(verdicts.q_den[row])) - criterion.threshold)
    (among,) = case.context.pools.values()
    k = verdicts.k_lo[row][verdicts.k_lo[row] >= 0]
    certain = np.array_equal(k, verdicts.k_hi[row][verdicts.k_hi[row] >= 0])
    reference_scores, plain = among.scores, criterion.statistic == criterion.percentile == "mean"
    if reference_scores is None or not certain or not plain:
        return None
    rankers = among.pool.column(among.pool.duplicate) != reference_scores.columns[0]
    scores, highest = (
        np.sort(end[0][rankers, 0] / end[1][rankers, 0]) for end in (reference_scores.low, reference_scores.high)
    )
    if not np.array_equal(scores, highest):
        return None
    return 100 * (float(k.sum() / (2 * size * len(k))) - float(scores[int(criterion.threshold * size)]))


def _fraction(numerator: int, denominator: int) -> Fraction | None:
    return Fraction(int(numerator), int(denominator)) if denominator else None


def _note(case: _Case, reason: str, single: tuple[int, int] | None, factor: Fraction | None) -> str:
    memory = case.criterion.clock == "memory"
    if single:
        faster, slower, unit = ("less", "more", "bytes") if memory else ("faster", "slower", "ns")
        direction = faster if single[1] < 0 else slower
        amount = f"{abs(single[1])} {unit} {direction}"
        return f"{amount} on {case.m.tests.ids[single[0]]} would flip the verdict"
    if factor is not None:
        what = "peak" if memory else "timing"
        all_ = "all peaks" if memory else "all durations"
        return f"no single {what} flips the verdict; {all_} times {float(factor):.6f} would"
    return f"no {'peak' if memory else 'timing'} can flip the verdict ({reason})"
