"""Integer ranks: of a duration among the references' durations, and of a score among the references' own scores.

A rank is 2 #{smaller} + #{equal}, so ties are averaged without a fraction, and a pairwise matrix of such ranks gives
every score over every sub-pool. What was never seen is an interval of ranks. No threshold and no verdict here.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from replay.criteria import Criterion
from replay.measurements import ABSENT, Bools, Bytes, Ints, Outcome, ProblemMeasurements, Readings

# Durations are compared in half ns: a finished run lies at 2d, a killed one somewhere in (2 bound, KILLED].
KILLED = 2**62
FAILED_REFERENCE = KILLED + 1  # slower than every run that may still end
FAILED = KILLED + 2  # a failed run ranks behind every reference, failed ones too: percentile 100


@dataclass(frozen=True, slots=True, eq=False)
class Pool:
    """The references that rank: their spans, and their own scores once per group of duplicates left out.

    The own score of reference j without group g is score / (2 size T'), T' optimization tests; column G leaves out
    no group but j's own.
    """

    lo: Ints  # [N, T'] spans in half ns, as references
    hi: Ints  # [N, T']
    score_lo: Ints  # [N, G+1]
    score_hi: Ints  # [N, G+1]
    size: Ints  # [N, G+1]


@dataclass(frozen=True, slots=True, eq=False)
class Ranks:
    """The ranks of every program of a problem against the pool without itself and its exact duplicates."""

    k_lo: Ints  # [P, T'] rank of the duration, smallest and largest; percentile 100 k / (2 pool_size)
    k_hi: Ints  # [P, T']
    pool_size: Ints  # [P]
    q_lo: Ints  # [P] numerators of the quality q
    q_hi: Ints  # [P]
    q_den: Ints  # [P] 0 where no pool or no optimization test is left
    pool: Pool
    member: Bools  # [P, N] whether reference j ranks program i
    column: Ints  # [P] the column of the pool's own scores that holds for program i


def versus(mine: npt.NDArray[Any], theirs: npt.NDArray[Any]) -> Bytes:
    """2 [theirs < mine] + [theirs = mine], broadcast: the rank of one among one. Grows with mine, falls with theirs."""
    smaller, equal = (theirs < mine).view(np.int8), (theirs == mine).view(np.int8)
    ranks: Bytes = smaller + smaller + equal
    return ranks


def spans(readings: Readings, criterion: Criterion) -> tuple[Ints, Ints]:
    """Where each duration lies, from and to, in half ns [M, T]: equal where it is known.

    A killed run lies beyond its bound; a failed one last of all; one without a result or without a duration anywhere.
    """
    known = (readings.outcome == Outcome.OK) & (readings.duration_ns != ABSENT)
    killed = readings.outcome == Outcome.TIME_LIMIT
    failed = (readings.outcome > Outcome.OK) & ~killed
    if criterion.missing == "fail":
        failed |= readings.outcome == Outcome.MISSING
    twice = 2 * readings.duration_ns
    lo = np.select([known, killed, failed], [twice, 2 * readings.bound_ns + 1, FAILED], -1)
    hi = np.select([known, killed], [twice, KILLED], FAILED)
    return lo, hi


def rank(m: ProblemMeasurements, readings: Readings, in_pool: Bools, criterion: Criterion) -> Ranks:
    """Ranks of every program among the references in the pool [P]; arrays over optimization tests [T'] only."""
    lo, hi = (span[:, m.tests.optimization] for span in spans(readings, criterion))
    member = m.duplicate[:, None] != m.duplicate[in_pool][None, :]
    their_lo, their_hi = (np.minimum(span[in_pool], FAILED_REFERENCE) for span in (lo, hi))
    certain = np.array_equal(lo, hi)  # then the second half of the work is the first
    k_lo, pairs_lo = _among(lo, their_hi, member, in_pool)
    k_hi, pairs_hi = (k_lo, pairs_lo) if certain else _among(hi, their_lo, member, in_pool)
    pool, column = _pool((their_lo, their_hi), (pairs_lo, pairs_hi), m.duplicate, in_pool)
    size = member.sum(axis=1)
    q_lo, q_hi, q_den = quality(k_lo, k_hi, pool=pool, member=member, column=column, criterion=criterion)
    return Ranks(k_lo, k_hi, size, q_lo, q_hi, q_den, pool, member, column)


def quality(
    k_lo: Ints, k_hi: Ints, *, pool: Pool, member: Bools, column: Ints, criterion: Criterion
) -> tuple[Ints, Ints, Ints]:
    """Smallest and largest numerator and the denominator of q [M] from ranks of durations [M, T'].

    `score`: sum of k over 2 n T'. `leaderboard`: the rank of that score among the references' own scores, over 2 n;
    scores with different n are compared by cross-multiplication.
    """
    size = member.sum(axis=1)
    tests = k_lo.shape[1]
    score_lo, score_hi = k_lo.sum(axis=1), k_hi.sum(axis=1)
    if criterion.reading == "score" or not tests:
        return score_lo, score_hi, 2 * size * tests
    weight = pool.size.T[column]
    theirs_lo, theirs_hi = (own.T[column] * size[:, None] for own in (pool.score_lo, pool.score_hi))
    q_lo = (versus(score_lo[:, None] * weight, theirs_hi) * member).sum(axis=1, dtype=np.int64)
    q_hi = (versus(score_hi[:, None] * weight, theirs_lo) * member).sum(axis=1, dtype=np.int64)
    return q_lo, q_hi, 2 * size


def _among(mine: Ints, theirs: Ints, member: Bools, in_pool: Bools) -> tuple[Ints, Ints]:
    """Ranks of durations [P, T'] among the members, and each reference's ranks against each other summed [N, N]."""
    ranks = np.empty(mine.T.shape, dtype=np.int64)
    for test, (column, references) in enumerate(zip(mine.T.copy(), np.sort(theirs.T, axis=1), strict=True)):
        ranks[test] = references.searchsorted(column, "left") + references.searchsorted(column, "right")
    row, own = np.nonzero(~member)
    np.subtract.at(ranks.T, row, versus(mine[row], theirs[own]))
    pairwise = versus(mine[in_pool][:, None, :], theirs[None, :, :])
    return ranks.T, pairwise.sum(axis=2, dtype=np.int64) * member[in_pool]


def _pool(spans_: tuple[Ints, Ints], pairs: tuple[Ints, Ints], duplicate: Ints, in_pool: Bools) -> tuple[Pool, Ints]:
    """The pool with its own scores, and the column of own scores for every program [P]."""
    groups, group = np.unique(duplicate[in_pool], return_inverse=True)
    in_group = (group[:, None] == np.arange(len(groups))[None, :]).astype(np.int64)  # [N, G]
    sizes = in_group.sum(axis=0)
    left_out = np.append(sizes, 0)
    size = len(group) - sizes[group][:, None] - left_out[None, :]
    alone = size <= 0
    tests = spans_[0].shape[1]

    def own_scores(pair: Ints) -> Ints:
        without = pair.sum(axis=1, keepdims=True) - np.pad(pair @ in_group, ((0, 0), (0, 1)))
        return np.where(alone, tests, without)  # nobody else to be ranked against: 1/2, as tied with itself

    pool = Pool(*spans_, own_scores(pairs[0]), own_scores(pairs[1]), np.where(alone, 1, size))
    place = np.searchsorted(groups, duplicate)
    found = np.append(groups, 0)[place] == duplicate
    return pool, np.where(found & (place < len(groups)), place, len(groups))
