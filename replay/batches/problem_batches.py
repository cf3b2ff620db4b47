"""Many problems evaluated together in machine code; what a further criterion, scale or tau does not change is kept.

`ProblemBatch.evaluate` gives, for the common criteria, the same whole numbers as `judging.context`. Pure: nothing is
changed in place, and no rule is decided here.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TypeVar

import numpy as np

from lapledger.replay.batches.program_groups import ProgramsByModel
from lapledger.replay.batches.scaling import Scale, refuse_memory, scale
from lapledger.replay.criteria import NS_PER_MS, Criterion
from lapledger.replay.errors import ReplayError
from lapledger.replay.jit import machine as codes
from lapledger.replay.judging.context import combine, fast, joined
from lapledger.replay.judging.gates import DetailSource, Verdicts, one_campaign
from lapledger.replay.judging.quality import PAIRWISE
from lapledger.replay.measurements import ABSENT, LONGEST_NS, Bools, Bytes, Ints, Outcome, ProblemMeasurements, read

MOST_SCORE = 2**30
"""Denominators of scores stay below this, so that a product of two fits 64 bits."""
KNOWN_KEYS = frozenset(
    [
        "tau",
        "reading",
        "statistic",
        "percentile",
        "correctness",
        "interface",
        "timeouts",
        "timeout_ms",
        "own_limits",
        "keep",
        "limit_ms",
        "limit_factor",
        "in_time",
        "clock",
        "estimator",
        "startup",
        "calibration",
        "min_references",
        "missing",
        "reward",
        "shape",
        "buckets",
        "split",
        "weight",
    ]
)
"""Keys of a criterion that machine code reads, or that change only the reward. Any other must be unset."""


def is_common(criterion: Criterion) -> bool:
    """Whether machine code knows a criterion: no filter, no relative limit, a mean of pairwise percentiles.

    It fails closed: a criterion that sets a key which is not listed here is judged by numpy.
    """
    if not criterion.sets_only(KNOWN_KEYS) or criterion.missing == "skip" or criterion.reading == "raw-duration":
        return False
    return not criterion.needs_pool or (criterion.statistic == "mean" and criterion.percentile in PAIRWISE)


@dataclass(frozen=True, slots=True, eq=False)
class Prepared:
    """One problem as one clock, estimator and start-up rule read it."""

    m: ProblemMeasurements
    values: Ints  # [P, T] durations in ns, and bounds of killed runs
    kinds: Bytes  # [T] 1 original or any kind that counts where all do, 2 optimization, 4 only that, 8 original
    rows: Ints  # [N] the references
    group: Ints  # [P] of exact duplicates among the references, -1 for none

    @classmethod
    def of(cls, m: ProblemMeasurements, criterion: Criterion) -> "Prepared":
        """The problem as the criterion reads it."""
        readings = read(m, criterion)
        killed = m.outcome == Outcome.TIME_LIMIT
        values = np.where(killed, readings.bound_ns, readings.duration_ns) if killed.any() else readings.duration_ns
        rows = np.flatnonzero(m.reference)
        if 2 * len(rows) * len(m.tests.ids) >= MOST_SCORE:
            raise ReplayError(f"problem {m.problem}: too many references on too many tests to be ranked in 64 bits")
        names = np.unique(m.duplicate[rows])
        at = np.searchsorted(names, m.duplicate)
        group = np.where((at < len(names)) & (np.append(names, -1)[at] == m.duplicate), at, -1)
        t = m.tests
        every, only = t.original | t.correctness | t.optimization, t.only_optimization
        kinds = every + 2 * t.optimization + 4 * only + 8 * t.original
        return cls(m, values, kinds.astype(np.int8), rows, group)

    def counted(self, criterion: Criterion) -> Bytes:
        """The kinds with 1 where the criterion counts a test for correctness [T]."""
        if criterion.correctness == "original":
            return (self.kinds & 6) | ((self.kinds & 8) >> 3)
        return self.kinds & 7

    def references(self, by: Scale, criterion: Criterion) -> Ints:
        """The values of the references [N, T] as they rank others, scaled. ReplayError where they grow too long."""
        values = self.values[self.rows]
        if by.nothing:
            return values
        unknown = np.where(self.m.outcome[self.rows] == Outcome.TIME_LIMIT, values == 0, values == ABSENT)
        mapped = np.where(unknown, values, scale(values, by))
        if criterion.startup == "subtract":
            mapped = np.where(unknown, values, np.maximum(mapped, 1))
        if mapped.size and mapped.max() >= LONGEST_NS:
            raise ReplayError(f"references scaled by {by.alpha:g} are too long: values must lie below {LONGEST_NS}")
        return mapped


@dataclass(frozen=True, slots=True, eq=False)
class BatchEvaluation:
    """Everything decided about the programs of many problems [P in all] except the threshold on q."""

    c: Bytes
    in_time: Bytes
    no_crash: Bytes
    q_lo: Ints
    q_hi: Ints
    q_den: Ints
    pool_size: Ints
    censored_below_limit: Ints
    none_finished: Bools

    def gate(self, criterion: Criterion) -> Bytes:
        """The optimization gate g at the criterion's tau, in time and without crash where the criterion says so."""
        g = fast(self.q_lo, self.q_hi, self.q_den, pool_size=self.pool_size, criterion=criterion)
        return joined(g, criterion, in_time=self.in_time, no_crash=self.no_crash)

    def status(self, criterion: Criterion) -> Bytes:
        """The verdicts at the criterion's tau."""
        return combine(self.c, self.gate(criterion))


