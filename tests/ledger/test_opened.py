"""Making, upgrading and opening a ledger."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from alembic.autogenerate import compare_metadata
from alembic.config import Config
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory
from ledger_facts import decision, new_ledger
from sqlalchemy import text
from sqlmodel import SQLModel

import ledger.store.tables
import migrations
from consumers.sink import drain
from ledger.errors import Fault, UserError
from ledger.store.engine import reading, writing
from ledger.store.opened import SCHEMA_REVISION, Ledger, create_ledger, open_ledger
from ledger.streams.local import LocalStream
from ledger.streams.producer import Producer
from producers.sandbox.bubblewrap import find_bwrap

assert ledger.store.tables


def test_a_fresh_ledger_is_empty_and_bound_to_its_identity(tmp_path: Path) -> None:
    """The head differs between ledgers before anything was admitted."""
    one = create_ledger(tmp_path / "one", "first", "now")
    two = create_ledger(tmp_path / "two", "second", "now")
    assert str(one.cut()) == "control=0,facts=0.0.0.0,requests=0"
    assert (one.identity, one.stream().identity("facts")) == ("first", "first")
    assert one.head() != two.head()


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
    monkeypatch.setattr("ledger.store.engine.os.access", lambda *_: False)
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
        pytest.skip("bubblewrap is not here")
    code = (
        "import sys, pathlib; from ledger.store.opened import open_ledger\n"
        "from ledger.errors import UserError\n"
        "try: print(open_ledger(pathlib.Path(sys.argv[1])).cut())\n"
        "except UserError as error: print(error)"
    )
    box = [str(bwrap), "--dev-bind", "/", "/", *sight, "--unshare-user", "--uid", "1000", "--gid", "1000"]
    done = subprocess.run([*box, sys.executable, "-c", code, str(root)], capture_output=True, text=True, check=False)
    if done.stderr.startswith("bwrap:"):
        pytest.skip(done.stderr)
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


def test_the_migrations_make_exactly_the_declared_tables(ledger: Ledger) -> None:
    """Alembic's own comparison sees no difference, types and constraints included."""
    with reading(ledger.engine) as connection:
        context = MigrationContext.configure(connection, opts={"compare_type": True})
        assert compare_metadata(context, SQLModel.metadata) == []


def test_the_schema_revision_is_the_newest_migration() -> None:
    """The constant that opening checks follows the migrations."""
    config = Config()
    config.set_main_option("script_location", str(Path(migrations.__file__).parent))
    assert ScriptDirectory.from_config(config).get_heads() == [SCHEMA_REVISION]


def test_read_paths_stay_light() -> None:
    """Reading and draining import neither the table classes nor alembic nor scipy."""
    heavy = "{'sqlmodel', 'pydantic', 'alembic', 'duckdb', 'scipy.stats', 'statsmodels'}"
    code = f"import sys, consumers.sink, ledger.store.reader, ledger.proof; print(sorted({heavy} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"
