"""Making a ledger and opening one: its SQL database, its stream, segments and blobs, wherever its location says.

Opening is fast and imports neither alembic nor sqlmodel; making or upgrading runs the migrations.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from sqlalchemy import Connection, Engine, text
from sqlalchemy.exc import DatabaseError

from lapledger.ledger.disk import LocalFiles, make_folder
from lapledger.ledger.errors import Fault, UserError
from lapledger.ledger.events import PARTITIONS
from lapledger.ledger.store.cuts import Cut
from lapledger.ledger.store.heads import first_head, ledger_head
from lapledger.ledger.store.location import SQL_FILE, STREAM_FILE, LedgerPath, Location, location_of
from lapledger.ledger.store.objects.blobs import Blobs
from lapledger.ledger.store.objects.objects import Files
from lapledger.ledger.store.objects.s3 import S3Files
from lapledger.ledger.store.segments import Segments
from lapledger.ledger.store.sql.engine import alone, check_encoding, open_engine, reading, writing
from lapledger.ledger.store.sql.statements import LEDGER_IDENTITIES, MANIFEST_CHAIN
from lapledger.ledger.streams.kafka.stream import KafkaStream
from lapledger.ledger.streams.local import LocalStream

SCHEMA_REVISION = "0002"
"""The newest migration. Revisions are numbered with equal width, so that texts compare like numbers."""


@dataclass(frozen=True, slots=True)
class Ledger:
    """An open ledger. `identity` is the random id it was created with."""

    location: Location
    identity: str
    engine: Engine
    blobs: Blobs
    segments: Segments

    @property
    def root(self) -> Path:
        """The local folder of the ledger."""
        return self.location.root

    def stream(self) -> LocalStream | KafkaStream:
        """The ledger's stream, opened; close it when done."""
        return open_stream(self.location)

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
    manifests = connection.execute(MANIFEST_CHAIN).scalars().all()
    return ledger_head(heads, manifests)


def create_ledger(path: LedgerPath, identity: str, created: str, *, stream_identity: str | None = None) -> Ledger:
    """The ledger at a path, created with this identity and time label; one that exists is upgraded, nothing lost.

    A local stream that is missing is created with `stream_identity`, or the ledger's.
    UserError when a newer lapledger made it, or the folder is on a network filesystem; Fault when the disk is full.
    """
    location = location_of(path)
    with making(location, stream_identity or identity) as (connection, fresh):
        if not fresh and holds_nothing(connection):
            raise _unfinished(location)
        _first_rows(connection, identity, created)
    return open_ledger(location)


@contextmanager
def making(location: Location, stream_identity: str) -> Iterator[tuple[Connection, bool]]:
    """A transaction in a location's database, its tables made or upgraded, and whether they were made by it.

    Folders and stream are made before. No other process makes or upgrades tables meanwhile.
    """
    make_folder(location.root)
    if not location.store:
        for name in ("segments", "blobs"):
            make_folder(location.root / name)
    if location.kafka is None:
        LocalStream.create(location.root / STREAM_FILE, stream_identity).close()
    else:
        KafkaStream.create(location.kafka).close()
    engine = open_engine(location.sql_url)
    try:
        with _foreign_file(location), writing(engine) as connection:
            check_encoding(connection)
            alone(connection, "upgrade")
            revision = _revision(connection)
            _refuse_newer(location, revision)
            _upgrade(connection)
            yield connection, revision is None
    finally:
        engine.dispose()


def holds_nothing(connection: Connection) -> bool:
    """True when there are tables without a ledger: a copy into them did not end."""
    counts = "SELECT (SELECT count(*) FROM ledger) + (SELECT count(*) FROM stream_position)"
    return int(connection.execute(text(counts)).scalar_one()) == 0


def _unfinished(location: Location) -> UserError:
    return UserError(
        f"a copy into {location} did not end, there is no ledger yet; run the same `lap ledger copy`, `backup` or"
        " `restore` again, it goes on"
    )


