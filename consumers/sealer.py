"""The sealer: moves the tail into immutable Parquet segments, one of each event type, and extends their chain.

Files first, each durable under its digest; then one SQL transaction makes them count and empties the tail. A crash
leaves the old state or the new one, and at worst files that nobody names.
"""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
from sqlalchemy import Connection, Row, text

from ledger.errors import Fault
from ledger.events import EVENTS, EventType
from ledger.frames import Link, frame_digest
from ledger.store.engine import reading, writing
from ledger.store.heads import NO_MANIFEST
from ledger.store.opened import Ledger
from ledger.store.reader import read_payload
from ledger.store.segments import FRAME_COLUMNS, placed

GROUP_ROWS = 1 << 16
"""Rows after which a row group ends, at the end of a frame."""

_TAIL = text(
    "SELECT f.stream, f.partition, f.admission, f.key, f.epoch, f.sequence, f.previous, f.digest, f.rows,"
    " f.source_offset, t.payload FROM tail t JOIN frame f ON f.stream = t.stream AND f.partition = t.partition"
    " AND f.admission = t.admission WHERE t.type = :type AND t.version = :version"
    " ORDER BY t.stream, t.partition, t.admission"
)
_DELETE = text(
    "DELETE FROM tail WHERE type = :type AND version = :version AND stream = :stream AND partition = :partition"
    " AND admission <= :last"
)
_INSERT = text(
    "INSERT INTO segment (ordinal, name, manifest, type, version, frames, rows, bytes, admissions)"
    " VALUES (:ordinal, :name, :manifest, :type, :version, :frames, :rows, :bytes, :admissions)"
)


@dataclass(frozen=True, slots=True)
class Sealed:
    """What a sealing moved."""

    segments: int = 0
    frames: int = 0
    rows: int = 0
    bytes: int = 0


@dataclass(slots=True)
class _Part:
    """One new segment: what was written of one event type."""

    declared: EventType
    frames: list[tuple[Any, ...]] = field(default_factory=list)
    name: str = ""
    bytes: int = 0
    manifest: str = ""

    @property
    def rows(self) -> int:
        return sum(frame[FRAME_COLUMNS.index("rows")] for frame in self.frames)

    @property
    def admissions(self) -> list[list[Any]]:
        ranges: dict[tuple[str, int], list[Any]] = {}
        for stream, partition, admission, *_ in self.frames:
            ranges.setdefault((stream, partition), [stream, partition, admission, admission])[3] = admission
        return list(ranges.values())


def seal(ledger: Ledger) -> Sealed:
    """What was moved from the tail into segments; nothing when the tail is empty or another process was faster.

    Fault when the disk is full or a frame of the tail was altered; the tail then stays as it was.
    """
    with reading(ledger.engine) as connection:
        ordinal, previous = _last_link(connection)
        positions = _positions(connection)
        parts = [_write_part(ledger, connection, declared) for declared in _unsealed(connection)]
    link = previous
    for place, part in enumerate(parts, start=1):
        chain = {"ordinal": ordinal + place, "previous": link, "seal": [ordinal + 1, ordinal + len(parts)]}
        link = part.manifest = _write_manifest(ledger, part, chain, positions)
    for part in parts:
        ledger.segments.settle(part.declared.name, part.declared.version)
    if not parts or not _commit(ledger, parts, ordinal):
        return Sealed()
    return Sealed(
        len(parts),
        sum(len(part.frames) for part in parts),
        sum(part.rows for part in parts),
        sum(part.bytes for part in parts),
    )


def _last_link(connection: Connection) -> tuple[int, str]:
    row = connection.execute(text("SELECT ordinal, manifest FROM segment ORDER BY ordinal DESC LIMIT 1")).one_or_none()
    return (0, NO_MANIFEST) if row is None else (row.ordinal, row.manifest)


def _positions(connection: Connection) -> list[list[Any]]:
    rows = connection.execute(
        text(
            "SELECT stream, partition, identity, next_position, admissions, head FROM stream_position"
            " ORDER BY stream, partition"
        )
    )
    return [list(row) for row in rows]


def _unsealed(connection: Connection) -> list[EventType]:
    rows = connection.execute(text("SELECT DISTINCT type, version FROM tail ORDER BY type, version"))
    return [EVENTS[name, version] for name, version in rows]


def _write_part(ledger: Ledger, connection: Connection, declared: EventType) -> _Part:
    part = _Part(declared)
    part.name, part.bytes = ledger.segments.write(declared, _groups(connection, part))
    return part


def _groups(connection: Connection, part: _Part) -> Iterator[pa.Table]:
    """Tables of whole frames of one partition, in the order of admission; notes their frames in the part."""
    kind = {"type": part.declared.name, "version": part.declared.version}
    held: list[tuple[int, int, pa.RecordBatch]] = []
    size = 0
    for row in connection.execute(_TAIL, kind, execution_options={"yield_per": 256}):
        if held and (size >= GROUP_ROWS or held[0][0] != row.partition):
            yield _table(part.declared, held)
            held, size = [], 0
        held.append((row.partition, row.admission, _checked(part.declared, row)))
        size += row.rows
        part.frames.append(tuple(row)[: len(FRAME_COLUMNS)])
    if held:
        yield _table(part.declared, held)


def _checked(declared: EventType, row: Row[Any]) -> pa.RecordBatch:
    place = f"{row.stream}/{row.partition} {row.admission}"
    batch = read_payload(row.payload, place)
    link = Link(row.epoch, row.stream, row.partition, row.sequence, row.previous)
    if frame_digest(declared, row.key, link, batch) != row.digest:
        raise Fault(f"frame {place} was altered in the tail and is not sealed; run `lap verify`")
    return batch


def _table(declared: EventType, held: Sequence[tuple[int, int, pa.RecordBatch]]) -> pa.Table:
    return placed(declared, held[0][0], [admission for _, admission, _ in held], [batch for _, _, batch in held])


def _write_manifest(ledger: Ledger, part: _Part, chain: dict[str, Any], positions: list[list[Any]]) -> str:
    name, version = part.declared.name, part.declared.version
    manifest = {
        "format": 1,
        "ledger": ledger.identity,
        **chain,
        "supersedes": [],
        "segment": part.name,
        "type": name,
        "version": version,
        "rows": part.rows,
        "bytes": part.bytes,
        "admissions": part.admissions,
        "positions": positions,
        "frame_columns": list(FRAME_COLUMNS),
        "frames": [list(frame) for frame in part.frames],
    }
    return ledger.segments.write_manifest(name, version, manifest)


def _commit(ledger: Ledger, parts: Sequence[_Part], ordinal: int) -> bool:
    """True when the segments count now; False when another process sealed since they were read."""
    with writing(ledger.engine) as connection:
        if _last_link(connection)[0] != ordinal:
            return False
        for place, part in enumerate(parts, start=1):
            kind = {"type": part.declared.name, "version": part.declared.version}
            sizes = {"frames": len(part.frames), "rows": part.rows, "bytes": part.bytes}
            names = {"ordinal": ordinal + place, "name": part.name, "manifest": part.manifest}
            connection.execute(_INSERT, names | kind | sizes | {"admissions": json.dumps(part.admissions)})
            for stream, partition, _, last in part.admissions:
                connection.execute(_DELETE, kind | {"stream": stream, "partition": partition, "last": last})
    return True
