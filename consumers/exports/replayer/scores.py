"""How a program's tests become one score among a pool: percentile ranks, and the seventeen statistics.

A score is a fraction, small when fast. Where something was never seen there are two, one for each end
of the unknown: LOW is the smallest score that can still be true.
"""

import math
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Collection, Mapping, Sequence
from decimal import Context, Decimal
from fractions import Fraction

from lapledger.consumers.exports.replayer.durations import FAILED, FAILED_REFERENCE, KILLED, Span

LOW, HIGH = 0, 1
MILLION = 10**6
_STEEPEST = FAILED << 128
_PRECISE = Context(prec=60)


def percentile(less: int, upto: int, kind: str) -> int:
    """The rank over 2n among n references, of which `less` are faster and `upto` faster or equal."""
    ranks = {"mean": less + upto, "strict": 2 * less, "weak": 2 * upto, "rank": less + upto + (less < upto)}
    return ranks[kind]


class Pool:
    """The references that rank: N spans on some tests, and what each has in common with its exact duplicates."""

    def __init__(self, spans: Sequence[Sequence[Span]], group: Sequence[str], tests: Sequence[int]) -> None:
        """`spans` [N][all tests]; `tests` are those that count here."""
        self.group, self.tests, self.spans = list(group), list(tests), spans
        self.ends = [[[min(row[t][end], FAILED_REFERENCE) for row in spans] for t in tests] for end in (LOW, HIGH)]
        self.rising = [[sorted(column) for column in columns] for columns in self.ends]

    def on(self, tests: Sequence[int]) -> "Pool":
        """The same references on other tests."""
        return Pool(self.spans, self.group, tests)

    def out(self, groups: Collection[str | None]) -> list[int]:
        """The references of some groups."""
        return [n for n, group in enumerate(self.group) if group in groups]


class Standing:
    """One program among a sub-pool, at the low or the high end of the unknown; `out` are the excluded references."""

    def __init__(self, pool: Pool, spans: Sequence[Span], out: Sequence[int], end: int) -> None:
        self.pool, self.out, self.end = pool, out, end
        self.durations = [span[end] for span in spans]
        self.opposite = [span[1 - end] for span in spans]
        self.alone = len(out) >= len(pool.group)
        self.size = max(len(pool.group) - len(out), 1)
        pool_end = 1 - end  # the low end of a program is compared with the high ends of the references
        self.less = [self._count(bisect_left, pool_end, t) for t in range(len(spans))]
        self.upto = [1 if self.alone else self._count(bisect_right, pool_end, t) for t in range(len(spans))]

    def _count(self, bisect: Callable[[list[int], int], int], end: int, t: int) -> int:
        column, value = self.pool.ends[end][t], self.durations[t]
        excluded = sum(column[n] < value if bisect is bisect_left else column[n] <= value for n in self.out)
        return bisect(self.pool.rising[end][t], value) - excluded

    def sorted(self, end: int, t: int) -> list[int]:
        """The sub-pool's durations on a test, rising; the program's where no reference is left."""
        if self.alone:
            return [self.durations[t]]
        column = self.pool.ends[end][t]
        return sorted(value for n, value in enumerate(column) if n not in self.out)

    def twice_median(self, end: int, t: int) -> int:
        """The sum of the two middle durations of the sub-pool; KILLED or more where one is not finite."""
        return two_middle(self.sorted(end, t))

    def quantile(self, end: int, t: int, share: Fraction) -> int:
        """The smallest duration that at least a share of the sub-pool does not exceed."""
        ordered = self.sorted(end, t)
        return ordered[math.ceil(share * len(ordered)) - 1]


