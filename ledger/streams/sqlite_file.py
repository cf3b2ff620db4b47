"""SQLite files that hold records: durable connections, transactions, errors of one line, and no network filesystems.

Shared by the local stream and the spool; the tables belong to those modules.
"""

import json
import os
import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import quote

from lapledger.ledger.disk import make_private
from lapledger.ledger.errors import FULL, DiskFull, UserError, sql_fault

WAIT_SECONDS = 60.0
"""How long an append waits for other processes to finish theirs."""

PAGE_BYTES = 1 << 15
"""Size of a page: a frame of 1,000 timings takes 4 instead of 30, which halves the time of an append and a read."""

NETWORK = frozenset(
    {
        "9p",
        "afs",
        "beegfs",
        "ceph",
        "cifs",
        "coda",
        "davfs",
        "glusterfs",
        "gfs2",
        "gpfs",
        "lustre",
        "ncpfs",
        "nfs",
        "nfs4",
    }
    | {"ocfs2", "orangefs", "pvfs2", "smb", "smb2", "smb3", "smbfs"}
    | {"fuse.ceph", "fuse.davfs", "fuse.gcsfuse", "fuse.glusterfs", "fuse.rclone", "fuse.s3fs", "fuse.sshfs"}
)


def filesystem_of(path: Path, mounts: str) -> str:
    """The filesystem type of a resolved path, from the text of /proc/mounts; empty when no mount covers it."""
    best, kind = -1, ""
    for line in mounts.splitlines():
        fields = line.split(" ")
        if len(fields) < 3:
            continue
        point = Path(fields[1].encode().decode("unicode_escape"))
        if len(point.parts) >= best and path.is_relative_to(point):  # a later mount hides an earlier one
            best, kind = len(point.parts), fields[2]
    return kind


def refuse_network(path: Path) -> None:
    """Raise UserError if `path` is on a network filesystem, where SQLite's locks and syncs are not reliable."""
    mounts = Path("/proc/mounts")
    kind = filesystem_of(path.resolve(), mounts.read_text(errors="replace")) if mounts.exists() else ""
    if kind in NETWORK:
        raise UserError(
            f"{path} is on a network filesystem ({kind}), where file locks are not reliable; choose a local folder"
        )


INDEX_BYTES = 64 << 10
"""Room that SQLite needs beside a file with a log, for the index that its readers share."""


def lacks_room(path: Path) -> bool:
    """Whether a file can only be read as it is: nobody has it open, and the disk has no room for the shared index."""
    if not path.is_file() or path.with_name(f"{path.name}-shm").exists():
        return False
    disk = os.statvfs(path.parent)
    return disk.f_bavail * disk.f_frsize < INDEX_BYTES


def has_log(path: Path) -> bool:
    """Whether the log of a file holds changes that are not in the file yet."""
    log = path.with_name(f"{path.name}-wal")
    return log.exists() and log.stat().st_size > 0


def connect(path: Path) -> sqlite3.Connection:
    """A connection whose commits are durable when they return, beside other processes; threads take turns."""
    if lacks_room(path):
        return _connect_as_it_is(path)
    make_private(path)
    with sqlite_faults(path):
        connection = sqlite3.connect(path, timeout=WAIT_SECONDS, isolation_level=None, check_same_thread=False)
        connection.execute(f"PRAGMA page_size={PAGE_BYTES}")  # of a new file
        connection.execute("PRAGMA secure_delete=OFF")  # some builds write zeros over all that is trimmed
        connection.execute("PRAGMA journal_mode=WAL")
        connection.execute("PRAGMA synchronous=FULL")
        return connection


def _connect_as_it_is(path: Path) -> sqlite3.Connection:
    query = "" if has_log(path) else "?mode=ro&immutable=1"  # alone, or without locks
    with sqlite_faults(path):
        connection = sqlite3.connect(
            f"file:{quote(str(path))}{query}",
            uri=True,
            timeout=WAIT_SECONDS,
            isolation_level=None,
            check_same_thread=False,
        )
        connection.execute("PRAGMA locking_mode=EXCLUSIVE")  # the index of its log is then kept in memory
        return connection


@contextmanager
def transaction(connection: sqlite3.Connection, begin: str = "BEGIN IMMEDIATE") -> Iterator[None]:
    """A writing transaction that commits at the end, or rolls back when an error leaves the block.

    With a plain BEGIN it reads one state, and waits for nobody.
    """
    connection.execute(begin)
    try:
        yield
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:  # SQLite has rolled back by itself when the disk was full
            connection.execute("ROLLBACK")
        raise


@contextmanager
def sqlite_faults(path: Path) -> Iterator[None]:
    """Turns SQLite's errors about the file into Faults of one line."""
    try:
        yield
    except sqlite3.Error as error:
        what = f"the stream {path} failed"
        if "readonly" in str(error) and lacks_room(path):
            raise DiskFull(f"{what}: {FULL}") from error
        raise sql_fault(error, what) from error


def headers_of(text: str) -> Mapping[str, str]:
    """The headers of a record. Anything but an object of texts is foreign: kept as one text, for quarantine."""
    try:
        headers = json.loads(text)
    except (ValueError, TypeError, RecursionError):
        headers = None
    if isinstance(headers, dict) and all(isinstance(value, str) for value in headers.values()):
        return headers
    return {"malformed": str(text)[:1000]}
