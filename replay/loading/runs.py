"""The runs of one problem in one campaign as dense arrays: where each repetition of the attempts that count goes.

Rows arrive as they are stored and leave as `ProblemMeasurements`. No digest and no verdict is made here.
"""

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from lapledger.ledger.store.columns import Wanted
from lapledger.replay.loading.attempts import (
    ID_COLUMNS,
    WORK,
    Attempts,
    Finished,
    Timings,
    finished_of,
    of_campaign,
    owners,
    owners_by_id,
)
from lapledger.replay.loading.column_batches import ColumnBatches
from lapledger.replay.loading.members import Campaign, StoredProblem
from lapledger.replay.loading.sharing import executed_rows, reuse_executions
from lapledger.replay.measurements import ABSENT, CLOCKS, Ints, Outcome, ProblemMeasurements

_CLOCKS = {"wall": ("wall_ns",), "cpu": ("user_ns", "system_ns"), "memory": ("peak_memory_bytes",)}
_UNKNOWN_LIMIT = 0


def timed(clocks: Iterable[str]) -> Wanted:
    """What is read of timings for some clocks; the wall clock always."""
    columns = [column for clock in sorted({"wall", *clocks}) for column in _CLOCKS[clock]]
    return Wanted(
        "timing.measured",
        (*WORK, "repetition", "warmup", *columns, "startup_ns", "hard_limit_ns"),
        dictionary_columns=ID_COLUMNS,
    )


@dataclass(frozen=True, slots=True, eq=False)
class _Repetitions:
    """Where the counted repetitions of one problem go [n]."""

    row: Ints | None  # the timing's row; None for all of them in order
    cell: Ints
    position: Ints  # of the repetition, from 0


def _repetitions(stored: StoredProblem, finished: Finished, campaign: str, attempts: Attempts) -> _Repetitions:
    """The repetitions of accepted attempts that are no warm-ups, numbered in their order."""
    rows = stored.timed
    mine = of_campaign(rows, campaign)
    kept: Ints | None = None if mine is None else np.flatnonzero(mine)
    owner = owners(finished, Timings.of(stored, kept))
    if owner is None:
        owner = owners_by_id(finished, attempts(stored.problem), kept)
    repetition, warmup = rows.ints("repetition"), rows.flags("warmup")
    counted = np.append(finished.accepted, False)[owner]
    counted &= ~(warmup if kept is None else warmup[kept])
    if not counted.all():
        kept = np.flatnonzero(counted) if kept is None else kept[counted]
        owner = owner[counted]
    repetition = repetition if kept is None else repetition[kept]
    if not _rising(owner, repetition):
        order = np.lexsort((repetition, owner))
        kept, owner = order if kept is None else kept[order], owner[order]
    first = np.flatnonzero(np.diff(owner, prepend=-1))
    runs = np.diff(first, append=len(owner))
    position = np.arange(len(owner)) - np.repeat(first, runs)
    return _Repetitions(kept, finished.cell[owner], position)


def _rising(owner: Ints, repetition: Ints) -> bool:
    later, same = owner[1:] > owner[:-1], owner[1:] == owner[:-1]
    return bool((later | (same & (repetition[1:] >= repetition[:-1]))).all())


def measurements(
    stored: StoredProblem, campaign: Campaign, attempts: Attempts, *, clocks: frozenset[str] = CLOCKS
) -> ProblemMeasurements:
    """The measurements of one problem in a campaign, on the clocks that its timings were read for."""
    programs, tests = stored.programs, stored.tests
    shape = (len(programs.ids), len(tests.ids))
    finished = finished_of(stored, campaign.name)
    repetitions = _repetitions(stored, finished, campaign.name, attempts)
    grid = _Grid(shape, repetitions, stored.timed)
    outcome = np.zeros(shape, dtype=np.int8)
    ended = finished.cell[finished.accepted]
    outcome.reshape(-1)[ended] = finished.outcome[finished.accepted]
    hard = campaign.row["hard_limit_ns"]
    limit = np.where(outcome == Outcome.MISSING, ABSENT, _UNKNOWN_LIMIT if hard is None else hard).astype(np.int64)
    cpu = _sum(grid.values("user_ns"), grid.values("system_ns")) if "cpu" in clocks else None
    memory = grid.values("peak_memory_bytes") if "memory" in clocks else None
    measured = ProblemMeasurements(
        problem=stored.problem,
        campaign=campaign.name,
        tests=tests,
        programs=programs.ids,
        models=programs.models,
        labels=programs.labels,
        candidate=np.ones(shape[0], dtype=np.bool_),
        reference=programs.among(campaign.references),
        duplicate=programs.duplicate,
        outcome=outcome,
        wall_ns=grid.repetitions(grid.values("wall_ns")),
        cpu_ns=grid.repetitions(cpu),
        startup_ns=grid.runs("startup_ns", np.zeros(shape, dtype=np.int64), absent=ABSENT),
        limit_ns=grid.runs("hard_limit_ns", limit, absent=ABSENT),
        memory_bytes=None if memory is None else grid.repetitions(memory),
        clocks=clocks | {"wall"},
    )
    return reuse_executions(measured, executed_rows(stored, ended))


@dataclass(frozen=True, slots=True, eq=False)
class _Grid:
    """Where the timings of a problem go in its arrays."""

    shape: tuple[int, int]
    at: _Repetitions
    timed: ColumnBatches

    def values(self, name: str, absent: int = ABSENT) -> Ints:
        """A column of the counted timings [n]."""
        values = self.timed.ints(name, absent)
        return values if self.at.row is None else values[self.at.row]

    def repetitions(self, values: Ints | None) -> Ints:
        """Values of timings [n] by program, test and repetition, -1 where there is none, and where None is read."""
        depth = int(self.at.position.max(initial=-1)) + 1
        if values is None:
            return np.broadcast_to(np.int64(ABSENT), (*self.shape, depth))
        filled = np.full((*self.shape, depth), ABSENT, dtype=np.int64)
        filled.reshape(-1)[self.at.cell * depth + self.at.position] = values
        return filled

    def runs(self, name: str, filled: Ints, *, absent: int) -> Ints:
        """A column by program and test, of the last repetition; as it was where there is none."""
        values = self.values(name, absent)
        if np.count_nonzero(self.at.position == 0) == filled.size and (values == values[:1]).all():
            return np.broadcast_to(values[:1].copy(), self.shape) if filled.size else filled  # one number for all
        filled.reshape(-1)[self.at.cell] = values
        return filled


def _sum(user: Ints, system: Ints) -> Ints:
    """Processor time; -1 where one part of it is unknown."""
    return np.where((user == ABSENT) | (system == ABSENT), ABSENT, user + system)
