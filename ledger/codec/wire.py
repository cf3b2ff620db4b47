"""The canonical bytes of a frame straight from its Arrow stream, without making a column: the fast way to its digest.

Why the shortcut is right: the canonical form of a column is exactly what a compactly encoded column has in its buffers
(values, codes, string bytes), behind a fixed head. So each reader below only checks that the sender chose the very
encoding that `ledger.codec.encodings` would choose for these values; then it copies the buffers. Wherever that does not
hold, or is not cheap to see, `Wire.canonical` is None and `ledger.codec.canonical` computes the bytes from the columns:
None is always safe, wrong bytes never are. Arrow validates the offsets; a wrong one cannot read outside the payload.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lapledger.ledger.codec.canonical import KINDS, NUMBERS, Part
from lapledger.ledger.codec.encodings import MAX_DISTINCT, SAMPLE, in_first_occurrence_order, is_narrow, number_type
from lapledger.ledger.codec.messages import BATCH, DICTIONARY, END, FEW, WireError, next_message
from lapledger.ledger.codec.messages import dictionary_numbers as numbers_of
from lapledger.ledger.codec.packing import holds
from lapledger.ledger.events import EVENTS


class Column(NamedTuple):
    """The layout of a column in a batch. `read` gives its canonical bytes, None where it is not compactly encoded."""

    read: Callable[["Wire", "Column", int, int], list[Part] | None]
    buffers: int
    head: bytes
    dtype: np.dtype[Any]
    dictionary: int


class WireDictionary(NamedTuple):
    """A dictionary: how many values, 0 unless they are distinct, and their canonical bytes."""

    distinct: int
    canonical: bytes


@dataclass(frozen=True, slots=True)
class Wire:
    """The parts of a payload: (rows, nulls) of each column, (start, bytes) of each buffer in the body.

    `columns` is None when the type has nested columns.
    """

    payload: bytes
    columns: tuple[Column, ...] | None
    dictionaries: Mapping[int, WireDictionary]
    body: int
    rows: int
    nodes: list[list[int]]
    buffers: list[list[int]]

    def canonical(self) -> bytes | None:
        """The bytes that `ledger.codec.canonical.canonical` gives for the batch; None when it has to compute them."""
        if self.columns is None or not self.rows:
            return None
        parts: list[Part] = [self.rows.to_bytes(8, "little")]
        at = 0
        for column, (_, nulls) in zip(self.columns, self.nodes, strict=True):
            column_parts = column.read(self, column, nulls, at)
            if column_parts is None:
                return None
            parts += column_parts
            at += column.buffers
        return b"".join(parts)

    def part(self, buffer: int, size: int) -> memoryview:
        """The first bytes of a buffer."""
        start = self.body + self.buffers[buffer][0]
        return memoryview(self.payload)[start : start + size]

    def array(self, buffer: int, dtype: np.dtype[Any]) -> npt.NDArray[Any]:
        """A buffer as numbers [rows]."""
        return np.frombuffer(self.payload, dtype, self.rows, self.body + self.buffers[buffer][0])

    def flags(self, buffer: int) -> npt.NDArray[np.uint8]:
        """A buffer of bits as bytes [rows]."""
        bits = np.frombuffer(self.payload, np.uint8, (self.rows + 7) // 8, self.body + self.buffers[buffer][0])
        return np.unpackbits(bits, count=self.rows, bitorder="little")


def read_wire(payload: bytes, name: str, version: int) -> Wire:
    """The parts of a payload of an event type; WireError, or an error of `struct` and numpy, where it is broken."""
    _, at = next_message(payload, 0)
    layout = _layout(name, version, payload[:at])
    if layout is None:
        raise WireError("bad-schema", f"columns differ from {name} version {version}")
    dictionaries: dict[int, WireDictionary] = {}
    for _ in range(layout.dictionaries):
        start = at
        meta, at = next_message(payload, start)
        if meta.kind == DICTIONARY:
            read = _read_dictionary if at - start <= FEW else _read_dictionary.__wrapped__
            dictionaries[meta.number] = read(payload[start:at])
    start = at
    meta, at = next_message(payload, start)
    if meta.kind != BATCH or len(dictionaries) != layout.dictionaries or payload[at:] not in (b"", END):
        raise WireError("bad-schema", "a frame holds one record batch and nothing else but its dictionaries")
    return Wire(payload, layout.columns, dictionaries, start + meta.size, meta.rows, meta.nodes, meta.buffers)


class _Layout(NamedTuple):
    columns: tuple[Column, ...] | None
    dictionaries: int


@lru_cache(maxsize=512)
def _layout(name: str, version: int, message: bytes) -> _Layout | None:
    """The columns in a schema message; None when they are not those of the type."""
    schema = pa.ipc.read_schema(pa.py_buffer(message))
    if not holds(schema, EVENTS[name, version].schema):
        return None
    numbers = numbers_of(message)
    dictionaries = sum(number >= 0 for number in numbers)
    if any(pa.types.is_nested(kind) for kind in schema.types):
        return _Layout(None, dictionaries)
    return _Layout(tuple(map(_column, schema.types, numbers)), dictionaries)


def _column(kind: pa.DataType, number: int) -> Column:
    if pa.types.is_dictionary(kind):
        return Column(_dictionary, 2, b"string\x00words", np.dtype(kind.index_type.to_pandas_dtype()), number)
    if pa.types.is_string(kind):
        return Column(_texts, 3, b"string\x00texts", np.dtype(np.uint8), -1)
    if pa.types.is_fixed_size_binary(kind):
        width = kind.byte_width
        return Column(_octets, 2, b"string\x00octets" + bytes([width]), np.dtype(f"V{width}"), -1)
    if pa.types.is_boolean(kind):
        return Column(_flags, 2, KINDS[np.dtype(np.uint8)], np.dtype(np.uint8), -1)
    dtype = NUMBERS[kind.id]
    return Column(_numbers, 2, KINDS[dtype], dtype, -1)


def _numbers(wire: Wire, column: Column, nulls: int, at: int) -> list[Part] | None:
    if nulls:
        return _numbers_with_nulls(wire, column, at)
    size = column.dtype.itemsize
    if column.dtype.kind != "i":
        fits = True
    elif wire.rows < SAMPLE or size == 1:
        fits = size == (8 if wire.rows < SAMPLE else 1)
    else:
        fits = is_narrow(wire.array(at + 1, column.dtype))
    return [column.head, wire.part(at + 1, wire.rows * size)] if fits else None


def _numbers_with_nulls(wire: Wire, column: Column, at: int) -> list[Part] | None:
    valid = wire.flags(at)
    values = np.where(valid, wire.array(at + 1, column.dtype), column.dtype.type(0))
    if column.dtype.kind == "i" and not is_narrow(values):
        return None
    return [column.head[:-1], b"\x01", np.packbits(valid, bitorder="little"), values]


def _flags(wire: Wire, column: Column, nulls: int, at: int) -> list[Part] | None:
    return None if nulls else [column.head, wire.flags(at + 1)]


def _octets(wire: Wire, column: Column, nulls: int, at: int) -> list[Part] | None:
    width = column.dtype.itemsize
    sample = bytes(wire.part(at + 1, SAMPLE * width))
    if (
        nulls
        or wire.rows < SAMPLE
        or len({sample[a : a + width] for a in range(0, len(sample), width)}) <= MAX_DISTINCT
    ):
        return None
    return [column.head, wire.part(at + 1, wire.rows * width)]


def _dictionary(wire: Wire, column: Column, nulls: int, at: int) -> list[Part] | None:
    count, canonical = wire.dictionaries[column.dictionary]
    if nulls or wire.rows < SAMPLE or not count or column.dtype != number_type(count):
        return None
    if count > 1:
        numbers = wire.array(at + 1, column.dtype)
        if not in_first_occurrence_order(numbers, count) or (
            count > MAX_DISTINCT and numbers[:SAMPLE].max() >= MAX_DISTINCT
        ):
            return None
    return [column.head, canonical, wire.part(at + 1, wire.rows * column.dtype.itemsize)]


def _texts(wire: Wire, column: Column, nulls: int, at: int) -> list[Part] | None:
    ends = wire.part(at + 1, 4 * wire.rows + 4)
    if nulls or wire.rows >= SAMPLE or any(ends[:4]):
        return None
    return [column.head, ends[4:], wire.part(at + 2, int.from_bytes(ends[-4:], "little"))]


@lru_cache(maxsize=4096)
def _read_dictionary(message: bytes) -> WireDictionary:
    """A dictionary from its message; cached, as most recur in many frames."""
    meta, _ = next_message(message, 0)
    count, body = meta.rows, meta.size
    if meta.nodes[0][1]:
        raise WireError("bad-schema", "null among the values of a dictionary")
    if not count:
        return WireDictionary(0, b"")
    offsets = np.frombuffer(message, "<i4", count + 1, body + meta.buffers[1][0])
    text = message[body + meta.buffers[2][0] :]
    distinct = {text[a:b] for a, b in pairwise(offsets.tolist())}
    ends = (offsets[1:] - offsets[0]).astype("<i4").tobytes()
    canonical = count.to_bytes(4, "little") + ends + text[offsets[0] : offsets[-1]]
    return WireDictionary(count if len(distinct) == count else 0, canonical)