def two_middle(values: Sequence[int]) -> int:
    """The sum of the two middle values; the upper one where that is not finite."""
    ordered = sorted(values)
    low, high = ordered[(len(ordered) - 1) // 2], ordered[len(ordered) // 2]
    return high if high >= KILLED else low + high


def score(standing: Standing, criterion: Mapping[str, str]) -> Fraction:
    """The score of a program at one end."""
    kind, name = criterion["percentile"], criterion["statistic"]
    k = [percentile(less, upto, kind) for less, upto in zip(standing.less, standing.upto, strict=True)]
    if name in _OF_PERCENTILES:
        return _OF_PERCENTILES[name](sorted(k), standing.size)
    return _weighted_mean(standing, k) if name == "weighted-mean" else _OF_TIMES[name](standing)


def _trimmed(k: Sequence[int], n: int) -> Fraction:
    kept = k[len(k) // 10 : len(k) - len(k) // 10]
    return Fraction(sum(kept), 2 * n * len(kept))


_OF_PERCENTILES: Mapping[str, Callable[[Sequence[int], int], Fraction]] = {
    "mean": lambda k, n: Fraction(sum(k), 2 * n * len(k)),
    "median": lambda k, n: Fraction(k[(len(k) - 1) // 2] + k[len(k) // 2], 4 * n),
    "trimmed-mean": _trimmed,
    "clipped-mean": lambda k, n: Fraction(sum(min(max(10 * rank, n), 19 * n) for rank in k), 20 * n * len(k)),
    "worst": lambda k, n: Fraction(k[-1], 2 * n),
    "p90": lambda k, n: Fraction(k[math.ceil(Fraction(9 * len(k), 10)) - 1], 2 * n),
}


def _weighted_mean(standing: Standing, k: Sequence[int]) -> Fraction:
    """Weights in whole us; where one is unknown, the smallest or the largest percentile bounds the mean."""
    tests = range(len(k))
    low, high = ([standing.twice_median(end, t) for t in tests] for end in (LOW, HIGH))
    if low != high or max(high) >= KILLED:
        return Fraction(min(k) if standing.end == LOW else max(k), 2 * standing.size)
    weights = [max(median // 4000, 1) for median in low]
    return Fraction(sum(w * rank for w, rank in zip(weights, k, strict=True)), 2 * standing.size * sum(weights))


def _total(values: Sequence[int]) -> Fraction:
    """The sum; where a duration is not finite the largest such, which is larger than any sum."""
    return Fraction(max(values) if max(values) >= KILLED else sum(values))


def _clipped_total(standing: Standing) -> Fraction:
    caps = [standing.quantile(standing.end, t, Fraction(19, 20)) for t in range(len(standing.durations))]
    return _total([min(value, cap) for value, cap in zip(standing.durations, caps, strict=True)])


def _geometric_mean(standing: Standing) -> Fraction:
    values = [max(value, 1) for value in standing.durations]
    return Fraction(max(values) << (64 * len(values)) if max(values) >= KILLED else math.prod(values))


def _ratios(standing: Standing) -> list[int]:
    """Durations over the references' medians in whole millionths, at most a million."""
    ratios = []
    for t, value in enumerate(standing.durations):
        median = max(standing.twice_median(1 - standing.end, t), 1)
        if value >= KILLED:
            ratios.append(value)
        else:
            ratios.append(0 if median >= KILLED else min(2 * value * MILLION // median, MILLION * MILLION))
    return ratios


def _win_rate(standing: Standing) -> Fraction:
    lost, won = sum(standing.less), sum(standing.size - upto for upto in standing.upto)
    return Fraction(lost, lost + won) if lost + won else Fraction(1, 2)


def _log_steps(value: int) -> int:
    """The logarithm to base 2 in steps of 2^-16, rounded to the nearest."""
    exact = _PRECISE.divide(_PRECISE.ln(Decimal(value)), _PRECISE.ln(Decimal(2)))
    return math.floor(_PRECISE.add(_PRECISE.multiply(exact, Decimal(2**16)), Decimal("0.5")))


def _slope(standing: Standing, scale: Callable[[int], int]) -> Fraction:
    """Durations against the references' medians, least squares; one unknown number leaves it open."""
    tests = range(len(standing.durations))
    low, high = ([standing.twice_median(end, t) for t in tests] for end in (LOW, HIGH))
    known = (
        low == high
        and max(high) < KILLED
        and standing.durations == standing.opposite
        and max(standing.durations) < KILLED
    )
    if known:
        x, y = [scale(max(v, 1)) for v in low], [scale(max(2 * v, 1)) for v in standing.durations]
        n = len(x)
        rise = n * sum(a * b for a, b in zip(x, y, strict=True)) - sum(x) * sum(y)
        run = n * sum(a * a for a in x) - sum(x) ** 2
        if run:
            return Fraction(rise, run)
    lows = standing.durations if standing.end == LOW else standing.opposite
    return Fraction(_STEEPEST if FAILED in lows or standing.end == HIGH else -_STEEPEST)


_OF_TIMES: Mapping[str, Callable[[Standing], Fraction]] = {
    "total": lambda standing: _total(standing.durations),
    "clipped-total": _clipped_total,
    "median-time": lambda standing: Fraction(two_middle(standing.durations)),
    "longest": lambda standing: Fraction(max(standing.durations)),
    "geometric-mean": _geometric_mean,
    "mean-ratio": lambda standing: _total(_ratios(standing)) / (MILLION * len(standing.durations)),
    "median-ratio": lambda standing: Fraction(two_middle(_ratios(standing)), 2 * MILLION),
    "win-rate": _win_rate,
    "slope": lambda standing: _slope(standing, lambda value: value),
    "log-slope": lambda standing: _slope(standing, _log_steps),
}
