"""The SQL boundary: opens the database, gives short reading and writing transactions, translates its errors.

SQLAlchemy Core with text statements that both SQLite and PostgreSQL accept; what differs stays in this module.
"""

import os
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any
from urllib.parse import quote, unquote
from weakref import WeakKeyDictionary, WeakSet

from sqlalchemy import Connection, Engine, create_engine, event, text
from sqlalchemy.engine import URL
from sqlalchemy.exc import DBAPIError, OperationalError
from sqlalchemy.pool import QueuePool

from lapledger.ledger.disk import make_private
from lapledger.ledger.errors import FULL, DiskFull, Fault, LapError, Unavailable, UserError, sql_fault
from lapledger.ledger.streams.sqlite_file import has_log, lacks_room

WAIT_SECONDS = 60
"""How long a writer waits for another, and how long one that stopped within a transaction may hold others up."""

CONNECT_SECONDS = 10
PAGE_BYTES = 1 << 15
"""Size of a page of a new SQLite file: payloads of 100 KB take 4 instead of 30."""

_PRAGMAS = (
    f"page_size={PAGE_BYTES}",
    "secure_delete=OFF",  # some builds write zeros over all that a sealing deletes
    "journal_mode=WAL",
    "synchronous=FULL",
    "foreign_keys=ON",
)
_WRITES = "lap_writes"
_FULL: WeakSet[Engine] = WeakSet()
"""Engines whose file is only read, as its disk had no room when it was opened."""
_COPIES: WeakKeyDictionary[Engine, sqlite3.Connection] = WeakKeyDictionary()
"""The connection that keeps a copy in memory, as long as its engine lives."""


def open_engine(url: URL) -> Engine:
    """An engine on the database that a URL names; nothing is connected yet."""
    return sqlite_engine(Path(url.database or "")) if url.get_backend_name() == "sqlite" else postgres_engine(url)


def postgres_engine(url: URL) -> Engine:
    """An engine on a PostgreSQL database: reads see one state throughout, and dead connections are noticed.

    UserError when the driver is not installed.
    """
    if find_spec("psycopg") is None:
        raise UserError("a ledger in PostgreSQL needs psycopg; install it with: pip install 'lapledger[postgres]'")
    alive = {"keepalives_idle": 30, "keepalives_interval": 5, "keepalives_count": 3, "tcp_user_timeout": 30_000}
    given = {"connect_timeout": CONNECT_SECONDS, "application_name": "lap", **alive}
    options = {name: value for name, value in given.items() if name not in url.query}
    engine = create_engine(url, pool_pre_ping=True, connect_args=options)
    event.listen(engine, "connect", _on_connect_postgres)
    return engine


_SESSION = (
    f"SET lock_timeout = '{WAIT_SECONDS}s'",
    f"SET idle_in_transaction_session_timeout = '{WAIT_SECONDS}s'",
    "SELECT set_config('synchronous_commit', 'on', false) WHERE current_setting('synchronous_commit') = 'off'",
)


def _on_connect_postgres(connection: Any, _record: Any) -> None:
    for statement in _SESSION:  # what was committed is durable, whatever the server's default
        connection.execute(statement)
    connection.commit()


def sqlite_engine(path: Path) -> Engine:
    """An engine on one SQLite file: WAL, full sync, writers wait for each other.

    In a folder that cannot be written the file is only read: beside a live writer, or as one that never changes where
    the file system is read-only or has no room. UserError when neither is possible.
    """
    full = lacks_room(path)
    if full and has_log(path):
        return _engine_in_memory(path)
    fixed = full or (path.is_file() and not os.access(path.parent, os.W_OK))
    how = {"mode": "ro", "immutable": "1"} if full else _read_only(path) if fixed else {}
    database, query = (_uri(path), {"uri": "true", **how}) if fixed else (str(path), {})
    url = URL.create("sqlite", database=database, query=query)
    engine = create_engine(url, connect_args={"timeout": WAIT_SECONDS, "check_same_thread": False})
    if full:
        _FULL.add(engine)
    if not fixed:
        event.listen(engine, "do_connect", lambda *_: make_private(path))
    event.listen(engine, "connect", _on_connect_fixed if fixed else _on_connect)
    event.listen(engine, "begin", _on_begin)
    return engine


def _engine_in_memory(path: Path) -> Engine:
    """An engine on a copy in memory of a file whose log has no room for its shared index on the disk."""
    shared = f"file:{quote(str(path))}-{id(path)}?mode=memory&cache=shared"
    copy = sqlite3.connect(shared, uri=True, check_same_thread=False)
    try:
        with closing(sqlite3.connect(_uri(path), uri=True, timeout=WAIT_SECONDS)) as source:
            source.execute("PRAGMA locking_mode=EXCLUSIVE")  # the index of its log is then kept in memory
            source.backup(copy)
    except sqlite3.Error as error:
        raise sql_fault(error, f"the database {path}") from error
    engine = create_engine(
        "sqlite://", creator=lambda: sqlite3.connect(shared, uri=True, check_same_thread=False), poolclass=QueuePool
    )
    _COPIES[engine] = copy
    _FULL.add(engine)
    event.listen(engine, "connect", _on_connect_copy)
    event.listen(engine, "begin", _on_begin)
    return engine


def _on_connect_copy(connection: Any, _record: Any) -> None:
    connection.isolation_level = None  # as below
    connection.execute("PRAGMA query_only=ON")


def _uri(path: Path) -> str:
    return f"file:{quote(str(path))}"


