"""Compact column encodings: repeating strings as dictionary codes, digests and UUIDs as octets, narrow integers.

The form depends on the values alone, never on how an array holds them, so that digests can be taken over it. Columns of
fewer than `SAMPLE` rows are stored row by row. Pure.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from lapledger.ledger.codec.octets import Octets, column_octets, to_octets, to_strings

SAMPLE = 64
"""Rows at the start of a column that decide whether its strings repeat."""

MAX_DISTINCT = 48
"""Most distinct strings in the sample of a column whose strings repeat."""

_NUMBER_TYPES = (np.dtype(np.uint8), np.dtype(np.uint16), np.dtype(np.uint32))
_MOST_CELLS = 1 << 22  # of a table of (slice, distinct string)

Integers = npt.NDArray[np.integer[Any]]
Bounds = Sequence[int]


@dataclass(frozen=True, slots=True, eq=False)
class DictionaryColumn:
    """The distinct strings of a column [values] in order of first occurrence, and each row's code [rows].

    Codes have the narrowest type that holds them all; a null counts as the empty string.
    """

    codes: Integers
    values: pa.StringArray


EncodedColumn: TypeAlias = DictionaryColumn | Octets | Any
"""The result of `encode_strings` for a slice: a dictionary, octets [rows, width], or plain strings [rows]."""


def encode_strings(column: pa.Array, bounds: Bounds) -> Iterator[EncodedColumn]:
    """For each slice between two bounds the compact encoding of its strings.

    `column` holds strings: plain, as a dictionary, or as the octets of fixed width that stand for them.
    """
    slices = len(bounds) - 1
    if len(column) >= SAMPLE * slices:
        if pa.types.is_fixed_size_binary(column.type) and not column.null_count:
            return map(_from_octets, _rows(column_octets(column), bounds))
        values = _as_dictionary(column) if slices > 1 else column
        if pa.types.is_dictionary(values.type) and _is_small(values.dictionary, slices):
            return _from_dictionary(values, bounds)
    return _from_strings(strings(column), bounds)


def _as_dictionary(column: pa.Array) -> pa.Array:
    """One dictionary for many slices of repeating strings, even if some slices end up row by row."""
    if not (pa.types.is_string(column.type) and _repeats(column)):
        return column
    return (pc.fill_null(column, "") if column.null_count else column).dictionary_encode()


def _from_strings(column: pa.StringArray, bounds: Bounds) -> Iterator[EncodedColumn]:
    for start, end in pairwise(bounds):
        part = column if end - start == len(column) else column.slice(start, end - start)
        yield _dictionary_encoded(part) if _repeats(part) else _by_row(part)


def _repeats(part: pa.StringArray) -> bool:
    if len(part) < SAMPLE:
        return False
    return len({text or "" for text in part.slice(0, SAMPLE).to_pylist()}) <= MAX_DISTINCT


def _dictionary_encoded(part: pa.StringArray) -> DictionaryColumn:
    encoded = (pc.fill_null(part, "") if part.null_count else part).dictionary_encode()
    return _dictionary_column(encoded.indices.to_numpy(), encoded.dictionary)


def _by_row(part: pa.StringArray) -> EncodedColumn:
    """Strings that do not repeat: their octets if all are digests or all are UUIDs."""
    octets = None if len(part) < SAMPLE or part.null_count else to_octets(part)
    return part if octets is None else octets


def _from_octets(octets: Octets) -> EncodedColumn:
    width, sample = octets.shape[1], octets[:SAMPLE].tobytes()
    if len(octets) >= SAMPLE and len({sample[a : a + width] for a in range(0, len(sample), width)}) > MAX_DISTINCT:
        return octets
    part = to_strings(octets)
    return _dictionary_encoded(part) if _repeats(part) else part


def _is_small(values: pa.StringArray, slices: int) -> bool:
    return not values.null_count and slices * len(values) <= _MOST_CELLS


def _from_dictionary(column: pa.DictionaryArray, bounds: Bounds) -> Iterator[EncodedColumn]:
    codes, values = _distinct(column)
    slices, count = len(bounds) - 1, len(values)
    if count == 1 or (slices == 1 and in_first_occurrence_order(codes, count)):
        yield from (_encode_codes(numbers, values) for numbers in _rows(codes, bounds))
        return
    keys = codes.astype(np.int64)
    for number, rows in enumerate(_rows(keys, bounds)):
        rows += count * number
    order, numbers = _by_occurrence(keys, slices * count)
    starts = np.searchsorted(order // count, np.arange(slices + 1)).tolist()
    taken = values.take(pa.array(order % count))
    for rows, (first, last) in zip(_rows(numbers, bounds), pairwise(starts), strict=True):
        yield _encode_codes(rows - first, taken.slice(first, last - first))


def _distinct(column: pa.DictionaryArray) -> tuple[Integers, pa.StringArray]:
    """The codes [rows] and the distinct strings [values] of a dictionary column; a null is the empty string."""
    indices, values = column.indices, column.dictionary
    if indices.null_count:
        values = pa.concat_arrays([values, pa.array([""], values.type)])
        indices = pc.fill_null(indices.cast(pa.int64()), len(values) - 1)
    codes = indices.to_numpy()
    if len(values) > 1 and len(set(values.to_pylist())) < len(values):
        unique = values.dictionary_encode()
        codes, values = unique.indices.to_numpy()[codes], unique.dictionary
    return codes, values


def _encode_codes(numbers: Integers, values: pa.StringArray) -> EncodedColumn:
    """The encoding of codes that count first occurrences; row by row where the sample has too many distinct strings.

    Codes count first occurrences, so the sample holds a code of `MAX_DISTINCT` or more exactly if it holds more than
    `MAX_DISTINCT` distinct strings: the same decision as `_repeats`, without looking at a string.
    """
    if len(numbers) < SAMPLE or (len(values) > MAX_DISTINCT and int(numbers[:SAMPLE].max()) >= MAX_DISTINCT):
        return _by_row(values.take(pa.array(numbers)))
    return _dictionary_column(numbers, values)


def _dictionary_column(numbers: Integers, values: pa.StringArray) -> DictionaryColumn:
    return DictionaryColumn(numbers.astype(number_type(len(values)), copy=False), values)


def number_type(count: int) -> np.dtype[Any]:
    """The narrowest type of codes for `count` distinct strings."""
    return _NUMBER_TYPES[0 if count <= 1 << 8 else 1 if count <= 1 << 16 else 2]


def in_first_occurrence_order(codes: Integers, count: int) -> bool:
    """True when all of `count` codes occur and first occur in ascending order; for two rows or more.

    The running maximum then starts at 0, ends at `count - 1` and never rises by more than 1.
    """
    highest = np.maximum.accumulate(codes)
    return bool(highest[0] == 0 and highest[-1] == count - 1 and (highest[1:] - highest[:-1]).max() <= 1)


def _by_occurrence(keys: Integers, count: int) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """The keys that occur, in order of first occurrence, and for each row the rank of its key in that order."""
    rows = len(keys)
    first = np.full(count, rows)
    first[keys[::-1]] = np.arange(rows - 1, -1, -1)  # in reverse: the last write wins, the first row
    used = np.flatnonzero(first < rows)
    order = used[np.argsort(first[used])]
    ranks = np.empty(count, dtype=np.int64)
    ranks[order] = np.arange(len(order))
    return order, ranks[keys]


def narrow(values: Integers, bounds: Bounds) -> Iterator[Integers]:
    """For each slice between two bounds its integers in the least of 1, 2, 4 and 8 bytes that holds them all."""
    if len(bounds) == 2:
        yield values if is_narrow(values) else _narrowed(values, int(values.min()), int(values.max()))
        return
    starts = list(bounds[:-1])
    lows, highs = np.minimum.reduceat(values, starts).tolist(), np.maximum.reduceat(values, starts).tolist()
    for rows, low, high in zip(_rows(values, bounds), lows, highs, strict=True):
        yield _narrowed(rows, low, high)


def is_narrow(values: Integers) -> bool:
    """True when integers already have the width that their encoding requires."""
    size = values.itemsize
    if len(values) < SAMPLE or size == 1:
        return size == (8 if len(values) < SAMPLE else 1)
    half = 1 << (4 * size - 1)
    if not -half <= int(values[0]) < half:  # the first value alone needs the width
        return True
    return max(int(values.max()), ~int(values.min())) >= half


def _narrowed(values: Integers, low: int, high: int) -> Integers:
    largest = max(high, ~low)
    size = 8 if len(values) < SAMPLE else next(size for size in (1, 2, 4, 8) if largest < 1 << (8 * size - 1))
    return values.astype(f"<i{size}", copy=False)


def strings(column: pa.Array) -> pa.StringArray:
    """The plain strings [rows] of a column in any form."""
    if pa.types.is_dictionary(column.type):
        return column.dictionary_decode()
    if not pa.types.is_fixed_size_binary(column.type):
        return column
    if not column.null_count:
        return to_strings(column_octets(column))
    filled = strings(pc.fill_null(column, bytes(column.type.byte_width)))
    return pc.if_else(column.is_valid(), filled, pa.scalar(None, pa.string()))


def occurring(column: pa.Array) -> pa.StringArray:
    """The strings that occur in a column, mostly distinct; unused dictionary values are excluded."""
    if not pa.types.is_dictionary(column.type) or column.null_count:
        return strings(column)
    values = column.dictionary
    if len(values) == 1:
        return values
    seen = np.bincount(column.indices.to_numpy(), minlength=len(values)) > 0
    return values if seen.all() else values.filter(pa.array(seen))


def _rows(values: npt.NDArray[Any], bounds: Bounds) -> Iterator[npt.NDArray[Any]]:
    return (values[start:end] for start, end in pairwise(bounds))
