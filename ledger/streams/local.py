"""The local stream: one SQLite file that several processes append to and read at once. The default: nothing to start.

One append is one transaction; offsets come from AUTOINCREMENT, so they rise and are never used again.
"""

import json
import sqlite3
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from ledger.errors import UserError, sql_fault
from ledger.events import PARTITIONS
from ledger.frames import Record
from ledger.streams.base import Position, Stored
from ledger.streams.filesystems import refuse_network

WAIT_SECONDS = 60.0
"""How long an append waits for other processes to finish theirs."""

_SCHEMA = (
    "CREATE TABLE IF NOT EXISTS identity (word TEXT NOT NULL)",
    "CREATE TABLE IF NOT EXISTS record (source_offset INTEGER PRIMARY KEY AUTOINCREMENT, stream TEXT NOT NULL,"
    " partition INTEGER NOT NULL, headers TEXT NOT NULL, payload BLOB NOT NULL)",
    "CREATE INDEX IF NOT EXISTS record_place ON record (stream, partition, source_offset)",
)


class LocalStream:
    """A `Stream` in one file. Threads may share it; a forked child opens its own."""

    def __init__(self, path: Path) -> None:
        """Opens an existing stream; UserError when there is none or it lies on a network filesystem."""
        if not path.is_file():
            raise UserError(f"there is no stream at {path}; run `lap ledger init` to make the ledger")
        refuse_network(path)
        self.path = path
        self._lock = threading.Lock()
        self._connection = _connect(path)
        with self._translated():
            row = self._connection.execute("SELECT word FROM identity").fetchone()
        self._identity = str(row[0])

    @classmethod
    def create(cls, path: Path, identity: str) -> "LocalStream":
        """The stream at `path`, made with this identity unless it exists already; its folder must exist."""
        refuse_network(path)
        connection = _connect(path)
        try:
            with _faults(path):
                _make(connection, identity)
        finally:
            connection.close()
        return cls(path)

    def identity(self, stream: str) -> str:
        """The random word that the file was made with, the same for every stream in it."""
        return self._identity

    def append(self, stream: str, partition: int, records: Sequence[Record]) -> None:
        """Returns when all records are durable, in this order; on a Fault none was stored."""
        rows = [(stream, partition, json.dumps(dict(record.headers)), record.payload) for record in records]
        statement = "INSERT INTO record (stream, partition, headers, payload) VALUES (?, ?, ?, ?)"
        with self._translated(), _transaction(self._connection):
            self._connection.executemany(statement, rows)

    def read(self, stream: str, partition: int, position: Position, limit: int) -> list[Stored]:
        """Up to `limit` records from `position` on, in order; empty at the end."""
        statement = (
            "SELECT source_offset, headers, payload FROM record WHERE stream = ? AND partition = ?"
            " AND source_offset >= ? ORDER BY source_offset LIMIT ?"
        )
        with self._translated():
            rows = self._connection.execute(statement, (stream, partition, position, limit)).fetchall()
        return [Stored(offset, Record(_headers(headers), payload)) for offset, headers, payload in rows]

    def ends(self) -> Mapping[tuple[str, int], Position]:
        """For every partition the position after its last record; 0 when it has none."""
        statement = "SELECT coalesce(max(source_offset) + 1, 0) FROM record WHERE stream = ? AND partition = ?"
        places = [(name, partition) for name, count in PARTITIONS.items() for partition in range(count)]
        with self._translated():
            return {place: self._connection.execute(statement, place).fetchone()[0] for place in places}

    def close(self) -> None:
        """Releases the file."""
        with self._lock:
            self._connection.close()

    @contextmanager
    def _translated(self) -> Iterator[None]:
        with self._lock, _faults(self.path):
            yield


def _headers(text: str) -> Mapping[str, str]:
    """The headers of a record. What is no object of words was not written by us: kept as one word, for quarantine."""
    try:
        headers = json.loads(text)
    except (ValueError, TypeError, RecursionError):
        headers = None
    if isinstance(headers, dict) and all(isinstance(value, str) for value in headers.values()):
        return headers
    return {"malformed": str(text)[:1000]}


def _connect(path: Path) -> sqlite3.Connection:
    with _faults(path):
        connection = sqlite3.connect(path, timeout=WAIT_SECONDS, isolation_level=None, check_same_thread=False)
        connection.execute("PRAGMA journal_mode=WAL")
        connection.execute("PRAGMA synchronous=FULL")
        return connection


def _make(connection: sqlite3.Connection, identity: str) -> None:
    with _transaction(connection):
        for statement in _SCHEMA:
            connection.execute(statement)
        connection.execute("INSERT INTO identity SELECT ? WHERE NOT EXISTS (SELECT 1 FROM identity)", (identity,))


@contextmanager
def _transaction(connection: sqlite3.Connection) -> Iterator[None]:
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:  # SQLite has rolled back by itself when the disk was full
            connection.execute("ROLLBACK")
        raise


@contextmanager
def _faults(path: Path) -> Iterator[None]:
    try:
        yield
    except sqlite3.Error as error:
        raise sql_fault(error, f"the stream {path} failed") from error
