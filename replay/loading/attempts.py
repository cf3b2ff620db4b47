"""Which attempt of each work counts, and whose timings are whose, in one problem of a campaign.

The first attempt of a work to be admitted that is no sandbox fault counts; its timings are those that carry its id.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lapledger.ledger.store.columns import Wanted
from lapledger.replay.loading.column_batches import ColumnBatches
from lapledger.replay.loading.members import StoredProblem
from lapledger.replay.measurements import Bools, Ints, Outcome

WORK = ("campaign_id", "program_id", "test_id", "block")
ID_COLUMNS = ("campaign_id", "program_id", "test_id")
FINISHED = Wanted("execution.finished", (*WORK, "outcome", "timings"), dictionary_columns=(*ID_COLUMNS, "outcome"))
OUTCOMES: Mapping[str, int] = {
    "accepted": Outcome.OK,
    "wrong_answer": Outcome.WRONG_ANSWER,
    "run_time_error": Outcome.RUN_TIME_ERROR,
    "memory_limit": Outcome.MEMORY_LIMIT,
    "output_limit": Outcome.OUTPUT_LIMIT,
    "time_limit": Outcome.TIME_LIMIT,
    "failed": Outcome.FAILED,
}
_FAULT = -1  # every other outcome: a sandbox fault

Attempts = Callable[[str], tuple[pa.Array, pa.Array]]
"""Problem -> ids of the attempt of each finished row and of each timing, in the order of the rows."""


@dataclass(frozen=True, slots=True, eq=False)
class Finished:
    """The finished attempts of one problem in one campaign [n], in the order of their admission."""

    cell: Ints  # program * tests + test; -1 for one that is not the campaign's
    block: Ints
    outcome: Ints  # of Outcome, or -1 for a sandbox fault
    timings: Ints  # how many timings each has
    accepted: Bools
    kept: Bools | None  # which stored rows these are; None for all


def finished_of(stored: StoredProblem, campaign: str) -> Finished:
    """The finished attempts among the stored ones of a problem."""
    rows = stored.finished
    kept = of_campaign(rows, campaign)
    columns = [_cells(stored, rows), rows.ints("block"), rows.codes("outcome", OUTCOMES, _FAULT), rows.ints("timings")]
    cell, block, outcome, timings = columns if kept is None else [column[kept] for column in columns]
    return Finished(cell, block, outcome, timings, _first_good(cell, outcome, block), kept)


def _cells(stored: StoredProblem, rows: ColumnBatches) -> Ints:
    """The program and test of each row [n], as program * tests + test; -1 where one of them is not the campaign's."""
    p = rows.positions("program_id", pa.array(stored.programs.ids, pa.string()))
    t = rows.positions("test_id", pa.array(stored.tests.ids, pa.string()))
    if p.min(initial=0) >= 0 and t.min(initial=0) >= 0:
        return p * len(stored.tests.ids) + t
    return np.where((p >= 0) & (t >= 0), p * len(stored.tests.ids) + t, -1)


def of_campaign(rows: ColumnBatches, campaign: str) -> Bools | None:
    """Which rows are the campaign's [n]; None where all are."""
    mine: Bools = rows.codes("campaign_id", {campaign: 1}, 0).astype(np.bool_)
    return None if mine.all() else mine


def _first_good(cell: Ints, outcome: Ints, block: Ints) -> Bools:
    """Which attempts count [n]: of each cell the first one that is no fault, of several blocks the first."""
    good: Bools = (cell >= 0) & (outcome != _FAULT)
    positions = np.flatnonzero(good)
    if positions.size and np.bincount(cell[positions]).max() > 1:
        positions = positions[np.argsort(block[positions], kind="stable")]
        _, first = np.unique(cell[positions], return_index=True)
        good = np.zeros(len(cell), dtype=np.bool_)
        good[positions[first]] = True
    return good


@dataclass(frozen=True, slots=True, eq=False)
class Timings:
    """Which work each stored timing of a campaign is of [n]."""

    cell: Ints
    block: Ints

    @classmethod
    def of(cls, stored: StoredProblem, kept: Ints | None) -> "Timings":
        cell, block = _cells(stored, stored.timed), stored.timed.ints("block")
        return cls(cell, block) if kept is None else cls(cell[kept], block[kept])


def owners(finished: Finished, timed: Timings) -> Ints | None:
    """The finished attempt that each timing [n] belongs to, -1 for none; None where executions do not settle it.

    An attempt is admitted with all its timings. So where one attempt of a job finished and the job has as many
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
    positions = np.full(max(known.max(initial=-1), mine.max(initial=-1)) + 2, -1)
    positions[known] = np.arange(len(known))
    positions[-1] = -1
    owner = positions[np.where(timed.cell >= 0, mine, -1)]
    have = np.bincount(owner + 1, minlength=len(known) + 1)[1:]
    return owner if (have == np.where(known >= 0, finished.timings, 0)).all() else None


def owners_by_id(finished: Finished, attempts: tuple[pa.Array, pa.Array], kept: Ints | None) -> Ints:
    """The accepted attempt that each timing [n] belongs to; -1 for one whose attempt never finished, or not here."""
    ended, timed = attempts
    ended = ended if finished.kept is None else ended.filter(pa.array(finished.kept))
    timed = timed if kept is None else timed.take(pa.array(kept))
    positions = np.flatnonzero(finished.accepted)
    known = ended.take(pa.array(positions))
    indices = pc.fill_null(pc.index_in(timed, value_set=known), -1).to_numpy().astype(np.int64)
    owners: Ints = np.append(positions, -1)[indices]
    return owners
