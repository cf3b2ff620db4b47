"""The seventeen statistics that make one score of a program's tests: seven of per-test percentiles, ten of durations.

A score is an exact rational, numerator over denominator, small when fast: no order of two programs depends on the last
bit of a float. Each function scores one end of what is unknown: `low` gives the smallest score that can still be true,
`high` the largest. That is right for each statistic that never falls as a duration grows (MONOTONE); slopes handle
unknown durations by themselves. How scores become a quality: `quality`.
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np

from lapledger.replay.errors import ReplayError
from lapledger.replay.fields import OF_PERCENTILES, OF_TIMES
from lapledger.replay.judging.exact import Numbers, Score, log_steps
from lapledger.replay.judging.ranks import FAILED, KILLED, RankedRuns, percentile
from lapledger.replay.measurements import Ints

MILLION = 10**6
_STEEPEST = FAILED << 128  # beyond every slope
_EXACT_FLOAT = 2**52  # whole numbers up to here, and buckets of them, never overflow


@dataclass(frozen=True, slots=True, eq=False)
class ScoredRuns:
    """Low and high end of K runs, the end to score, and the kind of percentile."""

    low: RankedRuns
    high: RankedRuns
    end: RankedRuns
    kind: str

    @property
    def k(self) -> Ints:
        """Integer percentiles over 2n [K, T] at the end to score."""
        return percentile(self.end.less, self.end.upto, self.kind)


@dataclass(frozen=True, slots=True)
class Statistic:
    """One statistic: its formula as text, with r the percentile, d the duration, m the references' median of a test."""

    formula: str
    score: Callable[[ScoredRuns], Score]
    alone: bool = False  # whether it needs no reference


def score(name: str, runs: tuple[RankedRuns, RankedRuns], kind: str) -> tuple[Score, Score]:
    """The smallest and the largest score of K runs under the statistic of that name; equal where all is known.

    A slope may be undefined although all is known, as over one test, so both of its ends are scored. The copy
    that `replace` makes is not `low`: so `_least_squares` and `_weighted_mean` tell the ends apart.
    """
    low, high = runs
    first = STATISTICS[name].score(ScoredRuns(low, high, low, kind))
    if high is low and name in MONOTONE:
        return first, first
    return first, STATISTICS[name].score(ScoredRuns(low, high, replace(high), kind))


def shown(name: str, numerator: int, denominator: int, tests: int) -> float:
    """A score as a person reads it: percentiles in percent, times in ns, ratios and slopes as they are."""
    if name in OF_PERCENTILES:
        return 100 * numerator / denominator
    if name == "geometric-mean":
        return 2 ** (math.log2(numerator) / tests - 1)
    return numerator / (denominator * _HALF_NS.get(name, 1))


_HALF_NS = {"total": 2, "clipped-total": 2, "longest": 2, "median-time": 4}


def _over(numerator: Numbers, denominator: Numbers | int) -> Score:
    return numerator, np.broadcast_to(np.asarray(denominator), numerator.shape)


def _tests(runs: ScoredRuns) -> int:
    return len(runs.end.mine.T)


def _mean(runs: ScoredRuns) -> Score:
    return _over(runs.k.sum(axis=1), 2 * runs.end.size * _tests(runs))


