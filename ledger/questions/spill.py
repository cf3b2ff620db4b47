"""Private folders for what questions spill to disk: each goes with its question, or with a later one after a kill."""

import fcntl
import os
import shutil
import tempfile
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path

PREFIX = "lap-spill-"
TRIES = 3
"""Folders that are made until one is locked."""


def make_spill_folder() -> tuple[str, Callable[[], None]]:
    """A folder that its owner alone can read, and what removes it; "" where none can be made.

    It is locked while its process lives. Folders of dead processes are removed first.
    """
    try:
        _remove_left_behind(Path(tempfile.gettempdir()))
        for _ in range(TRIES):
            folder = Path(tempfile.mkdtemp(prefix=PREFIX))
            lock = _lock(folder)
            if lock is not None:  # else another process took it for one that was left behind, and removes it
                break
        return str(folder), partial(_remove, folder, lock)  # some filesystems have no locks; there none is removed
    except OSError:  # a full or read-only disk: questions that fit into memory are answered all the same
        return "", lambda: None


def _lock(folder: Path) -> int | None:
    """An open file that holds the lock of a folder; None when another process holds it or removed the folder."""
    try:
        handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    except OSError:
        return None
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        folder.stat()
    except OSError:  # locked by a process that lives, or removed meanwhile
        os.close(handle)
        return None
    return handle


def _remove(folder: Path, lock: int | None) -> None:
    shutil.rmtree(folder, ignore_errors=True)
    if lock is not None:
        os.close(lock)


def _remove_left_behind(root: Path) -> None:
    for folder in root.glob(f"{PREFIX}*"):
        with suppress(OSError):
            if folder.stat(follow_symlinks=False).st_uid == os.geteuid() and (lock := _lock(folder)) is not None:
                _remove(folder, lock)
