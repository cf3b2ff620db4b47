"""Writes a folder that is whole or not there: made beside its place under a hidden name, then renamed."""

import shutil
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path

from lapledger.ledger.errors import UserError, io_fault

Writer = Callable[[Path], None]
"""Writes one file at a path that does not exist yet."""


def write_folder(folder: Path, files: Mapping[str, Writer], on_progress: Callable[[], None] = lambda: None) -> None:
    """Writes every file below a folder that does not exist yet; `on_progress` is called after each.

    UserError when something lies there, or the place cannot be written; DiskFull without room. A failure leaves
    nothing.
    """
    if folder.exists():
        raise UserError(f"{folder} exists; name a folder that does not, or remove this one first")
    try:
        part = Path(tempfile.mkdtemp(dir=folder.parent, prefix=f".{folder.name}.", suffix=".part"))
    except OSError as error:
        raise io_fault(error, f"cannot write {folder}") from error
    try:
        for name, write in files.items():
            path = part / name
            path.parent.mkdir(parents=True, exist_ok=True)
            write(path)
            on_progress()
        part.chmod(0o755)
        part.rename(folder)
    except OSError as error:
        raise io_fault(error, f"cannot write {folder}") from error
    finally:
        shutil.rmtree(part, ignore_errors=True)
