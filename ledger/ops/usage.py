"""The space that a ledger uses: bytes by part, rows by event type, and how long the disk will last.

The growth rate comes from the files themselves: the bytes stored between the oldest and the newest of them.
"""

import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from sqlalchemy import Connection, text

from lapledger.ledger.disk import translated
from lapledger.ledger.store.location import SQL_FILE, STREAM_FILE
from lapledger.ledger.store.objects.objects import Stored
from lapledger.ledger.store.open_ledger import Ledger
from lapledger.ledger.store.sql.engine import reading

HOUR_MS, DAY_MS = 3600 * 1000, 24 * 3600 * 1000

_TYPES = text(
    "SELECT type, version, count(*) AS frames, sum(rows) AS row_count FROM frame"
    " GROUP BY type, version ORDER BY type, version"
)


@dataclass(frozen=True, slots=True)
class TypeUsage:
    """One event type: its admitted frames and rows, and the bytes of its sealed segments with their manifests."""

    name: str
    version: int
    frames: int
    rows: int
    segment_bytes: int


@dataclass(frozen=True, slots=True)
class Usage:
    """Bytes by part; `tail_bytes` and `quarantine_bytes` are payloads and part of `sql_bytes`.

    Where a broker keeps the stream its bytes are None. `days_to_full` is how long the ledger's own disk has room above
    the reserve at `bytes_a_day`; both are None when less than an hour was recorded, the first also when nothing of the
    ledger is on this disk.
    """

    sql_bytes: int
    stream_bytes: int | None
    blob_bytes: int
    segment_bytes: int
    tail_bytes: int
    quarantine_bytes: int
    free_bytes: int
    bytes_a_day: float | None
    days_to_full: float | None
    types: tuple[TypeUsage, ...]


def usage(ledger: Ledger) -> Usage:
    """The space that a ledger uses now, in bytes, and its rows by event type, sorted by name."""
    with reading(ledger.engine) as connection:
        tail = _number(connection, "SELECT coalesce(sum(length(payload)), 0) FROM tail")
        quarantine = _number(connection, "SELECT coalesce(sum(length(payload)), 0) FROM quarantine")
        sql_bytes = _sql_bytes(ledger, connection)
        kinds = connection.execute(_TYPES).all()
    segments, blobs = ledger.segments.listing(), ledger.blobs.listing()
    types = (
        TypeUsage(row.type, row.version, row.frames, row.row_count, _stored(segments, f"{row.type}.v{row.version}/"))
        for row in kinds
    )
    stream_bytes = None if ledger.location.kafka else _bytes(ledger.root.glob(f"{STREAM_FILE}*"))
    local = [0 if ledger.location.sql else sql_bytes, stream_bytes or 0]
    local += [] if ledger.location.store else [_stored(segments), _stored(blobs)]
    rate = bytes_a_day([*segments, *blobs], sum(local))
    free = free_bytes(ledger.root)
    return Usage(
        sql_bytes=sql_bytes,
        stream_bytes=stream_bytes,
        blob_bytes=_stored(blobs),
        segment_bytes=_stored(segments),
        tail_bytes=tail,
        quarantine_bytes=quarantine,
        free_bytes=free,
        bytes_a_day=rate,
        days_to_full=max(0, free - ledger.location.reserve_bytes) / rate if rate else None,
        types=tuple(types),
    )


def free_bytes(folder: Path) -> int:
    """Bytes that are free on the disk of a folder."""
    with translated(folder):
        disk = os.statvfs(folder)
    return disk.f_bavail * disk.f_frsize


def bytes_a_day(files: Sequence[Stored], size: int) -> float | None:
    """How fast `size` bytes came together while these files were stored; None when that took less than an hour."""
    times = [stored.modified_ms for stored in files]
    span = max(times) - min(times) if times else 0
    return size * DAY_MS / span if span >= HOUR_MS else None


def _sql_bytes(ledger: Ledger, connection: Connection) -> int:
    if ledger.location.sql:
        return _number(connection, "SELECT pg_database_size(current_database())")
    return _bytes(ledger.root.glob(f"{SQL_FILE}*"))


def _number(connection: Connection, query: str) -> int:
    return int(connection.execute(text(query)).scalar_one())


def _stored(listing: Iterable[Stored], prefix: str = "") -> int:
    return sum(stored.bytes for stored in listing if stored.name.startswith(prefix))


def _bytes(paths: Iterable[Path]) -> int:
    return sum(path.stat().st_size for path in paths if path.is_file())
