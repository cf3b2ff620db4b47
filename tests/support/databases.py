"""Both databases for tests: SQLite in a file, and PostgreSQL on one real server with a fresh database for each test.

Ledgers are copied from an empty one, which is quicker than running the migrations each time.
"""

import shutil
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path

import psycopg
import pytest
from sqlalchemy import make_url

from lapledger.ledger.store.location import Location
from lapledger.ledger.store.open_ledger import Ledger, create_ledger, open_ledger
from lapledger.stack.postgres import PostgresServer

DATABASES = ("sqlite", "postgresql")
IDENTITY = "identity-0"


@dataclass(slots=True)
class Server:
    """A running PostgreSQL server that makes databases."""

    url: str
    _numbers: Iterator[int] = field(default_factory=lambda: count(1))

    def database(self, copied: str = "") -> str:
        """The address of a new database, empty or a copy of one that nobody is connected to."""
        name = f"test_{next(self._numbers)}"
        template = make_url(copied).database if copied else "template1"
        with psycopg.connect(self.url, autocommit=True) as connection:
            connection.execute(f"CREATE DATABASE {name} TEMPLATE {template}")
        return self.url.replace("/postgres?", f"/{name}?")


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[Server]:
    """One server for all tests; it need not survive a power cut.

    It runs as a user of its own, who could not reach pytest's temporary folders.
    """
    with tempfile.TemporaryDirectory(prefix="lap-postgres-") as folder:
        Path(folder).chmod(0o755)
        server = PostgresServer(Path(folder) / "data")
        server.start()
        try:
            with psycopg.connect(server.url, autocommit=True) as connection:
                for name in ("fsync", "full_page_writes"):
                    connection.execute(f"ALTER SYSTEM SET {name} = off")
                connection.execute("SELECT pg_reload_conf()")
            yield Server(server.url)
        finally:
            server.stop()


@pytest.fixture
def postgres_database(postgres_server: Server) -> str:
    """The address of a fresh, empty database."""
    return postgres_server.database()


@dataclass(frozen=True, slots=True)
class Kind:
    """One of the two databases. `server` is None for SQLite."""

    folder: Path
    server: Server | None

    def location(self, name: str) -> Location:
        """An empty place for a ledger."""
        return Location(self.folder / name, self.server.database() if self.server else "")

    def copy(self, location: Location, name: str) -> Location:
        """A copy of a ledger that nobody has open."""
        shutil.copytree(location.root, self.folder / name)
        return Location(self.folder / name, self.server.database(location.sql) if self.server else "")


@pytest.fixture(scope="session", params=DATABASES)
def kind_server(request: pytest.FixtureRequest) -> Server | None:
    """The server that the test runs over, None for SQLite."""
    if request.param == "sqlite":
        return None
    server: Server = request.getfixturevalue("postgres_server")
    return server


@pytest.fixture(scope="session")
def empty_ledger(kind_server: Server | None, tmp_path_factory: pytest.TempPathFactory) -> Location:
    """An empty ledger to copy, that nobody has open."""
    location = Kind(tmp_path_factory.mktemp("template"), kind_server).location("ledger")
    create_ledger(location, IDENTITY, "2026-01-01T00:00:00Z").close()
    return location


@pytest.fixture
def kind(kind_server: Server | None, tmp_path: Path) -> Kind:
    """The database that the test runs over; a test that asks for it runs over both."""
    return Kind(tmp_path, kind_server)


@pytest.fixture
def location(kind: Kind, empty_ledger: Location) -> Location:
    """A fresh empty ledger of the identity `identity-0` that nobody has open."""
    return kind.copy(empty_ledger, "ledger")


@pytest.fixture
def both(location: Location) -> Iterator[Ledger]:
    """The fresh ledger, opened."""
    ledger = open_ledger(location)
    yield ledger
    ledger.close()
