"""The seventeen ways to make one score of a program's tests: seven of per-test percentiles, ten of durations.

A score is an exact rational, numerator and denominator, 0 or small when fast: no order of two programs hangs on the
last bit of a float. Each function scores one side of what is unknown: `low` is the smallest score that can still be
true, the other the largest. How scores become a quality is said in `quality`.
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np

from lapledger.replay.errors import ReplayError
from lapledger.replay.fields import OF_PERCENTILES, OF_TIMES
from lapledger.replay.judging.exact import Numbers, Score, log_steps
from lapledger.replay.judging.ranks import FAILED, KILLED, Side, percentile
from lapledger.replay.measurements import Ints

MILLION = 10**6
_STEEPEST = FAILED << 128  # beyond every slope
_EXACT_FLOAT = 2**52  # whole numbers up to here, and buckets of them, never overflow


@dataclass(frozen=True, slots=True, eq=False)
class Sides:
    """Both sides of K runs, the one that is asked for, and the kind of percentile."""

    low: Side
    high: Side
    asked: Side
    kind: str

    @property
    def k(self) -> Ints:
        """Integer percentiles over 2n [K, T] on the side asked for."""
        return percentile(self.asked.less, self.asked.upto, self.kind)


@dataclass(frozen=True, slots=True)
class Statistic:
    """One statistic: its formula in words, with r the percentile, d the duration, m the references' median a test."""

    formula: str
    score: Callable[[Sides], Score]
    alone: bool = False  # whether it needs no reference


def score(name: str, sides: tuple[Side, Side], kind: str) -> tuple[Score, Score]:
    """The smallest and the largest score of K runs under the statistic of that name; equal where all is known.

    A slope may be undefined though all is known, as over one test: it is asked for both ends all the same.
    """
    low, high = sides
    first = STATISTICS[name].score(Sides(low, high, low, kind))
    if high is low and name in MONOTONE:
        return first, first
    return first, STATISTICS[name].score(Sides(low, high, replace(high), kind))


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


def _tests(sides: Sides) -> int:
    return len(sides.asked.mine.T)


def _mean(sides: Sides) -> Score:
    return _over(sides.k.sum(axis=1), 2 * sides.asked.size * _tests(sides))


