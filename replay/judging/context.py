"""Evaluation of one problem under a criterion: correctness, limits, ranks and quality of its programs, all but tau.

Three-valued throughout: what depends on something never seen is undecided. Correctness and limits come from
`graded_runs`, ranks from `quality`; `gates` makes verdicts, and `why` evaluates one program with other durations.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from lapledger.replay.criteria import Criterion
from lapledger.replay.judging.graded_runs import Rules, TestResults, grade_runs, make_rules, reference_pool
from lapledger.replay.judging.quality import Pooled, Ranks, pooled, ranks
from lapledger.replay.measurements import Bools, Bytes, Ints, ProblemMeasurements, read

RAW_SCALE_NS = 10_000_000_000
"""The mean duration at which the quality `raw-duration` is 1, the worst: ten seconds."""


@dataclass(frozen=True, slots=True, eq=False)
class JudgingContext:
    """What judges runs of one problem: its rules, and the pool to rank among for each set of tests a program lacks."""

    rules: Rules
    pools: Mapping[bytes, Pooled]


@dataclass(frozen=True, slots=True, eq=False)
class Evaluation:
    """Everything decided about M programs except the threshold on q."""

    rules: Rules
    results: TestResults
    c: Bytes  # [M] correctness gate: 1, 0, -1 undecided
    in_time: Bytes  # [M] every kept optimization test ended within its limit: 1, 0, -1 undecided
    no_crash: Bytes  # [M] no kept optimization test crashed: 1, 0, -1 undecided
    ranks: Ranks  # with the criterion's quality metric

    def gate(self, criterion: Criterion) -> Bytes:
        """The optimization gate g [M] at the criterion's tau, in time and without crash where the criterion says so."""
        r = self.ranks
        g = fast(r.q_lo, r.q_hi, r.q_den, pool_size=r.pool_size, criterion=criterion)
        if not self.rules.stays:
            return np.full_like(g, -1)
        return joined(g, criterion, in_time=self.in_time, no_crash=self.no_crash)


def evaluate_problem(m: ProblemMeasurements, criterion: Criterion) -> Evaluation:
    """The evaluation of every program of a problem: all that a verdict needs, except tau."""
    readings = read(m, criterion)
    rules = make_rules(m, readings, criterion)
    results = grade_runs(rules, readings, m.duplicate)
    context = build_context(rules, results, m, judged=np.arange(len(m.programs)))
    return evaluate(context, results, m.duplicate, interface=m.interface)


def build_context(rules: Rules, results: TestResults, m: ProblemMeasurements, *, judged: Ints) -> JudgingContext:
    """The context for some programs [M] of a problem; the pool is its references that are correct by the rules."""
    pool = reference_pool(results, m)
    column, lacking = pool.column(m.duplicate[judged]), results.lacking[judged]
    with_scores = rules.criterion.reading == "leaderboard"
    pools = {}
    for pattern, alike in patterns(lacking):
        pools[pattern.tobytes()] = pooled(pool.on(~pattern), column[alike], rules.criterion, with_scores=with_scores)
    return JudgingContext(rules, pools)


def evaluate(
    context: JudgingContext,
    results: TestResults,
    duplicate: Ints,
    *,
    interface: Bytes | None = None,
    rank: Callable[[Pooled, Ints, Ints, Ints], Ranks] = ranks,
) -> Evaluation:
    """The evaluation of M programs; the context must have been built for their groups and the tests they lack.

    `rank` gives the same as `quality.ranks`, perhaps from a device; it is called once a pattern, in their order.
    """
    rules, tests = context.rules, results.lo.shape
    k_lo, k_hi = (np.full(tests, -1, dtype=np.int64) for _ in range(2))
    size, q_lo, q_hi, q_den = (np.zeros(len(duplicate), dtype=np.int64) for _ in range(4))
    for pattern, rows in patterns(results.lacking):
        pooled_by_pattern = context.pools[pattern.tobytes()]
        cells: Any = np.ix_(rows, ~pattern) if pattern.any() or len(rows) < len(duplicate) else slice(None)
        ranked = rank(
            pooled_by_pattern, results.lo[cells], results.hi[cells], pooled_by_pattern.pool.column(duplicate[rows])
        )
        k_lo[cells], k_hi[cells], size[rows] = ranked.k_lo, ranked.k_hi, ranked.pool_size
        q_lo[rows], q_hi[rows], q_den[rows] = ranked.q_lo, ranked.q_hi, ranked.q_den
    if not rules.criterion.needs_pool:
        q_lo, q_hi, q_den = _alone(results, rules.criterion)
    if not rules.certain and rules.criterion.reading != "zero":
        q_lo, q_hi = np.zeros_like(q_lo), q_den
    c, in_time = _gate_c(rules, results, interface), results.in_time
    if not rules.certain:
        in_time = _in_time_of_kept(rules, results)
    no_crash = results.no_crash(rules.kept[rules.ranked])
    return Evaluation(rules, results, c, in_time, no_crash, Ranks(k_lo, k_hi, size, q_lo, q_hi, q_den))


