"""Reading facts at a cut: all events of a type as one Arrow table, from sealed segments and the tail alike.

The same cut gives the same table before and after sealing, for ever. Reads only; questions are asked elsewhere.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

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


def events(ledger: Ledger, name: str, version: int, cut: Cut, *, columns: Sequence[str] | None = None) -> pa.Table:
    """All events of a type at a cut [rows], ordered by (stream, partition, admission, row).

    Columns are the event's own (or those named), then `_stream`, `_partition`, `_admission` and `_row`, its place.
    UserError when the type or a column is unknown, or the cut lies beyond what this ledger holds.
    """
    declared = declared_type(name, version)
    wanted = [c.name for c in declared.columns] if columns is None else list(columns)
    _check_columns(declared, wanted)
    scan = _Scan(declared, cut, wanted)
    with reading(ledger.engine) as connection:
        check_cut(connection, cut)
        segments = segment_rows(connection, name, version)
        tail = _tail(connection, scan)
    sealed = [scan.segment(ledger, segment) for segment in segments if segment.starts_within(cut)]
    return _ordered(scan, [*sealed, tail])


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

    @property
    def names(self) -> list[str]:
        return [*self.columns, *(name for name in PLACE if name not in self.columns)]

    def segment(self, ledger: Ledger, segment: Segment) -> pa.Table:
        condition = None if segment.ends_within(self.cut) else self._within()
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
    """The rows of unsealed frames."""
    declared = scan.declared
    query = text(
        "SELECT admission, payload FROM tail WHERE type = :type AND version = :version AND stream = :stream"
        " AND partition = :partition AND admission <= :last ORDER BY admission"
    )
    bound: dict[str, object] = {"type": declared.name, "version": declared.version, "stream": declared.stream}
    tables = []
    for partition in range(PARTITIONS[declared.stream]):
        place = {"partition": partition, "last": scan.cut.at(declared.stream, partition)}
        rows = connection.execute(query, bound | place).all()
        batches = [read_payload(row.payload, f"{declared.stream}/{partition} {row.admission}") for row in rows]
        tables.append(placed(declared, partition, [row.admission for row in rows], batches))
    return pa.concat_tables(tables).select(scan.names)


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