def _read_only(path: Path) -> dict[str, str]:
    """How to open a file in a folder that cannot be written; `immutable` takes no locks, so nobody may write then."""
    if _shares_locks(path):
        return {"mode": "ro"}
    if not os.statvfs(path).f_flag & os.ST_RDONLY:
        raise UserError(f"{path} cannot be read in a folder that you cannot write; copy the ledger to one that you can")
    log = path.with_name(f"{path.name}-wal")
    if log.exists() and log.stat().st_size:
        raise UserError(f"{path} was copied while it was written; open the original once, then copy it again")
    return {"immutable": "1"}


def _shares_locks(path: Path) -> bool:
    """False when the file needs its shared index, as in WAL mode, and that neither exists nor can be made."""
    try:
        with closing(sqlite3.connect(f"{_uri(path)}?mode=ro", uri=True, timeout=WAIT_SECONDS)) as connection:
            connection.execute("SELECT count(*) FROM sqlite_master")
    except sqlite3.OperationalError:
        return False
    except sqlite3.DatabaseError:
        return True  # not a database: opening it raises that error
    return True


def _on_connect_fixed(connection: Any, _record: Any) -> None:
    connection.isolation_level = None  # as below


def _on_connect(connection: Any, _record: Any) -> None:
    connection.isolation_level = None  # transactions are begun by _on_begin, so that reads share one snapshot
    for pragma in _PRAGMAS:
        connection.execute(f"PRAGMA {pragma}")


def _on_begin(connection: Connection) -> None:
    writes = connection.get_execution_options().get(_WRITES)
    connection.exec_driver_sql("BEGIN IMMEDIATE" if writes else "BEGIN")


@contextmanager
def reading(engine: Engine) -> Iterator[Connection]:
    """A transaction that sees one state of the database throughout."""
    with _faults(engine), engine.connect() as connection:
        if engine.dialect.name != "postgresql":
            with connection.begin():
                yield connection
            return
        connection = connection.execution_options(isolation_level="REPEATABLE READ", postgresql_readonly=True)
        with connection.begin():
            connection.exec_driver_sql("SET LOCAL idle_in_transaction_session_timeout = 0")  # a reader holds nobody up
            yield connection


@contextmanager
def writing(engine: Engine) -> Iterator[Connection]:
    """A transaction that commits at the end, or rolls back when an error leaves the block."""
    with _faults(engine), engine.connect().execution_options(**{_WRITES: True}) as connection, connection.begin():
        yield connection


@contextmanager
def _faults(engine: Engine) -> Iterator[None]:
    try:
        yield
    except DBAPIError as error:
        what = f"the database {database_name(engine.url)}"
        if engine.dialect.name == "sqlite":
            raise _sqlite_fault(error, what, full=engine in _FULL) from error
        raise _postgres_fault(error, what) from error


_BUSY = ("SQLITE_BUSY", "SQLITE_LOCKED", "SQLITE_NOMEM", "SQLITE_INTERRUPT", "SQLITE_PROTOCOL")
"""How SQLite's errors begin that may be gone the next time."""


def _sqlite_fault(error: DBAPIError, what: str, *, full: bool) -> LapError:
    if full and "readonly" in str(error.orig):
        return DiskFull(f"{what} failed: {FULL}")
    if getattr(error.orig, "sqlite_errorname", "").startswith(_BUSY):
        return Unavailable(f"{what} is in use or short of memory: {error.orig}; run it again")
    return sql_fault(error.orig, f"{what} failed")


_REFUSED = ("authentication failed", "no password supplied", "no pg_hba.conf entry", "permission denied", 'role "')
_PASSING = ("08", "40", "53", "55P03", "57", "25P03", "72")
"""How states begin that may be gone the next time: a lost connection, a deadlock, a lock waited for in vain, too little
memory, a statement that was cancelled, a snapshot that was kept too long. None implies anything about the data."""


def _postgres_fault(error: DBAPIError, what: str) -> LapError:
    """The one-line error for a server's answer or silence."""
    reason = " ".join(str(error.orig).split())
    state = str(getattr(error.orig, "sqlstate", None) or "")
    silent = not state and isinstance(error, OperationalError)
    if state == "53100":
        return DiskFull(f"{what}: {FULL}")
    if state == "3D000" or (silent and 'database "' in reason and "does not exist" in reason):
        return UserError(f"{what} does not exist; make it with `createdb -E UTF8`")
    if state == "42501" or (silent and any(refusal in reason for refusal in _REFUSED)):
        return UserError(f"{what} refuses this user: {reason}; correct the setting `sql`, PGPASSWORD or ~/.pgpass")
    if silent or state.startswith(_PASSING):
        return Unavailable(f"{what} does not answer: {reason}; check that the server runs, and run it again")
    return Fault(f"{what} failed: {reason}; look into the server's log, and run it again")


def database_name(url: URL) -> str:
    """How messages name a database: its file, or its address without user, password and options."""
    if url.get_backend_name() == "sqlite":
        return str(url.database)
    socket = {name: value for name, value in url.query.items() if name in ("host", "port")}
    bare = URL.create("postgresql", host=url.host, port=url.port, database=url.database, query=socket)
    return unquote(bare.render_as_string())


def check_encoding(connection: Connection) -> None:
    """UserError unless the database keeps every Unicode text."""
    if connection.dialect.name == "postgresql":
        encoding = connection.execute(text("SHOW server_encoding")).scalar_one()
        if encoding != "UTF8":
            name = database_name(connection.engine.url)
            raise UserError(f"the database {name} is in {encoding}; make another one with `createdb -E UTF8`")


def alone(connection: Connection, what: str) -> None:
    """Returns when no other process does `what` in this database; held until the transaction ends.

    SQLite has one writer anyway.
    """
    if connection.dialect.name == "postgresql":
        connection.execute(text("SELECT pg_advisory_xact_lock(hashtext(:what))"), {"what": what})