def _median(runs: ScoredRuns) -> Score:
    k, middle = np.sort(runs.k, axis=1), _tests(runs) // 2
    return _over(k[:, (_tests(runs) - 1) // 2] + k[:, middle], 4 * runs.end.size)


def _trimmed_mean(runs: ScoredRuns) -> Score:
    cut = _tests(runs) // 10
    kept = np.sort(runs.k, axis=1)[:, cut : _tests(runs) - cut]
    return _over(kept.sum(axis=1), 2 * runs.end.size * kept.shape[1])


def _clipped_mean(runs: ScoredRuns) -> Score:
    n = runs.end.size[:, None]
    return _over(np.clip(10 * runs.k, n, 19 * n).sum(axis=1), 20 * runs.end.size * _tests(runs))


def _worst(runs: ScoredRuns) -> Score:
    return _over(runs.k.max(axis=1), 2 * runs.end.size)


def _p90(runs: ScoredRuns) -> Score:
    index = math.ceil(Fraction(9 * _tests(runs), 10)) - 1
    return _over(np.sort(runs.k, axis=1)[:, index], 2 * runs.end.size)


def _weighted_mean(runs: ScoredRuns) -> Score:
    """Weights in whole us; where one is unknown, the smallest or largest percentile bounds the mean."""
    low, high = (runs.end.twice_median(order) for order in (runs.low.opposite, runs.low.theirs))
    certain = ((low == high) & (high < KILLED)).all(axis=1)
    weights = np.maximum(np.where(certain[:, None], low, 4000) // 4000, 1)  # a median counts four times its half ns
    if int((2 * runs.end.size * weights.sum(axis=1)).max(initial=0)) > _EXACT_FLOAT:
        raise ReplayError("durations too long to weigh with; choose another statistic")
    k = runs.k
    bound = (k.min(axis=1) if runs.end is runs.low else k.max(axis=1)) * weights.sum(axis=1)
    return _over(np.where(certain, (weights * k).sum(axis=1), bound), 2 * runs.end.size * weights.sum(axis=1))


def _sum(values: Ints, mine: Ints) -> Ints:
    """The sum [K] of finite values; where a duration is not finite, the largest such value.

    Finite sums stay below KILLED (else ReplayError), so a program with an infinite duration scores above every program
    without one, and among those a failed run above a killed one: the order that adding exact infinities would give.
    """
    if values.size and values.shape[1] * int(np.where(values < KILLED, values, 0).max()) >= KILLED:
        raise ReplayError("durations too long to be added; judge by percentiles instead")
    return np.where(mine.max(axis=1) >= KILLED, mine.max(axis=1), values.sum(axis=1))


def _total(runs: ScoredRuns) -> Score:
    return _over(_sum(runs.end.mine, runs.end.mine), 1)


def _clipped_total(runs: ScoredRuns) -> Score:
    end = runs.end.opposite  # a later end of the references clips less
    clipped = np.minimum(runs.end.mine, runs.end.quantile(end, Fraction(19, 20)))
    return _over(_sum(clipped, clipped), 1)


def _median_time(runs: ScoredRuns) -> Score:
    return _over(_two_middle(runs.end.mine), 1)


def _two_middle(values: Ints) -> Ints:
    """The sum of the two middle values [K] of a row; where the upper one is not finite, that one."""
    tests = values.shape[1]
    ordered = np.sort(values, axis=1)
    low, high = ordered[:, (tests - 1) // 2], ordered[:, tests // 2]
    return np.where(high >= KILLED, high, low + high)


def _longest(runs: ScoredRuns) -> Score:
    return _over(runs.end.mine.max(axis=1), 1)


def _geometric_mean(runs: ScoredRuns) -> Score:
    """The product of the durations, at least 1 each: it orders programs as its T-th root does, without a root.

    Exact in Python's whole numbers. A row with an infinite duration is set above every finite product, whose factors
    are below 2^62.
    """
    mine = np.maximum(runs.end.mine, 1)
    top = mine.max(axis=1)
    products = [
        int(last) << (64 * len(row)) if last >= KILLED else math.prod(row)  # beyond every finite product
        for row, last in zip(mine.tolist(), top.tolist(), strict=True)
    ]
    return _over(np.array(products, dtype=object), 1)


def _ratios(runs: ScoredRuns) -> Ints:
    """Durations over the references' medians [K, T] in whole millionths, at most a million; as they are if not finite.

    Over a median that is not finite a ratio is 0.
    """
    mine, medians = runs.end.mine, np.maximum(runs.end.twice_median(runs.end.theirs), 1)
    finite = np.where(medians < KILLED, medians, 1)
    quotient, rest = np.divmod(2 * np.where(mine < KILLED, mine, 0), finite)
    if int(finite.max(initial=0)) >= KILLED // MILLION:  # the product below would overflow
        rest, finite = rest.astype(object), finite.astype(object)
    parts = (rest * MILLION // finite).astype(np.int64)
    ratios = np.where(medians < KILLED, np.where(quotient < MILLION, quotient * MILLION + parts, MILLION * MILLION), 0)
    return np.where(mine < KILLED, ratios, mine)


def _mean_ratio(runs: ScoredRuns) -> Score:
    ratios = _ratios(runs)
    return _over(_sum(ratios, ratios), MILLION * _tests(runs))


def _median_ratio(runs: ScoredRuns) -> Score:
    return _over(_two_middle(_ratios(runs)), 2 * MILLION)


def _win_rate(runs: ScoredRuns) -> Score:
    lost = runs.end.less.sum(axis=1)
    won = (runs.end.size[:, None] - runs.end.upto).sum(axis=1)
    tied = lost + won == 0
    return _over(np.where(tied, 1, lost), np.where(tied, 2, lost + won))


def _slope(runs: ScoredRuns) -> Score:
    return _least_squares(runs, lambda values: values)


def _log_slope(runs: ScoredRuns) -> Score:
    return _least_squares(runs, log_steps)


def _least_squares(runs: ScoredRuns, scale: Callable[[Ints], Ints]) -> Score:
    """The slope of the durations against the references' medians, both scaled, over the tests.

    It does not grow with every duration, so one unknown duration leaves it unbounded at both ends; a failed run scores
    worst at both. Numerator and denominator are the usual T sum(xy) - sum(x) sum(y) over T sum(x^2) - sum(x)^2, in
    Python's whole numbers: products of two durations do not fit 64 bits.
    """
    low, high = (runs.low.twice_median(order) for order in (runs.low.opposite, runs.low.theirs))
    known = (low == high) & (high < KILLED) & (runs.low.mine == runs.high.mine) & (runs.low.mine < KILLED)
    certain = known.all(axis=1)
    x, y = (
        scale(np.where(known, np.maximum(v, 1), 1)).astype(object) for v in (low, 2 * np.where(known, runs.low.mine, 0))
    )
    tests = _tests(runs)
    rise = tests * (x * y).sum(axis=1) - x.sum(axis=1) * y.sum(axis=1)
    run = tests * (x * x).sum(axis=1) - x.sum(axis=1) ** 2
    certain &= (run != 0).astype(np.bool_)
    failed = (runs.low.mine == FAILED).any(axis=1)
    worst = failed | (runs.end is not runs.low)
    unknown = np.where(worst, 1, -1).astype(object) * _STEEPEST
    return _over(np.where(certain, rise, unknown), np.where(certain, run, 1))


STATISTICS: Mapping[str, Statistic] = {
    "mean": Statistic("mean of r", _mean),
    "median": Statistic("median of r", _median),
    "trimmed-mean": Statistic("mean of r without the floor(T/10) smallest and the floor(T/10) largest", _trimmed_mean),
    "clipped-mean": Statistic("mean of min(max(r, 5), 95)", _clipped_mean),
    "worst": Statistic("largest r", _worst),
    "p90": Statistic("the smallest r that at least 90% of the tests do not exceed", _p90),
    "weighted-mean": Statistic("sum of m r / sum of m, m in whole us, at least 1", _weighted_mean),
    "total": Statistic("sum of d", _total, alone=True),
    "clipped-total": Statistic(
        "sum of min(d, p95), p95 the smallest duration that at least 95% of the references do not exceed there",
        _clipped_total,
    ),
    "median-time": Statistic("median of d", _median_time, alone=True),
    "longest": Statistic("largest d", _longest, alone=True),
    "geometric-mean": Statistic("T-th root of the product of d", _geometric_mean, alone=True),
    "mean-ratio": Statistic("mean of d / m, each in whole millionths, rounded down, at most a million", _mean_ratio),
    "median-ratio": Statistic("median of the same ratios", _median_ratio),
    "win-rate": Statistic(
        "losses / (wins + losses) over all references and tests, ties excluded; 1/2 when all are ties", _win_rate
    ),
    "slope": Statistic("least-squares slope of d against m over the tests", _slope),
    "log-slope": Statistic("the same of log2 d against log2 m, each in whole steps of 2^-16", _log_slope),
}
"""Every statistic by name; T is the number of tests."""
MONOTONE = frozenset((*OF_PERCENTILES, *OF_TIMES)) - {"slope", "log-slope"}
"""The statistics that never fall as a duration grows."""
