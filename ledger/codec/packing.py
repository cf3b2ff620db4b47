"""Packed batches: columns in their short forms. Strings that repeat are a dictionary, digests and UUIDs octets.

Packed batches travel in frames and go into segments; `plain` gives the exact schema back. Any Arrow reader reads both.
Pure: no digests, no I/O.
"""

from collections.abc import Iterator, Sequence
from itertools import groupby, pairwise
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from lapledger.ledger.codec.canonical import fixed
from lapledger.ledger.codec.encodings import SAMPLE, Told, Words, narrow, strings, tell
from lapledger.ledger.codec.octets import WIDTHS

_NARROW = (pa.int8(), pa.int16(), pa.int32())
_OCTETS = tuple(map(pa.binary, WIDTHS))
_SEALED_WORDS = pa.dictionary(pa.int32(), pa.string())
_INTEGERS = frozenset(kind.id for kind in (*_NARROW, pa.int64()))
_STRINGS = frozenset(kind.id for kind in (pa.string(), _SEALED_WORDS, *_OCTETS))
_PLAIN = frozenset(kind.id for kind in (pa.string(), pa.int64(), pa.float64(), pa.bool_(), pa.list_(pa.string())))
_WORDS = frozenset(
    pa.dictionary(number, pa.string())
    for number in (pa.int8(), pa.int16(), pa.int32(), pa.uint8(), pa.uint16(), pa.uint32())
)


def holds(schema: pa.Schema, declared: pa.Schema) -> bool:
    """True when batches of `schema` are rows of `declared`, plain or packed."""
    return schema.equals(declared) or (
        schema.names == declared.names
        and all(
            field.nullable == own.nullable and (field.type == own.type or _packs(field.type, own.type))
            for field, own in zip(schema, declared, strict=True)
        )
    )


def _packs(kind: pa.DataType, own: pa.DataType) -> bool:
    if own == pa.string():
        return kind in _WORDS or kind in _OCTETS
    return own == pa.int64() and kind in _NARROW


def packed(batch: pa.RecordBatch) -> pa.RecordBatch:
    """The batch with each column in its short form (`ledger.codec.encodings`); few rows are plain."""
    return plain(batch) if batch.num_rows < SAMPLE else next(packed_slices(batch, [0, batch.num_rows]))


def packed_slices(batch: pa.RecordBatch, bounds: Sequence[int]) -> Iterator[pa.RecordBatch]:
    """The rows between each two bounds, each packed like a batch of its own."""
    if all(end - start < SAMPLE for start, end in pairwise(bounds)):
        batch = plain(batch)
        yield from (batch.slice(start, end - start) for start, end in pairwise(bounds))
        return
    schema = batch.schema
    for arrays in zip(*[_packed_slices(column, bounds) for column in batch.columns], strict=True):
        if any(array.type != kind for array, kind in zip(arrays, schema.types, strict=True)):
            schema = _schema_of(arrays, schema)
        yield pa.RecordBatch.from_arrays(list(arrays), schema=schema)


def _packed_slices(column: pa.Array, bounds: Sequence[int]) -> Iterator[pa.Array]:
    slices = (column.slice(start, end - start) for start, end in pairwise(bounds))
    if column.type.id in _INTEGERS:
        return (
            pa.array(part, mask=_nulls(rows)) for rows, part in zip(slices, narrow(fixed(column), bounds), strict=True)
        )
    if column.type.id in _STRINGS:
        return (_packed(rows, told) for rows, told in zip(slices, tell(column, bounds), strict=True))
    return slices


def _packed(column: pa.Array, told: Told) -> pa.Array:
    if isinstance(told, Words):
        return pa.DictionaryArray.from_arrays(pa.array(told.numbers, mask=_nulls(column)), told.words)
    if isinstance(told, np.ndarray):
        rows, width = told.shape
        return pa.FixedSizeBinaryArray.from_buffers(pa.binary(width), rows, [None, pa.py_buffer(told)])
    return told


