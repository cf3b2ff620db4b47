"""The baseline of the ingest bench: one JSON event a record, with a digest an event, into the same kinds of files.

The same streams, the ledger's own SQLite settings, Parquet options and row groups, batches of as many events, commits
and files synced. It differs in this: events travel as JSON, each with a digest of its own, in no chain; no manifest is
written; and one process takes and then seals, where the ledger has a sink and a sealer at once. No part of lapledger.
"""

import hashlib
import json
import sqlite3
from collections.abc import Iterable, Iterator
from contextlib import closing
from itertools import chain
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from timings import TIMING

from lapledger.consumers.storage.segment_writer import GROUP_ROWS
from lapledger.ledger.disk import publish, sync_folder, temporary
from lapledger.ledger.frames.frame import Record
from lapledger.ledger.store.parquet_encodings import writer_options
from lapledger.ledger.store.sql.engine import sqlite_engine
from lapledger.ledger.streams.base import Stream

APPEND, TAKE = 16_000, 16_000
HEADERS = {"ce_specversion": "1.0", "ce_type": TIMING.name, "content-type": "application/json"}
PARTITION = ("facts", 0)
SCHEMA = TIMING.schema.append(pa.field("_digest", pa.string(), nullable=False))


def events(batches: Iterable[pa.RecordBatch]) -> list[dict[str, Any]]:
    """Every row as a dictionary: making these is no part of what is measured, as making batches is none."""
    return [row for batch in batches for row in batch.to_pylist()]


def produce(stream: Stream, rows: list[dict[str, Any]]) -> None:
    """Appends an event a record."""
    for start in range(0, len(rows), APPEND):
        records = [Record(HEADERS, json.dumps(row).encode()) for row in rows[start : start + APPEND]]
        stream.append(*PARTITION, records)


def ingest(stream: Stream, folder: Path, count: int) -> Path:
    """Takes the events into a tail and seals it; the Parquet file."""
    engine = sqlite_engine(folder / "json.sqlite")
    with closing(engine.raw_connection()) as held:
        connection: Any = held.driver_connection
        for statement in (
            "CREATE TABLE tail (admission INTEGER PRIMARY KEY, digest TEXT, payload BLOB)",
            "CREATE TABLE position (next INTEGER)",
            "INSERT INTO position VALUES (0)",
        ):
            connection.execute(statement)
        position, taken = 0, 0
        while taken < count and (stored := stream.read(*PARTITION, position, TAKE)):
            rows = []
            for entry in stored:
                json.loads(entry.record.payload)
                rows.append((hashlib.sha256(entry.record.payload).hexdigest(), entry.record.payload))
            position, taken = stored[-1].offset + 1, taken + len(stored)
            connection.execute("BEGIN IMMEDIATE")
            connection.executemany("INSERT INTO tail (digest, payload) VALUES (?, ?)", rows)
            connection.execute("UPDATE position SET next = ?", (position,))
            connection.execute("COMMIT")
        _seal(connection, folder / "json.parquet")
    engine.dispose()
    return folder / "json.parquet"


def _seal(connection: sqlite3.Connection, path: Path) -> None:
    groups = _groups(connection)
    first = next(groups)
    options = {"use_compliant_nested_type": False, "store_schema": False, **writer_options(first)}
    with temporary(path.parent) as part:
        with pq.ParquetWriter(part, SCHEMA, **options) as writer:
            for group in chain([first], groups):
                writer.write_table(group, row_group_size=GROUP_ROWS)
        publish(part, path)
    sync_folder(path.parent)
    connection.execute("DELETE FROM tail")


def _groups(connection: sqlite3.Connection) -> Iterator[pa.Table]:
    cursor = connection.execute("SELECT digest, payload FROM tail ORDER BY admission")
    while rows := cursor.fetchmany(GROUP_ROWS):
        yield pa.Table.from_pylist([_checked(digest, payload) for digest, payload in rows], schema=SCHEMA)


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
