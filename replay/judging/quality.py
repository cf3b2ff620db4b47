"""The quality q of programs among a pool: their scores, or the rank of a score among the references' own scores.

Numerators and denominators are whole numbers, smallest and largest where something was never seen. No threshold and no
verdict here.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from lapledger.replay.criteria import Criterion
from lapledger.replay.judging.exact import Score, among, below
from lapledger.replay.judging.ranks import Order, Pool, against, percentile
from lapledger.replay.judging.statistics import STATISTICS, score
from lapledger.replay.measurements import Ints

PAIRWISE = {"mean": (1, 1), "strict": (2, 0), "weak": (0, 2)}
"""Percentiles that are sums over single references: the weights of a smaller and of a smaller or equal one."""
BLOCK = 2**20
"""Cells that are ranked at a time: a bound on memory, never on results."""


@dataclass(frozen=True, slots=True, eq=False)
class Own:
    """The references' own scores, each among the others, once for each group of duplicates left out."""

    columns: Ints  # [C] rising; the groups that are left out, G for none
    low: Score  # numerators and denominators [N, C]
    high: Score


@dataclass(frozen=True, slots=True, eq=False)
class Pooled:
    """What programs are ranked among: the pool on the optimization tests, and its own scores where they are asked."""

    pool: Pool
    criterion: Criterion
    own: Own | None


@dataclass(frozen=True, slots=True, eq=False)
class Ranks:
    """The ranks of programs against the pool without themselves and their exact duplicates."""

    k_lo: Ints  # [M, T'] rank of the duration, smallest and largest; percentile 100 k / (2 pool_size)
    k_hi: Ints  # [M, T']
    pool_size: Ints  # [M]
    q_lo: Ints  # [M] numerators of the quality q
    q_hi: Ints  # [M]
    q_den: Ints  # [M] 0 where no pool or no optimization test is left


def pooled(pool: Pool, columns: Ints, criterion: Criterion, *, own: bool) -> Pooled:
    """The pool as programs of some groups are ranked among it; its own scores cost most and are made where asked."""
    scored = own and pool.lo.shape[1] > 0
    return Pooled(pool, criterion, own_scores(pool, np.unique(columns), criterion) if scored else None)


def own_scores(pool: Pool, columns: Ints, criterion: Criterion) -> Own:
    """Each reference's score among the others without its own group and without the group of each column [C]."""
    if not len(pool.duplicate):
        nothing = np.zeros((0, len(columns)), dtype=np.int64)
        return Own(columns, (nothing, nothing), (nothing, nothing))
    if criterion.statistic == "mean" and criterion.percentile in PAIRWISE:
        return _mean_scores(pool, columns, criterion.percentile)
    if STATISTICS[criterion.statistic].alone:
        parts = [_scored(pool, columns[:1], criterion)] * len(columns)
    else:
        parts = [_scored(pool, block, criterion) for block in _blocks(pool, columns)]
    low = _beside([part[0] for part in parts])
    return Own(columns, low, low if all(a is b for a, b in parts) else _beside([part[1] for part in parts]))


def _beside(parts: list[Score]) -> Score:
    numerators, denominators = (np.concatenate(part, axis=1) for part in zip(*parts, strict=True))
    return numerators, denominators


