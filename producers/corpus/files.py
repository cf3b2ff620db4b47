"""The files of one package folder, found and read within bounds: the only module here that touches the disk.

Symbolic links are followed inside the package only. Sizes, kinds, names and depth are checked before a byte is read, so
that a hostile or broken folder ends in one line and never in a full memory or an endless walk.
"""

import os
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn

from lapledger.ledger.errors import UserError

MAX_FILE_BYTES = 64 * 2**20
MAX_TOTAL_BYTES = 2**30
MAX_FILES = 100_000
MAX_DEPTH = 16

_IGNORED = ("__pycache__",)


@dataclass(frozen=True, slots=True)
class Files:
    """The regular files of a package: their paths relative to it, in the order of the format."""

    folder: Path
    paths: tuple[str, ...]

    def under(self, prefix: str) -> list[str]:
        """The paths that lie below a folder, in order."""
        return [path for path in self.paths if path.startswith(f"{prefix}/")]

    def where(self, path: str) -> str:
        """A path as it is shown to a person, on one line."""
        return shown(self.folder / path)

    def read(self, path: str) -> bytes:
        """The bytes of a file; UserError when it cannot be read."""
        try:
            return (self.folder / path).read_bytes()
        except OSError as error:
            _unreadable(self.folder / path, error)


def shown(path: Path) -> str:
    """A path on one line, whatever characters its names hold."""
    text = str(path)
    return text if text.isprintable() else ascii(text)


def scan(folder: Path, parts: tuple[str, ...]) -> Files:
    """The files of the named parts (files or folders) of a package; hidden files below them are passed over.

    Raises UserError for a link that leaves the package or dangles, a special file, a file or a package that is too
    large, a name that cannot be written down, and folders nested too deep or in a circle.
    """
    root = _resolved(folder)
    paths: list[str] = []
    total = 0
    for part in parts:
        if not os.path.lexists(folder / part):
            continue
        for path, size in _walk(root, folder, part, ()):
            paths.append(path)
            total += size
            if total > MAX_TOTAL_BYTES or len(paths) > MAX_FILES:
                raise UserError(
                    f"{shown(folder)}: the package is too large (more than {MAX_TOTAL_BYTES // 2**20} MB or "
                    f"{MAX_FILES} files); leave tests out"
                )
    return Files(folder, tuple(paths))


def _walk(root: Path, folder: Path, path: str, above: tuple[Path, ...]) -> Iterator[tuple[str, int]]:
    entry = folder / path
    target = _resolved(entry)
    if not target.is_relative_to(root):
        raise UserError(f"{shown(entry)}: a link that leads out of the package; put the file itself there")
    status = _status(entry)
    if stat.S_ISDIR(status.st_mode):
        if target in above or len(above) >= MAX_DEPTH:
            raise UserError(f"{shown(entry)}: folders nested deeper than {MAX_DEPTH} or in a circle; flatten them")
        for name in _names(entry):
            yield from _walk(root, folder, f"{path}/{name}", (*above, target))
    elif not stat.S_ISREG(status.st_mode):
        raise UserError(f"{shown(entry)}: neither a file nor a folder; remove it from the package")
    elif status.st_size > MAX_FILE_BYTES:
        raise UserError(
            f"{shown(entry)}: {status.st_size} bytes, above the limit of {MAX_FILE_BYTES // 2**20} MB a file; "
            "remove or shrink it"
        )
    else:
        yield path, status.st_size


def _names(path: Path) -> list[str]:
    try:
        names = [entry.name for entry in path.iterdir()]
    except OSError as error:
        _unreadable(path, error)
    wanted = [name for name in names if not name.startswith(".") and name not in _IGNORED]
    for name in wanted:
        if not name.isprintable():
            raise UserError(f"{shown(path / name)}: a name with unprintable characters; rename it")
    return sorted(wanted)


def _resolved(path: Path) -> Path:
    try:
        return path.resolve(strict=True)
    except (OSError, RuntimeError) as error:  # RuntimeError: a link that leads to itself
        raise UserError(f"{shown(path)}: cannot be followed ({_reason(error)}); repair or remove it") from error


def _status(path: Path) -> os.stat_result:
    try:
        return path.stat()
    except OSError as error:
        _unreadable(path, error)


def _unreadable(path: Path, error: OSError) -> NoReturn:
    raise UserError(f"{shown(path)}: cannot be read ({_reason(error)}); check its permissions") from error


def _reason(error: Exception) -> str:
    return error.strerror or "unknown reason" if isinstance(error, OSError) else "a link that leads to itself"
