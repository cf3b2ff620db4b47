"""The runs of one problem in one campaign as dense arrays: which attempt counts, and where each repetition goes.

The first attempt of a work to be admitted that is no sandbox fault counts; its timings are those that carry its id.
Rows arrive as they are stored and leave as `ProblemMeasurements`. No digest and no verdict is made here.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ledger.store.columns import Wanted
from replay.measurements import ABSENT, CLOCKS, Bools, Ints, Outcome, ProblemMeasurements
from replay.shell.members import Campaign, Own
from replay.shell.pieces import Pieces
from replay.shell.sharing import executed_rows, lend

_WORK = ("campaign_id", "program_id", "test_id", "block")
_WORDS = ("campaign_id", "program_id", "test_id")
FINISHED = Wanted("execution.finished", (*_WORK, "outcome", "timings"), words=(*_WORDS, "outcome"))
_CLOCKS = {"wall": ("wall_ns",), "cpu": ("user_ns", "system_ns"), "memory": ("peak_memory_bytes",)}
OUTCOMES: Mapping[str, int] = {
    "accepted": Outcome.OK,
    "wrong_answer": Outcome.WRONG_ANSWER,
    "run_time_error": Outcome.RUN_TIME_ERROR,
    "memory_limit": Outcome.MEMORY_LIMIT,
    "output_limit": Outcome.OUTPUT_LIMIT,
    "time_limit": Outcome.TIME_LIMIT,
    "failed": Outcome.FAILED,
}
_UNKNOWN_LIMIT = 0
_FAULT = -1  # every other outcome: a sandbox fault

Attempts = Callable[[str], tuple[pa.Array, pa.Array]]
"""Problem -> ids of the attempt of each finished row and of each timing, in the order of the rows."""


def timed(clocks: Iterable[str]) -> Wanted:
    """What is read of timings for some clocks; the wall clock always."""
    columns = [column for clock in sorted({"wall", *clocks}) for column in _CLOCKS[clock]]
    return Wanted(
        "timing.measured", (*_WORK, "repetition", "warmup", *columns, "startup_ns", "hard_limit_ns"), words=_WORDS
    )


@dataclass(frozen=True, slots=True, eq=False)
class Finished:
    """The finished attempts of one problem in one campaign [n], in the order of their admission."""

    cell: Ints  # program * tests + test; -1 for one that is not the campaign's
    block: Ints
    outcome: Ints  # of Outcome, or -1 for a sandbox fault
    timings: Ints  # how many timings each has
    accepted: Bools
    kept: Bools | None  # which stored rows these are; None for all


def finished_of(own: Own, campaign: str) -> Finished:
    """The finished attempts among the stored ones of a problem."""
    rows = own.finished
    kept = _campaign(rows, campaign)
    columns = [_cells(own, rows), rows.ints("block"), rows.codes("outcome", OUTCOMES, _FAULT), rows.ints("timings")]
    cell, block, outcome, timings = columns if kept is None else [column[kept] for column in columns]
    return Finished(cell, block, outcome, timings, _first_good(cell, outcome, block), kept)


def _cells(own: Own, rows: Pieces) -> Ints:
    """The program and test of each row [n], as program * tests + test; -1 where one of them is not the campaign's."""
    p = rows.places("program_id", pa.array(own.programs.ids, pa.string()))
    t = rows.places("test_id", pa.array(own.tests.ids, pa.string()))
    if p.min(initial=0) >= 0 and t.min(initial=0) >= 0:
        return p * len(own.tests.ids) + t
    return np.where((p >= 0) & (t >= 0), p * len(own.tests.ids) + t, -1)


def _campaign(rows: Pieces, campaign: str) -> Bools | None:
    """Which rows are the campaign's [n]; None where all are."""
    mine: Bools = rows.codes("campaign_id", {campaign: 1}, 0).astype(np.bool_)
    return None if mine.all() else mine


def _first_good(cell: Ints, outcome: Ints, block: Ints) -> Bools:
    """Which attempts count [n]: of each cell the first one that is no fault, of several blocks the first."""
    good: Bools = (cell >= 0) & (outcome != _FAULT)
    places = np.flatnonzero(good)
    if places.size and np.bincount(cell[places]).max() > 1:
        places = places[np.argsort(block[places], kind="stable")]
        _, first = np.unique(cell[places], return_index=True)
        good = np.zeros(len(cell), dtype=np.bool_)
        good[places[first]] = True
    return good


@dataclass(frozen=True, slots=True, eq=False)
class _Repetitions:
    """Where the counted repetitions of one problem go [n]."""

    row: Ints | None  # the timing's row; None for all of them in order
    cell: Ints
    place: Ints  # of the repetition, from 0


def _repetitions(own: Own, finished: Finished, campaign: str, attempts: Attempts) -> _Repetitions:
    """The repetitions of accepted attempts that are no warm-ups, numbered in their order."""
    rows = own.timed
    mine = _campaign(rows, campaign)
    kept: Ints | None = None if mine is None else np.flatnonzero(mine)
    owner = _owners(finished, _Timings.of(own, kept))
    if owner is None:
        owner = _owners_by_id(finished, attempts(own.problem), kept)
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
    place = np.arange(len(owner)) - np.repeat(first, runs)
    return _Repetitions(kept, finished.cell[owner], place)


