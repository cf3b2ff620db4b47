"""The runs of one problem in one campaign as dense arrays: which attempt counts, and where each repetition goes.

The first attempt of a work to be admitted that is no sandbox fault counts; its timings are those that carry its id.
Rows arrive as they are stored and leave as `ProblemMeasurements`. No digest and no verdict is made here.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ledger.store.columns import Wanted
from replay.measurements import ABSENT, Bools, Ints, Outcome, ProblemMeasurements, Tests
from replay.shell.members import Campaign, Programs
from replay.shell.pieces import Pieces

FINISHED = Wanted(
    "execution.finished",
    ("campaign_id", "program_id", "test_id", "block", "outcome", "attempt_id", "timings"),
    words=("campaign_id", "program_id", "test_id", "outcome"),
)
_CLOCKS = ("wall_ns", "user_ns", "system_ns", "peak_memory_bytes")
TIMED = Wanted(
    "timing.measured",
    ("campaign_id", "attempt_id", "repetition", "warmup", *_CLOCKS, "startup_ns", "hard_limit_ns"),
    words=("campaign_id",),
)
OUTCOMES: Mapping[str, int] = {
    "accepted": Outcome.OK,
    "wrong_answer": Outcome.WRONG_ANSWER,
    "run_time_error": Outcome.RUN_TIME_ERROR,
    "memory_limit": Outcome.MEMORY_LIMIT,
    "output_limit": Outcome.OUTPUT_LIMIT,
    "time_limit": Outcome.TIME_LIMIT,
}
_UNKNOWN_LIMIT = 0
_FAULT = -1  # every other outcome: a sandbox fault


@dataclass(frozen=True, slots=True, eq=False)
class Finished:
    """The finished attempts of one problem in one campaign [n], in the order of their admission."""

    cell: Ints  # program * tests + test; -1 for one that is not the campaign's
    outcome: Ints  # of Outcome, or -1 for a sandbox fault
    attempt: pa.Array  # [n] ids
    timings: Ints  # how many timings each has
    accepted: Bools
    kept: Bools | None  # which stored rows these are; None for all


def finished_of(rows: Pieces, campaign: str, programs: Programs, tests: Tests) -> Finished:
    """The finished attempts among the stored ones of a problem."""
    kept = _campaign(rows, campaign)
    p = rows.places("program_id", pa.array(programs.ids, pa.string()))
    t = rows.places("test_id", pa.array(tests.ids, pa.string()))
    cell = np.where((p >= 0) & (t >= 0), p * len(tests.ids) + t, -1)
    outcome = rows.codes("outcome", OUTCOMES, _FAULT)
    columns = [cell, outcome, rows.ints("timings"), rows.ints("block")]
    attempt = rows.strings("attempt_id")
    if kept is not None:
        columns = [column[kept] for column in columns]
        attempt = attempt.filter(pa.array(kept))
    cell, outcome, timings, block = columns
    return Finished(cell, outcome, attempt, timings, _first_good(cell, outcome, block), kept)


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


def _repetitions(rows: Pieces, finished: Finished, campaign: str) -> _Repetitions:
    """The repetitions of accepted attempts that are no warm-ups, numbered in their order."""
    mine = _campaign(rows, campaign)
    attempt, repetition = rows.strings("attempt_id"), rows.ints("repetition")
    owner = _owners(finished, attempt if mine is None else attempt.filter(pa.array(mine)))
    kept: Ints | None = None if mine is None else np.flatnonzero(mine)
    counted = np.append(finished.accepted, False)[owner]
    warmup = rows.flags("warmup")
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


def _owners(finished: Finished, attempt: pa.Array) -> Ints:
    """The finished attempt that each timing [n] belongs to; -1 for one whose attempt never finished, or not here.

    Nearly always timings lie in the order of their attempts: then ids are compared in place, else they are looked up.
    """
    owner = np.repeat(np.arange(len(finished.attempt)), finished.timings)
    if len(owner) == len(attempt):
        once = bool((finished.timings == 1).all())
        expected = finished.attempt if once else finished.attempt.take(pa.array(owner))
        if attempt.equals(expected):
            return owner
    places = np.flatnonzero(finished.accepted)
    known = finished.attempt.take(pa.array(places))
    found = pc.fill_null(pc.index_in(attempt, value_set=known), -1).to_numpy().astype(np.int64)
    owners: Ints = np.append(places, -1)[found]
    return owners


def _rising(owner: Ints, repetition: Ints) -> bool:
    later, same = owner[1:] > owner[:-1], owner[1:] == owner[:-1]
    return bool((later | (same & (repetition[1:] >= repetition[:-1]))).all())


@dataclass(frozen=True, slots=True, eq=False)
class Own:
    """What is stored of one problem."""

    problem: str
    programs: Programs
    tests: Tests
    finished: Pieces
    timed: Pieces


def measurements(own: Own, campaign: Campaign) -> ProblemMeasurements:
    """The measurements of one problem in a campaign."""
    programs, tests = own.programs, own.tests
    shape = (len(programs.ids), len(tests.ids))
    finished = finished_of(own.finished, campaign.name, programs, tests)
    repetitions = _repetitions(own.timed, finished, campaign.name)
    grid = _Grid(shape, repetitions, own.timed)
    outcome = np.zeros(shape, dtype=np.int8)
    ended = finished.cell[finished.accepted]
    outcome.reshape(-1)[ended] = finished.outcome[finished.accepted]
    hard = campaign.row["hard_limit_ns"]
    limit = np.where(outcome == Outcome.MISSING, ABSENT, _UNKNOWN_LIMIT if hard is None else hard).astype(np.int64)
    cpu = _sum(grid.values("user_ns"), grid.values("system_ns"))
    return ProblemMeasurements(
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
        memory_bytes=grid.repetitions(grid.values("peak_memory_bytes")),
    )


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

    def repetitions(self, values: Ints) -> Ints:
        """Values of timings [n] by program, test and repetition, -1 where there is none."""
        depth = int(self.at.place.max(initial=-1)) + 1
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
