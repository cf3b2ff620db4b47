"""Reading facts at a cut: all events of a type as one Arrow table, from sealed segments and the tail alike.

The same cut gives the same table before and after sealing, for ever. Reads only; questions are asked elsewhere.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from itertools import pairwise
from operator import and_

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from sqlalchemy import Connection, text

from ledger.errors import Fault, UserError
from ledger.events import EVENTS, PARTITIONS, EventType
from ledger.store.cuts import Cut
from ledger.store.engine import reading
from ledger.store.opened import Ledger, cut_now
from ledger.store.segments import PLACE, Segment, placed, placed_schema

Value = str | int | float | bool
Filters = Mapping[str, Value | Sequence[Value]]
"""Columns with the value, or the list of values, that rows must have."""


@dataclass(frozen=True, slots=True)
class AdmittedFrame:
    """What the ledger keeps of an admitted frame beside its events."""

    stream: str
    partition: int
    admission: int
    type: str
    version: int
    key: str
    epoch: str
    sequence: int
    previous: str
    digest: str
    rows: int
    source_offset: int


def events(
    ledger: Ledger,
    name: str,
    version: int,
    cut: Cut,
    *,
    columns: Sequence[str] | None = None,
    where: Filters | None = None,
) -> pa.Table:
    """All events of a type at a cut [rows], ordered by (stream, partition, admission, row).

    Columns are the event's own (or those named), then `_stream`, `_partition`, `_admission` and `_row`, its place.
    `where` keeps rows whose columns have the given value, or one of a list of values. UserError when the type or a
    column is unknown, or the cut lies beyond what this ledger holds.
    """
    declared = declared_type(name, version)
    wanted = [c.name for c in declared.columns] if columns is None else list(columns)
    _check_columns(declared, [*wanted, *(where or ())])
    scan = _Scan(declared, cut, wanted, where or {})
    with reading(ledger.engine) as connection:
        check_cut(connection, cut)
        segments = segment_rows(connection, name, version)
        tail = _tail(connection, scan)
    sealed = [scan.segment(ledger, segment) for segment in segments if segment.starts_within(cut)]
    return _ordered(scan, [*sealed, tail])


def frames(ledger: Ledger, cut: Cut) -> Iterator[AdmittedFrame]:
    """Every admitted frame at a cut, ordered by (stream, partition, admission); UserError when the cut lies beyond."""
    query = text(
        "SELECT stream, partition, admission, type, version, key, epoch, sequence, previous, digest, rows,"
        " source_offset FROM frame WHERE stream = :stream AND partition = :partition AND admission <= :last"
        " ORDER BY admission"
    )
    with reading(ledger.engine) as connection:
        check_cut(connection, cut)
        for stream, counts in cut.counts:
            for partition, last in enumerate(counts):
                place = {"stream": stream, "partition": partition, "last": last}
                yield from (AdmittedFrame(*row) for row in connection.execute(query, place))


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


@dataclass(frozen=True, slots=True)
class _Scan:
    """One read: what it wants, and how a source of rows is cut down to it."""

    declared: EventType
    cut: Cut
    columns: list[str]
    where: Filters

    @property
    def names(self) -> list[str]:
        return [*self.columns, *(name for name in PLACE if name not in self.columns)]

    def condition(self) -> pc.Expression | None:
        terms = [self._term(name, value) for name, value in self.where.items()]
        return reduce(and_, terms) if terms else None

    def _term(self, name: str, value: Value | Sequence[Value]) -> pc.Expression:
        kind = placed_schema(self.declared).field(name).type
        if isinstance(value, (list, tuple)):
            return pc.field(name).isin(pa.array(value, kind))
        return pc.field(name) == pa.scalar(value, kind)

    def segment(self, ledger: Ledger, segment: Segment) -> pa.Table:
        condition = self.condition()
        if not segment.ends_within(self.cut):
            within = self._within()
            condition = within if condition is None else condition & within
        return ledger.segments.read(segment, self.names, condition)

    def _within(self) -> pc.Expression:
        last = [self.cut.at(self.declared.stream, p) for p in range(PARTITIONS[self.declared.stream])]
        whole = pc.scalar(False)
        for partition, admission in enumerate(last):
            whole = whole | ((pc.field("_partition") == partition) & (pc.field("_admission") <= admission))
        return whole


def _check_columns(declared: EventType, names: Sequence[str]) -> None:
    known = {*(column.name for column in declared.columns), *PLACE}
    unknown = [name for name in names if name not in known]
    if unknown:
        raise UserError(f"{declared.name} version {declared.version} has no column {unknown[0]!r}; see docs/events.md")


def _tail(connection: Connection, scan: _Scan) -> pa.Table:
    """The rows of unsealed frames. Frames of another key are left out in SQL where the filter names the key."""
    declared = scan.declared
    key = scan.where.get(declared.key) if declared.key else None
    query = text(
        "SELECT t.admission, t.payload FROM tail t JOIN frame f ON f.stream = t.stream AND f.partition = t.partition"
        " AND f.admission = t.admission WHERE t.type = :type AND t.version = :version AND t.stream = :stream"
        " AND t.partition = :partition AND t.admission <= :last AND f.key = coalesce(:key, f.key) ORDER BY t.admission"
    )
    bound: dict[str, object] = {"type": declared.name, "version": declared.version, "stream": declared.stream}
    bound["key"] = key if isinstance(key, str) else None
    tables = []
    for partition in range(PARTITIONS[declared.stream]):
        place = {"partition": partition, "last": scan.cut.at(declared.stream, partition)}
        rows = connection.execute(query, bound | place).all()
        batches = [read_payload(row.payload, f"{declared.stream}/{partition} {row.admission}") for row in rows]
        tables.append(placed(declared, partition, [row.admission for row in rows], batches))
    table = pa.concat_tables(tables)
    condition = scan.condition()
    return (table if condition is None else table.filter(condition)).select(scan.names)


def _ordered(scan: _Scan, sources: Sequence[pa.Table]) -> pa.Table:
    """One table in the order of admission. Each source is in that order, and no two overlap in one partition."""
    slices = [piece for source in sources for piece in _by_partition(source)]
    slices.sort(key=lambda piece: (piece["_partition"][0].as_py(), piece["_admission"][0].as_py()))
    schema = placed_schema(scan.declared)
    return pa.concat_tables(slices or [sources[-1]]).cast(pa.schema([schema.field(name) for name in scan.names]))


def _by_partition(source: pa.Table) -> Iterator[pa.Table]:
    partitions = source["_partition"].to_numpy()
    edges = [0, *(np.flatnonzero(np.diff(partitions)) + 1), len(partitions)]
    return (source.slice(a, b - a) for a, b in pairwise(edges) if b > a)


def read_payload(payload: bytes, place: str) -> pa.RecordBatch:
    """The batch in an admitted payload, checked when it was admitted; Fault when it was altered since."""
    try:
        return pa.ipc.open_stream(payload).read_next_batch()
    except (pa.ArrowException, StopIteration, OSError) as error:
        raise Fault(f"frame {place} in the tail cannot be read; run `lap verify`") from error