@dataclass(frozen=True, slots=True, eq=False)
class _Timings:
    """Which work each stored timing of a campaign is of [n]."""

    cell: Ints
    block: Ints

    @classmethod
    def of(cls, own: Own, kept: Ints | None) -> "_Timings":
        cell, block = _cells(own, own.timed), own.timed.ints("block")
        return cls(cell, block) if kept is None else cls(cell[kept], block[kept])


def _owners(finished: Finished, timed: _Timings) -> Ints | None:
    """The finished attempt that each timing [n] belongs to, -1 for none; None where their works do not tell.

    An attempt is admitted with all its timings. So where one attempt of a work finished and the work has as many
    timings as that attempt counts, they are its own, and nobody needs to read ids, which are most of the bytes.
    """
    owner = np.repeat(np.arange(len(finished.cell)), finished.timings)
    blocks = int(max(finished.block.max(initial=0), timed.block.max(initial=0))) + 1
    works = finished.cell * blocks + finished.block if blocks > 1 else finished.cell
    mine = timed.cell * blocks + timed.block if blocks > 1 else timed.cell
    known = np.where(finished.cell >= 0, works, -1)
    if np.bincount(known + 1)[1:].max(initial=0) > 1:
        return None
    if len(owner) == len(mine) and (known >= 0).all() and np.array_equal(mine, known[owner]):
        return owner
    places = np.full(max(known.max(initial=-1), mine.max(initial=-1)) + 2, -1)
    places[known] = np.arange(len(known))
    places[-1] = -1
    owner = places[np.where(timed.cell >= 0, mine, -1)]
    have = np.bincount(owner + 1, minlength=len(known) + 1)[1:]
    return owner if (have == np.where(known >= 0, finished.timings, 0)).all() else None


def _owners_by_id(finished: Finished, attempts: tuple[pa.Array, pa.Array], kept: Ints | None) -> Ints:
    """The accepted attempt that each timing [n] belongs to; -1 for one whose attempt never finished, or not here."""
    ended, timed = attempts
    ended = ended if finished.kept is None else ended.filter(pa.array(finished.kept))
    timed = timed if kept is None else timed.take(pa.array(kept))
    places = np.flatnonzero(finished.accepted)
    known = ended.take(pa.array(places))
    found = pc.fill_null(pc.index_in(timed, value_set=known), -1).to_numpy().astype(np.int64)
    owners: Ints = np.append(places, -1)[found]
    return owners


def _rising(owner: Ints, repetition: Ints) -> bool:
    later, same = owner[1:] > owner[:-1], owner[1:] == owner[:-1]
    return bool((later | (same & (repetition[1:] >= repetition[:-1]))).all())


def measurements(
    own: Own, campaign: Campaign, attempts: Attempts, *, clocks: frozenset[str] = CLOCKS
) -> ProblemMeasurements:
    """The measurements of one problem in a campaign, on the clocks that its timings were read for."""
    programs, tests = own.programs, own.tests
    shape = (len(programs.ids), len(tests.ids))
    finished = finished_of(own, campaign.name)
    repetitions = _repetitions(own, finished, campaign.name, attempts)
    grid = _Grid(shape, repetitions, own.timed)
    outcome = np.zeros(shape, dtype=np.int8)
    ended = finished.cell[finished.accepted]
    outcome.reshape(-1)[ended] = finished.outcome[finished.accepted]
    hard = campaign.row["hard_limit_ns"]
    limit = np.where(outcome == Outcome.MISSING, ABSENT, _UNKNOWN_LIMIT if hard is None else hard).astype(np.int64)
    cpu = _sum(grid.values("user_ns"), grid.values("system_ns")) if "cpu" in clocks else None
    memory = grid.values("peak_memory_bytes") if "memory" in clocks else None
    measured = ProblemMeasurements(
        problem=own.problem,
        campaign=campaign.name,
        tests=tests,
        programs=programs.ids,
        makers=programs.makers,
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
    return lend(measured, executed_rows(own, ended))


@dataclass(frozen=True, slots=True, eq=False)
class _Grid:
    """Where the timings of a problem go in its arrays."""

    shape: tuple[int, int]
    at: _Repetitions
    timed: Pieces

    def values(self, name: str, absent: int = ABSENT) -> Ints:
        """A column of the counted timings [n]."""
        values = self.timed.ints(name, absent)
        return values if self.at.row is None else values[self.at.row]

    def repetitions(self, values: Ints | None) -> Ints:
        """Values of timings [n] by program, test and repetition, -1 where there is none, and where None is read."""
        depth = int(self.at.place.max(initial=-1)) + 1
        if values is None:
            return np.broadcast_to(np.int64(ABSENT), (*self.shape, depth))
        filled = np.full((*self.shape, depth), ABSENT, dtype=np.int64)
        filled.reshape(-1)[self.at.cell * depth + self.at.place] = values
        return filled

    def runs(self, name: str, filled: Ints, *, absent: int) -> Ints:
        """A column by program and test, of the last repetition; as it was where there is none."""
        values = self.values(name, absent)
        if np.count_nonzero(self.at.place == 0) == filled.size and (values == values[:1]).all():
            return np.broadcast_to(values[:1].copy(), self.shape) if filled.size else filled  # one number for all
        filled.reshape(-1)[self.at.cell] = values
        return filled


def _sum(user: Ints, system: Ints) -> Ints:
    """Processor time; -1 where one part of it is unknown."""
    return np.where((user == ABSENT) | (system == ABSENT), ABSENT, user + system)
