"""Making a ledger and opening one: a folder with its SQL database, its local stream, segments and blobs.

Opening is fast and imports neither alembic nor sqlmodel; making or upgrading runs the migrations.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from sqlalchemy import Connection, Engine, text
from sqlalchemy.exc import DatabaseError

from ledger.errors import Fault, UserError
from ledger.events import PARTITIONS
from ledger.store.blobs import Blobs
from ledger.store.cuts import Cut
from ledger.store.engine import reading, sqlite_engine, writing
from ledger.store.files import make_folder
from ledger.store.heads import first_head, ledger_head
from ledger.store.segments import Segments
from ledger.streams.local import LocalStream

SCHEMA_REVISION = "0001"
"""The newest migration. Revisions are numbered with equal width, so that words compare like numbers."""

SQL_FILE, STREAM_FILE = "ledger.sqlite", "stream.sqlite"


@dataclass(frozen=True, slots=True)
class Ledger:
    """An open ledger. `identity` is the random word that it was made with."""

    root: Path
    identity: str
    engine: Engine
    blobs: Blobs
    segments: Segments

    def stream(self) -> LocalStream:
        """The ledger's local stream, opened; close it when done."""
        return LocalStream(self.root / STREAM_FILE)

    def cut(self) -> Cut:
        """The cut that holds every frame admitted so far."""
        with reading(self.engine) as connection:
            return cut_now(connection)

    def head(self) -> str:
        """The head over everything admitted and sealed so far, as 64 hex digits."""
        with reading(self.engine) as connection:
            return head_now(connection)

    def close(self) -> None:
        """Releases the database."""
        self.engine.dispose()


def cut_now(connection: Connection) -> Cut:
    """The cut of everything admitted, as this transaction sees it."""
    rows = connection.execute(text("SELECT stream, partition, admissions FROM stream_position"))
    return Cut.of({(stream, partition): admissions for stream, partition, admissions in rows})


def head_now(connection: Connection) -> str:
    """The head of the ledger, as this transaction sees it."""
    rows = connection.execute(text("SELECT stream, partition, admissions, head FROM stream_position"))
    heads = {(stream, partition): (admissions, head) for stream, partition, admissions, head in rows}
    manifests = connection.execute(text("SELECT manifest FROM segment ORDER BY ordinal")).scalars().all()
    return ledger_head(heads, manifests)


def create_ledger(root: Path, identity: str, created: str) -> Ledger:
    """The ledger in folder `root`, made with this identity and time label; one that exists is upgraded, nothing lost.

    UserError when a newer lapledger made it, or the folder is on a network filesystem; Fault when the disk is full.
    """
    for folder in (root, root / "segments", root / "blobs"):
        make_folder(folder)
    LocalStream.create(root / STREAM_FILE, identity).close()
    engine = sqlite_engine(root / SQL_FILE)
    try:
        with _foreign_file(root), writing(engine) as connection:
            _refuse_newer(root, _revision(connection))
            _upgrade(connection)
            _first_rows(connection, identity, created)
    finally:
        engine.dispose()
    return open_ledger(root)


def open_ledger(root: Path) -> Ledger:
    """The ledger in folder `root`; UserError when there is none, or another version of lapledger must open it."""
    path = root / SQL_FILE
    if not path.is_file():
        raise UserError(f"there is no ledger in {root}; make one with `lap ledger init`")
    engine = sqlite_engine(path)
    try:
        with _foreign_file(root), reading(engine) as connection:
            _check_revision(root, _revision(connection))
            identity = _identity(root, connection)
    except BaseException:
        engine.dispose()
        raise
    return Ledger(root, identity, engine, Blobs(root / "blobs"), Segments(root / "segments"))


@contextmanager
def _foreign_file(root: Path) -> Iterator[None]:
    try:
        yield
    except Exception as error:
        cause = error.__cause__
        if isinstance(cause, DatabaseError) and "not a database" in str(cause.orig):
            raise UserError(f"{root / SQL_FILE} is no database; choose another folder or restore the file") from error
        raise


def _identity(root: Path, connection: Connection) -> str:
    """The one word the ledger was made with; Fault when its row was lost or doubled."""
    words = connection.execute(text("SELECT identity FROM ledger")).scalars().all()
    if len(words) != 1:
        raise Fault(f"the ledger in {root} names itself {len(words)} times; restore it from a copy")
    return str(words[0])


def _revision(connection: Connection) -> str | None:
    """The number of the last migration that ran, None in an empty database."""
    if not connection.dialect.has_table(connection, "alembic_version"):
        return None
    revision = connection.execute(text("SELECT version_num FROM alembic_version")).scalar_one_or_none()
    return None if revision is None else str(revision)


def _check_revision(root: Path, revision: str | None) -> None:
    if revision is None:
        raise UserError(f"there is no ledger in {root}; make one with `lap ledger init`")
    _refuse_newer(root, revision)
    if revision < SCHEMA_REVISION:
        raise UserError(
            f"the ledger in {root} has the older schema {revision}; `lap ledger init` upgrades it to {SCHEMA_REVISION}"
        )


def _refuse_newer(root: Path, revision: str | None) -> None:
    if revision is not None and revision > SCHEMA_REVISION:
        raise UserError(
            f"the ledger in {root} was made by a newer lapledger (schema {revision}, this one knows {SCHEMA_REVISION});"
            " upgrade lapledger"
        )


def _upgrade(connection: Connection) -> None:
    from alembic import command
    from alembic.config import Config

    spec = find_spec("migrations")
    if spec is None or not spec.submodule_search_locations:
        raise UserError("the package `migrations` is missing beside lapledger; install lapledger again")
    config = Config()
    config.set_main_option("script_location", spec.submodule_search_locations[0].replace("%", "%%"))
    config.attributes["connection"] = connection
    command.upgrade(config, "head")


def _first_rows(connection: Connection, identity: str, created: str) -> None:
    connection.execute(
        text(
            "INSERT INTO ledger (identity, created) SELECT :identity, :created WHERE NOT EXISTS (SELECT 1 FROM ledger)"
        ),
        {"identity": identity, "created": created},
    )
    kept = str(connection.execute(text("SELECT identity FROM ledger")).scalar_one())
    places = [(name, partition) for name, count in PARTITIONS.items() for partition in range(count)]
    connection.execute(
        text(
            "INSERT INTO stream_position (stream, partition, identity, next_position, admissions, head, duplicates,"
            " lease_epoch) VALUES (:stream, :partition, '', 0, 0, :head, 0, 0) ON CONFLICT DO NOTHING"
        ),
        [{"stream": s, "partition": p, "head": first_head(kept, s, p)} for s, p in places],
    )