def patterns(lacking: Bools) -> Iterator[tuple[Bools, Ints]]:
    """Each set of tests [T'] that some programs lack, with the rows of those programs."""
    if not lacking.any():
        yield np.zeros(lacking.shape[1], dtype=np.bool_), np.arange(len(lacking))
        return
    for pattern in np.unique(lacking, axis=0):
        yield pattern, np.flatnonzero((lacking == pattern).all(axis=1))


def _gate_c(rules: Rules, results: TestResults, interface: Bytes | None) -> Bytes:
    if not rules.stays:
        return np.full_like(results.c, -1)
    if rules.criterion.interface == "ignored":
        return results.c
    return combine(results.c, np.full_like(results.c, -1) if interface is None else interface)


def _in_time_of_kept(rules: Rules, results: TestResults) -> Bytes:
    """In time [M] where some tests may or may not be kept: late only on one that is kept for certain."""
    sure = rules.kept[rules.ranked] == 1
    late = (results.over & ~results.lacking & sure).any(axis=1)
    return np.where(late, 0, np.where(results.in_time == 1, 1, -1)).astype(np.int8)


def _alone(results: TestResults, criterion: Criterion) -> tuple[Ints, Ints, Ints]:
    """Smallest and largest numerator and the denominator of a quality that needs no references [M]."""
    seen = ~results.lacking
    tests = seen.sum(axis=1)
    if criterion.reading == "zero":
        return np.zeros_like(tests), np.zeros_like(tests), np.ones_like(tests)
    if criterion.reading == "over-limit":
        return (results.over & seen).sum(axis=1), tests - (results.within & seen).sum(axis=1), tests
    worst = 2 * RAW_SCALE_NS * tests
    ends = (np.clip(end, 0, worst[:, None]) * seen for end in (results.lo, results.hi))
    lo, hi = (np.minimum(end.sum(axis=1), worst) for end in ends)
    return lo, hi, worst


def fast(q_lo: Ints, q_hi: Ints, q_den: Ints, *, pool_size: Ints, criterion: Criterion) -> Bytes:
    """Whether q <= tau/100 [M]: 1 where for certain, 0 where not for certain, -1 undecided.

    Exact: q <= tau/100 holds when the whole numerator is at most floor(tau/100 * denominator). At tau = 100 the gate is
    open.
    """
    if criterion.threshold == 1:
        return np.ones(len(q_den), dtype=np.int8)
    dens, index = np.unique(q_den, return_inverse=True)
    most = np.array([int(criterion.threshold * int(den)) for den in dens], dtype=np.int64)[index]
    g = np.where(q_hi <= most, 1, np.where(q_lo > most, 0, -1))
    known = (q_den > 0) & ((pool_size >= criterion.min_references) | (not criterion.needs_pool))
    return np.where(known, g, -1).astype(np.int8)


def joined(g: Bytes, criterion: Criterion, *, in_time: Bytes, no_crash: Bytes) -> Bytes:
    """The gate on q [M] joined with being in time and without crash, each where the criterion requires it.

    A criterion that pays wrong programs for speed requires that no optimization test crashed.
    """
    if criterion.ranks_wrong:
        g = combine(g, no_crash)
    return g if criterion.in_time == "ignored" else combine(g, in_time)


def combine(c: Bytes, g: Bytes) -> Bytes:
    """The verdict [M] of both gates: one that fails settles it, else one that is undecided leaves it open."""
    return np.where((c == 0) | (g == 0), 0, np.minimum(c, g)).astype(np.int8)
