"""One problem before its judge: correctness, limits, ranks and quality of its programs, all but the threshold.

Three-valued throughout: what depends on something never seen is undecided. Correctness and limits come from `trials`,
ranks from `quality`; `gates` makes verdicts of what is weighed here, `why` weighs the same program again and again.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from lapledger.replay.criteria import Criterion
from lapledger.replay.judging.quality import Pooled, Ranks, pooled, ranks
from lapledger.replay.judging.test_results import Rules, Tried, make_rules, reference_pool, try_runs
from lapledger.replay.measurements import Bools, Bytes, Ints, ProblemMeasurements, read

RAW_SCALE_NS = 10_000_000_000
"""The mean duration at which the reading `raw-duration` is 1, the worst: ten seconds."""


@dataclass(frozen=True, slots=True, eq=False)
class Court:
    """All that judges runs of one problem: its rules, and what programs are ranked among, by the tests they lack."""

    rules: Rules
    pools: Mapping[bytes, Pooled]


@dataclass(frozen=True, slots=True, eq=False)
class Weighed:
    """Everything decided of M programs but the threshold on q."""

    rules: Rules
    tried: Tried
    c: Bytes  # [M] correctness gate: 1, 0, -1 undecided
    in_time: Bytes  # [M] every kept optimization test ended within its limit: 1, 0, -1 undecided
    sound: Bytes  # [M] no kept optimization test crashed: 1, 0, -1 undecided
    ranks: Ranks  # with the quality as the criterion reads it

    def gate(self, criterion: Criterion) -> Bytes:
        """The optimization gate g [M] at the criterion's tau, with all else that the criterion asks of it."""
        r = self.ranks
        g = fast(r.q_lo, r.q_hi, r.q_den, pool_size=r.pool_size, criterion=criterion)
        if not self.rules.stays:
            return np.full_like(g, -1)
        return joined(g, criterion, in_time=self.in_time, sound=self.sound)


def weigh_all(m: ProblemMeasurements, criterion: Criterion) -> Weighed:
    """Everything that a verdict on any program of a problem needs, except tau."""
    readings = read(m, criterion)
    rules = make_rules(m, readings, criterion)
    tried = try_runs(rules, readings, m.duplicate)
    court = convene(rules, tried, m, judged=np.arange(len(m.programs)))
    return weigh(court, tried, m.duplicate, interface=m.interface)


def convene(rules: Rules, tried: Tried, m: ProblemMeasurements, *, judged: Ints) -> Court:
    """The court for some programs [M] of a problem; the pool is its references that are correct by the rules."""
    pool = reference_pool(tried, m)
    column, lacking = pool.column(m.duplicate[judged]), tried.lacking[judged]
    own = rules.criterion.reading == "leaderboard"
    pools = {}
    for pattern, alike in patterns(lacking):
        pools[pattern.tobytes()] = pooled(pool.on(~pattern), column[alike], rules.criterion, own=own)
    return Court(rules, pools)


def weigh(
    court: Court,
    tried: Tried,
    duplicate: Ints,
    *,
    interface: Bytes | None = None,
    rank: Callable[[Pooled, Ints, Ints, Ints], Ranks] = ranks,
) -> Weighed:
    """Everything decided of M programs but the threshold; programs and the tests they lack were known to the court.

    `rank` says the same as `quality.ranks`, perhaps from elsewhere; it is called pattern by pattern, in their order.
    """
    rules, tests = court.rules, tried.lo.shape
    k_lo, k_hi = (np.full(tests, -1, dtype=np.int64) for _ in range(2))
    size, q_lo, q_hi, q_den = (np.zeros(len(duplicate), dtype=np.int64) for _ in range(4))
    for pattern, rows in patterns(tried.lacking):
        among = court.pools[pattern.tobytes()]
        cells: Any = np.ix_(rows, ~pattern) if pattern.any() or len(rows) < len(duplicate) else slice(None)
        found = rank(among, tried.lo[cells], tried.hi[cells], among.pool.column(duplicate[rows]))
        k_lo[cells], k_hi[cells], size[rows] = found.k_lo, found.k_hi, found.pool_size
        q_lo[rows], q_hi[rows], q_den[rows] = found.q_lo, found.q_hi, found.q_den
    if not rules.criterion.needs_pool:
        q_lo, q_hi, q_den = _alone(tried, rules.criterion)
    if not rules.certain and rules.criterion.reading != "zero":
        q_lo, q_hi = np.zeros_like(q_lo), q_den
    c, in_time = _gate_c(rules, tried, interface), tried.in_time
    if not rules.certain:
        in_time = _in_time_of_kept(rules, tried)
    sound = tried.sound(rules.kept[rules.ranked])
    return Weighed(rules, tried, c, in_time, sound, Ranks(k_lo, k_hi, size, q_lo, q_hi, q_den))


