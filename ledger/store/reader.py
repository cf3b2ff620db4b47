"""Reading facts at a cut: all events of a type as one Arrow table, from sealed segments and the tail alike.

The same cut gives the same table before and after sealing, permanently. Reads only; SQL is in `ledger.questions`.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from functools import reduce
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from sqlalchemy import Connection, text

from lapledger.ledger.codec.packing import plain
from lapledger.ledger.errors import Fault, UserError
from lapledger.ledger.events import EVENTS, PARTITIONS, EventType, project, versions_of
from lapledger.ledger.store.cuts import Cut
from lapledger.ledger.store.open_ledger import Ledger, cut_now
from lapledger.ledger.store.segments import ORIGIN_COLUMNS, Segment, schema_with_origin, with_origin
from lapledger.ledger.store.sql.engine import reading
from lapledger.ledger.store.sql.statements import SEGMENTS, SUPERSEDED

if TYPE_CHECKING:
    import pyarrow.dataset as ds

Where = Mapping[str, Sequence[str]]
"""Row filter: column -> the values allowed there."""


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

    Events of older versions are read as the requested version. Columns are the event's own (or those named), then
    `_stream`, `_partition`, `_admission` and `_row`, its origin. `where` filters rows; row groups
    of segments that cannot match, by their statistics, are not read.
    UserError when the type or a column is unknown, or the cut is ahead of this ledger.
    """
    declared = declared_type(name, version)
    wanted = [c.name for c in declared.columns] if columns is None else list(columns)
    allowed = dict(where or {})
    _check_columns(declared, [*wanted, *allowed])
    names = [*wanted, *(name for name in ORIGIN_COLUMNS if name not in wanted)]
    needed = list(dict.fromkeys([*names, *allowed]))
    tables = [
        project(table, version, declared).select(needed)
        for version, table in _tables(ledger, declared, cut, names=needed, where=allowed)
    ]
    table = pa.concat_tables(tables)
    table = table.filter(_allowing(table, allowed)) if allowed else table
    schema = schema_with_origin(declared)
    table = table.select(names).cast(pa.schema([schema.field(name) for name in names]))
    return _ordered(table) if in_order else table


def _tables(
    ledger: Ledger, declared: EventType, cut: Cut, *, names: Sequence[str], where: Where
) -> Iterator[tuple[EventType, pa.Table]]:
    """The sealed rows and the tail's of every stored version, with those of the columns that it has."""
    with reading(ledger.engine) as connection:
        check_cut(connection, cut)
        sources = [
            (
                stored_version,
                live_segments(connection, stored_version.name, stored_version.version),
                tail_rows(connection, stored_version, cut),
            )
            for stored_version in versions_of(declared)
        ]
    for version, segments, tail in sources:
        wanted = _Wanted([name for name in names if name in tail.column_names], where)
        for segment in segments:
            if segment.starts_within(cut):
                yield version, _sealed(ledger, segment, cut, wanted)
        yield version, tail.select(wanted.columns)


@dataclass(frozen=True, slots=True)
class _Wanted:
    """What is read of a segment."""

    columns: list[str]
    where: Where

    def groups(self, metadata: pq.FileMetaData) -> list[int]:
        """The row groups that may hold rows that are wanted, by their statistics."""
        known = [name for name in self.where if name in self.columns]
        if not known:
            return list(range(metadata.num_row_groups))
        positions = {metadata.schema.column(n).path: n for n in range(metadata.num_columns)}
        groups = [metadata.row_group(n) for n in range(metadata.num_row_groups)]
        return [
            n
            for n, group in enumerate(groups)
            if all(_may_hold(group.column(positions[name]).statistics, self.where[name]) for name in known)
        ]


def _may_hold(statistics: pq.Statistics | None, allowed: Sequence[str]) -> bool:
    """Whether a column of a row group may hold one of the allowed values."""
    if statistics is None or not statistics.has_min_max:
        return bool(allowed)
    return any(statistics.min <= value <= statistics.max for value in allowed)


def _sealed(ledger: Ledger, segment: Segment, cut: Cut, wanted: _Wanted) -> pa.Table:
    with closing(ledger.segments.open(segment)) as file, ledger.segments.scanning([segment]):
        table = file.read_row_groups(wanted.groups(file.metadata), columns=wanted.columns)
    return table if segment.ends_within(cut) else table.filter(within(table, cut, segment))


@dataclass(frozen=True, slots=True)
class StoredVersion:
    """The rows of one stored version of a type at a cut: the sealed ones, read as they are scanned, and the tail's."""

    declared: EventType
    segments: tuple[Segment, ...]
    sealed: "ds.Dataset"
    tail: pa.Table


