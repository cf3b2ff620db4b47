"""Reading facts at a cut: all events of a type as one Arrow table, from sealed segments and the tail alike.

The same cut gives the same table before and after sealing, for ever. Reads only; questions are asked elsewhere.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
from sqlalchemy import Connection, text

from ledger.codec.packing import plain
from ledger.errors import Fault, UserError
from ledger.events import EVENTS, PARTITIONS, EventType, project, versions_of
from ledger.store.cuts import Cut
from ledger.store.engine import reading
from ledger.store.opened import Ledger, cut_now
from ledger.store.segments import PLACE, Segment, placed, placed_schema

if TYPE_CHECKING:
    import pyarrow.dataset as ds

Where = Mapping[str, Sequence[str]]
"""Rows that are wanted: column -> the words that it may have there."""


@dataclass(frozen=True, slots=True)
class Stored:
    """The rows of one stored version of a type at a cut: the sealed ones, read as they are scanned, and the tail's."""

    declared: EventType
    segments: tuple[Segment, ...]
    sealed: "ds.Dataset"
    tail: pa.Table


def stored(ledger: Ledger, name: str, version: int, cut: Cut) -> list[Stored]:
    """All rows of a type at a cut with their place, by stored version, oldest first. No segment is read yet.

    Scan segments within `Segments.scanning`. UserError when the type is unknown, or the cut lies beyond what
    this ledger holds.
    """
    declared = declared_type(name, version)
    found = []
    with reading(ledger.engine) as connection:
        check_cut(connection, cut)
        for one in versions_of(declared):
            segments = [s for s in live_segments(connection, name, one.version) if s.starts_within(cut)]
            sealed = ledger.segments.dataset(one, segments)
            if not all(segment.ends_within(cut) for segment in segments):
                sealed = sealed.filter(_within(one, cut))
            found.append(Stored(one, tuple(segments), sealed, tail_rows(connection, one, cut)))
    return found


def events(
    ledger: Ledger,
    name: str,
    version: int,
    cut: Cut,
    *,
    columns: Sequence[str] | None = None,
    where: Where | None = None,
    in_order: bool = True,
) -> pa.Table:
    """All events of a type at a cut [rows], ordered by (stream, partition, admission, row) unless `in_order` is false.

    Events of older versions are read as the version asked for. Columns are the event's own (or those named), then
    `_stream`, `_partition`, `_admission` and `_row`, its place. `where` leaves out what it does not allow, row groups
    of segments unread where their statistics tell.
    UserError when the type or a column is unknown, or the cut lies beyond what this ledger holds.
    """
    declared = declared_type(name, version)
    wanted = [c.name for c in declared.columns] if columns is None else list(columns)
    allowed = dict(where or {})
    _check_columns(declared, [*wanted, *allowed])
    names = [*wanted, *(name for name in PLACE if name not in wanted)]
    needed = list(dict.fromkeys([*names, *allowed]))
    tables = [
        project(table, one.declared, declared).select(needed)
        for one in stored(ledger, name, version, cut)
        for table in _read(ledger, one, needed, allowed)
    ]
    table = pa.concat_tables(tables).filter(_allowing(allowed)) if allowed else pa.concat_tables(tables)
    schema = placed_schema(declared)
    table = table.select(names).cast(pa.schema([schema.field(name) for name in names]))
    return _ordered(table) if in_order else table


def _read(ledger: Ledger, one: Stored, needed: Sequence[str], allowed: Where) -> tuple[pa.Table, pa.Table]:
    """The sealed rows and the tail's, with those of the columns that this version has."""
    names = [name for name in needed if name in one.tail.column_names]
    known = {name: words for name, words in allowed.items() if name in names}
    with ledger.segments.scanning(one.segments):
        sealed = one.sealed.to_table(columns=names, filter=_allowing(known) if known else None)
    return sealed, one.tail.select(names)


def _allowing(where: Where) -> pc.Expression:
    """True where every column has an allowed word; the bounds let statistics rule row groups out."""
    whole = pc.scalar(True)
    for name, words in where.items():
        field = pc.field(name)
        if not words:
            return pc.scalar(False)
        whole = whole & (field >= min(words)) & (field <= max(words)) & field.isin(list(words))
    return whole


