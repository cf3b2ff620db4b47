"""Digests of what is stored: bytes, canonical columns and work ids. SHA-256 throughout, no I/O.

A digest covers values, never the bytes of an IPC message: equal Arrow arrays can have unequal buffers, offsets,
padding and encodings, and sealing dissolves frames into segments. Null slots are zeroed for the same reason: Arrow
leaves their bytes undefined.
"""

import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain, pairwise, repeat
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from lapledger.ledger.codec.encodings import DictionaryColumn, encode_strings, narrow

Part: TypeAlias = Any
"""Bytes, or a view of bytes or numbers, to be joined."""

NUMBERS: Mapping[int, np.dtype[Any]] = {
    pa.int8().id: np.dtype("<i1"),
    pa.int16().id: np.dtype("<i2"),
    pa.int32().id: np.dtype("<i4"),
    pa.int64().id: np.dtype("<i8"),
    pa.float64().id: np.dtype("<f8"),
}
"""The numbers that columns hold, by the id of their Arrow type. Integers of any width stand for 64-bit values."""

_FLAG, _LIST = pa.bool_().id, pa.list_(pa.string()).id
KINDS: Mapping[np.dtype[Any], bytes] = {
    np.dtype("i1"): b"int8\x00",
    np.dtype("i2"): b"int16\x00",
    np.dtype("i4"): b"int32\x00",
    np.dtype("i8"): b"int64\x00",
    np.dtype("f8"): b"double\x00",
    np.dtype("u1"): b"bool\x00",
}


def sha256(*parts: bytes) -> str:
    """SHA-256 of the parts, each preceded by its length, as 64 hex digits."""
    pieces = [piece for part in parts for piece in (len(part).to_bytes(8, "little"), part)]
    return hashlib.sha256(b"".join(pieces)).hexdigest()


def sha256_fields(*fields: str | int) -> str:
    """SHA-256 of the fields, each preceded by its length, as 64 hex digits: the form of every id.

    The length prefix keeps ("ab", "c") and ("a", "bc") apart.
    """
    return sha256(*[str(field).encode() for field in fields])


def blob_digest(data: bytes) -> str:
    """Plain SHA-256 of the bytes, as any other tool would print it."""
    return hashlib.sha256(data).hexdigest()


def work_id(campaign: str, program: str, test: str, block: int) -> str:
    """The id of a work: campaign, program, test and repetition block."""
    return sha256_fields("work", campaign, program, test, block)


def rows_digest(batch: pa.RecordBatch) -> str:
    """Digest of a batch's values in its order of rows and columns, null slots zeroed, as 64 hex digits."""
    return hashlib.sha256(next(canonical(batch.columns, [0, batch.num_rows]))).hexdigest()


def canonical(columns: Sequence[pa.Array], bounds: Sequence[int]) -> Iterator[bytes]:
    """The canonical bytes of the rows between each two bounds, one item a slice; the columns are of equal length.

    First the number of rows, in 8 bytes. Then each column: its kind, then 0, or 1 and a bit a row that is set where
    there is a value; then the values, null slots zeroed. Flags take a byte. Integers take the least width and strings
    the form that `ledger.codec.encodings` chooses: `texts` ends and bytes; `octets`; or `words`, a dictionary: size,
    ends and bytes, then each row's code. Lists give their lengths, and their items as a column.
    """
    slices = zip(*[_slices(column, bounds) for column in columns], strict=True)
    for (start, end), parts in zip(pairwise(bounds), slices, strict=True):
        yield b"".join([(end - start).to_bytes(8, "little"), *chain.from_iterable(parts)])


def fixed(column: pa.Array) -> npt.NDArray[Any]:
    """The values of a column of numbers or flags [rows], as wide as they are stored, null slots zeroed."""
    rows, start = len(column), column.offset
    data = column.buffers()[1]
    if column.type.id == _FLAG:
        values = np.unpackbits(np.frombuffer(data, np.uint8), count=start + rows, bitorder="little")[start:]
    else:
        kind = NUMBERS[column.type.id]
        values = np.frombuffer(data, kind, rows, start * kind.itemsize)
    return np.where(_valid(column), values, values.dtype.type(0)) if column.null_count else values


def _valid(column: pa.Array) -> npt.NDArray[np.bool_]:
    return np.asarray(pc.is_valid(column).to_numpy(zero_copy_only=False))


def _slices(column: pa.Array, bounds: Sequence[int]) -> Iterable[Sequence[Part]]:
    kind = column.type.id
    if kind in NUMBERS or kind == _FLAG:
        return _fixed(column, bounds)
    return _lists(column, bounds) if kind == _LIST else _strings(column, bounds)


def _fixed(column: pa.Array, bounds: Sequence[int]) -> Iterable[Sequence[Part]]:
    values = fixed(column)
    if values.dtype.kind == "i":
        slices = narrow(values, bounds)
    else:
        slices = (values[start:end] for start, end in pairwise(bounds))
    if not column.null_count:
        return [(KINDS[part.dtype], part) for part in slices]
    valid = _valid(column)
    return [
        (_head(KINDS[part.dtype], valid[start:end]), part)
        for (start, end), part in zip(pairwise(bounds), slices, strict=True)
    ]


def _heads(kind: bytes, column: pa.Array, bounds: Sequence[int]) -> Iterable[bytes]:
    """For each slice its kind, whether it has nulls, and where."""
    if not column.null_count:
        return repeat(kind)
    valid = _valid(column)
    return (_head(kind, valid[start:end]) for start, end in pairwise(bounds))


def _head(kind: bytes, valid: npt.NDArray[np.bool_]) -> bytes:
    return kind if valid.all() else kind[:-1] + b"\x01" + np.packbits(valid, bitorder="little").tobytes()


def _lists(column: pa.ListArray, bounds: Sequence[int]) -> Iterable[Sequence[Part]]:
    """The kind is written without the child's name, as Parquet renames the child of a list."""
    for head, (a, b) in zip(_heads(b"list\x00", column, bounds), pairwise(bounds), strict=False):
        part = column.slice(a, b - a)
        lengths = pc.fill_null(pc.list_value_length(part), 0).to_numpy().astype("<i8")
        items = part.flatten()
        yield [head, lengths, *chain.from_iterable(_slices(items, [0, len(items)]))]


def _strings(column: pa.Array, bounds: Sequence[int]) -> Iterable[Sequence[Part]]:
    for head, encoded in zip(_heads(b"string\x00", column, bounds), encode_strings(column, bounds), strict=False):
        if isinstance(encoded, DictionaryColumn):
            yield [head, b"words", len(encoded.values).to_bytes(4, "little"), *_texts(encoded.values), encoded.codes]
        elif isinstance(encoded, np.ndarray):
            yield [head, b"octets", encoded.shape[1].to_bytes(1, "little"), encoded]
        else:
            yield [head, b"texts", *_texts(encoded)]


def _texts(strings: pa.StringArray) -> Sequence[Part]:
    """Where each string ends, and all their bytes."""
    if strings.null_count:
        strings = pc.fill_null(strings, "")
    count, start = len(strings), strings.offset
    _, offsets, data = strings.buffers()
    if data is None:
        return [bytes(4 * count)]
    edges = memoryview(offsets).cast("i")[start : start + count + 1]
    first = edges[0]
    return [edges[1:] if first == 0 else np.subtract(edges[1:], first), memoryview(data)[first : edges[-1]]]
