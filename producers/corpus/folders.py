"""Where packages lie: from the paths a person names to package folders. Nothing inside a package is read here."""

from collections.abc import Iterable
from pathlib import Path

from lapledger.ledger.errors import UserError
from lapledger.producers.corpus.files import shown


def find_packages(paths: Iterable[Path]) -> list[Path]:
    """The package folders that the paths name, each once: a path is a package or a folder of packages (one level).

    Raises UserError for a path that does not exist (naming its nearest parent that does), that is no folder, that
    holds no package, or that holds a half-made one (submissions without a problem.yaml).
    """
    folders: dict[Path, Path] = {}
    for path in paths:
        for folder in _packages_at(path):
            folders.setdefault(folder.resolve(), folder)
    return list(folders.values())


def require_package(folder: Path) -> None:
    """Returns when the folder holds a problem.yaml; UserError when it does not."""
    try:
        _require_folder(folder)
        missing = not (folder / "problem.yaml").is_file()
    except (OSError, RuntimeError) as error:
        raise _unusable(folder, error) from error
    if missing:
        raise UserError(f"{shown(folder)}: not a package, it has no problem.yaml; add one or name another folder")


def _packages_at(path: Path) -> list[Path]:
    try:
        _require_folder(path)
        if (path / "problem.yaml").is_file():
            return [path]
        packages = sorted(child for child in path.iterdir() if _looks_like_package(child))
    except (OSError, RuntimeError) as error:
        raise _unusable(path, error) from error
    if not packages:
        raise UserError(f"{shown(path)}: no package here; name a folder with a problem.yaml, or a folder of such ones")
    for package in packages:
        require_package(package)
    return packages


def _looks_like_package(child: Path) -> bool:
    return not child.name.startswith(".") and ((child / "problem.yaml").is_file() or (child / "submissions").is_dir())


def _require_folder(path: Path) -> None:
    if path.is_dir():
        return
    if path.exists():
        raise UserError(f"{shown(path)}: not a folder; name the package's folder")
    parent = next(parent for parent in path.absolute().parents if parent.exists())
    raise UserError(f"{shown(path)}: does not exist; the nearest folder that does is {shown(parent)}")


def _unusable(path: Path, error: Exception) -> UserError:
    reason = getattr(error, "strerror", None) or "a link that leads to itself"
    return UserError(f"{shown(path)[:200]}: cannot be read ({reason}); check the path and its permissions")
