"""Many problems as one: programs ranked among pools, padded to one shape for a device that counts them together.

Plain numpy, built once. What is counted on them is in `device`; no rank, threshold or verdict here.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from lapledger.replay.errors import ReplayError
from lapledger.replay.judging.quality import Ranks
from lapledger.replay.judging.ranks import FAILED_REFERENCE, Pool
from lapledger.replay.measurements import Bytes, Ints

PAD = 2**63 - 1  # a reference that is none: above every duration, so no rank counts it
NOBODY = -1  # a run that is none: below every reference
BLOCK = 2**26
"""Padded cells that go to the device at a time: a bound on memory, never on results."""


@dataclass(frozen=True, slots=True, eq=False)
class Task:
    """M programs that are ranked among one pool, each without its own exact duplicates."""

    pool: Pool  # N references on T' tests
    lo: Ints  # [M, T'] spans in half ns
    hi: Ints  # [M, T']
    duplicate: Ints  # [M]
    certain: Bytes | None = None  # [M] every gate but the one on q: 1, 0, -1 undecided; None where not needed
    model: Ints | None = None  # [M] number of each program's model, -1 for one that is not counted; None for one model
    problem: int = 0  # number of the problem: one of several pools where programs lack different tests

    @property
    def shape(self) -> tuple[int, int, int]:
        """References, tests and programs."""
        references, tests = self.pool.lo.shape
        return references, tests, len(self.lo)

    @property
    def column(self) -> Ints:
        """The group of the pool that each program belongs to [M]; the number of groups for a program outside."""
        return self.pool.column(self.duplicate)

    @property
    def group(self) -> Ints:
        """The group of each reference [N]."""
        return self.pool.column(self.pool.duplicate)


@dataclass(frozen=True, slots=True, eq=False)
class Ends:
    """One end of what is unknown: where runs lie, and the references that they are counted against, in half ns."""

    mine: Ints  # [B, T, M]
    references: Ints  # [B, T, N] the references as programs
    theirs: Ints  # [B, T, N] the other end of the references' spans


@dataclass(frozen=True, slots=True, eq=False)
class Padded:
    """B tasks padded to N references, T tests, M programs and C groups, the last of which may be empty."""

    ends: tuple[Ends, ...]  # one where all is known, else the low and the high one
    tests: Ints  # [B] tests of each task
    size: Ints  # [B, M] references that rank each program; 0 for one that is none
    column: Ints  # [B, M] the group that each program leaves out
    group: Ints  # [B, N] the group of each reference, C for one that is none
    reference_size: Ints  # [B, N, C] references that rank each reference where one more group is excluded
    runs: Ints  # [L] flat indices in [B, T, M] of runs that leave a reference out
    excluded: Ints  # [L] flat indices in [B, T, N] of those references
    certain: Bytes  # [B, M] every gate but the one on q
    model: Ints  # [B, M] number of the model, K for a program that is not counted
    problem: Ints  # [B]
    programs: Ints  # [Q, K] programs of each model on each problem

    @classmethod
    def of(cls, tasks: Sequence[Task]) -> "Padded":
        """The tasks in one shape. ReplayError where a score would not fit 64 bits."""
        n, t, m = shape = _shape([task.shape for task in tasks])
        if 4 * (n + 1) ** 2 * (t + 1) >= 2**62:
            raise ReplayError(f"{n} references on {t} tests do not fit 64 bits when ranked together; judge on the host")
        columns, groups = [task.column for task in tasks], [task.group for task in tasks]
        c = max((len(task.pool.names) for task in tasks), default=0) + 1
        group, (model, kinds) = _padded(groups, (n,), c), _models(tasks, m)
        problem = np.array([task.problem for task in tasks], dtype=np.int64)
        programs = np.zeros((int(problem.max(initial=-1)) + 1, kinds), dtype=np.int64)
        np.add.at(programs, problem, (model[:, :, None] == np.arange(kinds)).sum(axis=1))
        runs, excluded = _excluded(groups, columns, [task.shape[1] for task in tasks], shape)
        gates = [np.ones(task.shape[2]) if task.certain is None else task.certain for task in tasks]
        return cls(
            ends=_ends(tasks, shape),
            tests=np.array([task.shape[1] for task in tasks], dtype=np.int64),
            size=_padded([task.pool.sizes(column) for task, column in zip(tasks, columns, strict=True)], (m,), 0),
            column=_padded(columns, (m,), c - 1),
            group=group,
            reference_size=_reference_sizes(group, c),
            runs=runs,
            excluded=excluded,
            certain=_padded(gates, (m,), 0).astype(np.int8),
            model=model,
            problem=problem,
            programs=programs,
        )


def blocks(tasks: Sequence[Task]) -> Iterator[list[int]]:
    """The numbers of the tasks in blocks that keep memory bounded; like sizes together, so that little is padded."""
    block: list[int] = []
    for number in sorted(range(len(tasks)), key=lambda number: tasks[number].shape):
        n, t, m = _shape([tasks[earlier].shape for earlier in (*block[-1:], number)])
        widest = max((tasks[earlier].shape[2] for earlier in block), default=0)
        if block and (len(block) + 1) * t * (n + max(m, widest)) > BLOCK:
            yield block
            block = []
        block.append(number)
    if block:
        yield block


def unpadded(task: Task, row: int, k: tuple[Ints, Ints], quality: tuple[Ints, Ints, Ints, Ints]) -> Ranks:
    """One task's own part of ranks [B, M, T] and of sizes and quality [B, M]."""
    _, tests, m = task.shape
    k_lo, k_hi = (ends[row, :m, :tests] for ends in k)
    size, q_lo, q_hi, q_den = (values[row, :m] for values in quality)
    return Ranks(k_lo, k_hi, size, q_lo, q_hi, q_den)


