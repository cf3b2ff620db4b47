"""How a program's tests become one score among a pool: percentile ranks, and the seventeen statistics.

A score is a fraction, small when fast. Where something was never seen there are two, each from one side of what is
unknown: `low` is the smallest score that can still be true.
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


class Side:
    """One program among a sub-pool, seen from the low or the high side; `out` are the references left out."""

    def __init__(self, pool: Pool, spans: Sequence[Span], out: Sequence[int], side: int) -> None:
        self.pool, self.out, self.side = pool, out, side
        self.mine = [span[side] for span in spans]
        self.other = [span[1 - side] for span in spans]
        self.alone = len(out) >= len(pool.group)
        self.size = max(len(pool.group) - len(out), 1)
        theirs = 1 - side  # the low side of mine is held against the high ends of theirs
        self.less = [self._count(bisect_left, theirs, t) for t in range(len(spans))]
        self.upto = [1 if self.alone else self._count(bisect_right, theirs, t) for t in range(len(spans))]

    def _count(self, bisect: Callable[[list[int], int], int], end: int, t: int) -> int:
        column, mine = self.pool.ends[end][t], self.mine[t]
        gone = sum(column[n] < mine if bisect is bisect_left else column[n] <= mine for n in self.out)
        return bisect(self.pool.rising[end][t], mine) - gone

    def sorted(self, end: int, t: int) -> list[int]:
        """The sub-pool's durations on a test, rising; its own where it is alone."""
        if self.alone:
            return [self.mine[t]]
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


def score(side: Side, criterion: Mapping[str, str]) -> Fraction:
    """The score of one side."""
    kind, name = criterion["percentile"], criterion["statistic"]
    k = [percentile(less, upto, kind) for less, upto in zip(side.less, side.upto, strict=True)]
    if name in _OF_PERCENTILES:
        return _OF_PERCENTILES[name](sorted(k), side.size)
    return _weighted_mean(side, k) if name == "weighted-mean" else _OF_TIMES[name](side)


def _trimmed(k: Sequence[int], n: int) -> Fraction:
    kept = k[len(k) // 10 : len(k) - len(k) // 10]
    return Fraction(sum(kept), 2 * n * len(kept))


_OF_PERCENTILES: Mapping[str, Callable[[Sequence[int], int], Fraction]] = {
    "mean": lambda k, n: Fraction(sum(k), 2 * n * len(k)),
    "median": lambda k, n: Fraction(k[(len(k) - 1) // 2] + k[len(k) // 2], 4 * n),
    "trimmed-mean": _trimmed,
    "clipped-mean": lambda k, n: Fraction(sum(min(max(10 * one, n), 19 * n) for one in k), 20 * n * len(k)),
    "worst": lambda k, n: Fraction(k[-1], 2 * n),
    "p90": lambda k, n: Fraction(k[math.ceil(Fraction(9 * len(k), 10)) - 1], 2 * n),
}


def _weighted_mean(side: Side, k: Sequence[int]) -> Fraction:
    """Weights in whole us; where one is unknown, the smallest or the largest percentile bounds the mean."""
    tests = range(len(k))
    low, high = ([side.twice_median(end, t) for t in tests] for end in (LOW, HIGH))
    if low != high or max(high) >= KILLED:
        return Fraction(min(k) if side.side == LOW else max(k), 2 * side.size)
    weights = [max(median // 4000, 1) for median in low]
    return Fraction(sum(w * one for w, one in zip(weights, k, strict=True)), 2 * side.size * sum(weights))


def _total(values: Sequence[int]) -> Fraction:
    """The sum; where a duration is not finite the largest such, which is larger than any sum."""
    return Fraction(max(values) if max(values) >= KILLED else sum(values))


def _clipped_total(side: Side) -> Fraction:
    caps = [side.quantile(side.side, t, Fraction(19, 20)) for t in range(len(side.mine))]
    return _total([min(mine, cap) for mine, cap in zip(side.mine, caps, strict=True)])


def _geometric_mean(side: Side) -> Fraction:
    mine = [max(one, 1) for one in side.mine]
    return Fraction(max(mine) << (64 * len(mine)) if max(mine) >= KILLED else math.prod(mine))


def _ratios(side: Side) -> list[int]:
    """Durations over the references' medians in whole millionths, at most a million."""
    found = []
    for t, mine in enumerate(side.mine):
        median = max(side.twice_median(1 - side.side, t), 1)
        if mine >= KILLED:
            found.append(mine)
        else:
            found.append(0 if median >= KILLED else min(2 * mine * MILLION // median, MILLION * MILLION))
    return found


def _win_rate(side: Side) -> Fraction:
    lost, won = sum(side.less), sum(side.size - upto for upto in side.upto)
    return Fraction(lost, lost + won) if lost + won else Fraction(1, 2)


def _log_steps(value: int) -> int:
    """The logarithm to base 2 in steps of 2^-16, rounded to the nearest."""
    exact = _PRECISE.divide(_PRECISE.ln(Decimal(value)), _PRECISE.ln(Decimal(2)))
    return math.floor(_PRECISE.add(_PRECISE.multiply(exact, Decimal(2**16)), Decimal("0.5")))


def _slope(side: Side, scale: Callable[[int], int]) -> Fraction:
    """Durations against the references' medians, least squares; one unknown number leaves it open."""
    tests = range(len(side.mine))
    low, high = ([side.twice_median(end, t) for t in tests] for end in (LOW, HIGH))
    known = low == high and max(high) < KILLED and side.mine == side.other and max(side.mine) < KILLED
    if known:
        x, y = [scale(max(v, 1)) for v in low], [scale(max(2 * v, 1)) for v in side.mine]
        n = len(x)
        rise = n * sum(a * b for a, b in zip(x, y, strict=True)) - sum(x) * sum(y)
        run = n * sum(a * a for a in x) - sum(x) ** 2
        if run:
            return Fraction(rise, run)
    lows = side.mine if side.side == LOW else side.other
    return Fraction(_STEEPEST if FAILED in lows or side.side == HIGH else -_STEEPEST)


_OF_TIMES: Mapping[str, Callable[[Side], Fraction]] = {
    "total": lambda side: _total(side.mine),
    "clipped-total": _clipped_total,
    "median-time": lambda side: Fraction(two_middle(side.mine)),
    "longest": lambda side: Fraction(max(side.mine)),
    "geometric-mean": _geometric_mean,
    "mean-ratio": lambda side: _total(_ratios(side)) / (MILLION * len(side.mine)),
    "median-ratio": lambda side: Fraction(two_middle(_ratios(side)), 2 * MILLION),
    "win-rate": _win_rate,
    "slope": lambda side: _slope(side, lambda value: value),
    "log-slope": lambda side: _slope(side, _log_steps),
}