def open_ledger(path: LedgerPath) -> Ledger:
    """The ledger at a path; UserError when there is none, or another version of lapledger must open it."""
    location = location_of(path)
    if not location.sql and not (location.root / SQL_FILE).is_file():
        raise UserError(f"there is no ledger in {location}; make one with `lap ledger init`")
    engine = open_engine(location.sql_url)
    try:
        with _foreign_file(location), reading(engine) as connection:
            _check_revision(location, _revision(connection))
            identity = _identity(location, connection)
        blobs, segments = open_files(location)
    except BaseException:
        engine.dispose()
        raise
    return Ledger(location, identity, engine, blobs, segments)


def open_stream(location: Location) -> LocalStream | KafkaStream:
    """The stream at a location, opened; close it when done."""
    if location.kafka is not None:
        return KafkaStream(location.kafka)
    return LocalStream(location.root / STREAM_FILE, location.reserve_bytes)


def open_files(location: Location) -> tuple[Blobs, Segments]:
    """The stores of blobs and segments at a location."""
    return Blobs(_files(location, "blobs")), Segments(_files(location, "segments"))


def _files(location: Location, name: str) -> Files:
    if location.store:
        scratch = location.root / "scratch"
        return S3Files(location.store, name, scratch=scratch, reserve_bytes=location.reserve_bytes)
    return LocalFiles(location.root / name, location.reserve_bytes)


@contextmanager
def _foreign_file(location: Location) -> Iterator[None]:
    try:
        yield
    except Exception as error:
        cause = error.__cause__
        if isinstance(cause, DatabaseError) and "not a database" in str(cause.orig):
            raise UserError(
                f"{location.root / SQL_FILE} is no database; choose another folder or restore the file"
            ) from error
        raise


def _identity(location: Location, connection: Connection) -> str:
    """The id of the ledger; UserError when a copy did not end, Fault when its row was lost or doubled."""
    if holds_nothing(connection):
        raise _unfinished(location)
    identities = connection.execute(LEDGER_IDENTITIES).scalars().all()
    if len(identities) != 1:
        raise Fault(f"the ledger in {location} has {len(identities)} identity rows, expected 1; restore it from a copy")
    return str(identities[0])


def _revision(connection: Connection) -> str | None:
    """The number of the last migration that ran, None in an empty database."""
    if not connection.dialect.has_table(connection, "alembic_version"):
        return None
    revision = connection.execute(text("SELECT version_num FROM alembic_version")).scalar_one_or_none()
    return None if revision is None else str(revision)


def _check_revision(location: Location, revision: str | None) -> None:
    if revision is None:
        raise UserError(f"there is no ledger in {location}; make one with `lap ledger init`")
    _refuse_newer(location, revision)
    if revision < SCHEMA_REVISION:
        raise UserError(
            f"the ledger in {location} has the older schema {revision};"
            f" `lap ledger init` upgrades it to {SCHEMA_REVISION}"
        )


def _refuse_newer(location: Location, revision: str | None) -> None:
    if revision is not None and revision > SCHEMA_REVISION:
        raise UserError(
            f"the ledger in {location} was made by a newer lapledger (schema {revision}, this one knows"
            f" {SCHEMA_REVISION}); upgrade lapledger"
        )


def _upgrade(connection: Connection) -> None:
    from alembic import command
    from alembic.config import Config

    spec = find_spec("lapledger.migrations")
    if spec is None or not spec.submodule_search_locations:
        raise UserError("the package `lapledger.migrations` is missing; install lapledger again")
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
    kept = str(connection.execute(LEDGER_IDENTITIES).scalar_one())
    known = {tuple(row) for row in connection.execute(text("SELECT stream, partition FROM stream_position"))}
    partitions = [(name, partition) for name, count in PARTITIONS.items() for partition in range(count)]
    for stream, partition in partitions:
        if (stream, partition) not in known:
            connection.execute(
                text(
                    "INSERT INTO stream_position (stream, partition, identity, next_position, admissions, head,"
                    " duplicates, lease_epoch) VALUES (:stream, :partition, '', 0, 0, :head, 0, 0)"
                ),
                {"stream": stream, "partition": partition, "head": first_head(kept, stream, partition)},
            )