def _shape(shapes: Sequence[tuple[int, int, int]]) -> tuple[int, int, int]:
    """The smallest shape that holds them all."""
    n, t, m = (max((shape[axis] for shape in shapes), default=0) for axis in range(3))
    return n, t, m


def _padded(arrays: Sequence[npt.NDArray[Any]], shape: tuple[int, ...], fill: int) -> Ints:
    """The arrays one above the other [B, *shape], each from the first corner, and the rest filled."""
    padded = np.full((len(arrays), *shape), fill, dtype=np.int64)
    for room, array in zip(padded, arrays, strict=True):
        room[tuple(slice(length) for length in array.shape)] = array
    return padded


def _models(tasks: Sequence[Task], most: int) -> tuple[Ints, int]:
    """The number of each program's model [B, M], and how many models; that number for a program that is not counted."""
    models = [np.zeros(task.shape[2], np.int64) if task.model is None else task.model for task in tasks]
    kinds = max((int(model.max(initial=-1)) for model in models), default=-1) + 1
    return _padded([np.where(model < 0, kinds, model) for model in models], (most,), kinds), kinds


def _ends(tasks: Sequence[Task], shape: tuple[int, int, int]) -> tuple[Ends, ...]:
    """The low end, and the high one where they differ anywhere."""
    low = _end([(task.lo, task.pool.lo, task.pool.hi) for task in tasks], shape)
    high = _end([(task.hi, task.pool.hi, task.pool.lo) for task in tasks], shape)
    same = np.array_equal(low.mine, high.mine) and np.array_equal(low.theirs, high.theirs)
    return (low,) if same and np.array_equal(low.references, high.references) else (low, high)


def _end(parts: Sequence[tuple[Ints, Ints, Ints]], shape: tuple[int, int, int]) -> Ends:
    n, t, m = shape
    return Ends(
        mine=_padded([mine.T for mine, _, _ in parts], (t, m), NOBODY),
        references=_padded([references.T for _, references, _ in parts], (t, n), NOBODY),
        theirs=_padded([np.minimum(theirs, FAILED_REFERENCE).T for _, _, theirs in parts], (t, n), PAD),
    )


def _reference_sizes(group: Ints, groups: int) -> Ints:
    """References that rank each reference [B, N, C] where its own group and one more are excluded."""
    members = (group[:, :, None] == np.arange(groups)).sum(axis=1)  # [B, C]
    among = np.concatenate([members, np.zeros((len(group), 1), dtype=np.int64)], axis=1)
    same_group = np.take_along_axis(among, group, axis=1)[:, :, None]
    another = np.where(group[:, :, None] == np.arange(groups), 0, members[:, None, :])
    sizes: Ints = members.sum(axis=1)[:, None, None] - same_group - another
    return sizes


def _excluded(
    groups: Sequence[Ints], columns: Sequence[Ints], tests: Sequence[int], shape: tuple[int, int, int]
) -> tuple[Ints, Ints]:
    """Each run with each reference it leaves out: flat indices in [B, T, M] and in [B, T, N]."""
    n, t, m = shape
    runs, references = [np.zeros(0, dtype=np.int64)], [np.zeros(0, dtype=np.int64)]
    for row, (group, column, count) in enumerate(zip(groups, columns, tests, strict=True)):
        program, reference = np.nonzero(column[:, None] == group[None, :])
        line = (row * t + np.arange(count))[:, None]
        runs.append((line * m + program).ravel())
        references.append((line * n + reference).ravel())
    return np.concatenate(runs), np.concatenate(references)
