"""Before and during execution: which optimization tests are kept, and how long a program may take on each.

Both come from the references that are correct without them. What was never seen leaves a test, or a limit, undecided:
three-valued, or an interval. Durations are in half ns, as in `ranks`. No gate is decided here.
"""

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from lapledger.replay.criteria import NS_PER_MS, Criterion
from lapledger.replay.judging.exact import below, ceil_share
from lapledger.replay.judging.quality import reference_scores
from lapledger.replay.judging.ranks import FAILED, KILLED, Pool, against
from lapledger.replay.measurements import Bytes, Ints, Tests

UNKNOWN = -1  # below every duration: nothing is known to end within such a limit
UNLIMITED = FAILED  # no duration is known to be longer


@dataclass(frozen=True, slots=True, eq=False)
class Limits:
    """The limits of each program on each optimization test [M, T'] in half ns, from and to."""

    lo: Ints
    hi: Ints


def kept_tests(tests: Tests, pool: Pool, criterion: Criterion) -> Bytes:
    """Whether each test stays as an optimization test [T]: 1, 0, or -1 undecided; 0 for every other test.

    `pool` holds the references' spans on the optimization tests, in their order.
    """
    kept = np.where(tests.optimization, 1, 0).astype(np.int8)
    at_most = criterion.keep == "at_most"
    ranked = tests.optimization
    if criterion.keep_chars is not None:
        chars = tests.input_chars + tests.output_chars
        kept[chars > criterion.keep_chars if at_most else chars < criterion.keep_chars] = 0
        kept[tests.optimization & ((tests.input_chars < 0) | (tests.output_chars < 0))] = -1  # unknown sizes
    for stays in _by_duration(pool, criterion, at_most=at_most):
        kept[ranked] = np.where((kept[ranked] == 0) | (stays == 0), 0, np.minimum(kept[ranked], stays))
    return kept


def _by_duration(pool: Pool, criterion: Criterion, *, at_most: bool) -> list[Bytes]:
    """Whether each filter on the references' mean duration keeps each optimization test: one array [T'] a filter."""
    enough = len(pool.duplicate) >= criterion.min_references
    lo, hi = _sums(pool) if enough else ([UNKNOWN] * pool.lo.shape[1], [_INFINITE] * pool.lo.shape[1])
    filters = []
    if criterion.keep_ms is not None:
        bound = 2 * NS_PER_MS * criterion.keep_ms * len(pool.duplicate)
        surely = [high <= bound if at_most else low >= bound for low, high in zip(lo, hi, strict=True)]
        perhaps = [low <= bound if at_most else high >= bound for low, high in zip(lo, hi, strict=True)]
        filters.append(_three(surely, perhaps))
    if criterion.keep_share is not None:
        room = math.ceil(Fraction(criterion.keep_share) / 100 * len(lo))
        tests = range(len(lo))
        surely, perhaps = (
            [_ahead(test, lo, hi, at_most=at_most, sure=sure) < room for test in tests] for sure in (True, False)
        )
        filters.append(_three(surely, perhaps))
    return filters


_INFINITE = KILLED << 64


def _sums(pool: Pool) -> tuple[list[int], list[int]]:
    """The references' durations added on each test, smallest and largest, exactly; infinite where one is not finite."""

    def sums(spans: Ints) -> list[int]:
        return [sum(column) if max(column, default=0) < KILLED else _INFINITE for column in spans.T.tolist()]

    return sums(pool.lo), sums(pool.hi)


def _ahead(test: int, lo: list[int], hi: list[int], *, at_most: bool, sure: bool) -> int:
    """How many tests come before one in the filter's order: perhaps (to be sure that it stays), or for certain."""
    mine, theirs = (lo, hi) if at_most != sure else (hi, lo)
    if at_most:
        return sum(1 for test_of_sum, sum_ in enumerate(theirs) if test_of_sum != test and sum_ < mine[test])
    return sum(1 for test_of_sum, sum_ in enumerate(theirs) if test_of_sum != test and sum_ > mine[test])