def plain(batch: pa.RecordBatch) -> pa.RecordBatch:
    """The rows with every column as its type declares it: strings without a dictionary, integers of 64 bits."""
    if all(kind.id in _PLAIN for kind in batch.schema.types):
        return batch
    return _of([_plain(column) for column in batch.columns], batch.schema)


def _plain(column: pa.Array) -> pa.Array:
    if column.type.id in _STRINGS:
        return strings(column)
    return column.cast(pa.int64()) if column.type.id in _INTEGERS else column


def word_bytes(column: pa.DictionaryArray) -> int:
    """Bytes of a dictionary column's strings once they are plain, computed without making them."""
    lengths = pc.binary_length(column.dictionary).to_numpy().astype(np.int64)
    return int(lengths[_codes(column)].sum()) if len(lengths) else 0


def joined(schema: pa.Schema, batches: Sequence[pa.RecordBatch], like: pa.Schema | None = None) -> pa.Table:
    """The rows of many batches, plain or packed, as one table [rows] of one chunk.

    Columns have the types of `schema`, except that strings told in words in some batch have a common dictionary; with
    `like`, they have its types.
    """
    if not batches:
        return (like or schema).empty_table()
    runs = [pa.Table.from_batches(run) for _, run in groupby(batches, _Schema)]
    columns = [[run.column(place) for run in runs] for place in range(len(schema))]
    kinds = [_kind(field, parts) for field, parts in zip(schema, columns, strict=True)] if like is None else like.types
    arrays = [_joined(parts, kind) for parts, kind in zip(columns, kinds, strict=True)]
    return pa.Table.from_batches([_of(arrays, schema)])


class _Schema:
    """A batch's schema as a key: equal schemas are equal keys."""

    def __init__(self, batch: pa.RecordBatch) -> None:
        self._schema = batch.schema

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Schema) and self._schema.equals(other._schema)


def _kind(field: pa.Field, parts: Sequence[pa.ChunkedArray]) -> pa.DataType:
    return _SEALED_WORDS if any(pa.types.is_dictionary(part.type) for part in parts) else field.type


def _joined(parts: Sequence[pa.ChunkedArray], kind: pa.DataType) -> pa.Array:
    wanted = _joined_words if kind == _SEALED_WORDS else lambda part: _plain(part.combine_chunks())
    found = [wanted(part) for part in parts]
    return found[0] if len(found) == 1 else pa.chunked_array(found, type=kind).combine_chunks()


def _joined_words(part: pa.ChunkedArray) -> pa.DictionaryArray:
    if not pa.types.is_dictionary(part.type):
        found = strings(part.combine_chunks()).dictionary_encode()
    else:
        try:
            found = part.combine_chunks()
        except pa.ArrowInvalid:  # the type of the numbers is too small for all words together
            found = part.cast(_SEALED_WORDS).combine_chunks()
    return pa.DictionaryArray.from_arrays(found.indices.cast(pa.int32()), found.dictionary)


def _codes(column: pa.DictionaryArray) -> npt.NDArray[Any]:
    indices = column.indices
    return np.asarray((pc.fill_null(indices, 0) if indices.null_count else indices).to_numpy())


def _nulls(column: pa.Array) -> npt.NDArray[np.bool_] | None:
    return _null_mask(column) if column.null_count else None


def _null_mask(column: pa.Array) -> npt.NDArray[np.bool_]:
    return np.asarray(column.is_null().to_numpy(zero_copy_only=False))


def _of(arrays: Sequence[pa.Array], schema: pa.Schema) -> pa.RecordBatch:
    return pa.RecordBatch.from_arrays(list(arrays), schema=_schema_of(arrays, schema))


def _schema_of(arrays: Sequence[pa.Array], schema: pa.Schema) -> pa.Schema:
    return pa.schema([field.with_type(array.type) for field, array in zip(schema, arrays, strict=True)])