def _blocks(pool: Pool, columns: Ints) -> Iterator[Ints]:
    """Columns in blocks that keep memory bounded."""
    step = max(1, BLOCK // max(pool.lo.size, 1))
    yield from (columns[start : start + step] for start in range(0, len(columns), step))


def _scored(pool: Pool, columns: Ints, criterion: Criterion) -> tuple[Score, Score]:
    """Own scores [N, C], both sides."""
    group, none = pool.column(pool.duplicate), len(pool.names)
    rows = np.repeat(np.arange(len(group)), len(columns))
    second = np.tile(columns, len(group))
    second = np.where(second == group[rows], none, second)
    sides = against(pool, pool.lo, pool.hi, rows=rows, groups=[group[rows], second])
    low, high = score(criterion.statistic, sides, criterion.percentile)
    shape = (len(group), len(columns))
    first = low[0].reshape(shape), low[1].reshape(shape)
    return first, first if high is low else (high[0].reshape(shape), high[1].reshape(shape))


def _mean_scores(pool: Pool, columns: Ints, kind: str) -> Own:
    """The same for the mean of percentiles, from one matrix of pairs: what a group adds is taken off again."""
    group, tests = pool.column(pool.duplicate), pool.lo.shape[1]
    in_group = (group[:, None] == columns[None, :]).astype(np.int64)  # [N, C]
    others = (group[:, None] != group[None, :]).astype(np.int64)
    size = others.sum(axis=1)[:, None] - others @ in_group
    alone = size <= 0
    as_one = tests * int(percentile(np.zeros(1, dtype=np.int64), np.ones(1, dtype=np.int64), kind)[0])
    low, high = pool.orders

    def scores(mine: Ints, theirs: Order) -> Ints:
        pairs = _pairs(mine, theirs.values, PAIRWISE[kind]) * others
        without = pairs.sum(axis=1)[:, None] - pairs @ in_group
        return np.where(alone, as_one, without)

    den = 2 * np.where(alone, 1, size) * tests
    first = scores(pool.lo, high), den
    return Own(columns, first, first if low is high else (scores(pool.hi, low), den))


def _pairs(mine: Ints, theirs: Ints, weights: tuple[int, int]) -> Ints:
    """The rank of each reference against each other one, summed over the tests [N, N]."""
    smaller, upto = theirs[None, :, :] < mine[:, None, :], theirs[None, :, :] <= mine[:, None, :]
    found: Ints = weights[0] * smaller.sum(axis=2, dtype=np.int64) + weights[1] * upto.sum(axis=2, dtype=np.int64)
    return found


def ranks(peers: Pooled, lo: Ints, hi: Ints, column: Ints) -> Ranks:
    """Ranks and quality of programs from their spans [M, T'] and their groups [M]."""
    pool, kind = peers.pool, peers.criterion.percentile
    sides = against(pool, lo, hi, rows=np.arange(len(lo)), groups=[column])
    size = pool.sizes(column)
    k_lo, k_hi = (percentile(side.less, side.upto, kind) * (size > 0)[:, None] for side in sides)
    if not lo.shape[1] or not peers.criterion.needs_pool:
        nothing = np.zeros(len(lo), dtype=np.int64)
        return Ranks(k_lo, k_hi, size, nothing, nothing, nothing)
    low, high = score(peers.criterion.statistic, sides, kind)
    if peers.criterion.reading == "score":
        return Ranks(k_lo, k_hi, size, low[0] * (size > 0), high[0] * (size > 0), low[1] * (size > 0))
    q_lo, q_hi = (q * (size > 0) for q in _standing(peers, low, high, column))
    return Ranks(k_lo, k_hi, size, q_lo, q_hi, 2 * size)


def _standing(peers: Pooled, low: Score, high: Score, column: Ints) -> tuple[Ints, Ints]:
    """The integer rank over 2n of each program's score among the own scores of the references that rank it [M]."""
    own = peers.own
    if own is None:
        raise AssertionError("own scores were not made")
    group, kind = peers.pool.column(peers.pool.duplicate), peers.criterion.percentile

    def rank(mine: Score, theirs: Score) -> Ints:
        found = np.empty(len(column), dtype=np.int64)
        outside = column == len(peers.pool.names)
        for rows in (np.flatnonzero(outside), np.flatnonzero(~outside)):
            if not rows.size:
                continue
            place, asked = np.searchsorted(own.columns, column[rows]), (mine[0][rows], mine[1][rows])
            if outside[rows[0]]:  # all of them among the same scores
                less, upto = among(asked, (theirs[0][:, place[0]], theirs[1][:, place[0]]))
            else:
                others = group[None, :] != column[rows, None]
                found_below = below(asked, (theirs[0].T[place], theirs[1].T[place]))
                less, upto = ((one & others).sum(axis=1, dtype=np.int64) for one in found_below)
            found[rows] = percentile(less, upto, kind)
        return found

    first = rank(low, own.high)
    certain = high is low and own.high is own.low
    return first, first if certain else rank(high, own.low)
