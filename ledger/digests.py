"""Digests of what is stored: bytes, canonical columns and work ids. SHA-256 throughout, no I/O.

A digest covers values, never the bytes of an IPC message: equal Arrow arrays can have unequal buffers, offsets and
padding, and sealing dissolves frames into segments.
"""

import hashlib
from collections.abc import Iterable

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc


def sha256(*parts: bytes) -> str:
    """SHA-256 of the parts, each preceded by its length, as 64 hex digits."""
    hasher = hashlib.sha256()
    for part in parts:
        hasher.update(len(part).to_bytes(8, "little"))
        hasher.update(part)
    return hasher.hexdigest()


def sha256_words(*words: str | int) -> str:
    """SHA-256 of words, each preceded by its length, as 64 hex digits: the form of every id."""
    return sha256(*(str(word).encode() for word in words))


def blob_digest(data: bytes) -> str:
    """Plain SHA-256 of the bytes, as any other tool would print it."""
    return hashlib.sha256(data).hexdigest()


def work_id(campaign: str, program: str, test: str, block: int) -> str:
    """The id of a work: campaign, program, test and repetition block."""
    return sha256_words("work", campaign, program, test, block)


def rows_digest(batch: pa.RecordBatch) -> str:
    """Digest of a batch's values in its order of rows and columns, null slots zeroed, as 64 hex digits."""
    hasher = hashlib.sha256()
    for part in canonical_columns(batch):
        hasher.update(part)
    return hasher.hexdigest()


def canonical_columns(batch: pa.RecordBatch) -> Iterable[bytes]:
    """The canonical bytes of every column: row count, validity, then values with null slots zeroed."""
    yield batch.num_rows.to_bytes(8, "little")
    for column in batch.columns:
        yield from _canonical(column)


def _canonical(column: pa.Array) -> Iterable[bytes]:
    nested = pa.types.is_list(column.type)
    yield b"list" if nested else str(column.type).encode()  # Parquet renames the child of a list
    yield b"\x01" if column.null_count else b"\x00"
    if column.null_count:
        yield np.packbits(pc.is_valid(column).to_numpy(zero_copy_only=False), bitorder="little").tobytes()
    if nested:
        yield pc.fill_null(pc.list_value_length(column), 0).to_numpy().astype("<i8").tobytes()
        yield from _canonical(column.flatten())
    elif pa.types.is_string(column.type):
        yield from _strings(column)
    elif pa.types.is_boolean(column.type):
        yield _filled(column, False).cast(pa.uint8()).to_numpy().tobytes()
    else:
        yield _filled(column, 0).to_numpy().tobytes()


def _strings(column: pa.Array) -> Iterable[bytes]:
    filled = _filled(column, "")
    _, offsets, data = filled.buffers()
    bounds = np.frombuffer(offsets, dtype=np.int32)[filled.offset : filled.offset + len(filled) + 1]
    yield np.diff(bounds).astype("<i4").tobytes()
    yield bytes(memoryview(data)[bounds[0] : bounds[-1]]) if data is not None and len(filled) else b""


def _filled(column: pa.Array, value: object) -> pa.Array:
    return pc.fill_null(column, value) if column.null_count else column
