"""The local stream: one SQLite file that several processes append to and read at once. The default: nothing to start.

One append is one transaction; offsets come from AUTOINCREMENT, so they rise and are never used again.
"""

import json
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from sqlite3 import Connection

from lapledger.ledger.disk import refuse_below_reserve
from lapledger.ledger.errors import Damage, Fault, UserError
from lapledger.ledger.events import PARTITIONS
from lapledger.ledger.failpoint import failpoint
from lapledger.ledger.frames.frame import MAX_PAYLOAD_BYTES, Record
from lapledger.ledger.streams.base import Group, Partition, Position, Stored, record_bytes
from lapledger.ledger.streams.sqlite_file import connect, headers_of, refuse_network, sqlite_faults, transaction

POLL_SECONDS = 0.02
"""How often a group looks for new records."""

_SCHEMA = (
    "CREATE TABLE IF NOT EXISTS identity (word TEXT NOT NULL)",
    "CREATE TABLE IF NOT EXISTS record (source_offset INTEGER PRIMARY KEY AUTOINCREMENT, stream TEXT NOT NULL,"
    " partition INTEGER NOT NULL, headers TEXT NOT NULL, payload BLOB NOT NULL)",
    "CREATE INDEX IF NOT EXISTS record_place ON record (stream, partition, source_offset)",
)
_TRIMMED = (
    "CREATE TABLE IF NOT EXISTS trimmed (stream TEXT NOT NULL, partition INTEGER NOT NULL, position INTEGER NOT NULL,"
    " PRIMARY KEY (stream, partition))"
)


class LocalStream:
    """A `Stream` in one file. Threads may share it; a forked child opens its own."""

    max_record_bytes = MAX_PAYLOAD_BYTES

    def __init__(self, path: Path, reserve_bytes: int = 0) -> None:
        """Opens an existing stream; UserError when there is none or it is on a network filesystem.

        Nothing is appended that would leave less than `reserve_bytes` of its disk free.
        """
        if not path.is_file():
            raise UserError(
                f"there is no stream at {path}; `lap ledger init` makes a new ledger, one that exists needs this file"
                " from a backup"
            )
        refuse_network(path)
        self.path = path
        self._reserve_bytes = reserve_bytes
        self._lock = threading.Lock()
        self._connection = connect(path)
        with self._translated():
            tables = self._connection.execute("SELECT count(*) FROM sqlite_master WHERE name = 'identity'").fetchone()
        if not tables[0]:
            raise Damage(f"{path} has lost its tables; restore this file from a backup, or rebuild the ledger")
        with self._translated():
            self._connection.execute(_TRIMMED)  # files of version 0.1 have no such table
            row = self._connection.execute("SELECT word FROM identity").fetchone()
        if row is None:
            raise Damage(f"{path} has lost its identity; restore this file from a backup, or rebuild the ledger")
        self._identity = str(row[0])

    @classmethod
    def create(cls, path: Path, identity: str) -> "LocalStream":
        """The stream at `path`, made with this identity unless it exists already; its folder must exist."""
        refuse_network(path)
        connection = connect(path)
        try:
            with sqlite_faults(path):
                _make(connection, identity)
        finally:
            connection.close()
        return cls(path)

    def identity(self, stream: str) -> str:
        """The random id that the file was created with, the same for every stream in it."""
        return self._identity

    def append(self, stream: str, partition: int, records: Sequence[Record]) -> None:
        """Returns when all records are durable, in this order; on a Fault none was stored, DiskFull among them."""
        rows = [(stream, partition, json.dumps(dict(record.headers)), record.payload) for record in records]
        statement = "INSERT INTO record (stream, partition, headers, payload) VALUES (?, ?, ?, ?)"
        if any(record_bytes(record) > self.max_record_bytes for record in records):
            raise Fault(f"a record for {self.path} has more than {self.max_record_bytes} bytes; none was stored")
        refuse_below_reserve(self.path.parent, self._reserve_bytes, sum(len(record.payload) for record in records))
        failpoint("stream.append.before")
        with self._translated(), transaction(self._connection):
            self._connection.executemany(statement, rows)
            failpoint("stream.append.stored")
        failpoint("stream.appended")

    def read(self, stream: str, partition: int, position: Position, limit: int) -> list[Stored]:
        """Up to `limit` records from `position` on, in order; empty at the end."""
        statement = (
            "SELECT source_offset, headers, payload FROM record WHERE stream = ? AND partition = ?"
            " AND source_offset >= ? ORDER BY source_offset LIMIT ?"
        )
        with self._translated(), transaction(self._connection, "BEGIN"):  # one state: another process may trim
            rows = self._connection.execute(statement, (stream, partition, position, limit)).fetchall()
            first, end = self._first(stream, partition), position if rows else self._end(stream, partition)
        if not first <= position <= end:
            raise Fault(
                f"cannot read {stream}, partition {partition}, from {position}: {self.path} holds {first} to {end};"
                " records were deleted there, or the file was replaced"
            )
        return [Stored(offset, Record(headers_of(headers), _payload(payload))) for offset, headers, payload in rows]

    def ends(self) -> Mapping[Partition, Position]:
        """For every partition the position after its last record; 0 when it has none."""
        partitions = [(name, partition) for name, count in PARTITIONS.items() for partition in range(count)]
        with self._translated():
            return {at: self._end(*at) for at in partitions}

    def unread(self) -> Mapping[Partition, int]:
        """Records of streams and partitions that no reader knows: a newer release or another program wrote them."""
        count = "SELECT stream, partition, count(*) FROM record GROUP BY stream, partition ORDER BY stream, partition"
        with self._translated():
            rows = self._connection.execute(count).fetchall()
        return {(name, at): n for name, at, n in rows if at not in range(PARTITIONS.get(name, 0))}

    def trim(self, stream: str, partition: int, position: Position) -> None:
        """Forgets the records before `position`; Fault when it is past the end."""
        forget = "DELETE FROM record WHERE stream = ? AND partition = ? AND source_offset < ?"
        remember = "INSERT OR REPLACE INTO trimmed (stream, partition, position) VALUES (?, ?, ?)"
        with self._translated(), transaction(self._connection):
            if position > self._end(stream, partition):
                raise Fault(
                    f"cannot trim {stream}, partition {partition}, of {self.path} to {position}: it ends before"
                )
            if position > self._first(stream, partition):
                self._connection.execute(remember, (stream, partition, position))
                self._connection.execute(forget, (stream, partition, position))
        failpoint("stream.trimmed")

    def join(self, group: str, streams: Sequence[str], member: str) -> Group:
        """A group whose every member tries everything: one file is for one machine, and SQL decides who may admit."""
        return LocalGroup(self, streams)

    def waiting(self, stream: str, partition: int, position: Position) -> int:
        """Records from `position` on."""
        count = "SELECT count(*) FROM record WHERE stream = ? AND partition = ? AND source_offset >= ?"
        with self._translated():
            return int(self._connection.execute(count, (stream, partition, position)).fetchone()[0])

    def changes(self) -> int:
        """A number that rises with every append, by whatever process; cheap to ask for."""
        with self._translated():
            row = self._connection.execute("SELECT seq FROM sqlite_sequence WHERE name = 'record'").fetchone()
        return int(row[0]) if row else 0

    def close(self) -> None:
        """Releases the file."""
        with self._lock:
            self._connection.close()

    def _end(self, stream: str, partition: int) -> Position:
        statement = "SELECT coalesce(max(source_offset) + 1, 0) FROM record WHERE stream = ? AND partition = ?"
        (end,) = self._connection.execute(statement, (stream, partition)).fetchone()
        return max(int(end), self._first(stream, partition))

    def _first(self, stream: str, partition: int) -> Position:
        """The position before which everything was forgotten; 0 when nothing was."""
        statement = "SELECT position FROM trimmed WHERE stream = ? AND partition = ?"
        row = self._connection.execute(statement, (stream, partition)).fetchone()
        return int(row[0]) if row else 0

    @contextmanager
    def _translated(self) -> Iterator[None]:
        with self._lock, sqlite_faults(self.path):
            yield


