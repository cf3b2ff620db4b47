"""Packed batches: every value comes back, whatever short form it took, alone and joined with others."""

import random
from itertools import pairwise

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lapledger.ledger.codec.encodings import occurring, strings
from lapledger.ledger.codec.octets import to_octets, to_strings
from lapledger.ledger.codec.packing import holds, joined, packed, packed_slices, plain
from lapledger.ledger.events import EVENTS, EventType
from tests.ledger.batches import SEVERAL, batches, held_otherwise
from tests.ledger.facts import sample_batch

DIGEST, UUID = "0123456789abcdef" * 4, "01234567-89ab-7def-8123-456789abcdef"


@settings(max_examples=60, deadline=None)
@given(batches(), st.randoms(use_true_random=False))
def test_plain_undoes_packed(case: tuple[EventType, pa.RecordBatch], rng: random.Random) -> None:
    """Values, nulls and the schema come back; a packed batch still holds its type's rows."""
    declared, batch = case
    for held in (packed(batch), packed(held_otherwise(batch, rng)), held_otherwise(batch, rng)):
        assert holds(held.schema, declared.schema)
        held.validate(full=True)
        assert plain(held).equals(batch)


@settings(max_examples=40, deadline=None)
@given(batches(), st.lists(st.integers(1, 129), unique=True, max_size=4), st.randoms(use_true_random=False))
def test_slices_pack_like_batches_of_their_own(
    case: tuple[EventType, pa.RecordBatch], cuts: list[int], rng: random.Random
) -> None:
    """However the whole is held: the producer packs many frames at once."""
    batch = case[1]
    bounds = sorted({0, batch.num_rows, *(cut for cut in cuts if cut < batch.num_rows)})
    result = list(packed_slices(held_otherwise(batch, rng), bounds))
    due = [packed(batch.slice(a, b - a)) for a, b in pairwise(bounds)]
    assert [rows.schema for rows in result] == [rows.schema for rows in due]
    assert all(mine.equals(theirs) for mine, theirs in zip(result, due, strict=True))


@settings(max_examples=40, deadline=None)
@given(batches(), st.integers(1, 4), st.randoms(use_true_random=False))
def test_joined_rows_are_those_of_the_batches(
    case: tuple[EventType, pa.RecordBatch], count: int, rng: random.Random
) -> None:
    """In their order, whatever form each batch has; a common dictionary where one had words."""
    declared, batch = case
    forms = [batch, packed(batch), held_otherwise(batch, rng), packed(batch.slice(0, 1))]
    some = [rng.choice(forms) for _ in range(count)]
    table = joined(declared.schema, some)
    assert table.num_rows == sum(rows.num_rows for rows in some)
    assert {column.num_chunks for column in table.columns} == {1}
    due = pa.Table.from_batches([plain(rows) for rows in some])
    assert table.cast(declared.schema).combine_chunks().equals(due.combine_chunks())
    again = joined(declared.schema, [batch], table.schema)
    assert again.schema == table.schema
    assert again.cast(declared.schema).equals(pa.Table.from_batches([batch]))


def test_more_texts_than_their_numbers_hold_are_joined() -> None:
    """Each batch numbers its words in a byte; together they are too many for one."""
    schema = pa.schema([pa.field("word", pa.string(), nullable=False)])
    parts = [pa.record_batch([pa.array([f"{part} {n % 200}" for n in range(400)])], schema=schema) for part in range(3)]
    assert packed(parts[0]).schema.types == [pa.string()]  # the first rows do not repeat
    parts = [
        pa.record_batch([pa.array([f"{part} {n // 40}" for n in range(4000)])], schema=schema) for part in range(3)
    ]
    short = [packed(part) for part in parts]
    assert {part.schema.types[0] for part in short} == {pa.dictionary(pa.uint8(), pa.string())}
    assert joined(schema, short).cast(schema).equals(pa.Table.from_batches(parts).combine_chunks())


def test_nothing_is_joined_to_an_empty_table() -> None:
    """With the columns that were asked for."""
    schema = EVENTS["timing.measured", 1].schema
    assert joined(schema, []).schema == schema


@pytest.mark.parametrize("rows", [1, *SEVERAL])
def test_a_few_rows_are_plain(rows: int) -> None:
    """Short forms begin where they pay."""
    batch = sample_batch(EVENTS["timing.measured", 1], rows)
    assert packed(batch).schema.equals(batch.schema) == (rows < 64)


def test_packing_saves_bytes() -> None:
    """Constant columns cost a byte a row, a digest half of its digits, an integer what its largest value needs."""
    schema = pa.schema([(name, pa.string()) for name in ("constant", "digest", "uuid")] + [("small", pa.int64())])
    raw = np.random.default_rng(0).integers(0, 256, (1000, 32), np.uint8)
    ids = [to_strings(raw), to_strings(np.ascontiguousarray(raw[:, :16]))]
    short = packed(pa.record_batch([pa.array(["c" * 64] * 1000), *ids, pa.array(range(1000))], schema=schema))
    assert short.schema.types == [pa.dictionary(pa.uint8(), pa.string()), pa.binary(32), pa.binary(16), pa.int16()]
    assert 1000 * (1 + 32 + 16 + 2) <= short.nbytes < 1000 * (1 + 32 + 16 + 2) + 100


@pytest.mark.parametrize(
    "text",
    [
        DIGEST.upper(),
        DIGEST[:-1] + "g",
        DIGEST[:-1],
        DIGEST + "0",
        UUID.upper(),
        UUID.replace("-", "_"),
        UUID[:-1] + "-",
    ],
)
def test_only_one_spelling_becomes_octets(text: str) -> None:
    """What would come back otherwise stays a string."""
    good = UUID if len(text) == len(UUID) else DIGEST
    assert to_octets(pa.array([good, text])) is None


@pytest.mark.parametrize("text", [DIGEST, UUID])
def test_octets_come_back_as_they_were_spelt(text: str) -> None:
    """From any place in a longer array."""
    octets = to_octets(pa.array(["before", text, text[::-1], text]).slice(1, 3).take(pa.array([0, 2])))
    assert octets is not None
    assert to_strings(octets).to_pylist() == [text, text]
    sliced = to_octets(pa.array(["before", text, text]).slice(1))
    assert sliced is not None
    assert sliced.tobytes() == octets.tobytes()


def test_texts_that_stand_in_no_row_do_not_occur() -> None:
    """A check of a column looks at its dictionary, and must not complain of what no event says."""
    args = pa.DictionaryArray.from_arrays(pa.array([2, 0, 2], pa.int8()), pa.array(["a", "unused", "c"]))
    assert occurring(args).to_pylist() == ["a", "c"]
    nulls = pa.DictionaryArray.from_arrays(pa.array([None, 0], pa.int8()), pa.array(["a"]))
    assert (occurring(nulls).to_pylist(), strings(nulls).to_pylist()) == ([None, "a"], [None, "a"])
