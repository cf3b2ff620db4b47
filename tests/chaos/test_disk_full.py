"""A disk that fills up at any page of any file: the command says so, nothing is half-written, and it goes on later."""

import json
import shutil
import sqlite3
from collections.abc import Callable
from contextlib import ExitStack, closing
from pathlib import Path

import pytest

from tests.chaos.nursery import Nursery

pytestmark = pytest.mark.chaos

TRIES = 6
FILES = {"ledger.sqlite", "stream.sqlite", "spool", "blobs", "segments"}


def test_a_full_disk_fails_the_command_and_nothing_else(
    victims: Nursery, empty: Path, tmp_path: Path, report: Callable[[str], None], times: int
) -> None:
    """In the logs of stream, database and spool, in blobs and Parquet: exit code 2, one line, and no half of a file.

    With room again the same command goes on, and the facts are those of a run on an empty disk.
    """
    failed = victims.done("small_disk", tmp_path, empty, TRIES * times, 0)
    full = {file: count for file, count in sorted(failed.items()) if file != "nowhere"}
    assert full.keys() == FILES
    counts = ", ".join(f"{file} {count}" for file, count in full.items())
    report(f"disk full: {sum(full.values())} of {sum(failed.values())} commands failed, writing {counts}")


@pytest.mark.parametrize("log", [False, True])
def test_a_full_disk_is_still_read(victims: Nursery, empty: Path, tmp_path: Path, *, log: bool) -> None:
    """Without one free page `status`, `verify` and `sql` answer as before; a backup that fails leaves nothing.

    With `log` the files are as a kill leaves them: SQLite's logs hold all that was written.
    """
    root, template = tmp_path / "ledger", tmp_path / "template"
    shutil.copytree(empty, root)
    with ExitStack() as stack:
        for name in ("ledger.sqlite", "stream.sqlite") if log else ():
            stack.enter_context(closing(sqlite3.connect(root / name))).execute("SELECT count(*) FROM sqlite_master")
        victims.done("write", root, "epoch-0", 0, 20)
        victims.done("sink", root)
        shutil.copytree(root, template)
    assert (template / "ledger.sqlite-wal").exists() == log
    (tmp_path / "disk").mkdir()
    ended = victims.done("commands_when_full", tmp_path / "disk", template)
    code, out = ended["verify"]
    assert (code, out.startswith("proven: ")) == (0, True), out
    code, out = ended["sql"]
    assert (code, json.loads(out)["rows"]) == (0, [[20]])
    code, out = ended["status"]
    assert code == 1
    assert log or "0 MiB free" in out  # what was merged into the file by the command before gave room back
    code, out = ended["backup"]
    assert (code, ("stay in reserve" if log else "disk is full") in out) == (2, True), out
    assert ended["left"][1] == "ledger"
