"""How a column is told shortly: strings that repeat by numbers, digests and UUIDs as octets, integers in few bytes.

The form depends on the values alone, never on how an array holds them, so that digests can be taken over it. Columns of
fewer than `SAMPLE` rows are told row by row. Pure.
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
"""First rows of a column, which decide whether its strings repeat."""

MOST_WORDS = 48
"""Most distinct strings among them in a column whose strings repeat."""

_NUMBER_TYPES = (np.dtype(np.uint8), np.dtype(np.uint16), np.dtype(np.uint32))
_MOST_CELLS = 1 << 22  # of a table of (slice, word)

Integers = npt.NDArray[np.integer[Any]]
Bounds = Sequence[int]


@dataclass(frozen=True, slots=True, eq=False)
class Words:
    """The distinct words of a column [words] in order of first occurrence, and their numbers [rows] in the least type.

    A null counts as the empty word.
    """

    numbers: Integers
    words: pa.StringArray


Told: TypeAlias = Words | Octets | Any
"""What `tell` gives for a slice: its words, its octets [rows, width], or its strings as an Arrow array [rows]."""


def tell(column: pa.Array, bounds: Bounds) -> Iterator[Told]:
    """For each slice between two bounds the short form of its strings.

    `column` holds strings: plain, as a dictionary, or as the octets of fixed width that stand for them.
    """
    slices = len(bounds) - 1
    if len(column) >= SAMPLE * slices:
        if pa.types.is_fixed_size_binary(column.type) and not column.null_count:
            return map(_from_octets, _rows(column_octets(column), bounds))
        words = _as_words(column) if slices > 1 else column
        if pa.types.is_dictionary(words.type) and _is_small(words.dictionary, slices):
            return _from_dictionary(words, bounds)
    return _from_strings(strings(column), bounds)


def _as_words(column: pa.Array) -> pa.Array:
    """Many slices of strings that repeat are told from one dictionary, even if some are told row by row."""
    if not (pa.types.is_string(column.type) and _repeats(column)):
        return column
    return (pc.fill_null(column, "") if column.null_count else column).dictionary_encode()


def _from_strings(column: pa.StringArray, bounds: Bounds) -> Iterator[Told]:
    for start, end in pairwise(bounds):
        part = column if end - start == len(column) else column.slice(start, end - start)
        yield _encoded(part) if _repeats(part) else _by_row(part)


def _repeats(part: pa.StringArray) -> bool:
    if len(part) < SAMPLE:
        return False
    return len({word or "" for word in part.slice(0, SAMPLE).to_pylist()}) <= MOST_WORDS


def _encoded(part: pa.StringArray) -> Words:
    found = (pc.fill_null(part, "") if part.null_count else part).dictionary_encode()
    return _words(found.indices.to_numpy(), found.dictionary)


def _by_row(part: pa.StringArray) -> Told:
    """Strings that do not repeat: their octets if all are digests or all are UUIDs."""
    octets = None if len(part) < SAMPLE or part.null_count else to_octets(part)
    return part if octets is None else octets


def _from_octets(octets: Octets) -> Told:
    width, sample = octets.shape[1], octets[:SAMPLE].tobytes()
    if len(octets) >= SAMPLE and len({sample[a : a + width] for a in range(0, len(sample), width)}) > MOST_WORDS:
        return octets
    part = to_strings(octets)
    return _encoded(part) if _repeats(part) else part


def _is_small(words: pa.StringArray, slices: int) -> bool:
    return not words.null_count and slices * len(words) <= _MOST_CELLS


def _from_dictionary(column: pa.DictionaryArray, bounds: Bounds) -> Iterator[Told]:
    codes, words = _distinct(column)
    slices, count = len(bounds) - 1, len(words)
    if count == 1 or (slices == 1 and in_order(codes, count)):
        yield from (_told(numbers, words) for numbers in _rows(codes, bounds))
        return
    keys = codes.astype(np.int64)
    for place, rows in enumerate(_rows(keys, bounds)):
        rows += count * place
    order, numbers = _by_occurrence(keys, slices * count)
    starts = np.searchsorted(order // count, np.arange(slices + 1)).tolist()
    taken = words.take(pa.array(order % count))
    for rows, (first, last) in zip(_rows(numbers, bounds), pairwise(starts), strict=True):
        yield _told(rows - first, taken.slice(first, last - first))


def _distinct(column: pa.DictionaryArray) -> tuple[Integers, pa.StringArray]:
    """The numbers of a dictionary's words [rows] and the words [words], none twice; a null is the empty word."""
    indices, words = column.indices, column.dictionary
    if indices.null_count:
        words = pa.concat_arrays([words, pa.array([""], words.type)])
        indices = pc.fill_null(indices.cast(pa.int64()), len(words) - 1)
    codes = indices.to_numpy()
    if len(words) > 1 and len(set(words.to_pylist())) < len(words):
        unique = words.dictionary_encode()
        codes, words = unique.indices.to_numpy()[codes], unique.dictionary
    return codes, words


def _told(numbers: Integers, words: pa.StringArray) -> Told:
    """The form of words in order of first occurrence; row by row where the first rows do not repeat them."""
    if len(numbers) < SAMPLE or (len(words) > MOST_WORDS and int(numbers[:SAMPLE].max()) >= MOST_WORDS):
        return _by_row(words.take(pa.array(numbers)))
    return _words(numbers, words)


def _words(numbers: Integers, words: pa.StringArray) -> Words:
    return Words(numbers.astype(number_type(len(words)), copy=False), words)


def number_type(count: int) -> np.dtype[Any]:
    """The least type of the numbers of so many words."""
    return _NUMBER_TYPES[0 if count <= 1 << 8 else 1 if count <= 1 << 16 else 2]


def in_order(codes: Integers, count: int) -> bool:
    """True when each of `count` words stands in some row and they first occur in their order; for two rows or more."""
    highest = np.maximum.accumulate(codes)
    return bool(highest[0] == 0 and highest[-1] == count - 1 and (highest[1:] - highest[:-1]).max() <= 1)


def _by_occurrence(keys: Integers, count: int) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """The keys that occur, in order of first occurrence, and for each row the place of its key in that order."""
    rows = len(keys)
    first = np.full(count, rows)
    first[keys[::-1]] = np.arange(rows - 1, -1, -1)  # of several values for one place the last one stays
    used = np.flatnonzero(first < rows)
    order = used[np.argsort(first[used])]
    places = np.empty(count, dtype=np.int64)
    places[order] = np.arange(len(order))
    return order, places[keys]


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
    """True when integers are as wide as they are told."""
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
    """The strings of a column [words] with few repetitions; words of a dictionary that stand in no row are left out."""
    if not pa.types.is_dictionary(column.type) or column.null_count:
        return strings(column)
    words = column.dictionary
    if len(words) == 1:
        return words
    seen = np.bincount(column.indices.to_numpy(), minlength=len(words)) > 0
    return words if seen.all() else words.filter(pa.array(seen))


def _rows(values: npt.NDArray[Any], bounds: Bounds) -> Iterator[npt.NDArray[Any]]:
    return (values[start:end] for start, end in pairwise(bounds))
