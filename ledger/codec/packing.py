"""Packed batches: columns in their compact encodings. Repeating strings are a dictionary, digests and UUIDs octets.

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
from lapledger.ledger.codec.encodings import SAMPLE, DictionaryColumn, EncodedColumn, encode_strings, narrow, strings
from lapledger.ledger.codec.octets import WIDTHS

_NARROW = (pa.int8(), pa.int16(), pa.int32())
_OCTETS = tuple(map(pa.binary, WIDTHS))
_SEALED_DICTIONARY = pa.dictionary(pa.int32(), pa.string())
_INTEGERS = frozenset(kind.id for kind in (*_NARROW, pa.int64()))
_STRINGS = frozenset(kind.id for kind in (pa.string(), _SEALED_DICTIONARY, *_OCTETS))
_PLAIN = frozenset(kind.id for kind in (pa.string(), pa.int64(), pa.float64(), pa.bool_(), pa.list_(pa.string())))
_DICTIONARIES = frozenset(
    pa.dictionary(number, pa.string())
    for number in (pa.int8(), pa.int16(), pa.int32(), pa.uint8(), pa.uint16(), pa.uint32())
)


def holds(schema: pa.Schema, declared: pa.Schema) -> bool:
    """True when batches of `schema` are rows of `declared`, plain or packed."""
    return schema.equals(declared) or (
        schema.names == declared.names
        and all(
            field.nullable == expected.nullable and (field.type == expected.type or _packs(field.type, expected.type))
            for field, expected in zip(schema, declared, strict=True)
        )
    )


def _packs(kind: pa.DataType, expected: pa.DataType) -> bool:
    if expected == pa.string():
        return kind in _DICTIONARIES or kind in _OCTETS
    return expected == pa.int64() and kind in _NARROW


def packed(batch: pa.RecordBatch) -> pa.RecordBatch:
    """The batch with each column encoded compactly (`ledger.codec.encodings`); short batches stay plain."""
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
        return (_packed(rows, encoded) for rows, encoded in zip(slices, encode_strings(column, bounds), strict=True))
    return slices


def _packed(column: pa.Array, encoded: EncodedColumn) -> pa.Array:
    if isinstance(encoded, DictionaryColumn):
        return pa.DictionaryArray.from_arrays(pa.array(encoded.codes, mask=_nulls(column)), encoded.values)
    if isinstance(encoded, np.ndarray):
        rows, width = encoded.shape
        return pa.FixedSizeBinaryArray.from_buffers(pa.binary(width), rows, [None, pa.py_buffer(encoded)])
    return encoded


def plain(batch: pa.RecordBatch) -> pa.RecordBatch:
    """The rows with every column as its type declares it: strings without a dictionary, integers of 64 bits."""
    if all(kind.id in _PLAIN for kind in batch.schema.types):
        return batch
    return _of([_plain(column) for column in batch.columns], batch.schema)


def _plain(column: pa.Array) -> pa.Array:
    if column.type.id in _STRINGS:
        return strings(column)
    return column.cast(pa.int64()) if column.type.id in _INTEGERS else column


def decoded_string_bytes(column: pa.DictionaryArray) -> int:
    """Bytes of a dictionary column's strings once they are plain, computed without making them."""
    lengths = pc.binary_length(column.dictionary).to_numpy().astype(np.int64)
    return int(lengths[_codes(column)].sum()) if len(lengths) else 0


def joined(schema: pa.Schema, batches: Sequence[pa.RecordBatch], like: pa.Schema | None = None) -> pa.Table:
    """The rows of many batches, plain or packed, as one table [rows] of one chunk.

    Columns have the types of `schema`, except that strings encoded as a dictionary in a batch share one dictionary;
    with `like`, they have its types.
    """
    if not batches:
        return (like or schema).empty_table()
    runs = [pa.Table.from_batches(run) for _, run in groupby(batches, _Schema)]
    columns = [[run.column(index) for run in runs] for index in range(len(schema))]
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
    return _SEALED_DICTIONARY if any(pa.types.is_dictionary(part.type) for part in parts) else field.type


def _joined(parts: Sequence[pa.ChunkedArray], kind: pa.DataType) -> pa.Array:
    wanted = _joined_dictionary if kind == _SEALED_DICTIONARY else lambda part: _plain(part.combine_chunks())
    arrays = [wanted(part) for part in parts]
    return arrays[0] if len(arrays) == 1 else pa.chunked_array(arrays, type=kind).combine_chunks()


def _joined_dictionary(part: pa.ChunkedArray) -> pa.DictionaryArray:
    if not pa.types.is_dictionary(part.type):
        dictionary = strings(part.combine_chunks()).dictionary_encode()
    else:
        try:
            dictionary = part.combine_chunks()
        except pa.ArrowInvalid:  # the code type is too narrow for the union of all dictionaries
            dictionary = part.cast(_SEALED_DICTIONARY).combine_chunks()
    return pa.DictionaryArray.from_arrays(dictionary.indices.cast(pa.int32()), dictionary.dictionary)


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
