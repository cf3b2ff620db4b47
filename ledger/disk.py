"""Durable, immutable local files: written under a temporary name, synced, renamed, and their folder synced.

`LocalFiles` keeps the stored objects of a ledger in a folder; nothing here knows what the bytes mean.
"""

import os
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from lapledger.ledger.errors import DiskFull, io_fault

PART = ".part"
"""Suffix of a file that was never finished; such a leftover is harmless."""


@contextmanager
def translated(path: Path) -> Iterator[None]:
    """Turn an operating system's error about `path` into a Fault of one line; DiskFull when there is no room."""
    try:
        yield
    except OSError as error:
        raise io_fault(error, f"cannot store {path}") from error


def refuse_below_reserve(folder: Path, reserve_bytes: int, wanted_bytes: int = 0) -> None:
    """Raise DiskFull if fewer than `reserve_bytes` would be left on the disk of a folder after `wanted_bytes`.

    The reserve lets running processes shut down cleanly. A reserve of 0 disables the check.
    """
    if reserve_bytes <= 0:
        return
    with translated(folder):
        disk = os.statvfs(folder)
    free = disk.f_bavail * disk.f_frsize
    if free - wanted_bytes < reserve_bytes:
        raise DiskFull(
            f"cannot store in {folder}: {free >> 20} MiB are left and {reserve_bytes >> 20} MiB stay in reserve; free"
            " some space or lower the setting `reserve_mb`, and run it again, nothing was half-written"
        )


def make_folder(folder: Path) -> None:
    """Make a folder and its parents, durable in each parent; only the owner can read those that are made."""
    with translated(folder):
        missing = [path for path in (folder, *folder.parents) if not path.exists()]
        for path in reversed(missing):
            path.mkdir(mode=0o700, exist_ok=True)
        folder.mkdir(exist_ok=True)
    for path in missing:
        sync_folder(path.parent)


def make_private(path: Path) -> None:
    """Make an empty file that only its owner can read, unless it is there; whoever opens it reports what is wrong.

    An existing file is never opened: closing it would release the locks that SQLite holds on it in this process.
    """
    if path.exists():
        return
    with suppress(OSError):
        handle, name = tempfile.mkstemp(dir=path.parent, prefix=".", suffix=PART)
        os.close(handle)
        with suppress(FileExistsError):
            os.link(name, path)
        Path(name).unlink()


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
    """A fresh empty file in `folder`, removed at the end unless it was published."""
    with translated(folder):
        handle, name = tempfile.mkstemp(dir=folder, prefix=".", suffix=PART)
        os.close(handle)
    path = Path(name)
    try:
        yield path
    finally:
        path.unlink(missing_ok=True)


def publish(part: Path, path: Path) -> None:
    """Sync a finished temporary file and rename it to `path`, read-only; `sync_folder` makes the name durable."""
    with translated(path):
        handle = os.open(part, os.O_RDONLY)
        try:
            os.fsync(handle)
            os.fchmod(handle, 0o444)
        finally:
            os.close(handle)
        part.rename(path)


class LocalFiles:
    """Objects in a local folder, as read-only files; see `ledger.store.objects`. Several processes may write.

    `reserve_bytes` of the disk stay free: what would leave less raises DiskFull.
    """

    def __init__(self, folder: Path, reserve_bytes: int = 0) -> None:
        self.where = str(folder)
        self._folder = folder
        self._reserve_bytes = reserve_bytes

    @property
    def filesystem(self) -> Any:
        """Arrow's view of the folder."""
        from pyarrow import fs

        return fs.SubTreeFileSystem(str(self._folder.absolute()), fs.LocalFileSystem())

    def put(self, items: Iterable[tuple[str, bytes | Path]]) -> None:
        """Stores each content under its name; a file of `part` is moved there. The names are durable after `settle`."""
        for name, content in items:
            path = self._folder / name
            if not path.parent.is_dir():
                make_folder(path.parent)
            if isinstance(content, Path):
                if not _is_file_of(path, content.stat().st_size):
                    publish(content, path)
            elif not _is_file_of(path, len(content)):
                self._write(path, content)

    def _write(self, path: Path, content: bytes) -> None:
        refuse_below_reserve(path.parent, self._reserve_bytes, len(content))
        with temporary(path.parent) as part:
            with translated(path):
                part.write_bytes(content)
            publish(part, path)

    def settle(self, names: Iterable[str]) -> None:
        """Returns when these names are durable; each folder is synced once."""
        for folder in {(self._folder / name).parent for name in names}:
            sync_folder(folder)

    @contextmanager
    def part(self) -> Iterator[Path]:
        """A fresh empty file on the disk of the folder."""
        make_folder(self._folder)
        refuse_below_reserve(self._folder, self._reserve_bytes)
        with temporary(self._folder) as path:
            yield path

    def local(self, name: str) -> Path | None:
        """The path of the object, stored or not."""
        return self._folder / name


def _is_file_of(path: Path, size: int) -> bool:
    """True when the path holds a file of this size; its time is then refreshed, so that no collector takes it."""
    try:
        same_size = path.stat().st_size == size
        if same_size:
            with suppress(PermissionError):  # another user's file
                os.utime(path)
    except FileNotFoundError:
        return False
    return same_size
