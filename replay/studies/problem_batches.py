"""Many problems weighed together: what a further criterion, calibration or tau does not change is kept beside them.

`weigh` gives, of the common criteria, the same whole numbers as `court`, in machine code; `rates` what estimates make
of them at a tau. Pure: nothing is changed in place, and no rule is decided here.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import islice
from typing import TypeVar

import numpy as np

from lapledger.replay.criteria import NS_PER_MS, Criterion
from lapledger.replay.errors import ReplayError
from lapledger.replay.jit import machine as place
from lapledger.replay.judging.context import combine, fast, joined
from lapledger.replay.judging.gates import Looking, Verdicts, one_campaign
from lapledger.replay.judging.quality import PAIRWISE
from lapledger.replay.measurements import ABSENT, LONGEST_NS, Bools, Bytes, Ints, Outcome, ProblemMeasurements, read
from lapledger.replay.studies.program_groups import Crowd, Rate, rate_of
from lapledger.replay.studies.scaling import Scale, refuse_memory, scale

MOST_SCORE = 2**30
"""Denominators of scores stay below this, so that a product of two fits 64 bits."""
CHUNK = 32
"""Problems that are held at a time where they come one after another."""


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
class Weighed:
    """Everything decided of the programs of many problems [P in all] but the threshold on q."""

    c: Bytes
    in_time: Bytes
    sound: Bytes
    q_lo: Ints
    q_hi: Ints
    q_den: Ints
    pool_size: Ints
    beyond: Ints
    idle: Bools

    def gate(self, criterion: Criterion) -> Bytes:
        """The optimization gate g at the criterion's tau, with all else that the criterion asks of it."""
        g = fast(self.q_lo, self.q_hi, self.q_den, pool_size=self.pool_size, criterion=criterion)
        return joined(g, criterion, in_time=self.in_time, sound=self.sound)

    def status(self, criterion: Criterion) -> Bytes:
        """The verdicts at the criterion's tau."""
        return combine(self.c, self.gate(criterion))


@dataclass(frozen=True, slots=True, eq=False)
class Many:
    """Many problems of one campaign, prepared for criteria that read them in one way."""

    problems: tuple[Prepared, ...]
    crowd: Crowd
    read: tuple[str, str, str]  # clock, estimator and start-up rule

    @classmethod
    def of(cls, problems: Sequence[ProblemMeasurements], criterion: Criterion) -> "Many":
        """The problems as the criterion reads them; ReplayError when they are of several campaigns."""
        one_campaign(problems)
        prepared = tuple(side_by_side(lambda m: Prepared.of(m, criterion), problems))
        return cls(prepared, Crowd.of(problems), _reading(criterion))

    def weigh(self, criterion: Criterion, by: Scale | None = None) -> Weighed:
        """All programs under a common criterion that reads as these were read, references scaled.

        ReplayError for any other criterion, and when memory is to be scaled.
        """
        if not is_common(criterion) or _reading(criterion) != self.read:
            raise ReplayError("these problems were prepared for common criteria on one clock; judge this one by itself")
        from lapledger.replay.jit.evaluation import weigh  # a second to load

        one, asked = by or Scale(), _asked(criterion)
        if not one.nothing:
            refuse_memory(criterion)

        def found(p: Prepared) -> Ints:
            filled = np.zeros((place.FOUND, len(p.m.programs)), dtype=np.int64)
            scaled = p.references(one, criterion)
            weigh(p.m.outcome, p.values, p.counted(criterion), p.group, p.rows, scaled, asked, filled)
            return filled

        return _weighed(np.concatenate(list(side_by_side(found, self.problems)), axis=1), self, criterion)


def rates_of(problems: Iterable[ProblemMeasurements], criterion: Criterion) -> list[Rate]:
    """pass@1 of each model over problems that come one after another, of which only a few are held at a time.

    The same as of all problems together. ReplayError where the criterion is not common, or without any problem.
    """
    found: dict[str, list[Ints]] = {}
    coming = iter(problems)
    while chunk := list(islice(coming, CHUNK)):
        many = Many.of(chunk, criterion)
        for model, tally in many.crowd.tallies(many.weigh(criterion).status(criterion)).items():
            found.setdefault(model, []).append(tally)
    return [rate_of(model, np.concatenate(found[model])) for model in sorted(found)]


