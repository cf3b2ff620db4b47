"""Writes one segment with its manifest from frames that come in replay order; sealing and compaction share it.

Files only, each durable before the SQL row that makes it count; nothing here commits.
"""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
from sqlalchemy import Connection, text

from lapledger.ledger.events import EventType
from lapledger.ledger.failpoint import failpoint
from lapledger.ledger.frames.frame import frame_digest
from lapledger.ledger.prefetch import prefetch
from lapledger.ledger.store.frame_rows import FRAME_COLUMNS, FrameMeta, Range, ranges_of
from lapledger.ledger.store.heads import NO_MANIFEST
from lapledger.ledger.store.open_ledger import Ledger
from lapledger.ledger.store.quarantine import QUARANTINE, Quarantined
from lapledger.ledger.store.segments import with_origin

GROUP_ROWS = 1 << 14
"""Rows after which a row group ends, at the end of a frame."""

GROUP_BYTES = 64 << 20
"""Bytes in memory after which it ends, however few rows they are."""

Piece = tuple[FrameMeta, pa.RecordBatch]
"""A frame with its rows."""


@dataclass(slots=True)
class Part:
    """One new segment: what was written of one event type."""

    declared: EventType
    frames: list[FrameMeta] = field(default_factory=list)
    name: str = ""
    bytes: int = 0
    manifest: str = ""

    @property
    def rows(self) -> int:
        """Rows of all its frames."""
        return sum(meta.rows for meta in self.frames)

    @property
    def ranges(self) -> list[Range]:
        """The admissions that it spans."""
        return ranges_of(self.frames)


@dataclass(frozen=True, slots=True)
class Chain:
    """Where a new manifest stands: its place, the one before it, the places sealed together, what it supersedes.

    `positions` holds [stream, partition, identity, next position, admissions, head] of every partition, as of what is
    sealed; `moved` [stream, partition, moves, admissions, quarantine id] of what came from an earlier stream, once the
    ledger was moved to another one.
    """

    ordinal: int
    previous: str
    together: tuple[int, int]
    positions: list[list[Any]]
    moved: list[list[Any]]
    supersedes: tuple[str, ...] = ()


def is_as_admitted(declared: EventType, piece: Piece) -> bool:
    """True when the rows of a frame give its digest."""
    meta, batch = piece
    if declared is QUARANTINE:
        (row,) = batch.to_pylist()
        return Quarantined.from_sealed(meta.admission, row).meta == meta
    return frame_digest(declared, meta.key, meta.link, batch) == meta.digest


def write_part(ledger: Ledger, declared: EventType, pieces: Iterable[Piece]) -> Part:
    """A new segment of the frames, in their order; durable once its manifest is settled."""
    part = Part(declared)
    with closing(prefetch(_groups(part, pieces))) as groups:
        part.name, part.bytes = ledger.segments.write(declared, groups)
    return part


def _groups(part: Part, pieces: Iterable[Piece]) -> Iterator[pa.Table]:
    """Tables of whole frames of one partition; notes their frames in the part."""
    held: list[Piece] = []
    rows = size = 0
    for meta, batch in pieces:
        full = rows >= GROUP_ROWS or size >= GROUP_BYTES
        if held and (full or held[0][0].partition != meta.partition):
            yield _table(part.declared, held)
            held, rows, size = [], 0, 0
        held.append((meta, batch))
        rows, size = rows + meta.rows, size + batch.get_total_buffer_size()
        part.frames.append(meta)
    if held:
        yield _table(part.declared, held)


def _table(declared: EventType, held: Sequence[Piece]) -> pa.Table:
    return with_origin(
        declared, held[0][0].partition, [meta.admission for meta, _ in held], [batch for _, batch in held]
    )


def write_manifest(ledger: Ledger, part: Part, chain: Chain) -> None:
    """Stores the manifest of a part and notes its digest there."""
    name, version = part.declared.name, part.declared.version
    manifest = {
        "format": 1,
        "ledger": ledger.identity,
        "ordinal": chain.ordinal,
        "previous": chain.previous,
        "seal": list(chain.together),
        "supersedes": list(chain.supersedes),
        "segment": part.name,
        "type": name,
        "version": version,
        "rows": part.rows,
        "bytes": part.bytes,
        "admissions": [list(span) for span in part.ranges],
        "positions": chain.positions,
        "moved": chain.moved,
        "frame_columns": list(FRAME_COLUMNS),
        "frames": [list(meta) for meta in part.frames],
    }
    part.manifest = ledger.segments.write_manifest(name, version, manifest)
    failpoint("seal.manifest")


def last_link(connection: Connection) -> tuple[int, str]:
    """The place and manifest at the end of the chain; 0 and no manifest when nothing was sealed."""
    row = connection.execute(text("SELECT ordinal, manifest FROM segment ORDER BY ordinal DESC LIMIT 1")).one_or_none()
    return (0, NO_MANIFEST) if row is None else (row.ordinal, row.manifest)


_MOVED = text(
    "SELECT stream, partition, moves, moved, moved_id FROM stream_position WHERE moves > 0 ORDER BY stream, partition"
)


def moved(connection: Connection) -> list[list[Any]]:
    """[stream, partition, moves, admissions, quarantine id] of each when the ledger was moved: what came before."""
    return [list(row) for row in connection.execute(_MOVED)]


_INSERT = text(
    "INSERT INTO segment (ordinal, name, manifest, type, version, frames, rows, bytes, admissions)"
    " VALUES (:ordinal, :name, :manifest, :type, :version, :frames, :rows, :bytes, :admissions)"
)
_RANGE = text(
    "INSERT INTO segment_range (ordinal, stream, partition, type, version, first, last)"
    " VALUES (:ordinal, :stream, :partition, :type, :version, :first, :last)"
)


def insert_part(connection: Connection, part: Part, ordinal: int, admissions: str) -> None:
    """Makes a segment count: its row and its ranges. `admissions` is their JSON form."""
    kind = {"type": part.declared.name, "version": part.declared.version}
    sizes = {"frames": len(part.frames), "rows": part.rows, "bytes": part.bytes}
    names = {"ordinal": ordinal, "name": part.name, "manifest": part.manifest}
    connection.execute(_INSERT, names | kind | sizes | {"admissions": admissions})
    for stream, partition, first, last in part.ranges:
        span = {"stream": stream, "partition": partition, "first": first, "last": last}
        connection.execute(_RANGE, span | kind | {"ordinal": ordinal})
