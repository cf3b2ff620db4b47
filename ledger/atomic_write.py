"""What leaves a ledger for people and other tools: files that are whole or not there, values that JSON can hold.

Nothing here knows what is written. Files of the ledger itself are synced too: those are written in `store.files`.
"""

import math
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from lapledger.ledger.errors import io_fault


@contextmanager
def whole(path: Path) -> Iterator[Path]:
    """A hidden file beside the place, to be written; renamed at the end, removed after a failure.

    UserError, DiskFull or Fault in one line when the place cannot be written.
    """
    part = path.with_name(f".{path.name}.part")
    try:
        yield part
        part.replace(path)
    except OSError as error:
        raise io_fault(error, f"cannot write {path}") from error
    finally:
        part.unlink(missing_ok=True)


def write_whole(path: Path, data: bytes) -> None:
    """Writes a file that is either whole or not there; UserError or DiskFull in one line."""
    with whole(path) as part:
        part.write_bytes(data)


def finite(value: Any) -> Any:
    """The value with null for numbers that JSON does not know: nan and the infinities, at any depth."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {key: finite(inner) for key, inner in value.items()}
    return [finite(inner) for inner in value] if isinstance(value, list | tuple) else value