class LocalGroup:
    """A member of a local stream's group. One thread uses it."""

    def __init__(self, stream: LocalStream, streams: Sequence[str]) -> None:
        """Nothing is read yet."""
        self._stream = stream
        self._streams = frozenset(streams)
        self._changes = -1
        self._seen: Mapping[Partition, Position] = {}

    def assigned(self, wait_seconds: float) -> frozenset[Partition]:
        """Every partition of the group's streams, at once when records have arrived there, else after the wait."""
        deadline = time.monotonic() + wait_seconds
        while not self._arrived() and (left := deadline - time.monotonic()) > 0:
            time.sleep(min(POLL_SECONDS, left))
        return frozenset(self._seen)

    def leave(self) -> None:
        """Nothing is held that others would wait for."""

    def _arrived(self) -> bool:
        """Whether one of the partitions has grown since the last call."""
        changes = self._stream.changes()
        if changes == self._changes:
            return False
        ends = {at: end for at, end in self._stream.ends().items() if at[0] in self._streams}
        grown, self._changes, self._seen = ends != self._seen, changes, ends
        return grown


def _payload(value: object) -> bytes:
    """The payload of a record. Anything but bytes was not written by us: kept as text, for quarantine."""
    return value if isinstance(value, bytes) else str(value).encode(errors="backslashreplace")


def _make(connection: Connection, identity: str) -> None:
    with transaction(connection):
        for statement in _SCHEMA:
            connection.execute(statement)
        connection.execute("INSERT INTO identity SELECT ? WHERE NOT EXISTS (SELECT 1 FROM identity)", (identity,))
