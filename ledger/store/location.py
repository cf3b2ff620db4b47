"""Where the parts of a ledger are: a local folder, and optionally a database server, object store and broker.

Plain values, parsed from the settings. Passwords are never part of a text that is shown.
"""

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from lapledger.ledger.errors import UserError
from lapledger.ledger.streams.kafka.settings import KafkaSettings

if TYPE_CHECKING:
    from sqlalchemy.engine import URL

SQL_FILE, STREAM_FILE, SPOOL_FILE = "ledger.sqlite", "stream.sqlite", "spool.sqlite"


@dataclass(frozen=True, slots=True)
class Location:
    """A ledger's parts; empty texts mean files below `root`. `reserve_bytes` of each local disk stay free.

    `spool_bytes` is the most that a producer keeps while its broker is away; when that is full it waits for
    `spool_seconds`.
    """

    root: Path
    sql: str = field(default="", repr=False)
    store: str = ""
    kafka: KafkaSettings | None = None
    reserve_bytes: int = 0
    spool_bytes: int = 1 << 30
    spool_seconds: float = 300.0

    @property
    def sql_url(self) -> "URL":
        """The database's address; UserError, without repeating it, when it is none of PostgreSQL."""
        from sqlalchemy.engine import URL, make_url  # settings are read by commands that need no database
        from sqlalchemy.exc import ArgumentError

        if not self.sql:
            return URL.create("sqlite", database=str(self.root / SQL_FILE))
        try:
            url = make_url(self.sql)
        except (ArgumentError, ValueError):
            raise UserError("setting 'sql' is no database address; write postgresql://USER@HOST/DATABASE") from None
        if "@" in (url.host or ""):
            raise UserError("setting 'sql' has an @ in its password; write it as %40")
        if url.get_backend_name() != "postgresql":
            raise UserError(f"setting 'sql' names {url.get_backend_name()}; only postgresql:// is supported")
        return url.set(drivername="postgresql+psycopg")

    def __str__(self) -> str:
        if not self.sql:
            return str(self.root)
        from lapledger.ledger.store.sql.engine import database_name  # as above

        return f"{self.root} with {database_name(self.sql_url)}"


LedgerPath = Location | Path
"""A location, or just the folder of a ledger whose parts are all in it."""


def location_of(path: LedgerPath) -> Location:
    """The location for a path."""
    return Location(path) if isinstance(path, Path) else path