def _median(sides: Sides) -> Score:
    k, middle = np.sort(sides.k, axis=1), _tests(sides) // 2
    return _over(k[:, (_tests(sides) - 1) // 2] + k[:, middle], 4 * sides.asked.size)


def _trimmed_mean(sides: Sides) -> Score:
    cut = _tests(sides) // 10
    kept = np.sort(sides.k, axis=1)[:, cut : _tests(sides) - cut]
    return _over(kept.sum(axis=1), 2 * sides.asked.size * kept.shape[1])


def _clipped_mean(sides: Sides) -> Score:
    n = sides.asked.size[:, None]
    return _over(np.clip(10 * sides.k, n, 19 * n).sum(axis=1), 20 * sides.asked.size * _tests(sides))


def _worst(sides: Sides) -> Score:
    return _over(sides.k.max(axis=1), 2 * sides.asked.size)


def _p90(sides: Sides) -> Score:
    place = math.ceil(Fraction(9 * _tests(sides), 10)) - 1
    return _over(np.sort(sides.k, axis=1)[:, place], 2 * sides.asked.size)


def _weighted_mean(sides: Sides) -> Score:
    """Weights in whole us; where one is unknown, the smallest or largest percentile bounds the mean."""
    low, high = (sides.asked.twice_median(order) for order in (sides.low.others, sides.low.theirs))
    certain = ((low == high) & (high < KILLED)).all(axis=1)
    weights = np.maximum(np.where(certain[:, None], low, 4000) // 4000, 1)  # a median counts four times its half ns
    if int((2 * sides.asked.size * weights.sum(axis=1)).max(initial=0)) > _EXACT_FLOAT:
        raise ReplayError("durations too long to weigh with; choose another statistic")
    k = sides.k
    bound = (k.min(axis=1) if sides.asked is sides.low else k.max(axis=1)) * weights.sum(axis=1)
    return _over(np.where(certain, (weights * k).sum(axis=1), bound), 2 * sides.asked.size * weights.sum(axis=1))


def _sum(values: Ints, mine: Ints) -> Ints:
    """The sum [K] of finite values; where a duration is not finite, the largest such, which is larger than any sum."""
    if values.size and values.shape[1] * int(np.where(values < KILLED, values, 0).max()) >= KILLED:
        raise ReplayError("durations too long to be added; judge by percentiles instead")
    return np.where(mine.max(axis=1) >= KILLED, mine.max(axis=1), values.sum(axis=1))


def _total(sides: Sides) -> Score:
    return _over(_sum(sides.asked.mine, sides.asked.mine), 1)


def _clipped_total(sides: Sides) -> Score:
    end = sides.asked.others  # a later end of the references clips less
    clipped = np.minimum(sides.asked.mine, sides.asked.quantile(end, Fraction(19, 20)))
    return _over(_sum(clipped, clipped), 1)


def _median_time(sides: Sides) -> Score:
    return _over(_two_middle(sides.asked.mine), 1)


def _two_middle(values: Ints) -> Ints:
    """The sum of the two middle values [K] of a row; where the upper one is not finite, that one."""
    tests = values.shape[1]
    ordered = np.sort(values, axis=1)
    low, high = ordered[:, (tests - 1) // 2], ordered[:, tests // 2]
    return np.where(high >= KILLED, high, low + high)


def _longest(sides: Sides) -> Score:
    return _over(sides.asked.mine.max(axis=1), 1)


def _geometric_mean(sides: Sides) -> Score:
    """The product of the durations, at least 1 each: it orders programs as its root does."""
    mine = np.maximum(sides.asked.mine, 1)
    top = mine.max(axis=1)
    products = [
        int(last) << (64 * len(row)) if last >= KILLED else math.prod(row)  # beyond every finite product
        for row, last in zip(mine.tolist(), top.tolist(), strict=True)
    ]
    return _over(np.array(products, dtype=object), 1)


def _ratios(sides: Sides) -> Ints:
    """Durations over the references' medians [K, T] in whole millionths, at most a million; as they are if not finite.

    Over a median that is not finite a ratio is 0.
    """
    mine, medians = sides.asked.mine, np.maximum(sides.asked.twice_median(sides.asked.theirs), 1)
    finite = np.where(medians < KILLED, medians, 1)
    whole, rest = np.divmod(2 * np.where(mine < KILLED, mine, 0), finite)
    if int(finite.max(initial=0)) >= KILLED // MILLION:  # the product below would overflow
        rest, finite = rest.astype(object), finite.astype(object)
    parts = (rest * MILLION // finite).astype(np.int64)
    ratios = np.where(medians < KILLED, np.where(whole < MILLION, whole * MILLION + parts, MILLION * MILLION), 0)
    return np.where(mine < KILLED, ratios, mine)


def _mean_ratio(sides: Sides) -> Score:
    ratios = _ratios(sides)
    return _over(_sum(ratios, ratios), MILLION * _tests(sides))


def _median_ratio(sides: Sides) -> Score:
    return _over(_two_middle(_ratios(sides)), 2 * MILLION)


def _win_rate(sides: Sides) -> Score:
    lost = sides.asked.less.sum(axis=1)
    won = (sides.asked.size[:, None] - sides.asked.upto).sum(axis=1)
    tied = lost + won == 0
    return _over(np.where(tied, 1, lost), np.where(tied, 2, lost + won))


def _slope(sides: Sides) -> Score:
    return _least_squares(sides, lambda values: values)


def _log_slope(sides: Sides) -> Score:
    return _least_squares(sides, log_steps)


def _least_squares(sides: Sides, scale: Callable[[Ints], Ints]) -> Score:
    """The slope of the durations against the references' medians, both scaled, over the tests.

    It does not grow with every duration, so one that is unknown leaves it open; a failed run is the worst there is.
    """
    low, high = (sides.low.twice_median(order) for order in (sides.low.others, sides.low.theirs))
    known = (low == high) & (high < KILLED) & (sides.low.mine == sides.high.mine) & (sides.low.mine < KILLED)
    certain = known.all(axis=1)
    x, y = (
        scale(np.where(known, np.maximum(v, 1), 1)).astype(object)
        for v in (low, 2 * np.where(known, sides.low.mine, 0))
    )
    tests = _tests(sides)
    rise = tests * (x * y).sum(axis=1) - x.sum(axis=1) * y.sum(axis=1)
    run = tests * (x * x).sum(axis=1) - x.sum(axis=1) ** 2
    certain &= (run != 0).astype(np.bool_)
    failed = (sides.low.mine == FAILED).any(axis=1)
    worst = failed | (sides.asked is not sides.low)
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
        "losses / (wins + losses) over all references and tests, ties left out; 1/2 when all are ties", _win_rate
    ),
    "slope": Statistic("least-squares slope of d against m over the tests", _slope),
    "log-slope": Statistic("the same of log2 d against log2 m, each in whole steps of 2^-16", _log_slope),
}
"""Every statistic by name; T is the number of tests."""
MONOTONE = frozenset((*OF_PERCENTILES, *OF_TIMES)) - {"slope", "log-slope"}
"""The statistics that never fall as a duration grows."""
