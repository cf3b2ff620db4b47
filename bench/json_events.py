"""The baseline of the ingest bench: one JSON event a record, with a digest an event, into the same kinds of files.

The same streams, the same database and Parquet settings, batches of as many events. Not a part of lapledger.
"""

import hashlib
import json
import sqlite3
from collections.abc import Iterable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from timings import TIMING

from ledger.frames import Record
from ledger.streams.base import Stream

APPEND, TAKE, GROUP = 16_000, 16_000, 1 << 16
HEADERS = {"ce_specversion": "1.0", "ce_type": TIMING.name, "content-type": "application/json"}
PLACE = ("facts", 0)
SCHEMA = TIMING.schema.append(pa.field("_digest", pa.string(), nullable=False))


def events(batches: Iterable[pa.RecordBatch]) -> list[dict[str, Any]]:
    """Every row as a dictionary: making these is no part of what is measured, as making batches is none."""
    return [row for batch in batches for row in batch.to_pylist()]


def produce(stream: Stream, rows: list[dict[str, Any]]) -> None:
    """Appends an event a record."""
    for start in range(0, len(rows), APPEND):
        records = [Record(HEADERS, json.dumps(row).encode()) for row in rows[start : start + APPEND]]
        stream.append(*PLACE, records)


def ingest(stream: Stream, folder: Path, count: int) -> Path:
    """Takes the events into a tail and seals it; the Parquet file."""
    with closing(sqlite3.connect(folder / "json.sqlite", isolation_level=None)) as connection:
        for statement in (
            "PRAGMA journal_mode=WAL",
            "PRAGMA synchronous=FULL",
            "CREATE TABLE tail (admission INTEGER PRIMARY KEY, digest TEXT, payload BLOB)",
            "CREATE TABLE position (next INTEGER)",
            "INSERT INTO position VALUES (0)",
        ):
            connection.execute(statement)
        position, taken = 0, 0
        while taken < count and (stored := stream.read(*PLACE, position, TAKE)):
            rows = []
            for one in stored:
                json.loads(one.record.payload)
                rows.append((hashlib.sha256(one.record.payload).hexdigest(), one.record.payload))
            position, taken = stored[-1].offset + 1, taken + len(stored)
            connection.execute("BEGIN IMMEDIATE")
            connection.executemany("INSERT INTO tail (digest, payload) VALUES (?, ?)", rows)
            connection.execute("UPDATE position SET next = ?", (position,))
            connection.execute("COMMIT")
        return _seal(connection, folder / "json.parquet")


def _seal(connection: sqlite3.Connection, path: Path) -> Path:
    with pq.ParquetWriter(path, SCHEMA, compression="zstd", compression_level=1) as writer:
        for rows in _groups(connection):
            writer.write_table(pa.Table.from_pylist(rows, schema=SCHEMA))
    connection.execute("DELETE FROM tail")
    return path


def _groups(connection: sqlite3.Connection) -> Iterator[list[dict[str, Any]]]:
    cursor = connection.execute("SELECT digest, payload FROM tail ORDER BY admission")
    while rows := cursor.fetchmany(GROUP):
        yield [_checked(digest, payload) for digest, payload in rows]


def _checked(digest: str, payload: bytes) -> dict[str, Any]:
    if hashlib.sha256(payload).hexdigest() != digest:
        raise ValueError("an event of the tail was altered")
    return {**json.loads(payload), "_digest": digest}


def verify(path: Path) -> int:
    """Recomputes the digest of every row; how many there are."""
    rows = pq.read_table(path).to_pylist()
    for row in rows:
        digest = row.pop("_digest")
        if hashlib.sha256(json.dumps(row).encode()).hexdigest() != digest:
            raise ValueError("a row was altered")
    return len(rows)