@dataclass(frozen=True, slots=True, eq=False)
class ProblemBatch:
    """Many problems of one campaign, prepared for criteria that read them in one way."""

    problems: tuple[Prepared, ...]
    programs: ProgramsByModel
    read: tuple[str, str, str]  # clock, estimator and start-up rule

    @classmethod
    def of(cls, problems: Sequence[ProblemMeasurements], criterion: Criterion) -> "ProblemBatch":
        """The problems as the criterion reads them; ReplayError when they are of several campaigns."""
        one_campaign(problems)
        prepared = tuple(thread_map(lambda m: Prepared.of(m, criterion), problems))
        return cls(prepared, ProgramsByModel.of(problems), _reading(criterion))

    def evaluate(self, criterion: Criterion, by: Scale | None = None) -> BatchEvaluation:
        """All programs under a common criterion that reads as these were read, references scaled.

        ReplayError for any other criterion, and when memory is to be scaled.
        """
        if not is_common(criterion) or _reading(criterion) != self.read:
            raise ReplayError("these problems were prepared for common criteria on one clock; judge this one by itself")
        from lapledger.replay.jit.evaluation import evaluate  # a second to load

        scale_by, parameters = by or Scale(), _parameters(criterion)
        if not scale_by.nothing:
            refuse_memory(criterion)

        def evaluated(p: Prepared) -> Ints:
            filled = np.zeros((codes.RESULTS, len(p.m.programs)), dtype=np.int64)
            scaled = p.references(scale_by, criterion)
            evaluate(p.m.outcome, p.values, p.counted(criterion), p.group, p.rows, scaled, parameters, filled)
            return filled

        return _evaluation(np.concatenate(list(thread_map(evaluated, self.problems)), axis=1), self, criterion)


