"""Durable, immutable files: written under a temporary name, synced, renamed, and their folder synced.

Content-addressed stores build on these few steps; nothing here knows what the bytes mean.
"""

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from ledger.errors import io_fault

PART = ".part"
"""Suffix of a file that was never finished; such a leftover is harmless."""


@contextmanager
def translated(path: Path) -> Iterator[None]:
    """Turns an operating system's error about `path` into a Fault of one line; DiskFull when there is no room."""
    try:
        yield
    except OSError as error:
        raise io_fault(error, f"cannot store {path}") from error


def make_folder(folder: Path) -> None:
    """Makes a folder and its parents, durable in each parent."""
    with translated(folder):
        missing = [path for path in (folder, *folder.parents) if not path.exists()]
        folder.mkdir(parents=True, exist_ok=True)
    for path in missing:
        sync_folder(path.parent)


def sync_folder(folder: Path) -> None:
    """Returns when the names in a folder are durable."""
    with translated(folder):
        handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


@contextmanager
def temporary(folder: Path) -> Iterator[Path]:
    """A fresh empty file in `folder`, removed at the end unless it was placed under its name."""
    with translated(folder):
        handle, name = tempfile.mkstemp(dir=folder, prefix=".", suffix=PART)
        os.close(handle)
    path = Path(name)
    try:
        yield path
    finally:
        path.unlink(missing_ok=True)


def place(part: Path, path: Path) -> None:
    """Syncs a finished temporary file and gives it its name; `sync_folder` makes the name durable."""
    with translated(path):
        handle = os.open(part, os.O_RDONLY)
        try:
            os.fsync(handle)
            os.fchmod(handle, 0o444)
        finally:
            os.close(handle)
        part.rename(path)


def write_once(path: Path, data: bytes) -> None:
    """Stores bytes under a name that their content decides, so an existing file is left as it is."""
    if path.exists():
        return
    with temporary(path.parent) as part:
        with translated(path):
            part.write_bytes(data)
        place(part, path)
