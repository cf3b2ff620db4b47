"""Making, upgrading and opening a ledger."""

import shutil
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import psycopg
import pytest
from alembic import command
from alembic.autogenerate import compare_metadata
from alembic.config import Config
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import text
from sqlmodel import SQLModel

import lapledger.ledger.store.sql.tables
from lapledger import migrations
from lapledger.consumers.ingest.sink import drain
from lapledger.consumers.storage.compactor import compact
from lapledger.consumers.storage.sealer import seal
from lapledger.ledger.errors import Fault, Unavailable, UserError
from lapledger.ledger.frames.frame import Record, encode
from lapledger.ledger.proof import verify
from lapledger.ledger.store.location import Location
from lapledger.ledger.store.open_ledger import SCHEMA_REVISION, Ledger, create_ledger, open_ledger
from lapledger.ledger.store.reader import events
from lapledger.ledger.store.sql.engine import open_engine, reading, writing
from lapledger.ledger.streams.local import LocalStream
from lapledger.ledger.streams.producer import Producer
from lapledger.producers.sandbox.bubblewrap import find_bwrap
from tests.ledger.facts import chain_frames, decision, new_ledger
from tests.support.databases import Kind, Server

assert lapledger.ledger.store.sql.tables


def test_a_fresh_ledger_is_empty_and_bound_to_its_identity(tmp_path: Path) -> None:
    """The head differs between ledgers before anything was admitted."""
    item = create_ledger(tmp_path / "one", "first", "now")
    two = create_ledger(tmp_path / "two", "second", "now")
    assert str(item.cut()) == "control=0,facts=0,requests=0"
    assert (item.identity, item.stream().identity("facts")) == ("first", "first")
    assert item.head() != two.head()


def test_making_a_ledger_again_loses_nothing(ledger: Ledger, stream: LocalStream) -> None:
    """`create_ledger` on a ledger keeps its identity, facts and head."""
    Producer(stream, "epoch", "test", "0").append([decision(0)])
    drain(ledger, stream)
    again = create_ledger(ledger.root, "another", "later")
    assert (again.identity, again.head(), again.cut()) == (ledger.identity, ledger.head(), ledger.cut())
    assert again.stream().identity("facts") == "identity-0"


def test_a_folder_without_a_ledger_is_the_users_mistake(tmp_path: Path) -> None:
    """Opening makes nothing."""
    with pytest.raises(UserError, match="lap ledger init"):
        open_ledger(tmp_path)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("revision", "message"),
    [
        ("9999", "was made by a newer lapledger .schema 9999.*upgrade lapledger"),
        ("0000", "`lap ledger init` upgrades it"),
    ],
)
def test_another_schema_is_refused_with_what_to_do(ledger: Ledger, revision: str, message: str) -> None:
    """Known from the number of the last migration alone."""
    with writing(ledger.engine) as connection:
        connection.execute(text("UPDATE alembic_version SET version_num = :revision"), {"revision": revision})
    with pytest.raises(UserError, match=message):
        open_ledger(ledger.root)
    if revision > SCHEMA_REVISION:
        with pytest.raises(UserError, match="newer"):
            create_ledger(ledger.root, "x", "now")


def test_an_interrupted_making_is_finished_by_the_next(tmp_path: Path) -> None:
    """A folder with the stream only, or with an empty database, becomes a ledger."""
    new_ledger(tmp_path / "a").close()
    for path in (tmp_path / "a").glob("ledger.sqlite*"):
        path.unlink()
    (tmp_path / "a" / "ledger.sqlite").touch()
    with pytest.raises(UserError, match="lap ledger init"):
        open_ledger(tmp_path / "a")
    assert new_ledger(tmp_path / "a").cut() == new_ledger(tmp_path / "b").cut()


def test_a_database_that_is_none_is_the_users_mistake(ledger: Ledger) -> None:
    """For opening and making alike, and nothing is written over it."""
    root = ledger.root.parent / "copy"
    shutil.copytree(ledger.root, root)
    (root / "ledger.sqlite").write_bytes(b"something else" * 100)
    for action in (lambda: open_ledger(root), lambda: create_ledger(root, "x", "now")):
        with pytest.raises(UserError, match="is no database"):
            action()
    assert (root / "ledger.sqlite").read_bytes() == b"something else" * 100


