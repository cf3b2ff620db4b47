"""What the workers of one test run build once: the first that needs it builds it, the others wait and take it."""

import fcntl
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest


def run_folder(factory: pytest.TempPathFactory) -> Path:
    """The temporary folder that all workers of this run have in common."""
    base = factory.getbasetemp()
    return base.parent if base.name.startswith("popen-") else base


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Holds the lock file at `path` against other processes; it is released when its holder dies, too."""
    with path.open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def build_once(factory: pytest.TempPathFactory, name: str, build: Callable[[Path], object]) -> Path:
    """The folder `name` of the run, filled by `build`; for reading only, as all workers share it.

    A failed build leaves no mark, so that the next worker builds again and fails with the same message.
    """
    folder = run_folder(factory) / "shared" / name
    folder.mkdir(parents=True, exist_ok=True)
    complete = folder.with_name(f"{name}.complete")
    with locked(folder.with_name(f"{name}.lock")):
        if not complete.exists():
            shutil.rmtree(folder)
            folder.mkdir(exist_ok=True)  # another worker may have made it before it waits for the lock
            build(folder)
            complete.touch()
    return folder
