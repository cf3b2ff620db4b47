"""The metadata of the messages of an Arrow stream: offsets and sizes, read without Arrow and without touching a body.

Only what a frame's stream holds: a schema, dictionaries and a record batch, none compressed. The names are those of
the Arrow format's flatbuffers (Message.fbs, Schema.fbs).
"""

import struct
from functools import lru_cache
from typing import NamedTuple

import numpy as np

NOTHING, SCHEMA, DICTIONARY, BATCH = range(4)
"""Kinds of message; the first stands at the end of a stream."""

END = b"\xff\xff\xff\xff\x00\x00\x00\x00"
"""Optional end marker after the last message."""

FEW = 4096
"""Largest metadata, in bytes, that is cached once parsed: frames of one shape repeat it."""

_MARKER = 0xFFFFFFFF
_PREFIX, _UINT32, _INT64 = (struct.Struct(form).unpack_from for form in ("<II", "<I", "<q"))


class WireError(ValueError):
    """A payload that is not one uncompressed batch of its type; `reason` is one of `FrameError`."""

    def __init__(self, reason: str, message: str) -> None:
        super().__init__(message)
        self.reason = reason


class Meta(NamedTuple):
    """A message: its kind, the bytes before and in its body; of a batch the rows, nodes and buffers.

    As in Message.fbs, `nodes` are (rows, nulls) of each column and `buffers` are (start, bytes) in the body; a
    dictionary has a `number`.
    """

    kind: int
    size: int
    body: int
    number: int
    rows: int
    nodes: list[list[int]]
    buffers: list[list[int]]


def next_message(payload: bytes, at: int) -> tuple[Meta, int]:
    """The metadata of the message that starts at `at`, and the offset where the message ends.

    WireError, or an error of `struct` and numpy, where it is broken.
    """
    marker, size = _PREFIX(payload, at)
    data = payload[at + 8 : at + 8 + size]
    meta = _meta(data) if size <= FEW else _meta.__wrapped__(data)
    end = at + 8 + size + meta.body
    if marker != _MARKER or end > len(payload):
        raise WireError("undecodable", "not an Arrow stream: a message is cut short")
    return meta, end


@lru_cache(maxsize=4096)
def _meta(data: bytes) -> Meta:
    if not data:
        return Meta(NOTHING, 8, 0, -1, 0, [], [])
    root = _uint32(data, 0)
    kind, body = data[_field(data, root, 1)], _int64(data, root, 3)  # Message: version, header_type, header, bodyLength
    table, number, size = _table(data, root, 2), -1, 8 + len(data)
    if body < 0:
        raise WireError("undecodable", "not an Arrow stream: a message of negative length")
    if kind == DICTIONARY:  # DictionaryBatch: id, data, isDelta
        if _field(data, table, 2):
            raise WireError("bad-schema", "a frame holds no delta dictionaries")
        number, table = _int64(data, table, 0), _table(data, table, 1)
    elif kind != BATCH:
        return Meta(kind, size, body, -1, 0, [], [])
    if _field(data, table, 3):  # RecordBatch: length, nodes, buffers, compression
        raise WireError("undecodable", "its buffers are compressed, which frames do not allow")
    nodes, buffers = _pairs(data, _table(data, table, 1)), _pairs(data, _table(data, table, 2))
    return Meta(kind, size, body, number, _int64(data, table, 0), nodes, buffers)


def dictionary_numbers(message: bytes) -> list[int]:
    """The number of each column's dictionary, from the message of a schema; -1 where it has none."""
    data = message[8:]
    fields = _table(data, _table(data, _uint32(data, 0), 2), 1)  # Schema: endianness, fields
    numbers = []
    for at in range(fields + 4, fields + 4 + 4 * _uint32(data, fields), 4):
        field = at + _uint32(data, at)  # Field: name, nullable, type_type, type, dictionary
        numbers.append(_int64(data, _table(data, field, 4), 0) if _field(data, field, 4) else -1)
    return numbers


def _pairs(data: bytes, vector: int) -> list[list[int]]:
    pairs: list[list[int]] = np.frombuffer(data, "<i8", 2 * _uint32(data, vector), vector + 4).reshape(-1, 2).tolist()
    return pairs


def _table(data: bytes, table: int, field: int) -> int:
    """Offset of the table or vector in a field of a flatbuffer table."""
    at = _field(data, table, field)
    if not at:
        raise WireError("undecodable", "not an Arrow stream: a part of its metadata is missing")
    return at + _uint32(data, at)


def _field(data: bytes, table: int, field: int) -> int:
    """Offset of a field of a flatbuffer table; 0 when it is absent."""
    vtable = table - int.from_bytes(data[table : table + 4], "little", signed=True)
    at = 4 + 2 * field
    if vtable < 0 or at >= int.from_bytes(data[vtable : vtable + 2], "little"):
        return 0
    offset = int.from_bytes(data[vtable + at : vtable + at + 2], "little")
    return table + offset if offset else 0


def _int64(data: bytes, table: int, field: int) -> int:
    """A 64-bit integer in a field of a flatbuffer table; 0 when it is absent."""
    at = _field(data, table, field)
    return int(_INT64(data, at)[0]) if at else 0


def _uint32(data: bytes, at: int) -> int:
    return int(_UINT32(data, at)[0])
