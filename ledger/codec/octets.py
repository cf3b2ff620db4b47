"""SHA-256 digests in hex digits and UUIDs as octets, half as many bytes, and back; whole columns at once.

Only the spelling used by ids here is accepted: lower case, and a UUID with its four dashes. Any other spelling would
not decode to the same string.
"""

from binascii import hexlify, unhexlify
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

HEX, UUID = 64, 36
"""Lengths of the strings that are encoded as octets: a SHA-256 and a UUID."""

WIDTHS = (HEX // 2, 16)
"""Octets of each."""

_DASHES = slice(8, 24, 5)
_LOWER = 0x20202020
"""The bit that decimal digits and lower-case letters have and upper-case letters lack, in each of four bytes."""

_RUNS = ((0, 0, "u8"), (9, 8, "u4"), (14, 12, "u4"), (19, 16, "u4"), (24, 20, "u4"), (28, 24, "u8"))
"""Offset of each run of digits in the UUID, its offset without dashes, and the width that is copied at once."""

Octets = npt.NDArray[np.uint8]


def to_octets(strings: pa.StringArray) -> Octets | None:
    """The octets of every string [rows, 32 or 16]; None unless all are digests or all are UUIDs. There are no nulls."""
    rows = len(strings)
    _, offsets, data = strings.buffers()
    edges = np.frombuffer(offsets, np.int32, rows + 1, 4 * strings.offset)
    width = int(edges[1] - edges[0])
    if width not in (HEX, UUID) or (edges[1:] - edges[:-1] != width).any():
        return None
    text = np.frombuffer(data, np.uint8, rows * width, int(edges[0])).reshape(rows, width)
    return _from_hex(text) if width == HEX else _from_uuids(text)


def _from_uuids(text: Octets) -> Octets | None:
    if (text[:, _DASHES] != ord("-")).any():
        return None
    rows = len(text)
    digits = np.empty((rows, 32), np.uint8)
    for there, here, kind in _RUNS:
        _spaced(digits, here, kind)[:] = _spaced(text, there, kind)
    return _from_hex(digits)


def _spaced(grid: Octets, start: int, kind: str) -> npt.NDArray[Any]:
    """The bytes from `start` of every row, viewed as numbers of `kind` [rows]; a view, no copy."""
    return np.ndarray((len(grid),), kind, grid, start, (grid.shape[1],))


def _from_hex(digits: Octets) -> Octets | None:
    try:
        raw = unhexlify(digits.tobytes())
    except ValueError:
        return None
    if int(np.bitwise_and.reduce(digits.reshape(-1).view("u4"))) & _LOWER != _LOWER:
        return None
    return np.frombuffer(raw, np.uint8).reshape(len(digits), -1)


def to_strings(octets: Octets) -> pa.StringArray:
    """The digests or UUIDs [rows] that the octets [rows, 32 or 16] stand for."""
    rows, width = octets.shape
    digits = np.frombuffer(hexlify(octets.tobytes()), np.uint8).reshape(rows, 2 * width)
    if 2 * width == HEX:
        return _fixed_width(digits)
    text = np.empty((rows, UUID), np.uint8)
    text[:, _DASHES] = ord("-")
    for there, here, kind in _RUNS:
        _spaced(text, there, kind)[:] = _spaced(digits, here, kind)
    return _fixed_width(text)


def _fixed_width(text: Octets) -> pa.StringArray:
    rows, width = text.shape
    offsets = np.arange(0, rows * width + 1, width, dtype=np.int32)
    return pa.StringArray.from_buffers(rows, pa.py_buffer(offsets), pa.py_buffer(text.reshape(-1)))


def column_octets(column: pa.FixedSizeBinaryArray) -> Octets:
    """The octets of a column of fixed width [rows, width] without nulls."""
    width, rows = column.type.byte_width, len(column)
    return np.frombuffer(column.buffers()[1], np.uint8, rows * width, column.offset * width).reshape(rows, width)
