"""The SQL boundary: opens the database, gives short reading and writing transactions, translates its errors.

SQLAlchemy Core with text statements that PostgreSQL accepts too; what differs between databases stays in this module.
"""

import os
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import quote

from sqlalchemy import Connection, Engine, create_engine, event
from sqlalchemy.engine import URL
from sqlalchemy.exc import DBAPIError

from ledger.errors import UserError, sql_fault

WAIT_SECONDS = 60
_WRITES = "lap_writes"


def sqlite_engine(path: Path) -> Engine:
    """An engine on one SQLite file: WAL, full sync, writers wait for each other.

    In a folder that cannot be written the file is only read: beside a live writer, or as one that never changes where
    the file system is read-only. UserError when neither is possible.
    """
    fixed = path.is_file() and not os.access(path.parent, os.W_OK)
    place, query = (_uri(path), {"uri": "true", **_read_only(path)}) if fixed else (str(path), {})
    url = URL.create("sqlite", database=place, query=query)
    engine = create_engine(url, connect_args={"timeout": WAIT_SECONDS, "check_same_thread": False})
    event.listen(engine, "connect", _on_connect_fixed if fixed else _on_connect)
    event.listen(engine, "begin", _on_begin)
    return engine


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
        return True  # no database at all: whoever opens it says so
    return True


def _on_connect_fixed(connection: Any, _record: Any) -> None:
    connection.isolation_level = None  # as below


def _on_connect(connection: Any, _record: Any) -> None:
    connection.isolation_level = None  # transactions are begun by _on_begin, so that reads share one snapshot
    for pragma in ("journal_mode=WAL", "synchronous=FULL", "foreign_keys=ON"):
        connection.execute(f"PRAGMA {pragma}")


def _on_begin(connection: Connection) -> None:
    writes = connection.get_execution_options().get(_WRITES)
    connection.exec_driver_sql("BEGIN IMMEDIATE" if writes else "BEGIN")


@contextmanager
def reading(engine: Engine) -> Iterator[Connection]:
    """A transaction that sees one state of the database throughout."""
    with _faults(engine), engine.connect() as connection, connection.begin():
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
        raise sql_fault(error.orig, f"the database {engine.url.database} failed") from error
