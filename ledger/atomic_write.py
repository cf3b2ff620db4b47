"""Files for people and other tools, written completely or not at all, and values that JSON can hold.

Files of the ledger itself are also synced to disk: see `ledger.disk`.
"""

import math
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from lapledger.ledger.errors import io_fault


@contextmanager
def atomic_write(path: Path) -> Iterator[Path]:
    """A hidden temporary file beside `path` to write to; renamed to `path` at the end, removed after a failure.

    UserError, DiskFull or Fault in one line when the path cannot be written.
    """
    part = path.with_name(f".{path.name}.part")
    try:
        yield part
        part.replace(path)
    except OSError as error:
        raise io_fault(error, f"cannot write {path}") from error
    finally:
        part.unlink(missing_ok=True)


def write_atomically(path: Path, data: bytes) -> None:
    """Write a file completely or not at all; UserError or DiskFull in one line."""
    with atomic_write(path) as part:
        part.write_bytes(data)


def finite(value: Any) -> Any:
    """The value with NaN and infinities replaced by null at any depth, as JSON cannot represent them."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {key: finite(inner) for key, inner in value.items()}
    return [finite(inner) for inner in value] if isinstance(value, list | tuple) else value