def stored_versions(ledger: Ledger, name: str, version: int, cut: Cut) -> list[StoredVersion]:
    """All rows of a type at a cut with their origin, by stored version, oldest first. No segment is read yet.

    Scan segments within `Segments.scanning`. UserError when the type is unknown, or the cut is ahead
    of this ledger.
    """
    declared = declared_type(name, version)
    parts = []
    with reading(ledger.engine) as connection:
        check_cut(connection, cut)
        for version_type in versions_of(declared):
            segments = [s for s in live_segments(connection, name, version_type.version) if s.starts_within(cut)]
            sealed = ledger.segments.dataset(version_type, segments)
            if not all(segment.ends_within(cut) for segment in segments):
                sealed = sealed.filter(_within_cut(version_type, cut))
            parts.append(StoredVersion(version_type, tuple(segments), sealed, tail_rows(connection, version_type, cut)))
    return parts


def _within_cut(declared: EventType, cut: Cut) -> pc.Expression:
    """Whether a row is within a cut, as a scan filter."""
    inside = pc.scalar(False)
    for partition in range(PARTITIONS[declared.stream]):
        last = cut.at(declared.stream, partition)
        inside = inside | ((pc.field("_partition") == partition) & (pc.field("_admission") <= last))
    return inside


def within(table: pa.Table, cut: Cut, segment: Segment) -> pa.ChunkedArray:
    """Whether each row of a segment is within a cut."""
    inside = pa.chunked_array([pa.repeat(pa.scalar(value=False), len(table))])
    for stream, partition, _, _ in segment.admissions:
        last = cut.at(stream, partition)
        here = pc.and_(pc.equal(table["_partition"], partition), pc.less_equal(table["_admission"], last))
        inside = pc.or_(inside, here)
    return inside


def _allowing(table: pa.Table, where: Where) -> pa.ChunkedArray:
    """Whether each row has an allowed value in every column."""
    allowed = [pc.is_in(table[name], value_set=pa.array(values, table[name].type)) for name, values in where.items()]
    return reduce(pc.and_, allowed)


def declared_type(name: str, version: int) -> EventType:
    """The declared event type; UserError when there is none."""
    if (name, version) not in EVENTS:
        raise UserError(f"no event type {name} version {version} is known; docs/events.md lists them")
    return EVENTS[name, version]


def check_cut(connection: Connection, cut: Cut) -> None:
    """UserError when the cut names frames that the ledger has not admitted."""
    now = cut_now(connection)
    if not cut <= now:
        raise UserError(f"the cut {cut} is ahead of this ledger, which holds {now}; copy a cut that it printed")


def segment_rows(connection: Connection, name: str | None = None, version: int | None = None) -> list[Segment]:
    """The sealed segments, of one type or all, in the order of their chain."""
    rows = connection.execute(SEGMENTS, {"type": name, "version": version})
    return [Segment.from_row(tuple(row)) for row in rows]


def live_segments(connection: Connection, name: str, version: int) -> list[Segment]:
    """The segments of a type that hold its sealed frames now: those that no compaction superseded."""
    gone = set(connection.execute(SUPERSEDED).scalars())
    return [segment for segment in segment_rows(connection, name, version) if segment.ordinal not in gone]


def _check_columns(declared: EventType, names: Sequence[str]) -> None:
    known = {*(column.name for column in declared.columns), *ORIGIN_COLUMNS}
    unknown = [name for name in names if name not in known]
    if unknown:
        raise UserError(f"{declared.name} version {declared.version} has no column {unknown[0]!r}; see docs/events.md")


def tail_rows(connection: Connection, declared: EventType, cut: Cut) -> pa.Table:
    """The rows of unsealed frames, with their origin."""
    query = text(
        "SELECT admission, payload FROM tail WHERE type = :type AND version = :version AND stream = :stream"
        " AND partition = :partition AND admission <= :last ORDER BY admission"
    )
    bound: dict[str, object] = {"type": declared.name, "version": declared.version, "stream": declared.stream}
    tables = []
    for partition in range(PARTITIONS[declared.stream]):
        bounds = {"partition": partition, "last": cut.at(declared.stream, partition)}
        rows = connection.execute(query, bound | bounds).all()
        batches = [read_payload(row.payload, f"{declared.stream}/{partition} {row.admission}") for row in rows]
        tables.append(with_origin(declared, partition, [row.admission for row in rows], batches))
    return pa.concat_tables(tables)


def _ordered(table: pa.Table) -> pa.Table:
    """The rows in the order of admission. Sources keep the rows of a frame together, so frames are sorted."""
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


def read_payload(payload: bytes, location: str) -> pa.RecordBatch:
    """The plain rows in an admitted payload, checked when it was admitted; Fault when it was altered since."""
    return plain(read_packed(payload, location))


def read_packed(payload: bytes, location: str) -> pa.RecordBatch:
    """The rows in an admitted payload as they travelled, compactly encoded; Fault when it was altered since."""
    try:
        return pa.ipc.open_stream(payload).read_next_batch()
    except (pa.ArrowException, StopIteration, OSError) as error:
        raise Fault(f"frame {location} in the tail cannot be read; run `lap verify`") from error
