"""Files that are whole or not there, and values that JSON can hold."""

import math
from pathlib import Path

import pytest

from lapledger.ledger.atomic_write import atomic_write, finite, write_atomically
from lapledger.ledger.errors import UserError


def half_way(path: Path) -> None:
    """A writer that fails."""
    with atomic_write(path) as part:
        part.write_bytes(b"ne")
        raise RuntimeError


def test_a_file_is_complete_or_absent(tmp_path: Path) -> None:
    """A failure half-way leaves what was there before, and no part of the new one."""
    write_atomically(tmp_path / "a", b"old")
    with pytest.raises(RuntimeError):
        half_way(tmp_path / "a")
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == {"a": b"old"}
    write_atomically(tmp_path / "a", b"new")
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == {"a": b"new"}


def test_a_path_that_cannot_be_written_is_one_line(tmp_path: Path) -> None:
    """A folder that is not there, and a folder where a file should be."""
    for path in (tmp_path / "absent" / "a", tmp_path):
        with pytest.raises(UserError, match="cannot write") as seen:
            write_atomically(path, b"")
        assert len(str(seen.value).splitlines()) == 1
    assert not (tmp_path / "absent").exists()


def test_what_is_no_number_becomes_null() -> None:
    """At any depth; whole numbers, words and truth stay, tuples become lists."""
    value = {"a": [math.nan, 1.5, (math.inf, 1)], "b": {"c": -math.inf}, "d": "nan", "e": True, "f": None}
    assert finite(value) == {"a": [None, 1.5, [None, 1]], "b": {"c": None}, "d": "nan", "e": True, "f": None}