def patterns(lacking: Bools) -> Iterator[tuple[Bools, Ints]]:
    """Every set of tests that some programs lack [T'], with those programs."""
    if not lacking.any():
        yield np.zeros(lacking.shape[1], dtype=np.bool_), np.arange(len(lacking))
        return
    for pattern in np.unique(lacking, axis=0):
        yield pattern, np.flatnonzero((lacking == pattern).all(axis=1))


def _gate_c(rules: Rules, tried: Tried, interface: Bytes | None) -> Bytes:
    if not rules.stays:
        return np.full_like(tried.c, -1)
    if rules.criterion.interface == "ignored":
        return tried.c
    return combine(tried.c, np.full_like(tried.c, -1) if interface is None else interface)


def _in_time_of_kept(rules: Rules, tried: Tried) -> Bytes:
    """In time [M] where some tests may or may not be kept: late only on one that is kept for certain."""
    sure = rules.kept[rules.ranked] == 1
    late = (tried.over & ~tried.lacking & sure).any(axis=1)
    return np.where(late, 0, np.where(tried.in_time == 1, 1, -1)).astype(np.int8)


def _alone(tried: Tried, criterion: Criterion) -> tuple[Ints, Ints, Ints]:
    """Smallest and largest numerator and the denominator of a quality that needs no references [M]."""
    seen = ~tried.lacking
    tests = seen.sum(axis=1)
    if criterion.reading == "zero":
        return np.zeros_like(tests), np.zeros_like(tests), np.ones_like(tests)
    if criterion.reading == "over-limit":
        return (tried.over & seen).sum(axis=1), tests - (tried.within & seen).sum(axis=1), tests
    worst = 2 * RAW_SCALE_NS * tests
    ends = (np.clip(end, 0, worst[:, None]) * seen for end in (tried.lo, tried.hi))
    lo, hi = (np.minimum(end.sum(axis=1), worst) for end in ends)
    return lo, hi, worst


def fast(q_lo: Ints, q_hi: Ints, q_den: Ints, *, pool_size: Ints, criterion: Criterion) -> Bytes:
    """Whether q <= tau/100 [M]: 1 where for certain, 0 where not for certain, -1 undecided.

    Exact: numerators are compared with the whole part of tau/100 * denominator. At tau = 100 the gate is open.
    """
    if criterion.threshold == 1:
        return np.ones(len(q_den), dtype=np.int8)
    dens, place = np.unique(q_den, return_inverse=True)
    most = np.array([int(criterion.threshold * int(den)) for den in dens], dtype=np.int64)[place]
    g = np.where(q_hi <= most, 1, np.where(q_lo > most, 0, -1))
    known = (q_den > 0) & ((pool_size >= criterion.min_references) | (not criterion.needs_pool))
    return np.where(known, g, -1).astype(np.int8)


def joined(g: Bytes, criterion: Criterion, *, in_time: Bytes, sound: Bytes) -> Bytes:
    """The gate on q [M] joined with being in time and with not having crashed, each where the criterion asks for it.

    A criterion that pays a wrong program for its speed asks that none of its optimization tests crashed.
    """
    if criterion.ranks_wrong:
        g = combine(g, sound)
    return g if criterion.in_time == "ignored" else combine(g, in_time)


def combine(c: Bytes, g: Bytes) -> Bytes:
    """The verdict [M] of both gates: one that fails settles it, else one that is undecided leaves it open."""
    return np.where((c == 0) | (g == 0), 0, np.minimum(c, g)).astype(np.int8)