def _within(declared: EventType, cut: Cut) -> pc.Expression:
    whole = pc.scalar(False)
    for partition in range(PARTITIONS[declared.stream]):
        last = cut.at(declared.stream, partition)
        whole = whole | ((pc.field("_partition") == partition) & (pc.field("_admission") <= last))
    return whole


def declared_type(name: str, version: int) -> EventType:
    """The declared event type; UserError when there is none."""
    if (name, version) not in EVENTS:
        raise UserError(f"no event type {name} version {version} is known; docs/events.md lists them")
    return EVENTS[name, version]


def check_cut(connection: Connection, cut: Cut) -> None:
    """UserError when the cut names frames that the ledger has not admitted."""
    now = cut_now(connection)
    if not cut <= now:
        raise UserError(f"the cut {cut} lies beyond this ledger, which holds {now}; copy a cut that it printed")


def segment_rows(connection: Connection, name: str | None = None, version: int | None = None) -> list[Segment]:
    """The sealed segments, of one type or all, in the order of their chain."""
    query = text(
        "SELECT ordinal, name, manifest, type, version, frames, rows, bytes, admissions FROM segment"
        " WHERE type = coalesce(:type, type) AND version = coalesce(:version, version) ORDER BY ordinal"
    )
    bound = {"type": name, "version": version}
    return [Segment.from_row(tuple(row)) for row in connection.execute(query, bound)]


def live_segments(connection: Connection, name: str, version: int) -> list[Segment]:
    """The segments of a type that hold its sealed frames now: those that no compaction superseded."""
    gone = set(connection.execute(text("SELECT ordinal FROM supersession")).scalars())
    return [segment for segment in segment_rows(connection, name, version) if segment.ordinal not in gone]


def _check_columns(declared: EventType, names: Sequence[str]) -> None:
    known = {*(column.name for column in declared.columns), *PLACE}
    unknown = [name for name in names if name not in known]
    if unknown:
        raise UserError(f"{declared.name} version {declared.version} has no column {unknown[0]!r}; see docs/events.md")


def tail_rows(connection: Connection, declared: EventType, cut: Cut) -> pa.Table:
    """The rows of unsealed frames, with their place."""
    query = text(
        "SELECT admission, payload FROM tail WHERE type = :type AND version = :version AND stream = :stream"
        " AND partition = :partition AND admission <= :last ORDER BY admission"
    )
    bound: dict[str, object] = {"type": declared.name, "version": declared.version, "stream": declared.stream}
    tables = []
    for partition in range(PARTITIONS[declared.stream]):
        place = {"partition": partition, "last": cut.at(declared.stream, partition)}
        rows = connection.execute(query, bound | place).all()
        batches = [read_payload(row.payload, f"{declared.stream}/{partition} {row.admission}") for row in rows]
        tables.append(placed(declared, partition, [row.admission for row in rows], batches))
    return pa.concat_tables(tables)


def _ordered(table: pa.Table) -> pa.Table:
    """The rows in the order of admission. Frames lie whole in every source, so whole frames are put in order."""
    partitions, admissions = (table[name].to_numpy() for name in ("_partition", "_admission"))
    edges = np.flatnonzero((np.diff(partitions) != 0) | (np.diff(admissions) != 0)) + 1
    starts = np.concatenate([np.zeros(min(len(table), 1), np.int64), edges])
    order = np.lexsort((admissions[starts], partitions[starts]))
    if np.array_equal(order, np.arange(len(order))):
        return table
    lengths = np.diff(np.append(starts, len(table)))
    return table.take(_runs(starts[order], lengths[order]))


def _runs(starts: npt.NDArray[np.int64], lengths: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """The indices of runs of rows, one run after another [sum of lengths]."""
    before = np.cumsum(lengths) - lengths
    return np.repeat(starts - before, lengths) + np.arange(lengths.sum())


def read_payload(payload: bytes, place: str) -> pa.RecordBatch:
    """The plain rows in an admitted payload, checked when it was admitted; Fault when it was altered since."""
    return plain(read_packed(payload, place))


def read_packed(payload: bytes, place: str) -> pa.RecordBatch:
    """The rows in an admitted payload as they travelled, in their short forms; Fault when it was altered since."""
    try:
        return pa.ipc.open_stream(payload).read_next_batch()
    except (pa.ArrowException, StopIteration, OSError) as error:
        raise Fault(f"frame {place} in the tail cannot be read; run `lap verify`") from error
