"""The canonical bytes and digests of rows and frames; no code is shared with `lapledger.ledger.codec`."""

import hashlib
import re
import struct
from collections.abc import Sequence
from itertools import accumulate
from typing import Any
from uuid import UUID

import pyarrow as pa

SAMPLE = 64
"""From so many rows on, texts and integers are encoded compactly."""
MAX_DISTINCT = 48
"""The most distinct texts among the first `SAMPLE` rows that are numbered."""
OCTETS = ((r"[0-9a-f]{64}", 32), (r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", 16))
_HEADERS = ("ce_type", "ce_lapversion", "ce_subject", "ce_lapepoch", "ce_lapsequence", "ce_lapprevious")


def sha(*values: object) -> str:
    """The SHA-256 of values, each behind its length: the form of ids, links and heads."""
    data = [str(value).encode() for value in values]
    return hashlib.sha256(b"".join(len(item).to_bytes(8, "little") + item for item in data)).hexdigest()


def plain(column: Any) -> Any:
    """A column as its event declares it: texts for a dictionary, hex digits for octets, integers of 64 bits."""
    if pa.types.is_dictionary(column.type):
        return column.dictionary_decode()
    if pa.types.is_fixed_size_binary(column.type):
        texts = (v and (v.hex() if len(v) == 32 else str(UUID(bytes=v))) for v in column.to_pylist())
        return pa.array(texts, pa.string())
    return column.cast(pa.int64()) if pa.types.is_integer(column.type) else column


def canonical(column: Any) -> bytes:
    """What digests cover of a plain column: its kind, where it has values, and the values; a null counts as zero."""
    rows, kind, values = len(column), column.type, column.to_pylist()
    bits = sum(1 << row for row, value in enumerate(values) if value is not None)
    nulls = b"\1" + bits.to_bytes((rows + 7) // 8, "little") if column.null_count else b"\0"
    if pa.types.is_list(kind):
        lengths = struct.pack(f"<{rows}q", *(len(value or ()) for value in values))
        return b"list" + nulls + lengths + canonical(column.flatten())
    if pa.types.is_string(kind):
        return b"string" + nulls + strings([value or "" for value in values], bool(column.null_count))
    if pa.types.is_boolean(kind):
        return b"bool" + nulls + bytes(bool(value) for value in values)
    if pa.types.is_float64(kind):
        filled = pa.concat_arrays([column.fill_null(0.0)])
        return b"double" + nulls + bytes(filled.buffers()[1])[8 * filled.offset :][: 8 * rows]
    numbers = [value or 0 for value in values]
    largest = max((max(number, ~number) for number in numbers), default=0)
    size = 8 if rows < SAMPLE else next(size for size in (1, 2, 4, 8) if largest < 1 << (8 * size - 1))
    return b"int%d" % (8 * size) + nulls + b"".join(number.to_bytes(size, "little", signed=True) for number in numbers)


def strings(values: list[str], has_nulls: bool) -> bytes:
    """The bytes of texts: repeated ones by number, digests and UUIDs as octets, others one after another."""
    if len(values) >= SAMPLE and len(set(values[:SAMPLE])) <= MAX_DISTINCT:
        numbers = {value: number for number, value in enumerate(dict.fromkeys(values))}
        width = "B" if len(numbers) <= 1 << 8 else "H" if len(numbers) <= 1 << 16 else "I"
        encoded = struct.pack(f"<{len(values)}{width}", *(numbers[value] for value in values))
        return b"words" + len(numbers).to_bytes(4, "little") + texts(list(numbers)) + encoded
    for form, octets in OCTETS:
        if len(values) >= SAMPLE and not has_nulls and all(re.fullmatch(form, value) for value in values):
            return b"octets" + bytes([octets]) + b"".join(bytes.fromhex(value.replace("-", "")) for value in values)
    return b"texts" + texts(values)


def texts(values: list[str]) -> bytes:
    """Where each text ends, then the bytes of all."""
    data = [value.encode() for value in values]
    return struct.pack(f"<{len(data)}i", *accumulate(map(len, data))) + b"".join(data)


def rows_bytes(columns: Sequence[Any], rows: int) -> bytes:
    """The canonical bytes of some rows."""
    return rows.to_bytes(8, "little") + b"".join(canonical(plain(column)) for column in columns)


def frame_digest(headers: dict[str, str], batch: Any) -> str:
    """The digest of a frame: the values of its headers, then its rows."""
    link = sha(*(headers[name] for name in _HEADERS)).encode()
    return hashlib.sha256(link + rows_bytes(batch.columns, batch.num_rows)).hexdigest()
