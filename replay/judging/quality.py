"""The quality q of programs among a pool: their score, or the rank of their score among the references' own scores.

q is a rational, whole numerator over whole denominator, with its smallest and largest numerator where something was
never seen. A score grows with the program's duration and falls with the references', so the smallest q sets the
program's low score against the references' high scores. No threshold and no verdict here.
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
"""Percentiles k that are sums over single references: weights (a, b) with k = a [theirs < mine] + b [theirs <= mine].

`rank` is not among them: its term [L < R] is no sum. Only these can take a reference out of a sum again.
"""
BLOCK = 2**20
"""Cells ranked at a time: bounds memory, changes no result."""


@dataclass(frozen=True, slots=True, eq=False)
class ReferenceScores:
    """The references' own scores, each among the other references, for each group of duplicates excluded."""

    columns: Ints  # [C] rising; the groups that are excluded, G for none
    low: Score  # numerators and denominators [N, C]
    high: Score


@dataclass(frozen=True, slots=True, eq=False)
class Pooled:
    """What programs are ranked among: the pool on the optimization tests, and its own scores where q needs them."""

    pool: Pool
    criterion: Criterion
    scores: ReferenceScores | None


@dataclass(frozen=True, slots=True, eq=False)
class Ranks:
    """The ranks of programs against the pool without themselves and their exact duplicates."""

    k_lo: Ints  # [M, T'] rank of the duration, smallest and largest; percentile 100 k / (2 pool_size)
    k_hi: Ints  # [M, T']
    pool_size: Ints  # [M]
    q_lo: Ints  # [M] numerators of the quality q
    q_hi: Ints  # [M]
    q_den: Ints  # [M] 0 where no pool or no optimization test is left


def pooled(pool: Pool, columns: Ints, criterion: Criterion, *, with_scores: bool) -> Pooled:
    """The pool for programs of some groups [M]; the references' own scores, the costly part, only where requested."""
    scored = with_scores and pool.lo.shape[1] > 0
    return Pooled(pool, criterion, reference_scores(pool, np.unique(columns), criterion) if scored else None)


def reference_scores(pool: Pool, columns: Ints, criterion: Criterion) -> ReferenceScores:
    """Each reference's score among the others without its own group and without the group of each column [C]."""
    if not len(pool.duplicate):
        nothing = np.zeros((0, len(columns)), dtype=np.int64)
        return ReferenceScores(columns, (nothing, nothing), (nothing, nothing))
    if criterion.statistic == "mean" and criterion.percentile in PAIRWISE:
        return _mean_scores(pool, columns, criterion.percentile)
    if STATISTICS[criterion.statistic].alone:
        parts = [_scored(pool, columns[:1], criterion)] * len(columns)
    else:
        parts = [_scored(pool, block, criterion) for block in _blocks(pool, columns)]
    low = _beside([part[0] for part in parts])
    return ReferenceScores(columns, low, low if all(a is b for a, b in parts) else _beside([part[1] for part in parts]))


def _beside(parts: list[Score]) -> Score:
    numerators, denominators = (np.concatenate(part, axis=1) for part in zip(*parts, strict=True))
    return numerators, denominators