def judge_many(problems: Sequence[ProblemMeasurements], criterion: Criterion) -> list[Verdicts]:
    """The verdicts that `judge` gives of each problem, in machine code: for so many that loading it pays.

    ReplayError where the criterion is not common.
    """
    batch = ProblemBatch.of(problems, criterion)
    evaluated = batch.evaluate(criterion)
    g, verdicts, end = evaluated.gate(criterion), [], 0
    for m in problems:
        rows = slice(end, end := end + len(m.programs))
        verdicts.append(
            Verdicts(
                problem=m.problem,
                campaign=m.campaign,
                criterion=criterion.hash,
                programs=m.programs,
                candidate=m.candidate,
                c=evaluated.c[rows],
                g=g[rows],
                status=combine(evaluated.c[rows], g[rows]),
                q_lo=evaluated.q_lo[rows],
                q_hi=evaluated.q_hi[rows],
                q_den=evaluated.q_den[rows],
                pool_size=evaluated.pool_size[rows],
                kept=m.tests.optimization.astype(np.int8),
                excluded=False,
                censored_below_limit=evaluated.censored_below_limit[rows],
                lacking=np.zeros(len(m.programs), dtype=np.int64),
                none_finished=evaluated.none_finished[rows],
                details_from=DetailSource(m, criterion, None),
            )
        )
    return verdicts


def _reading(criterion: Criterion) -> tuple[str, str, str]:
    return criterion.clock, criterion.estimator, criterion.startup


def _parameters(criterion: Criterion) -> Ints:
    """A criterion as the array of whole numbers that compiled code reads."""
    numbers = np.zeros(codes.PARAMETERS, dtype=np.int64)
    limits = [2 * NS_PER_MS * ms for ms in (criterion.limit_ms, criterion.timeout_ms) if ms is not None]
    numbers[codes.LIMIT_NS] = codes.NO_LIMIT if criterion.limit_ns is None else criterion.limit_ns
    numbers[codes.ALLOWED] = min(limits, default=codes.NO_LIMIT)
    numbers[codes.MOST] = min(limits, default=2 * LONGEST_NS) // 2
    numbers[codes.HAS_LIMITS] = criterion.limits
    numbers[codes.TOLERATED] = criterion.timeouts == "tolerated"
    numbers[codes.RANKS_WRONG] = criterion.ranks_wrong
    numbers[codes.MISSING_FAILS] = criterion.missing == "fail"
    numbers[codes.LESS_WEIGHT], numbers[codes.UPTO_WEIGHT] = PAIRWISE.get(criterion.percentile, (1, 1))
    numbers[codes.RANKED] = criterion.needs_pool
    numbers[codes.LEADERBOARD] = criterion.reading == "leaderboard"
    return numbers


def _evaluation(results: Ints, batch: ProblemBatch, criterion: Criterion) -> BatchEvaluation:
    """What was found, with the gates that no number is needed for."""
    c = results[codes.CORRECT].astype(np.int8)
    if criterion.interface != "ignored":
        c = combine(c, np.concatenate([_interface(p.m) for p in batch.problems]))
    q_lo, q_hi, q_den = results[codes.Q_LO], results[codes.Q_HI], results[codes.Q_DEN]
    if criterion.reading == "zero":
        q_den = np.ones_like(q_den)
    elif criterion.reading == "over-limit":
        q_lo, q_hi = results[codes.OVER], results[codes.NOT_WITHIN]
        q_den = np.concatenate([np.full(len(p.m.programs), int(p.m.tests.optimization.sum())) for p in batch.problems])
    return BatchEvaluation(
        c=c,
        in_time=results[codes.IN_TIME].astype(np.int8),
        no_crash=results[codes.NO_CRASH].astype(np.int8),
        q_lo=q_lo,
        q_hi=q_hi,
        q_den=q_den,
        pool_size=results[codes.SIZE],
        censored_below_limit=results[codes.CENSORED_BELOW_LIMIT],
        none_finished=results[codes.NONE_FINISHED].astype(np.bool_),
    )


def _interface(m: ProblemMeasurements) -> Bytes:
    return np.full(len(m.programs), -1, dtype=np.int8) if m.interface is None else m.interface


T = TypeVar("T")
R = TypeVar("R")

THREADS = 2
"""Problems that are worked on at a time. The results do not depend on it."""


def thread_map(call: Callable[[T], R], items: Iterable[T]) -> Iterator[R]:
    """The results of a pure function, in the order of the items."""
    with ThreadPoolExecutor(THREADS, "lap-weigh") as pool:
        yield from pool.map(call, items)