def judge_many(problems: Sequence[ProblemMeasurements], criterion: Criterion) -> list[Verdicts]:
    """The verdicts that `judge` gives of each problem, in machine code: for so many that its loading pays.

    ReplayError where the criterion is not common.
    """
    many = Many.of(problems, criterion)
    weighed = many.weigh(criterion)
    g, verdicts, end = weighed.gate(criterion), [], 0
    for m in problems:
        rows = slice(end, end := end + len(m.programs))
        verdicts.append(
            Verdicts(
                problem=m.problem,
                campaign=m.campaign,
                criterion=criterion.hash,
                programs=m.programs,
                candidate=m.candidate,
                c=weighed.c[rows],
                g=g[rows],
                status=combine(weighed.c[rows], g[rows]),
                q_lo=weighed.q_lo[rows],
                q_hi=weighed.q_hi[rows],
                q_den=weighed.q_den[rows],
                pool_size=weighed.pool_size[rows],
                kept=m.tests.optimization.astype(np.int8),
                left_out=False,
                beyond=weighed.beyond[rows],
                lacking=np.zeros(len(m.programs), dtype=np.int64),
                idle=weighed.idle[rows],
                looking=Looking(m, criterion, None),
            )
        )
    return verdicts


def _reading(criterion: Criterion) -> tuple[str, str, str]:
    return criterion.clock, criterion.estimator, criterion.startup


def _asked(criterion: Criterion) -> Ints:
    """What a criterion asks in the whole numbers that compiled code reads."""
    numbers = np.zeros(place.ASKED, dtype=np.int64)
    limits = [2 * NS_PER_MS * ms for ms in (criterion.limit_ms, criterion.timeout_ms) if ms is not None]
    numbers[place.LIMIT_NS] = place.NO_LIMIT if criterion.limit_ns is None else criterion.limit_ns
    numbers[place.ALLOWED] = min(limits, default=place.NO_LIMIT)
    numbers[place.MOST] = min(limits, default=2 * LONGEST_NS) // 2
    numbers[place.HAS_LIMITS] = criterion.limits
    numbers[place.TOLERATED] = criterion.timeouts == "tolerated"
    numbers[place.RANKS_WRONG] = criterion.ranks_wrong
    numbers[place.MISSING_FAILS] = criterion.missing == "fail"
    numbers[place.LESS_WEIGHT], numbers[place.UPTO_WEIGHT] = PAIRWISE.get(criterion.percentile, (1, 1))
    numbers[place.RANKED] = criterion.needs_pool
    numbers[place.LEADERBOARD] = criterion.reading == "leaderboard"
    return numbers


def _weighed(found: Ints, many: Many, criterion: Criterion) -> Weighed:
    """What was found, with the gates that no number is needed for."""
    c = found[place.CORRECT].astype(np.int8)
    if criterion.interface != "ignored":
        c = combine(c, np.concatenate([_interface(p.m) for p in many.problems]))
    q_lo, q_hi, q_den = found[place.Q_LO], found[place.Q_HI], found[place.Q_DEN]
    if criterion.reading == "zero":
        q_den = np.ones_like(q_den)
    elif criterion.reading == "over-limit":
        q_lo, q_hi = found[place.OVER], found[place.NOT_WITHIN]
        q_den = np.concatenate([np.full(len(p.m.programs), int(p.m.tests.optimization.sum())) for p in many.problems])
    return Weighed(
        c=c,
        in_time=found[place.IN_TIME].astype(np.int8),
        sound=found[place.SOUND].astype(np.int8),
        q_lo=q_lo,
        q_hi=q_hi,
        q_den=q_den,
        pool_size=found[place.SIZE],
        beyond=found[place.BEYOND],
        idle=found[place.IDLE].astype(np.bool_),
    )


def _interface(m: ProblemMeasurements) -> Bytes:
    return np.full(len(m.programs), -1, dtype=np.int8) if m.interface is None else m.interface


T = TypeVar("T")
R = TypeVar("R")

THREADS = 2
"""Problems that are worked on at a time. The results do not depend on it."""


def side_by_side(call: Callable[[T], R], items: Iterable[T]) -> Iterator[R]:
    """The results of a pure function, in the order of the items."""
    with ThreadPoolExecutor(THREADS, "lap-weigh") as pool:
        yield from pool.map(call, items)
