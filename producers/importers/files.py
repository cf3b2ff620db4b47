"""Untrusted result files as plain values: sizes bounded, JSON alone, numbers finite, complaints in one line.

Nothing here knows a format. No file is ever unpickled or evaluated.
"""

import json
import math
import stat
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any, NoReturn

from lapledger.ledger.errors import UserError, io_fault

MIB = 1 << 20
MAX_FILE_BYTES = 512 * MIB
"""A file that is read whole is at most this long."""
MAX_LINE_BYTES = 64 * MIB
"""A line of a file that is read line by line is at most this long."""
MAX_GROUP_BYTES = 4096 * MIB
"""A row group of a Parquet file unpacks to at most this many bytes."""
_SHOWN = 60


@dataclass(frozen=True, slots=True)
class SourceFile:
    """A file that was read: its name without folders, its SHA-256 and its length."""

    name: str
    digest: str
    bytes: int


def shown(value: object) -> str:
    """A value of a file as a message may show it: short, on one line."""
    text = value if isinstance(value, str) else json.dumps(value, default=str)[: 2 * _SHOWN]
    text = " ".join("".join(c if c.isprintable() else " " for c in text[: 2 * _SHOWN]).split())
    return repr(text[:_SHOWN] + ("..." if len(text) > _SHOWN else ""))


def check_file(path: Path) -> int:
    """The length of a regular file in bytes; UserError for anything else."""
    try:
        status = path.stat()
    except OSError as error:
        raise io_fault(error, f"cannot read {shown(str(path))}") from error
    if not stat.S_ISREG(status.st_mode):
        raise UserError(f"{shown(str(path))} is no file; name the result file itself")
    return status.st_size


def read_file(path: Path) -> tuple[SourceFile, bytes]:
    """A file and its bytes; UserError when it is no regular file or longer than MAX_FILE_BYTES."""
    size = check_file(path)
    if size <= MAX_FILE_BYTES:
        try:
            with path.open("rb") as file:
                data = file.read(MAX_FILE_BYTES + 1)
        except OSError as error:
            raise io_fault(error, f"cannot read {shown(str(path))}") from error
        size = max(size, len(data))
    if size > MAX_FILE_BYTES:
        limit = MAX_FILE_BYTES // MIB
        raise UserError(f"{shown(path.name)}: {size} bytes, above the limit of {limit} MiB; split it by problem")
    return SourceFile(path.name, sha256(data).hexdigest(), len(data)), data


def digest_of(path: Path) -> SourceFile:
    """A file of any length with its SHA-256, read in pieces."""
    check_file(path)
    hasher, size = sha256(), 0
    try:
        with path.open("rb") as file:
            while piece := file.read(8 * MIB):
                hasher.update(piece)
                size += len(piece)
    except OSError as error:
        raise io_fault(error, f"cannot read {shown(str(path))}") from error
    return SourceFile(path.name, hasher.hexdigest(), size)


def lines_of(path: Path) -> Iterator[tuple[int, bytes]]:
    """The lines of a file that are not blank, each with its number from 1; UserError for one above MAX_LINE_BYTES."""
    with path.open("rb") as file:
        number = 0
        while line := file.readline(MAX_LINE_BYTES + 1):
            number += 1
            if len(line) > MAX_LINE_BYTES:
                limit = MAX_LINE_BYTES // MIB
                raise UserError(f"{shown(path.name)}, line {number}: longer than {limit} MiB; is this JSON Lines?")
            if line.strip():
                yield number, line


def is_parquet(path: Path) -> bool:
    """Whether a file begins as Parquet does."""
    with path.open("rb") as file:
        return file.read(4) == b"PAR1"


def open_parquet(path: Path) -> Any:
    """A Parquet file, opened; UserError when it cannot be read, or has a row group above MAX_GROUP_BYTES."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        file = pq.ParquetFile(path)
        sizes = [file.metadata.row_group(number).total_byte_size for number in range(file.metadata.num_row_groups)]
    except (pa.ArrowException, OSError) as error:
        reason = shown(str(error)).strip("'")
        raise UserError(f"{shown(path.name)}: no readable Parquet ({reason}); fetch it again") from error
    if max(sizes, default=0) > MAX_GROUP_BYTES:
        limit = MAX_GROUP_BYTES // MIB
        raise UserError(f"{shown(path.name)}: a row group of more than {limit} MiB; write it with smaller row groups")
    return file


def parse_json(data: bytes, where: str) -> Any:
    """The value of a JSON text in UTF-8; UserError names the line that is broken, NaN and doubled keys included."""
    if data[:2] == b"\x1f\x8b":
        raise UserError(f"{where}: compressed by gzip; unpack it first, for instance with `gunzip`")
    try:
        return json.loads(data.decode("utf-8-sig"), **_STRICT)
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise UserError(f"{where}, line {line}: not UTF-8; is this a JSON file?") from error
    except json.JSONDecodeError as error:
        raise UserError(
            f"{where}, line {error.lineno}: broken JSON ({error.msg}); fetch the file again or repair it"
        ) from error
    except RecursionError as error:
        raise UserError(f"{where}: JSON nested too deeply; this is no result file") from error
    except ValueError as error:
        raise UserError(f"{where}: {' '.join(str(error).split())[:200]}; repair the file") from error


def _float(text: str) -> float:
    value = float(text)
    if not math.isfinite(value):
        raise ValueError(f"{text[:_SHOWN]} is beyond every measurement")
    return value


def _no_number(token: str) -> NoReturn:
    raise ValueError(f"{token} is no JSON number and no measurement")


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """An object whose keys differ: of two values under one key, a reader must not pick one."""
    members = dict(pairs)
    if len(members) < len(pairs):
        keys = [key for key, _ in pairs]
        twice = next(key for key in keys if keys.count(key) > 1)
        raise ValueError(f"the key {shown(twice)} appears twice in one object")
    return members


_STRICT: Mapping[str, Any] = {"parse_float": _float, "parse_constant": _no_number, "object_pairs_hook": _once}