def _blocks(pool: Pool, columns: Ints) -> Iterator[Ints]:
    """Columns in blocks that keep memory bounded."""
    step = max(1, BLOCK // max(pool.lo.size, 1))
    yield from (columns[start : start + step] for start in range(0, len(columns), step))


def _scored(pool: Pool, columns: Ints, criterion: Criterion) -> tuple[Score, Score]:
    """Own scores [N, C] of the references, low and high."""
    group, none = pool.column(pool.duplicate), len(pool.names)
    rows = np.repeat(np.arange(len(group)), len(columns))
    second = np.tile(columns, len(group))
    second = np.where(second == group[rows], none, second)  # a group must not be excluded twice
    ends = against(pool, pool.lo, pool.hi, rows=rows, groups=[group[rows], second])
    low, high = score(criterion.statistic, ends, criterion.percentile)
    shape = (len(group), len(columns))
    first = low[0].reshape(shape), low[1].reshape(shape)
    return first, first if high is low else (high[0].reshape(shape), high[1].reshape(shape))


def _mean_scores(pool: Pool, columns: Ints, kind: str) -> ReferenceScores:
    """Own scores for the mean of pairwise percentiles, from one matrix of pairs [N, N].

    The sum over all other references, less the sum over the left-out group, is the sum over the rest: exact in whole
    numbers, where a float sum would depend on the order. Reference i's own group is zero in its row.
    """
    group, tests = pool.column(pool.duplicate), pool.lo.shape[1]
    in_group = (group[:, None] == columns[None, :]).astype(np.int64)  # [N, C]
    rankers = (group[:, None] != group[None, :]).astype(np.int64)
    size = rankers.sum(axis=1)[:, None] - rankers @ in_group
    alone = size <= 0
    as_one = tests * int(percentile(np.zeros(1, dtype=np.int64), np.ones(1, dtype=np.int64), kind)[0])
    low, high = pool.orders

    def scores(mine: Ints, theirs: Order) -> Ints:
        pairs = _pairs(mine, theirs.values, PAIRWISE[kind]) * rankers
        without = pairs.sum(axis=1)[:, None] - pairs @ in_group
        return np.where(alone, as_one, without)

    den = 2 * np.where(alone, 1, size) * tests
    first = scores(pool.lo, high), den
    return ReferenceScores(columns, first, first if low is high else (scores(pool.hi, low), den))


def _pairs(mine: Ints, theirs: Ints, weights: tuple[int, int]) -> Ints:
    """The rank of each reference against each single other, summed over the tests [N, N]."""
    smaller, upto = theirs[None, :, :] < mine[:, None, :], theirs[None, :, :] <= mine[:, None, :]
    ranks_of_pairs: Ints = weights[0] * smaller.sum(axis=2, dtype=np.int64) + weights[1] * upto.sum(
        axis=2, dtype=np.int64
    )
    return ranks_of_pairs


def ranks(peers: Pooled, lo: Ints, hi: Ints, column: Ints) -> Ranks:
    """Ranks and quality of programs from their spans [M, T'] in half ns and their groups [M].

    Where no reference is left, or no test, q_den is 0: the quality is undefined, and the verdict undecided.
    """
    pool, kind = peers.pool, peers.criterion.percentile
    ends = against(pool, lo, hi, rows=np.arange(len(lo)), groups=[column])
    size = pool.sizes(column)
    k_lo, k_hi = (percentile(end.less, end.upto, kind) * (size > 0)[:, None] for end in ends)
    if not lo.shape[1] or not peers.criterion.needs_pool:
        nothing = np.zeros(len(lo), dtype=np.int64)
        return Ranks(k_lo, k_hi, size, nothing, nothing, nothing)
    low, high = score(peers.criterion.statistic, ends, kind)
    if peers.criterion.reading == "score":
        return Ranks(k_lo, k_hi, size, low[0] * (size > 0), high[0] * (size > 0), low[1] * (size > 0))
    q_lo, q_hi = (q * (size > 0) for q in _standing(peers, low, high, column))
    return Ranks(k_lo, k_hi, size, q_lo, q_hi, 2 * size)


def _standing(peers: Pooled, low: Score, high: Score, column: Ints) -> tuple[Ints, Ints]:
    """The integer rank over 2n of each program's score among the own scores of the references that rank it [M]."""
    scores = peers.scores
    if scores is None:
        raise AssertionError("own scores were not made")
    group, kind = peers.pool.column(peers.pool.duplicate), peers.criterion.percentile

    def rank(mine: Score, theirs: Score) -> Ints:
        standing = np.empty(len(column), dtype=np.int64)
        outside = column == len(peers.pool.names)
        for rows in (np.flatnonzero(outside), np.flatnonzero(~outside)):
            if not rows.size:
                continue
            column_of, program_scores = np.searchsorted(scores.columns, column[rows]), (mine[0][rows], mine[1][rows])
            if outside[rows[0]]:  # nothing is excluded: all programs stand among the same scores, sorted once
                less, upto = among(program_scores, (theirs[0][:, column_of[0]], theirs[1][:, column_of[0]]))
            else:
                rankers = group[None, :] != column[rows, None]
                counted = below(program_scores, (theirs[0].T[column_of], theirs[1].T[column_of]))
                less, upto = ((flags & rankers).sum(axis=1, dtype=np.int64) for flags in counted)
            standing[rows] = percentile(less, upto, kind)
        return standing

    first = rank(low, scores.high)
    certain = high is low and scores.high is scores.low
    return first, first if certain else rank(high, scores.low)
