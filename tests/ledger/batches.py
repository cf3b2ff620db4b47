"""Batches of every event type and every way to hold them, and the canonical form written again in plain Python."""

import hashlib
import random
import re
import struct
from typing import Any

import numpy as np
import pyarrow as pa
from hypothesis import strategies as st

from lapledger.ledger.events import EVENTS, EventType

TYPES = st.sampled_from(sorted(EVENTS)).map(EVENTS.__getitem__)
SEVERAL = (63, 64, 65, 70, 130)
"""Row counts around the one from which columns have short forms."""

_TEXTS = st.text(max_size=8)
VALUES = {
    pa.string(): _TEXTS,
    pa.int64(): st.integers(-(2**63), 2**63 - 1),
    pa.float64(): st.floats(allow_nan=False),
    pa.bool_(): st.booleans(),
}
_RANGES = [(0, 0), (-128, 127), (0, 128), (-(2**15), 2**15 - 1), (0, 2**31 - 1), (-(2**31) - 1, 0), (0, 2**63 - 1)]


def _digest_text(rng: random.Random) -> str:
    return rng.randbytes(32).hex()


def _uuid_text(rng: random.Random) -> str:
    digits = rng.randbytes(16).hex()
    return "-".join((digits[:8], digits[8:12], digits[12:16], digits[16:20], digits[20:]))


_SPELLINGS = {
    "texts": lambda rng: f"{rng.random()}é",
    "digests": _digest_text,
    "uuids": _uuid_text,
    "upper": lambda rng: _digest_text(rng).upper(),
    "dashes": lambda rng: _uuid_text(rng).replace("-", "+"),
    "short": lambda rng: rng.randbytes(31).hex(),
}


def _repeating_texts(draw: st.DrawFn, rows: int) -> list[str]:
    """Words that repeat, or do not, or do in the first rows only."""
    rng = draw(st.randoms(use_true_random=False))
    spell = _SPELLINGS[draw(st.sampled_from(sorted(_SPELLINGS)))]
    count = draw(st.sampled_from([1, 2, 47, 48, 49, 60, rows]))
    pool = [spell(rng) for _ in range(count)]
    texts = [rng.choice(pool) for _ in range(rows)] if count < rows else pool
    if draw(st.booleans()):
        texts[-1] = spell(rng)
    return texts


def _long_column(draw: st.DrawFn, kind: pa.DataType, rows: int) -> list[Any]:
    rng = draw(st.randoms(use_true_random=False))
    if pa.types.is_string(kind):
        return _repeating_texts(draw, rows)
    if pa.types.is_int64(kind):
        low, high = draw(st.sampled_from(_RANGES))
        values = [rng.randint(low, high) if rng.random() < 0.5 else low for _ in range(rows)]
        values[draw(st.integers(0, rows - 1))] = high
        return values
    pool = draw(st.lists(VALUES[kind], min_size=1, max_size=4))
    return [rng.choice(pool) for _ in range(rows)]


@st.composite
def batches(draw: st.DrawFn, types: st.SearchStrategy[EventType] = TYPES) -> tuple[EventType, pa.RecordBatch]:
    """Any type with one to five rows of any values, or with many rows of the kinds that have short forms."""
    declared = draw(types)
    rows = draw(st.integers(1, 5) | st.sampled_from(SEVERAL))
    arrays = []
    for column in declared.columns:
        nested = pa.types.is_list(column.arrow)
        kind = column.arrow.value_type if nested else column.arrow
        if rows >= min(SEVERAL):
            values = _long_column(draw, kind, rows)
            values = [values[: n % 3] for n in range(rows)] if nested else values
        else:
            inner = st.lists(VALUES[kind], max_size=3) if nested else VALUES[kind]
            values = draw(st.lists(inner, min_size=rows, max_size=rows))
        if column.nullable:
            rng = draw(st.randoms(use_true_random=False))
            nulls = draw(st.sampled_from([0, 0.1, 1]))
            values = [None if rng.random() < nulls else value for value in values]
        arrays.append(pa.array(values, column.arrow))
    return declared, pa.RecordBatch.from_arrays(arrays, schema=declared.schema)


