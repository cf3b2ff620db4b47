"""Blobs: each once, under its digest, whole or not at all."""

import errno
import hashlib
import os
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ledger.errors import DiskFull, Fault
from ledger.store.blobs import Blobs


@pytest.fixture
def blobs(tmp_path: Path) -> Blobs:
    """An empty store."""
    return Blobs(tmp_path / "blobs")


@settings(max_examples=20, deadline=None)
@given(st.lists(st.binary(max_size=50), max_size=5))
def test_blobs_come_back_by_their_sha256(tmp_path_factory: pytest.TempPathFactory, items: list[bytes]) -> None:
    """The name is what `sha256sum` prints; putting twice is harmless."""
    blobs = Blobs(tmp_path_factory.mktemp("blobs"))
    assert blobs.put_many(items) == [hashlib.sha256(item).hexdigest() for item in items]
    assert blobs.put_many(items) == [blobs.put(item) for item in items]
    assert [blobs.get(hashlib.sha256(item).hexdigest()) for item in items] == items
    assert list(blobs.digests()) == sorted({hashlib.sha256(item).hexdigest() for item in items})


def test_a_blob_is_read_only_and_lies_in_a_subfolder(blobs: Blobs) -> None:
    """A stored fact is not changed by accident."""
    digest = blobs.put(b"text")
    path = blobs.path(digest)
    assert path == blobs.folder / digest[:2] / digest
    assert path.stat().st_mode & 0o777 == 0o444
    assert list(blobs.strays()) == []


def test_a_missing_or_altered_blob_is_a_fault(blobs: Blobs) -> None:
    """`get` compares the digest every time."""
    digest = blobs.put(b"text")
    blobs.path(digest).chmod(0o644)
    blobs.path(digest).write_bytes(b"tex7")
    with pytest.raises(Fault, match="was altered"):
        blobs.get(digest)
    blobs.path(digest).unlink()
    assert not blobs.has(digest)
    with pytest.raises(Fault, match="is missing"):
        blobs.get(digest)


@pytest.mark.parametrize("name", ["", "../../etc/passwd", "A" * 64, "0" * 63, "0" * 64 + "\n"])
def test_only_a_digest_names_a_blob(blobs: Blobs, name: str) -> None:
    """No other word reaches the file system."""
    with pytest.raises(ValueError, match="is not a SHA-256"):
        blobs.path(name)


@pytest.mark.parametrize("call", ["fsync", "open"])
def test_a_full_disk_leaves_nothing_half_written(blobs: Blobs, monkeypatch: pytest.MonkeyPatch, call: str) -> None:
    """Whichever call reports it: one line, no blob, no leftover; the next attempt works."""
    kept = blobs.put(b"before")

    def full(*_args: object, **_names: object) -> int:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, call, full)
    with pytest.raises(DiskFull, match="disk is full; free some space"):
        blobs.put(b"new")
    monkeypatch.undo()
    assert [path.name for path in blobs.folder.rglob("*") if path.is_file()] == [kept]
    assert blobs.get(blobs.put(b"new")) == b"new"