def _three(surely: list[bool], perhaps: list[bool]) -> Bytes:
    """1 where surely, 0 where not even perhaps, -1 between [T']."""
    return np.where(surely, 1, np.where(perhaps, -1, 0)).astype(np.int8)


def limits(pool: Pool, column: Ints, criterion: Criterion) -> Limits:
    """The smallest of the criterion's limits for programs of some groups [M] on the optimization tests [T'].

    Without one every limit is UNLIMITED, and the hard limit of each run is what counts.
    """
    columns, index = np.unique(column, return_inverse=True)
    shape = (len(columns), pool.lo.shape[1])
    lo, hi = (np.full(shape, UNLIMITED, dtype=np.int64) for _ in range(2))
    for ms in (criterion.limit_ms, criterion.timeout_ms):
        if ms is not None:
            lo, hi = (np.minimum(end, 2 * NS_PER_MS * ms) for end in (lo, hi))
    for setting, of in ((criterion.limit_quantile, _quantile), (criterion.limit_ranked, _ranked)):
        if setting is None:
            continue
        enough = (pool.sizes(columns) >= criterion.min_references)[:, None]
        low, high = (_times(end, Fraction(criterion.limit_factor)) for end in of(pool, columns, criterion))
        lo = np.minimum(lo, np.where(enough, low, UNKNOWN))
        hi = np.minimum(hi, np.where(enough, high, UNLIMITED))
    return Limits(lo[index], hi[index])


def _quantile(pool: Pool, columns: Ints, criterion: Criterion) -> tuple[Ints, Ints]:
    """The duration that a share of the references do not exceed on each test [C, T']."""
    share = Fraction(criterion.limit_quantile or "100") / 100
    nothing = np.zeros((len(columns), pool.lo.shape[1]), dtype=np.int64)
    runs, _ = against(pool, nothing, nothing, rows=np.arange(len(columns)), groups=[columns])
    low, high = pool.orders
    return runs.quantile(low, share), runs.quantile(high, share)


def _ranked(pool: Pool, columns: Ints, criterion: Criterion) -> tuple[Ints, Ints]:
    """The slowest duration of the best-ranked references on each test [C, T']."""
    shape = (len(columns), pool.lo.shape[1])
    lo, hi = (np.full(shape, UNKNOWN, dtype=np.int64) for _ in range(2))
    if not pool.lo.size:
        return lo, hi
    scores = reference_scores(pool, columns, criterion)
    room = ceil_share(Fraction(criterion.limit_ranked or "100") / 100, pool.sizes(columns))
    group = pool.column(pool.duplicate)
    for number, column in enumerate(columns):
        rankers = group != column
        low, high = ((end[0][rankers, number], end[1][rankers, number]) for end in (scores.low, scores.high))
        # to be among the best for certain, even those that are only perhaps better must leave room
        better_perhaps, _ = below(high, (low[0][None, :], low[1][None, :]))
        better_surely, _ = below(low, (high[0][None, :], high[1][None, :]))
        np.fill_diagonal(better_perhaps, val=False)
        surely, perhaps = (better.sum(axis=1) < room[number] for better in (better_perhaps, better_surely))
        lo[number] = pool.lo[rankers][surely].max(axis=0, initial=UNKNOWN)
        hi[number] = pool.hi[rankers][perhaps].max(axis=0, initial=UNKNOWN)
    return lo, hi


def _times(limits: Ints, factor: Fraction) -> Ints:
    """Finite limits times a factor, rounded down to half ns; others as they are."""
    if factor == 1:
        return limits
    flat = [
        int(limit * factor) if 0 <= limit < KILLED else limit  # Python's whole numbers: no product overflows
        for limit in limits.ravel().tolist()
    ]
    product: Ints = np.array([min(limit, UNLIMITED) for limit in flat], dtype=np.int64).reshape(limits.shape)
    return product
