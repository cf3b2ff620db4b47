"""Integer ranks of durations among the references' durations, each program excluded from its own pool.

Integers: a rank counts references. With L of n references faster and R faster or equal, the tie-averaged percentile is
100 k / (2 n) for the whole number k = L + R. Equal durations get equal k on every machine; a float percentile compared
with tau would leave ties to its last bit.

Intervals: a duration that was never seen lies between two ends. A rank grows with the program's own duration and falls
with the references', so its smallest value is the program's low end among the references' high ends, and its largest
the opposite. Scores are made from ranks in `statistics`; no verdict is made here.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from lapledger.replay.criteria import Criterion
from lapledger.replay.estimators import ABSENT
from lapledger.replay.judging.exact import ceil_share
from lapledger.replay.measurements import Bools, Bytes, Ints, Outcome, Readings

# Durations are compared in half ns: a run that finished in d ns lies at the even number 2 d, one killed at its bound in
# [2 bound + 1, KILLED]. So a kill is slower than a finish at the bound itself, and never ties with any finished run.
# Durations stay below 2**60 ns, hence 2 d + 1 below KILLED, and the sum of two values fits int64 with room to spare.
KILLED = 2**62
FAILED_REFERENCE = KILLED + 1  # slower than every run that may still finish
FAILED = KILLED + 2  # above FAILED_REFERENCE: a failed run has percentile 100 even where every reference failed too


def versus(mine: npt.NDArray[Any], theirs: npt.NDArray[Any]) -> Bytes:
    """2 [theirs < mine] + [theirs = mine], broadcast: the rank of one among one. Grows with mine, falls with theirs."""
    smaller, equal = (theirs < mine).view(np.int8), (theirs == mine).view(np.int8)
    ranks: Bytes = smaller + smaller + equal
    return ranks


def percentile(less: Ints, upto: Ints, kind: str) -> Ints:
    """Integer percentile rank over 2n from the numbers of smaller and of smaller or equal references.

    `mean` L + R (the tie-averaged rank), `strict` 2 L, `weak` 2 R, `rank` L + R + [L < R] (scipy's default).
    """
    if kind == "strict":
        return 2 * less
    if kind == "weak":
        return 2 * upto
    ranks: Ints = less + upto
    return ranks + (less < upto) if kind == "rank" else ranks


def spans(readings: Readings, criterion: Criterion) -> tuple[Ints, Ints]:
    """Smallest and largest possible duration of each run in half ns [M, T]; equal where it is known.

    A killed run lies above its bound, a failed one at FAILED. A run without result or duration, or with an unspecified
    failure, may lie anywhere. A wrong answer is failed, or ranked by its duration where the criterion ranks those.
    """
    ended = readings.outcome == Outcome.OK
    if criterion.ranks_wrong:
        ended |= readings.outcome == Outcome.WRONG_ANSWER
    known = ended & (readings.duration_ns != ABSENT)
    killed = readings.outcome == Outcome.TIME_LIMIT
    failed = (readings.outcome > Outcome.OK) & (readings.outcome != Outcome.FAILED) & ~killed & ~ended
    if criterion.missing == "fail":
        failed |= readings.outcome == Outcome.MISSING
    twice = 2 * readings.duration_ns
    lo = np.select([known, killed, failed], [twice, 2 * readings.bound_ns + 1, FAILED], -1)
    hi = np.select([known, killed], [twice, KILLED], FAILED)
    return lo, hi


MERGE_FROM = 2**10
"""Number of durations from which one sort of all is faster than a search for each."""


def _merged(rising: Ints, mine: Ints) -> tuple[Ints, Ints]:
    """How many of N values in rising order are smaller, and smaller or equal, than each duration [M, T].

    Both are sorted together, test by test. All members of a run of equal values get the same two counts: references
    before the run's first member, and those up to its last. So the order that the sort gives to equal values, program
    before reference or not, changes no count, and the sort need not be stable.
    """
    both = np.concatenate([mine, rising]).T.copy()  # [T, M + N]
    order = np.argsort(both, axis=1)
    theirs = order >= len(mine)
    order += np.arange(len(both))[:, None] * both.shape[1]
    along = both.reshape(-1).take(order)
    # `behind` counts references up to and including each position and never falls: accumulating a maximum carries the
    # count before a run forward to its members, and a minimum from the end carries the count after it back to them
    begins, behind = np.ones(along.shape, dtype=np.bool_), np.cumsum(theirs, axis=1)
    np.not_equal(along[:, 1:], along[:, :-1], out=begins[:, 1:])
    before = np.maximum.accumulate(np.where(begins, behind - theirs, 0), axis=1)
    ends = np.append(begins[:, 1:], begins[:, :1], axis=1)
    behind = np.minimum.accumulate(np.where(ends, behind, len(rising))[:, ::-1], axis=1)[:, ::-1]
    less, upto = np.empty(both.shape, dtype=np.int64), np.empty(both.shape, dtype=np.int64)
    less.reshape(-1)[order], upto.reshape(-1)[order] = before, behind
    return less[:, : len(mine)].T.copy(), upto[:, : len(mine)].T.copy()


@dataclass(frozen=True, slots=True, eq=False)
class Order:
    """The references' durations on every test in rising order, and the position of each reference in it."""

    values: Ints  # [N, T] in half ns
    rising: Ints  # [N, T] sorted along the references
    position: Ints  # [N, T] of each reference in `rising`

    @classmethod
    def of(cls, values: Ints) -> "Order":
        """The order of one end of the references' durations [N, T], failed ones lowered to FAILED_REFERENCE."""
        capped = np.minimum(values, FAILED_REFERENCE)
        order = np.argsort(capped, axis=0, kind="stable")
        position = np.empty_like(order)
        np.put_along_axis(position, order, np.broadcast_to(np.arange(len(order))[:, None], order.shape), axis=0)
        return cls(capped, np.take_along_axis(capped, order, axis=0), position)

    def counts(self, mine: Ints) -> tuple[Ints, Ints]:
        """How many references are smaller, and how many smaller or equal, than each duration [M, T]."""
        if mine.size > MERGE_FROM:
            return _merged(self.rising, mine)
        less, upto = (np.empty(mine.T.shape, dtype=np.int64) for _ in range(2))
        for test, (column, references) in enumerate(zip(mine.T.copy(), self.rising.T.copy(), strict=True)):
            less[test], upto[test] = references.searchsorted(column, "left"), references.searchsorted(column, "right")
        return less.T, upto.T


@dataclass(frozen=True, eq=False)
class Pool:
    """The references that rank, with the groups of exact duplicates that are excluded together."""

    lo: Ints  # [N, T] spans in half ns
    hi: Ints  # [N, T]
    duplicate: Ints  # [N] equal numbers are exact duplicates

    @cached_property
    def orders(self) -> tuple[Order, Order]:
        """The order of the low ends and that of the high ends."""
        low = Order.of(self.lo)
        return low, low if np.array_equal(self.lo, self.hi) else Order.of(self.hi)

    @cached_property
    def names(self) -> Ints:
        """The duplicate number of each group [G], rising."""
        return np.unique(self.duplicate)

    @cached_property
    def members(self) -> Ints:
        """The references of each group [G + 1, most], -1 where there is none; the last group has none."""
        group = self.column(self.duplicate)
        sizes = np.bincount(group, minlength=len(self.names) + 1)
        members = np.full((len(sizes), int(sizes.max(initial=0))), -1, dtype=np.int64)
        rows = np.argsort(group, kind="stable")
        starts = np.cumsum(sizes) - sizes
        members[group[rows], np.arange(len(rows)) - starts[group[rows]]] = rows
        return members

    def column(self, duplicate: Ints) -> Ints:
        """The group that each program belongs to [M]; G for a program outside the pool."""
        index = np.searchsorted(self.names, duplicate)
        inside = np.append(self.names, 0)[index] == duplicate
        return np.where(inside & (index < len(self.names)), index, len(self.names))

    def on(self, tests: Bools) -> "Pool":
        """The same pool on some of its tests [T]."""
        return Pool(self.lo[:, tests], self.hi[:, tests], self.duplicate)

    def sizes(self, column: Ints) -> Ints:
        """How many references are left without the group of each program [M]."""
        left: Ints = len(self.duplicate) - (self.members >= 0).sum(axis=1)[column]
        return left


@dataclass(frozen=True, slots=True, eq=False)
class RankedRuns:
    """K runs of a problem, each among its own sub-pool, at the low or the high end of what is unknown.

    A run with no reference left is ranked in a pool of one, its own duration: tied with itself, percentile 50.
    """

    mine: Ints  # [K, T] half ns
    less: Ints  # [K, T] references smaller for certain (low end), or perhaps (high end)
    upto: Ints  # [K, T] the same, smaller or equal
    size: Ints  # [K] references in the sub-pool, at least 1
    alone: Bools  # [K]
    out: Ints  # [K, E] references excluded, -1 for none
    theirs: Order  # the end of the references' spans that these ranks are counted against
    opposite: Order  # the other end

    def kth(self, order: Order, k: Ints) -> Ints:
        """The k-th smallest duration [K, T], from 0 [K], of one end of the sub-pool's spans."""
        if not len(order.rising):
            return self.mine
        excluded = np.where(
            self.out[:, :, None] >= 0, order.position[self.out], len(order.position) + self.out.shape[1]
        )
        # A left-out reference at or before the wanted index pushes it on by one. They are taken by rising position, so
        # that an index already pushed is compared with the next; absent ones lie behind all and never push.
        index = np.broadcast_to(k[:, None], self.mine.shape).copy()
        for position in np.sort(excluded, axis=1).transpose(1, 0, 2):
            index += position <= index
        durations = np.take_along_axis(order.rising, np.minimum(index, len(order.rising) - 1), axis=0)
        return np.where(self.alone[:, None], self.mine, durations)

    def quantile(self, order: Order, share: Fraction) -> Ints:
        """The smallest duration [K, T] that at least a share in (0, 1] of the sub-pool does not exceed."""
        return self.kth(order, ceil_share(share, self.size) - 1)

    def twice_median(self, order: Order) -> Ints:
        """The sum of the two middle durations [K, T]; KILLED or more where one of them is not finite."""
        low, high = self.kth(order, (self.size - 1) // 2), self.kth(order, self.size // 2)
        return np.where(high >= KILLED, high, low + high)


def against(pool: Pool, lo: Ints, hi: Ints, *, rows: Ints, groups: Sequence[Ints]) -> tuple[RankedRuns, RankedRuns]:
    """Low and high end of K runs, rows [K] of spans [M, T], each against the pool without some groups [K] of members.

    Left-out references are subtracted from the counts among all: each was counted once as smaller, or as smaller or
    equal, exactly when the same comparison holds for it alone. No group may be named twice for one run.
    """
    out = np.concatenate([pool.members[group] for group in groups], axis=1)
    size = len(pool.duplicate) - (out >= 0).sum(axis=1)
    low, high = pool.orders
    certain = low is high

    def end(mine: Ints, theirs: Order, opposite: Order, first_end: RankedRuns | None = None) -> RankedRuns:
        ranked = mine[rows]
        if first_end is None:
            again = np.arange(len(ranked))
            less, upto = _counts(theirs, mine, rows)
        else:  # all references are known: rows whose two ends are equal have the counts of the first end
            again = np.flatnonzero((ranked != first_end.mine).any(axis=1))
            less, upto = first_end.less.copy(), first_end.upto.copy()
            less[again], upto[again] = theirs.counts(ranked[again])
        for excluded in out[again].T:
            kept = excluded >= 0
            changed_rows, left_out_values = again[kept], theirs.values[excluded[kept]]
            less[changed_rows] -= left_out_values < ranked[changed_rows]
            upto[changed_rows] -= left_out_values <= ranked[changed_rows]
        alone = size <= 0
        upto = np.where(alone[:, None], 1, upto) if alone.any() else upto
        return RankedRuns(ranked, less, upto, np.maximum(size, 1), alone, out, theirs, opposite)

    first = end(lo, high, low)
    if certain and np.array_equal(lo, hi):
        return first, first
    return first, end(hi, low, high, first if certain else None)


def _counts(theirs: Order, mine: Ints, rows: Ints) -> tuple[Ints, Ints]:
    """The counts of rows [K] of durations [M, T], as arrays of their own."""
    less, upto = theirs.counts(mine)
    if len(rows) == len(mine) and np.array_equal(rows, np.arange(len(mine))):
        return less, upto
    return less[rows], upto[rows]
