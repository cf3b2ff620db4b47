"""What a ledger makes is its owner's: folders and files that nobody else can read, whatever the umask."""

import os
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from lapledger.consumers.ingest.sink import drain
from lapledger.consumers.storage.sealer import seal
from lapledger.ledger.disk import make_private
from lapledger.ledger.streams.producer import Producer
from tests.ledger.facts import decision, new_ledger


@pytest.fixture
def open_umask() -> Iterator[None]:
    """A umask that hides nothing."""
    before = os.umask(0)
    yield
    os.umask(before)


@pytest.mark.usefixtures("open_umask")
@pytest.mark.parametrize("existed", [False, True])
def test_a_new_ledger_can_be_read_by_its_owner_only(tmp_path: Path, *, existed: bool) -> None:
    """Its folder where it was made, and in any case what is in it: database, stream, blobs and segments."""
    root = tmp_path / "ledger"
    if existed:
        root.mkdir(mode=0o755)
    with closing(new_ledger(root)) as ledger, closing(ledger.stream()) as stream:
        ledger.blobs.put(b"secret")
        Producer(stream, "epoch", "test", "0").append([decision(1)])
        drain(ledger, stream)
        seal(ledger)
        modes = {path.name: path.stat().st_mode & 0o777 for path in root.iterdir()}
    assert modes["blobs"] == modes["segments"] == 0o700
    assert {mode for name, mode in modes.items() if ".sqlite" in name} == {0o600}
    assert root.stat().st_mode & 0o777 == (0o755 if existed else 0o700)


def test_a_database_that_is_there_keeps_its_locks(tmp_path: Path) -> None:
    """Opening and closing it would release those that this process holds: another process still waits."""
    path = tmp_path / "x.sqlite"
    make_private(path)
    assert path.stat().st_mode & 0o777 == 0o600
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("CREATE TABLE t (a)")
        connection.execute("BEGIN IMMEDIATE")
        make_private(path)
        script = f"import sqlite3; sqlite3.connect({str(path)!r}, timeout=0).execute('BEGIN IMMEDIATE')"
        done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
        assert "database is locked" in done.stderr
    assert sorted(item.name for item in tmp_path.iterdir()) == ["x.sqlite"]