def held_otherwise(batch: pa.RecordBatch, rng: random.Random) -> pa.RecordBatch:
    """The same rows as other arrays: dictionaries in any order with unused words, narrower integers, octets."""
    arrays = [_otherwise(column, rng) for column in batch.columns]
    fields = [field.with_type(array.type) for field, array in zip(batch.schema, arrays, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, schema=pa.schema(fields))


def _otherwise(column: pa.Array, rng: random.Random) -> pa.Array:
    if pa.types.is_string(column.type):
        return rng.choice([lambda c, _: c, _shuffled, _as_octets])(column, rng)
    if pa.types.is_int64(column.type):
        for kind in rng.sample([pa.int8(), pa.int16(), pa.int32()], 3):
            try:
                return column.cast(kind)
            except pa.ArrowInvalid:
                continue
    return column


def _shuffled(column: pa.Array, rng: random.Random) -> pa.Array:
    values = column.to_pylist()
    texts = [*{value for value in values if value is not None}, "unused", "no word of theirs é"]
    rng.shuffle(texts)
    numbers = pa.array([None if value is None else texts.index(value) for value in values], pa.int32())
    least = pa.uint8() if len(texts) < 256 else pa.uint16()
    kind = rng.choice([least, pa.int16(), pa.uint16(), pa.int32(), pa.uint32()])
    return pa.DictionaryArray.from_arrays(numbers.cast(kind), pa.array(texts))


def _as_octets(column: pa.Array, _: random.Random) -> pa.Array:
    form = octets_of(column.to_pylist())
    if form is None:
        return column
    width, data = form
    return pa.FixedSizeBinaryArray.from_buffers(pa.binary(width), len(column), [None, pa.py_buffer(data)])


def octets_of(texts: list[str | None]) -> tuple[int, bytes] | None:
    """Width and octets of words that are all digests or all UUIDs in lower case."""
    for width, pattern in ((32, r"[0-9a-f]{64}"), (16, r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")):
        if all(text is not None and re.fullmatch(pattern, text) for text in texts):
            return width, b"".join(bytes.fromhex(str(text).replace("-", "")) for text in texts)
    return None


def plain_digest(batch: pa.RecordBatch) -> str:
    """The digest of a batch in the declared types, after the definition of the canonical form."""
    body = b"".join(_column(column.type, column.to_pylist()) for column in batch.columns)
    return hashlib.sha256(struct.pack("<q", batch.num_rows) + body).hexdigest()


def _column(kind: pa.DataType, values: list[Any]) -> bytes:
    if pa.types.is_list(kind):
        lengths = b"".join(struct.pack("<q", len(value or [])) for value in values)
        items = [item for value in values for item in value or []]
        return b"list" + _nulls(values) + lengths + _column(kind.value_type, items)
    if pa.types.is_string(kind):
        return b"string" + _nulls(values) + _strings(values)
    if pa.types.is_int64(kind):
        sizes = [8] if len(values) < 64 else [1, 2, 4, 8]
        numbers = np.array([value or 0 for value in values], dtype=object)
        size = next(n for n in sizes if all(-(1 << 8 * n - 1) <= number < 1 << 8 * n - 1 for number in numbers))
        name = f"int{8 * size}".encode()
        return name + _nulls(values) + b"".join(int(n).to_bytes(size, "little", signed=True) for n in numbers)
    name, form = {pa.float64(): (b"double", "<d"), pa.bool_(): (b"bool", "<?")}[kind]
    return name + _nulls(values) + b"".join(struct.pack(form, 0 if value is None else value) for value in values)


def _nulls(values: list[Any]) -> bytes:
    if all(value is not None for value in values):
        return b"\x00"
    bits = sum(1 << row for row, value in enumerate(values) if value is not None)
    return b"\x01" + bits.to_bytes((len(values) + 7) // 8, "little")


def _strings(values: list[str | None]) -> bytes:
    texts = [value or "" for value in values]
    if len(texts) >= 64 and len(set(texts[:64])) <= 48:
        distinct = list(dict.fromkeys(texts))
        form = "<B" if len(distinct) <= 1 << 8 else "<H"
        numbers = b"".join(struct.pack(form, distinct.index(text)) for text in texts)
        return b"words" + struct.pack("<I", len(distinct)) + _texts(distinct) + numbers
    octets = octets_of(values) if len(texts) >= 64 else None
    if octets is not None:
        return b"octets" + bytes([octets[0]]) + octets[1]
    return b"texts" + _texts(texts)


def _texts(texts: list[str]) -> bytes:
    data = [text.encode() for text in texts]
    ends = np.cumsum([len(text) for text in data]).astype("<i4").tobytes() if data else b""
    return ends + b"".join(data)
