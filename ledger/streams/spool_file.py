"""The file of a spool: records that wait for their stream, in the order in which they came, in one SQLite file.

Whoever lives holds a lock beside its file; a file without one was left by a dead process and may be claimed. When to
spool and when to deliver is decided in `ledger.streams.spool`.
"""

import fcntl
import json
import os
import threading
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path

from lapledger.ledger.errors import io_fault
from lapledger.ledger.failpoint import failpoint
from lapledger.ledger.frames.frame import Record
from lapledger.ledger.streams.base import Stream, record_bytes
from lapledger.ledger.streams.sqlite_file import connect, headers_of, refuse_network, sqlite_faults, transaction

SUFFIX = ".sqlite"
RUN_BYTES = 8 << 20
"""Size after which a run ends: what is delivered, and forgotten, at once."""

_TABLE = (
    "CREATE TABLE IF NOT EXISTS waiting (place INTEGER PRIMARY KEY AUTOINCREMENT, stream TEXT NOT NULL,"
    " partition INTEGER NOT NULL, bytes INTEGER NOT NULL, headers TEXT NOT NULL, payload BLOB NOT NULL)"
)
_PUT = "INSERT INTO waiting (stream, partition, bytes, headers, payload) VALUES (?, ?, ?, ?, ?)"
_OLDEST = "SELECT place, stream, partition, bytes, headers, payload FROM waiting ORDER BY place"
_COUNT = "SELECT count(*), coalesce(sum(bytes), 0) FROM waiting"


@dataclass(frozen=True, slots=True)
class Run:
    """The oldest records that wait, as far as they are for one partition.

    `last` is the row number of the last one, `bytes` their size as `record_bytes` counts.
    """

    stream: str
    partition: int
    records: list[Record]
    last: int
    bytes: int


class SpoolFile:
    """An open spool file, which no other process may claim. Threads may share it."""

    def __init__(self, path: Path, lock: int) -> None:
        """Opens or makes the file; `lock` is the descriptor that holds it. Use `claimed`."""
        refuse_network(path)
        self.path = path
        self._held = lock
        self._lock = threading.Lock()
        self._connection = connect(path)
        with self._translated():
            with transaction(self._connection):
                self._connection.execute(_TABLE)
            row = self._connection.execute(_COUNT).fetchone()
        self.records: int = row[0]
        self.bytes: int = row[1]

    @classmethod
    def claimed(cls, path: Path) -> "SpoolFile | None":
        """The file at `path`, made unless it exists; None while another process holds it. Its folder must exist."""
        lock = _lock(path)
        if lock is None:
            return None
        try:
            return cls(path, lock)
        except BaseException:
            os.close(lock)
            raise

    def put(self, stream: str, partition: int, records: Sequence[Record]) -> None:
        """Returns when the records are durable behind all others; on a Fault none was stored."""
        rows = [
            (stream, partition, record_bytes(record), json.dumps(dict(record.headers)), record.payload)
            for record in records
        ]
        with self._translated():
            with transaction(self._connection):
                self._connection.executemany(_PUT, rows)
            self.records += len(rows)
            self.bytes += sum(row[2] for row in rows)

    def oldest(self) -> Run | None:
        """The records to deliver next; None when none waits."""
        rows: list[tuple[int, str, int, int, str, bytes]] = []
        size = 0
        with self._translated():
            for row in self._connection.execute(_OLDEST):
                if size >= RUN_BYTES or (rows and row[1:3] != rows[0][1:3]):
                    break
                rows.append(row)
                size += row[3]
        if not rows:
            return None
        last, stream, partition = rows[-1][:3]
        return Run(stream, partition, [Record(headers_of(row[4]), row[5]) for row in rows], last, size)

    def forget(self, run: Run) -> None:
        """Removes what was delivered; durable when it returns."""
        with self._translated():
            with transaction(self._connection):
                self._connection.execute("DELETE FROM waiting WHERE place <= ?", (run.last,))
            self.records -= len(run.records)
            self.bytes -= run.bytes

    def close(self) -> None:
        """Releases the file; one that holds nothing is removed."""
        with self._translated():
            empty = self.records == 0
            self._connection.close()
        if empty:
            for path in (self.path, *(self.path.with_name(self.path.name + end) for end in ("-wal", "-shm"))):
                path.unlink(missing_ok=True)
            _lock_path(self.path).unlink(missing_ok=True)
        os.close(self._held)

    @contextmanager
    def _translated(self) -> Iterator[None]:
        with self._lock, sqlite_faults(self.path):
            yield


def left_behind(folder: Path) -> Iterator[SpoolFile]:
    """The spool files of dead processes, each claimed, in the order of their names; close each."""
    for path in sorted(folder.glob(f"*{SUFFIX}")):
        lock = _lock(path)
        if lock is None:
            continue
        if path.exists():
            yield SpoolFile(path, lock)
        else:  # another process was faster, and has delivered and removed it
            _lock_path(path).unlink(missing_ok=True)
            os.close(lock)


def deliver_oldest(stream: Stream, file: SpoolFile) -> bool:
    """Whether something waited: the oldest records for one partition are on the stream now, and forgotten here."""
    run = file.oldest()
    if run is None:
        return False
    stream.append(run.stream, run.partition, run.records)
    failpoint("spool.delivered")
    file.forget(run)
    failpoint("spool.trimmed")
    return True


def deliver_left_behind(stream: Stream, folder: Path) -> int:
    """Records that dead processes left in the spools of a folder and that are on the stream now.

    Unavailable when the broker is away; the rest stays for the next start.
    """
    count = 0
    for file in left_behind(folder):
        with closing(file):
            count += file.records
            while deliver_oldest(stream, file):
                pass
    return count


def _lock_path(path: Path) -> Path:
    return path.with_suffix(".lock")  # a file of its own: closing a SQLite file drops all locks on it


def _lock(path: Path) -> int | None:
    """A descriptor that holds the lock of a spool file as long as it is open; None while another one does."""
    try:
        handle = os.open(_lock_path(path), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise io_fault(error, f"cannot use the spool {path}") from error
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(handle)
        return None
    return handle
