"""What was measured on one problem, as dense arrays, and the duration that a criterion reads from them.

Plain frozen values: `loading` fills them from the ledger. No verdict, rank or I/O here.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from enum import IntEnum
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from lapledger.replay.criteria import Criterion
from lapledger.replay.errors import ReplayError
from lapledger.replay.estimators import ABSENT as ABSENT
from lapledger.replay.estimators import one_value

Bools = npt.NDArray[np.bool_]
Bytes = npt.NDArray[np.int8]
Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]

LONGEST_NS = 2**60
"""Durations stay below this (36 years), so that twice a duration plus one never overflows."""
CLOCKS = frozenset(("wall", "cpu", "memory"))
"""All clocks of a timing."""
MAD_TO_SD = 1.4826
"""Median absolute deviation to standard deviation, for normal data."""


def unit_of(clock: str) -> str:
    """The unit of a stored value on a clock: `ns` or `bytes`."""
    return "bytes" if clock == "memory" else "ns"


class Outcome(IntEnum):
    """How the runs of one program on one test ended, over all counted repetitions."""

    MISSING = 0  # never run, or only sandbox faults
    OK = 1
    WRONG_ANSWER = 2
    RUN_TIME_ERROR = 3
    MEMORY_LIMIT = 4
    OUTPUT_LIMIT = 5
    TIME_LIMIT = 6  # killed at the hard limit: censored
    FAILED = 7  # in an unspecified one of these ways


@dataclass(frozen=True, slots=True, eq=False)
class Tests:
    """The tests of one problem, in a fixed order; one test may be of several kinds."""

    ids: tuple[str, ...]  # [T]
    original: Bools  # [T]
    correctness: Bools  # [T]
    optimization: Bools  # [T]
    input_bytes: Ints  # [T] sizes are -1 where unknown
    input_chars: Ints  # [T]
    output_bytes: Ints  # [T]
    output_chars: Ints  # [T]

    def __post_init__(self) -> None:
        """Refuse wrong shapes and types (ReplayError)."""
        _check_unique("test", self.ids)
        for name in ("original", "correctness", "optimization"):
            _check(name, getattr(self, name), np.bool_, (len(self.ids),))
        for name in ("input_bytes", "input_chars", "output_bytes", "output_chars"):
            _check(name, getattr(self, name), np.int64, (len(self.ids),))

    @property
    def only_optimization(self) -> Bools:
        """The tests that are made to spread run times and for nothing else [T]: a timeout there may be tolerated."""
        only: Bools = self.optimization & ~self.correctness & ~self.original
        return only


@dataclass(frozen=True, slots=True, eq=False)
class ProblemMeasurements:
    """Everything measured on one problem in one campaign: P programs, T tests, up to R repetitions."""

    problem: str
    campaign: str
    tests: Tests
    programs: tuple[str, ...]  # [P] ids
    models: tuple[str, ...]  # [P] "human" or the model's name: estimates are grouped by it
    labels: tuple[str, ...]  # [P] the label claimed ("accepted", "wrong_answer", ...)
    candidate: Bools  # [P] judged; stored references that were not re-run are pool only
    reference: Bools  # [P] member of the frozen pool
    duplicate: Ints  # [P] equal numbers are exact duplicates, across the campaigns of one problem too
    outcome: Bytes  # [P, T] of Outcome
    wall_ns: Ints  # [P, T, R] -1 where a repetition is absent; no warm-ups
    cpu_ns: Ints  # [P, T, R]
    startup_ns: Ints  # [P, T] the worker's start-up baseline beside that run; -1 where unknown
    limit_ns: Ints  # [P, T] hard limit in force; -1 where MISSING or unknown
    memory_bytes: Ints | None = None  # [P, T, R] peak memory, -1 where absent; None where it was not recorded
    interface: Bytes | None = (
        None  # [P] 1 kept the interface it was given, 0 did not, -1 not checked; None: no program was checked
    )
    clocks: frozenset[str] = CLOCKS  # those that were read; nothing is known on any other
    own_limits: bool = False  # whether runs above the problem's own limits were taken for stopped there

    def __post_init__(self) -> None:
        """Refuse wrong shapes, types and values (ReplayError)."""
        programs, tests = len(self.programs), len(self.tests.ids)
        repetitions = self.wall_ns.shape[-1] if self.wall_ns.ndim == 3 else 0
        _check_unique("program", self.programs)
        for name in ("models", "labels"):
            if len(getattr(self, name)) != programs:
                raise ReplayError(f"{name}: expected {programs} entries, one a program, got {len(getattr(self, name))}")
        _check("candidate", self.candidate, np.bool_, (programs,))
        _check("reference", self.reference, np.bool_, (programs,))
        _check("duplicate", self.duplicate, np.int64, (programs,))
        _check("outcome", self.outcome, np.int8, (programs, tests))
        for name in ("startup_ns", "limit_ns"):
            _check(name, getattr(self, name), np.int64, (programs, tests))
        for name in ("wall_ns", "cpu_ns", "memory_bytes"):
            if getattr(self, name) is not None:
                _check(name, getattr(self, name), np.int64, (programs, tests, repetitions))
                _check_range(name, getattr(self, name), LONGEST_NS)
        _check_range("limit_ns", self.limit_ns, LONGEST_NS)
        _check_range("outcome", self.outcome, max(Outcome) + 1)
        if self.interface is not None:
            _check("interface", self.interface, np.int8, (programs,))
            _check_range("interface", self.interface, 2)

    def on_clock(self, clock: str) -> Ints:
        """The repetitions [P, T, R] that a clock read: `wall` and `cpu` in ns, `memory` in bytes.

        ReplayError for a clock that was not read.
        """
        if clock not in self.clocks:
            raise ReplayError(f"problem {self.problem}: the clock {clock!r} was not read; load it with the others")
        if clock != "memory":
            return self.wall_ns if clock == "wall" else self.cpu_ns
        return np.full_like(self.wall_ns, ABSENT) if self.memory_bytes is None else self.memory_bytes

    def row(self, program: str) -> int:
        """The row of a program id; ReplayError when it is not one of these."""
        try:
            return self.programs.index(program)
        except ValueError:
            raise ReplayError(f"problem {self.problem}: no program {program!r}; name one of its programs") from None


@dataclass(frozen=True, slots=True, eq=False)
class Readings:
    """Runs as one criterion reads them, rows by tests [M, T]."""

    outcome: Bytes  # of Outcome
    duration_ns: Ints  # -1 where none is recorded
    bound_ns: Ints  # where TIME_LIMIT: the duration is longer than this


def read(m: ProblemMeasurements, criterion: Criterion) -> Readings:
    """The runs of every program on every test as the criterion reads them [P, T], in ns.

    ReplayError where the measurements are not under the limits that the criterion names.
    """
    if m.own_limits != (criterion.own_limits == "enforced"):
        raise ReplayError(
            f"criterion key 'own_limits': {criterion.own_limits!r} is not how problem {m.problem} was read; give all"
            " criteria of one question the same value"
        )
    return Readings(m.outcome, durations(m, criterion), kill_bounds(m, criterion))


def correctness_of(m: ProblemMeasurements) -> Criterion:
    """The criterion of plain correctness, under the limits that the measurements were read with."""
    return Criterion(own_limits="enforced" if m.own_limits else "ignored")


def durations(m: ProblemMeasurements, criterion: Criterion) -> Ints:
    """Durations in ns as the criterion reads them [P, T], or bytes on the clock `memory`; -1 without a repetition.

    The estimator runs over the repetitions present, whatever their outcome. Means and medians of an even count are
    rounded down to whole ns. Subtracting the start-up never goes below 1 ns.
    """
    return one_duration(m.on_clock(criterion.clock), m.startup_ns, criterion)


def one_duration(repetitions: Ints, startup_ns: Ints, criterion: Criterion) -> Ints:
    """One duration in ns [...] of repetitions [..., R] beside their start-up [...], as `durations` reads them."""
    values = one_value(repetitions, criterion.estimator)
    if criterion.startup == "keep":
        return values
    unknown = (values == ABSENT) | (startup_ns == ABSENT)
    return np.where(unknown, ABSENT, np.maximum(values - startup_ns, 1))


def kill_bounds(m: ProblemMeasurements, criterion: Criterion) -> Ints:
    """Lower bounds in ns of the durations of killed runs, as the criterion reads them [P, T]; only for TIME_LIMIT.

    On the wall clock the longest repetition recorded is the killed one and counts as the limit; others count as
    measured, at most the limit. The CPU time or peak memory at a kill is a bound by itself; 0 when unknown. Every
    estimator grows with each repetition, so the bound holds for all of them.
    """
    killed = m.outcome == Outcome.TIME_LIMIT
    bounds = np.zeros(m.outcome.shape, dtype=np.int64)
    if not killed.any():
        return bounds
    repetitions = m.on_clock(criterion.clock)[killed]
    if criterion.clock == "wall":
        limit = m.limit_ns[killed][:, None]
        repetitions = np.concatenate([repetitions, np.full_like(limit, ABSENT)], axis=1)  # room where none is recorded
        longest = np.arange(repetitions.shape[1]) == repetitions.argmax(axis=1)[:, None]
        repetitions = np.where(longest, limit, np.minimum(repetitions, limit))
    bounds[killed] = np.maximum(one_duration(repetitions, m.startup_ns[killed], criterion), 0)
    return bounds


def with_references(
    m: ProblemMeasurements,
    source: ProblemMeasurements,
    rows: Ints,
    *,
    clock: str,
    outcome: Bytes,
    durations: Ints,
    startup_ns: Ints,
    limit_ns: Ints,
) -> ProblemMeasurements:
    """The problem with programs of `source`, its rows [n], added to the pool; they are no candidates.

    `outcome`, `durations`, `startup_ns` and `limit_ns` [n, T] are theirs on the tests of `m`: one repetition on one
    clock, none on the others, and an interface that was not checked.
    """
    measured = np.full((*outcome.shape, max(m.wall_ns.shape[2], 1)), ABSENT, dtype=np.int64)
    absent = measured.copy()
    measured[:, :, 0] = durations
    repetitions = {"wall": m.wall_ns, "cpu": m.cpu_ns}
    if m.memory_bytes is not None or clock == "memory":
        repetitions["memory"] = m.on_clock("memory")
    repetitions = {
        name: _stacked(values, measured if name == clock else absent) for name, values in repetitions.items()
    }
    return replace(
        m,
        programs=m.programs + tuple(source.programs[row] for row in rows),
        models=m.models + tuple(source.models[row] for row in rows),
        labels=m.labels + tuple(source.labels[row] for row in rows),
        candidate=np.append(m.candidate, np.zeros(len(rows), dtype=np.bool_)),
        reference=np.append(m.reference, np.ones(len(rows), dtype=np.bool_)),
        duplicate=np.append(m.duplicate, source.duplicate[rows]),
        outcome=np.concatenate([m.outcome, outcome]),
        wall_ns=repetitions["wall"],
        cpu_ns=repetitions["cpu"],
        memory_bytes=repetitions.get("memory"),
        startup_ns=np.concatenate([m.startup_ns, startup_ns]),
        limit_ns=np.concatenate([m.limit_ns, limit_ns]),
        interface=None if m.interface is None else np.append(m.interface, np.full(len(rows), -1, np.int8)),
    )


def _stacked(upper: Ints, lower: Ints) -> Ints:
    """Repetitions of two sets of programs, one below the other, padded to the number that the lower one has."""
    missing = lower.shape[2] - upper.shape[2]
    return np.concatenate([np.pad(upper, ((0, 0), (0, 0), (0, missing)), constant_values=ABSENT), lower])


def robust_cv(m: ProblemMeasurements, *, over: Literal["tests", "programs"] = "tests") -> float:
    """Robust coefficient of variation of the references' durations on the optimization tests; nan when undefined.

    1.4826 * MAD / median. Over "tests" (the duration filter): of each test's median over the references that passed
    it. Over "programs" (the named alternative): of each reference's median over the tests it passed. Median wall
    time over repetitions, start-up subtracted.
    """
    read = durations(m, Criterion(startup="subtract"))[np.ix_(m.reference, m.tests.optimization)]
    passed = m.outcome[np.ix_(m.reference, m.tests.optimization)] == Outcome.OK
    cells = np.where(passed & (read >= 0), read, np.nan)
    lines = cells.T if over == "tests" else cells
    medians = np.array([np.median(line[~np.isnan(line)]) for line in lines if not np.isnan(line).all()])
    if not medians.size:
        return float("nan")
    middle = np.median(medians)
    return float(MAD_TO_SD * np.median(np.abs(medians - middle)) / middle)


def _check(name: str, array: npt.NDArray[Any], dtype: Any, shape: tuple[int, ...]) -> None:
    if array.dtype != dtype or array.shape != shape:
        expected = f"{np.dtype(dtype).name} {list(shape)}"
        raise ReplayError(f"{name}: expected {expected}, got {array.dtype.name} {list(array.shape)}")


def _check_range(name: str, array: npt.NDArray[Any], below: int) -> None:
    if array.size and (array.min() < ABSENT or array.max() >= below):
        raise ReplayError(f"{name}: values must lie in [{ABSENT}, {below}), got {array.min()} .. {array.max()}")


def _check_unique(what: str, ids: tuple[str, ...]) -> None:
    if len(set(ids)) != len(ids):
        twice = next(name for name in ids if ids.count(name) > 1)
        raise ReplayError(f"{what} {twice!r} appears twice; give every {what} one id")


def of_models(problems: Sequence[ProblemMeasurements], models: Collection[str] | None) -> Sequence[ProblemMeasurements]:
    """The measurements with the programs of these models alone as candidates."""
    if models is None:
        return problems
    named = [np.array([by in models for by in m.models], dtype=np.bool_) for m in problems]
    return [replace(m, candidate=m.candidate & mine) for m, mine in zip(problems, named, strict=True)]
