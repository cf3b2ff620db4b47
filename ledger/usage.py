"""How much room a ledger takes: bytes by part and rows by event type."""

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from sqlalchemy import Connection, text

from ledger.store.engine import reading
from ledger.store.opened import SQL_FILE, STREAM_FILE, Ledger

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
    """Bytes on disk by part; `tail_bytes` and `quarantine_bytes` are payloads and lie within `sql_bytes`."""

    sql_bytes: int
    stream_bytes: int
    blob_bytes: int
    segment_bytes: int
    tail_bytes: int
    quarantine_bytes: int
    types: tuple[TypeUsage, ...]


def usage(ledger: Ledger) -> Usage:
    """The room that a ledger takes now, in bytes, and its rows by event type, sorted by name."""
    with reading(ledger.engine) as connection:
        tail = _number(connection, "SELECT coalesce(sum(length(payload)), 0) FROM tail")
        quarantine = _number(connection, "SELECT coalesce(sum(length(payload)), 0) FROM quarantine")
        kinds = connection.execute(_TYPES).all()
    types = (
        TypeUsage(row.type, row.version, row.frames, row.row_count, _bytes(_folder(ledger, row.type, row.version)))
        for row in kinds
    )
    return Usage(
        sql_bytes=_bytes(ledger.root.glob(f"{SQL_FILE}*")),
        stream_bytes=_bytes(ledger.root.glob(f"{STREAM_FILE}*")),
        blob_bytes=_bytes(ledger.blobs.folder.rglob("*")),
        segment_bytes=_bytes(ledger.segments.folder.rglob("*")),
        tail_bytes=tail,
        quarantine_bytes=quarantine,
        types=tuple(types),
    )


def _number(connection: Connection, query: str) -> int:
    return int(connection.execute(text(query)).scalar_one())


def _folder(ledger: Ledger, name: str, version: int) -> Iterable[Path]:
    return ledger.segments.path(name, version, "").parent.glob("*")


def _bytes(paths: Iterable[Path]) -> int:
    return sum(path.stat().st_size for path in paths if path.is_file())
