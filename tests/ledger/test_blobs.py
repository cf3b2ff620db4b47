"""Blobs: each once, under its digest, whole or not at all."""

import errno
import hashlib
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lapledger.ledger.disk import LocalFiles
from lapledger.ledger.errors import DiskFull, Fault
from lapledger.ledger.store.objects.blobs import Blobs
from lapledger.ledger.store.objects.objects import Files
from lapledger.ledger.store.objects.s3 import S3Files
from tests.support.s3_servers import S3Server


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Where the local store lies."""
    return tmp_path / "blobs"


@pytest.fixture(params=["local", "s3"])
def files(request: pytest.FixtureRequest, folder: Path) -> Files:
    """An empty store of either kind."""
    if request.param == "local":
        return LocalFiles(folder)
    server: S3Server = request.getfixturevalue("s3")
    return S3Files(server.url(folder.parent.name), "blobs")


@pytest.fixture
def blobs(files: Files) -> Blobs:
    """Blobs of either kind."""
    return Blobs(files)


@pytest.fixture
def local(folder: Path) -> Blobs:
    """Blobs in a folder."""
    return Blobs(LocalFiles(folder))


@settings(max_examples=20, deadline=None)
@given(st.lists(st.binary(max_size=50), max_size=5))
def test_blobs_come_back_by_their_sha256(tmp_path_factory: pytest.TempPathFactory, items: list[bytes]) -> None:
    """The name is what `sha256sum` prints; putting twice is harmless."""
    blobs = Blobs(LocalFiles(tmp_path_factory.mktemp("blobs")))
    assert blobs.put_many(items) == [hashlib.sha256(item).hexdigest() for item in items]
    assert blobs.put_many(items) == [blobs.put(item) for item in items]
    assert [blobs.get(hashlib.sha256(item).hexdigest()) for item in items] == items
    assert list(blobs.digests()) == sorted({hashlib.sha256(item).hexdigest() for item in items})


def test_many_blobs_are_put_and_named_in_order(blobs: Blobs) -> None:
    """Doubles and the empty blob among them."""
    items = [b"", b"b", b"a", b"b", *(str(number).encode() for number in range(40))]
    digests = blobs.put_many(iter(items))
    assert digests == [hashlib.sha256(item).hexdigest() for item in items]
    assert [blobs.get(digest) for digest in digests] == items
    assert list(blobs.digests()) == sorted(set(digests))
    assert all(blobs.has(digest) and blobs.is_intact(digest) for digest in digests)


def test_a_local_blob_is_read_only_and_lies_in_a_subfolder(local: Blobs, folder: Path) -> None:
    """A stored fact is not changed by accident."""
    digest = local.put(b"text")
    path = folder / digest[:2] / digest
    assert local.where(digest) == str(path)
    assert path.stat().st_mode & 0o777 == 0o444
    assert list(local.strays()) == []


def test_a_missing_or_altered_blob_is_a_fault(blobs: Blobs, files: Files) -> None:
    """`get` compares the digest every time; `is_intact` does without the bytes."""
    digest = blobs.put(b"text")
    blobs.remove(blobs.name(digest))
    files.put([(blobs.name(digest), b"tex7")])
    with pytest.raises(Fault, match=f"blob {blobs.where(digest)} was altered; restore it from a copy"):
        blobs.get(digest)
    assert not blobs.is_intact(digest)
    blobs.remove(blobs.name(digest))
    assert not blobs.has(digest)
    for call in (blobs.get, blobs.is_intact):
        with pytest.raises(Fault, match=f"blob {blobs.where(digest)} is missing; run `lap verify`, restore it"):
            call(digest)


def test_strays_are_no_blobs(blobs: Blobs, files: Files) -> None:
    """Unfinished, misplaced or foreign: none is taken for a blob, all are told."""
    digest = blobs.put(b"text")
    names = ["notes.txt", f"{digest[:2]}/.x.part", f"zz/{digest}", digest]
    files.put([(name, b"mine") for name in names])
    assert list(blobs.digests()) == [digest]
    assert sorted(blobs.strays()) == sorted(f"{files.where}/{name}" for name in names)
    assert sorted(stored.name for stored in blobs.listing()) == sorted([*names, blobs.name(digest)])


def test_programs_get_a_local_file_of_a_blob(blobs: Blobs, files: Files, tmp_path: Path) -> None:
    """The stored file itself where there is one; else a checked copy, fetched once."""
    digest, scratch = blobs.put(b"print(1)"), tmp_path / "scratch"
    path = blobs.local(digest, scratch)
    assert (path.read_bytes(), path.stat().st_mode & 0o777) == (b"print(1)", 0o444)
    assert path == (files.local(blobs.name(digest)) or scratch / digest)
    blobs.remove(blobs.name(digest))
    assert path == scratch / digest or not path.exists()
    assert blobs.local(digest, scratch) == path


@pytest.mark.parametrize("name", ["", "../../etc/passwd", "A" * 64, "0" * 63, "0" * 64 + "\n"])
def test_only_a_digest_names_a_blob(local: Blobs, name: str) -> None:
    """No other word reaches the store."""
    with pytest.raises(ValueError, match="is not a SHA-256"):
        local.name(name)


@pytest.mark.parametrize("call", ["fsync", "open"])
def test_a_full_disk_leaves_nothing_half_written(
    local: Blobs, folder: Path, monkeypatch: pytest.MonkeyPatch, call: str
) -> None:
    """Whichever call reports it: one line, no blob, no leftover; the next attempt works."""
    kept = local.put(b"before")

    def full(*_args: object, **_names: object) -> int:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, call, full)
    with pytest.raises(DiskFull, match="disk is full; free some space"):
        local.put(b"new")
    monkeypatch.undo()
    assert [path.name for path in folder.rglob("*") if path.is_file()] == [kept]
    assert local.get(local.put(b"new")) == b"new"


KILLED = """
import sys
from pathlib import Path
from lapledger.ledger.failpoint import arm
from lapledger.ledger.store.objects.blobs import Blobs
from lapledger.ledger.disk import LocalFiles
arm("blob.put.placed", hits=2)
Blobs(LocalFiles(Path(sys.argv[1]))).put_many([b"1", b"2", b"3"])
"""


def test_a_put_that_is_killed_leaves_complete_blobs(local: Blobs, folder: Path) -> None:
    """Dead after the second of three: two are there, nothing else, and putting all again completes them."""
    done = subprocess.run([sys.executable, "-c", KILLED, folder], check=False)
    assert done.returncode == -signal.SIGKILL
    assert sorted(local.get(digest) for digest in local.digests()) == [b"1", b"2"]
    assert list(local.strays()) == []
    assert [local.get(digest) for digest in local.put_many([b"1", b"2", b"3"])] == [b"1", b"2", b"3"]