def test_a_live_ledger_is_read_in_a_folder_that_cannot_be_written(
    ledger: Ledger, stream: LocalStream, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What its writer admits later is seen too: the file is never taken for one that does not change."""
    monkeypatch.setattr("lapledger.ledger.store.sql.engine.os.access", lambda *_: False)
    reader = open_ledger(ledger.root)
    try:
        for number in range(2):
            Producer(stream, f"epoch-{number}", "test", "0").append([decision(number)])
            drain(ledger, stream)
            assert (reader.cut(), reader.head()) == (ledger.cut(), ledger.head())
    finally:
        reader.close()


def _cut_seen(root: Path, *sight: str) -> str:
    """What another user without any rights sees of a ledger: its cut, or the error; `sight` is how it is mounted."""
    bwrap = find_bwrap()
    if bwrap is None:
        pytest.skip("no bubblewrap for this architecture, so no view of a read-only file system can be made")
    code = (
        "import sys, pathlib; from lapledger.ledger.store.open_ledger import open_ledger\n"
        "from lapledger.ledger.errors import UserError\n"
        "try: print(open_ledger(pathlib.Path(sys.argv[1])).cut())\n"
        "except UserError as error: print(error)"
    )
    box = [str(bwrap), "--dev-bind", "/", "/", *sight, "--unshare-user", "--uid", "1000", "--gid", "1000"]
    done = subprocess.run([*box, sys.executable, "-c", code, str(root)], capture_output=True, text=True, check=False)
    if done.stderr.startswith("bwrap:"):
        pytest.skip(f"this machine refuses user namespaces, which make a read-only file system: {done.stderr.strip()}")
    return done.stdout.strip()


def test_a_ledger_on_a_read_only_file_system_is_read(ledger: Ledger, stream: LocalStream) -> None:
    """Beside its live writer with all that is in the log, and when nobody has it open; else only where it is sure."""
    Producer(stream, "epoch", "test", "0").append([decision(0)])
    drain(ledger, stream)
    stream.close()
    root, cut = ledger.root, str(ledger.cut())
    assert root.joinpath("ledger.sqlite-wal").stat().st_size
    assert _cut_seen(root, "--ro-bind", str(root), str(root)) == cut
    ledger.close()
    assert not root.joinpath("ledger.sqlite-wal").exists()
    assert _cut_seen(root, "--ro-bind", str(root), str(root)) == cut
    root.chmod(0o555)
    assert "cannot be read in a folder that you cannot write; copy the ledger" in _cut_seen(root)


def test_a_full_disk_while_writing_is_a_fault_of_one_line(ledger: Ledger) -> None:
    """The database's own page limit stands for the disk; the transaction leaves no trace."""
    insert = text(
        "INSERT INTO quarantine (stream, partition, source_offset, reason, message, headers, payload, seen)"
        " VALUES ('s', 0, 0, 'r', 'm', '{}', :payload, '')"
    )

    def overfill() -> None:
        with writing(ledger.engine) as connection:
            connection.execute(text("PRAGMA max_page_count = 40"))
            connection.execute(insert, {"payload": bytes(1 << 20)})

    with pytest.raises(Fault, match="full") as caught:
        overfill()
    assert "\n" not in str(caught.value)
    with reading(ledger.engine) as connection:
        assert connection.execute(text("SELECT count(*) FROM quarantine")).scalar_one() == 0


def differences(ledger: Ledger) -> list[object]:
    """What Alembic's own comparison finds between the database and the declared tables."""
    with reading(ledger.engine) as connection:
        context = MigrationContext.configure(connection, opts={"compare_type": True})
        return list(compare_metadata(context, SQLModel.metadata))


def test_the_migrations_make_exactly_the_declared_tables(both: Ledger) -> None:
    """Types, keys, indexes and constraints included, in both databases."""
    assert differences(both) == []


OLD_COLUMNS = {
    "ledger": "identity, created",
    "stream_position": "stream, partition, identity, next_position, admissions, head, duplicates, lease_epoch",
    "frame": "*",
    "tail": "*",
    "gap": "*",
    "segment": "*",
    "quarantine": "stream, partition, source_offset, reason, message, headers, payload, seen",
}


def old_ledger(kind: Kind, ledger: Ledger) -> Location:
    """A ledger as the first release left it: its revision, its tables, one partition of requests."""
    location = kind.location("old")
    shutil.copytree(ledger.root, location.root, ignore=shutil.ignore_patterns("ledger.sqlite*"))
    engine = open_engine(location.sql_url)
    config = Config()
    config.set_main_option("script_location", str(Path(migrations.__file__).parent))
    with writing(engine) as connection, reading(ledger.engine) as donor:
        config.attributes["connection"] = connection
        command.upgrade(config, "0001")
        for table, columns in OLD_COLUMNS.items():
            for row in donor.execute(text(f"SELECT {columns} FROM {table}")).mappings():
                if table != "stream_position" or (row["stream"], row["partition"] > 0) != ("requests", True):
                    names = ", ".join(f'"{name}"' for name in row)
                    values = ", ".join(f":{name}" for name in row)
                    connection.execute(text(f"INSERT INTO {table} ({names}) VALUES ({values})"), dict(row))
    engine.dispose()
    return location


def test_a_ledger_of_the_first_release_is_upgraded(kind: Kind, both: Ledger) -> None:
    """Nothing is lost: the same head, sealed and unsealed frames, ranges of its segments; and work goes on."""
    frames = [encode(frame) for frame in chain_frames([decision(n) for n in range(7)])]
    partition = int(frames[0].headers["ce_lappartition"])
    with closing(both.stream()) as stream:
        for few in (frames[:2], frames[2:4], [frames[5], Record({}, b"broken")]):
            seal(both)
            stream.append("facts", partition, few)
            drain(both, stream)
    position = old_ledger(kind, both)
    with pytest.raises(UserError, match="has the older schema 0001; `lap ledger init` upgrades it to 0002"):
        open_ledger(position)
    with closing(create_ledger(position, "unused", "later")) as upgraded:
        assert (upgraded.identity, upgraded.cut(), upgraded.head()) == (both.identity, both.cut(), both.head())
        assert differences(upgraded) == []
        ranges = "SELECT ordinal, stream, partition, type, version, first, last FROM segment_range ORDER BY 1"
        with reading(upgraded.engine) as connection, reading(both.engine) as donor:
            result = [tuple(row) for row in connection.execute(text(ranges))]
            assert result == [tuple(row) for row in donor.execute(text(ranges))]
            assert [row[5:] for row in result] == [(1, 2), (3, 4)]
            assert connection.execute(text("SELECT count(*) FROM stream_position")).scalar_one() == 13
        with pytest.raises(Fault, match="immutable"), writing(upgraded.engine) as connection:
            connection.execute(text("DELETE FROM frame"))
        complete = events(both, "filter.decided", 1, both.cut())
        assert events(upgraded, "filter.decided", 1, upgraded.cut()).equals(complete)
        seal(upgraded)
        compact(upgraded, 0)
        assert events(upgraded, "filter.decided", 1, both.cut()).equals(complete)
        assert verify(upgraded).problems == ()


def test_a_database_that_cannot_keep_every_text_is_refused(postgres_server: Server, tmp_path: Path) -> None:
    """Before anything is made in it."""
    with psycopg.connect(postgres_server.url, autocommit=True) as connection:
        connection.execute("CREATE DATABASE latin ENCODING 'LATIN1' LOCALE 'C' TEMPLATE template0")
    position = Location(tmp_path, postgres_server.url.replace("/postgres?", "/latin?"))
    with pytest.raises(UserError, match=r"is in LATIN1; make another one with `createdb -E UTF8`"):
        create_ledger(position, "x", "now")


@pytest.mark.parametrize(
    ("sql", "kind_of", "args"),
    [
        ("postgresql://u:hush@127.0.0.1:1/x", Unavailable, r"postgresql://127\.0\.0\.1:1/x does not answer"),
        ("postgresql://u:hush@nowhere.invalid/x?password=hush", Unavailable, "does not answer"),
        ("postgresql://u:a@hush@127.0.0.1/x", UserError, "has an @ in its password; write it as %40"),
        ("postgresql://u:hush@127.0.0.1:hush/x", UserError, "no database address"),
        ("mysql://u:hush@127.0.0.1/x", UserError, "only postgresql:// is supported"),
        ("hush", UserError, "no database address"),
    ],
)
def test_messages_about_a_database_never_show_its_password(
    tmp_path: Path, sql: str, kind_of: type[Exception], args: str
) -> None:
    """Whatever is wrong with the address or the server."""
    with pytest.raises(kind_of, match=args) as caught:
        open_ledger(Location(tmp_path, sql))
    assert "hush" not in str(caught.value)
    assert "hush" not in repr(Location(tmp_path, sql))


def test_a_server_that_lacks_what_is_requested_for_reports_so(postgres_server: Server, tmp_path: Path) -> None:
    """No such database, no such user, and a database without a ledger."""
    for url, args in (
        (postgres_server.url.replace("/postgres?", "/nosuch?"), "does not exist; make it with `createdb -E UTF8`"),
        (
            postgres_server.url.replace("postgres@", "nobody@"),
            'role "nobody" does not exist; correct',
        ),
        (postgres_server.database(), "there is no ledger in .*; make one with `lap ledger init`"),
    ):
        with pytest.raises(UserError, match=args):
            open_ledger(Location(tmp_path, url))


def test_a_connection_that_died_is_replaced(both: Ledger, kind: Kind) -> None:
    """PostgreSQL: the next transaction after a lost connection gets a new one; the one that lost it says so."""
    if not kind.server:
        return
    end = text("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid <> pg_backend_pid()")

    def lose() -> None:
        with reading(both.engine) as connection:
            with psycopg.connect(kind.server.url) as second:
                second.execute(str(end))
            connection.execute(text("SELECT 1"))

    with pytest.raises(Unavailable, match="does not answer"):
        lose()
    assert both.cut() == both.cut()


def test_the_schema_revision_is_the_newest_migration() -> None:
    """The constant that opening checks follows the migrations."""
    config = Config()
    config.set_main_option("script_location", str(Path(migrations.__file__).parent))
    assert ScriptDirectory.from_config(config).get_heads() == [SCHEMA_REVISION]


def test_read_paths_stay_light() -> None:
    """Reading and draining import neither the table classes nor alembic nor scipy."""
    heavy = "{'sqlmodel', 'pydantic', 'alembic', 'duckdb', 'scipy.stats', 'statsmodels'}"
    modules = "lapledger.consumers.ingest.sink, lapledger.ledger.store.reader, lapledger.ledger.proof"
    code = f"import sys, {modules}; print(sorted({heavy} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"
