"""Frames and digests: values decide the digest, bytes do not; whatever arrives either decodes or is a FrameError."""

import random
from dataclasses import replace
from itertools import pairwise
from uuid import UUID

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lapledger.ledger.codec.canonical import blob_digest, canonical, rows_digest
from lapledger.ledger.codec.packing import packed
from lapledger.ledger.codec.wire import read_wire
from lapledger.ledger.events import EVENTS, EventType, to_batch
from lapledger.ledger.frames.frame import (
    Frame,
    FrameError,
    Link,
    Record,
    decode,
    encode,
    frame_digests,
    make_frame,
    make_record,
    payload_digest,
)
from tests.ledger.batches import SEVERAL, TYPES, VALUES, batches, held_otherwise, plain_digest
from tests.ledger.facts import sample_batch, sample_events, sample_frame

LINK = Link("e", "facts", 3, 7, "before")


@settings(max_examples=80, deadline=None)
@given(batches())
def test_the_digest_is_that_of_its_definition(case: tuple[EventType, pa.RecordBatch]) -> None:
    """Against an independent writing of the canonical form."""
    assert rows_digest(case[1]) == plain_digest(case[1])


@settings(max_examples=80, deadline=None)
@given(batches(), st.randoms(use_true_random=False))
def test_the_digest_ignores_how_values_are_held(case: tuple[EventType, pa.RecordBatch], rng: random.Random) -> None:
    """Dictionaries in any order and with unused words, narrow integers, octets and packed columns give one digest."""
    batch = case[1]
    encoded = held_otherwise(batch, rng)
    assert {rows_digest(held) for held in (encoded, packed(encoded), packed(batch))} == {rows_digest(batch)}


@settings(max_examples=60, deadline=None)
@given(batches(), st.randoms(use_true_random=False))
def test_any_encoding_of_a_frame_is_admitted(case: tuple[EventType, pa.RecordBatch], rng: random.Random) -> None:
    """A producer that knows no short forms, or other ones, is understood: same digest, same rows."""
    declared, batch = case
    frame = make_frame(declared, "kéy", LINK, batch)
    encoded = held_otherwise(batch, rng)
    again = decode(Record(encode(frame).headers, stream_of(encoded)))
    assert (again.digest, again.rows) == (frame.digest, batch.num_rows)
    assert again.batch.equals(batch)


@settings(max_examples=60, deadline=None)
@given(batches())
def test_the_wire_gives_the_bytes_of_the_columns(case: tuple[EventType, pa.RecordBatch]) -> None:
    """The fast way from a payload to its digest gives what the columns give, or nothing."""
    declared, batch = case
    rows = packed(batch)
    payload = stream_of(rows)
    from_wire = read_wire(payload, declared.name, declared.version).canonical()
    assert from_wire in (None, next(canonical(batch.columns, [0, batch.num_rows])))
    frame = make_frame(declared, "kéy", LINK, batch)
    assert payload_digest(declared, "kéy", LINK, payload) == frame.digest
    assert make_record(declared, "kéy", LINK, rows) == (encode(frame), frame.digest)


@pytest.mark.parametrize("rows", [1, 5, *SEVERAL])
@pytest.mark.parametrize("core", [None, 3])
def test_timings_take_the_fast_way(rows: int, core: int | None) -> None:
    """Nothing of the type that there is most of needs its columns made, with or without nulls."""
    sample = sample_events(EVENTS["timing.measured", 1], 1)[0]
    ids = [blob_digest(str(row).encode()) for row in range(rows)]
    batch = to_batch([replace(sample, work_id=i, attempt_id=str(UUID(i[:32])), core=core) for i in ids])
    wire = read_wire(stream_of(packed(batch)), "timing.measured", 1)
    assert wire.canonical() == next(canonical(batch.columns, [0, rows]))


@settings(max_examples=40, deadline=None)
@given(batches(), st.lists(st.integers(1, 129), unique=True, max_size=4), st.randoms(use_true_random=False))
def test_many_frames_are_digested_at_once(
    case: tuple[EventType, pa.RecordBatch], cuts: list[int], rng: random.Random
) -> None:
    """The digests of the slices of a segment are those of the frames that it was made of."""
    declared, batch = case
    bounds = sorted({0, batch.num_rows, *(cut for cut in cuts if cut < batch.num_rows)})
    slices = [batch.slice(a, b - a) for a, b in pairwise(bounds)]
    keyed_links = [(f"key {n}", Link("e", "facts", 1, n, f"before {n}")) for n in range(len(slices))]
    frames = [make_frame(declared, *keyed_link, rows) for keyed_link, rows in zip(keyed_links, slices, strict=True)]
    for held in (batch, held_otherwise(batch, rng)):
        digests = frame_digests(declared, held.columns, bounds, keyed_links)
        assert list(digests) == [frame.digest for frame in frames]


def stream_of(batch: pa.RecordBatch) -> bytes:
    """A batch as an Arrow stream."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, batch.schema) as writer:
        writer.write_batch(batch)
    payload: bytes = sink.getvalue().to_pybytes()
    return payload


@settings(max_examples=40, deadline=None)
@given(batches())
def test_a_frame_survives_the_stream(case: tuple[EventType, pa.RecordBatch]) -> None:
    """Encoding and decoding gives back every value, the key, the link and the digest."""
    declared, batch = case
    frame = make_frame(declared, "kéy", Link("e", "facts", 3, 7, "before"), batch)
    again = decode(encode(frame))
    assert (again.declared, again.key, again.link, again.digest) == (declared, "kéy", frame.link, frame.digest)
    assert again.batch.equals(batch)


@settings(max_examples=40, deadline=None)
@given(batches(), st.integers(0, 3), st.integers(0, 3))
def test_the_digest_ignores_offsets_and_buffers(case: tuple[EventType, pa.RecordBatch], front: int, back: int) -> None:
    """A slice of a longer batch has the digest of the same rows on their own."""
    declared, batch = case
    junk = sample_batch(declared, 3)
    surrounded = (
        pa.Table.from_batches([junk.slice(0, front), batch, junk.slice(0, back)]).combine_chunks().to_batches()[0]
    )
    assert rows_digest(surrounded.slice(front, batch.num_rows)) == rows_digest(batch)


@settings(max_examples=100, deadline=None)
@given(batches(), st.data())
def test_the_digest_changes_with_any_value(case: tuple[EventType, pa.RecordBatch], data: st.DataObject) -> None:
    """Another value in one cell, a null for a value included, gives another digest."""
    declared, batch = case
    column = data.draw(st.integers(0, len(declared.columns) - 1))
    values = batch.column(column).to_pylist()
    row = data.draw(st.integers(0, len(values) - 1))
    kind = declared.columns[column].arrow
    choices = [
        [["a"], []] if pa.types.is_list(kind) else data.draw(st.lists(VALUES[kind], min_size=2, unique=True)),
        [None],
    ]
    pool = [item for part in choices[: 1 + declared.columns[column].nullable] for item in part]
    values[row] = next(item for item in pool if repr(item) != repr(values[row]))
    arrays = list(batch.columns)
    arrays[column] = pa.array(values, kind)
    assert rows_digest(pa.RecordBatch.from_arrays(arrays, schema=batch.schema)) != rows_digest(batch)


def outcome(record: Record) -> tuple[str, Frame | None]:
    """The reason why a record was refused, or "" and its frame; any other exception escapes."""
    try:
        return "", decode(record)
    except FrameError as error:
        return error.reason, None


def test_a_null_and_a_zero_have_different_digests() -> None:
    """The shortest pair that a validity bitmap without its own marker would confuse: [1, null] and [1, 0]."""
    pair = [pa.record_batch({"x": pa.array(values, pa.int64())}) for values in ([1, None], [1, 0])]
    assert rows_digest(pair[0]) != rows_digest(pair[1])


@settings(max_examples=150, deadline=None)
@given(TYPES, st.data())
def test_hostile_payloads_raise_only_frame_errors(declared: EventType, data: st.DataObject) -> None:
    """Flipped, cut and repeated bytes never raise anything else, and never pass with other values."""
    frame = sample_frame(declared, data.draw(st.sampled_from([3, 3, 80])))
    record = encode(frame)
    payload = bytearray(record.payload)
    for at in data.draw(st.lists(st.integers(0, len(payload) - 1), max_size=4)):
        payload[at] = data.draw(st.integers(0, 255))
    end = data.draw(st.integers(0, len(payload)) | st.just(len(payload)))
    reason, again = outcome(Record(record.headers, bytes(payload[:end])))
    assert reason in {"", "undecodable", "bad-schema", "too-large", "digest-mismatch", "header-mismatch"}
    assert again is None or rows_digest(again.batch) == rows_digest(frame.batch)


@settings(max_examples=40, deadline=None)
@given(st.dictionaries(st.sampled_from(sorted(encode(sample_frame(EVENTS["filter.decided", 1])).headers)), st.text()))
def test_hostile_headers_raise_only_frame_errors(changes: dict[str, str]) -> None:
    """Whatever a header has, the record decodes to the values it carries or is refused with a reason."""
    record = encode(sample_frame(EVENTS["filter.decided", 1]))
    reason, _ = outcome(Record({**record.headers, **changes}, record.payload))
    assert reason in {"", "bad-header", "unknown-type", "header-mismatch", "digest-mismatch"}


@pytest.mark.parametrize(
    ("header", "value", "reason"),
    [
        ("ce_lapsequence", "9" * 19, "bad-header"),
        ("ce_lapsequence", "-1", "bad-header"),
        ("ce_lapepoch", "e\0", "bad-header"),
        ("ce_lapepoch", "\ud800", "bad-header"),
        ("ce_subject", "x" * 1001, "bad-header"),
        ("ce_type", "no.such", "unknown-type"),
        ("ce_lapversion", "2", "unknown-type"),
        ("ce_laprows", "4", "header-mismatch"),
        ("ce_subject", "another", "digest-mismatch"),
    ],
)
def test_a_bad_header_has_its_reason(header: str, value: str, reason: str) -> None:
    """Counts and words that a database could not keep are refused before anything is written."""
    record = encode(sample_frame(EVENTS["filter.decided", 1]))
    with pytest.raises(FrameError) as caught:
        decode(Record({**record.headers, header: value}, record.payload))
    assert caught.value.reason == reason


@pytest.mark.parametrize("codec", ["zstd", "lz4"])
def test_compressed_buffers_are_refused(codec: str) -> None:
    """A small compressed payload could decode to any size, so none is decoded."""
    frame = sample_frame(EVENTS["campaign.opened", 1])
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, frame.batch.schema, options=pa.ipc.IpcWriteOptions(compression=codec)) as writer:
        writer.write_batch(frame.batch)
    with pytest.raises(FrameError, match="compressed"):
        decode(Record(encode(frame).headers, sink.getvalue().to_pybytes()))


def allocated(record: Record) -> tuple[FrameError, int]:
    """Why a record is refused, and the most memory that Arrow took for it, in bytes."""
    pool, default = pa.proxy_memory_pool(pa.default_memory_pool()), pa.default_memory_pool()
    pa.set_memory_pool(pool)
    try:
        with pytest.raises(FrameError) as caught:
            decode(record)
    finally:
        pa.set_memory_pool(default)
    return caught.value, pool.max_memory() or 0


def campaigns(column: pa.Array, compression: str | None = None) -> Record:
    """A frame of campaigns whose ids are told by a dictionary."""
    frame = sample_frame(EVENTS["campaign.closed", 1], len(column))
    batch = frame.batch.set_column(0, pa.field("campaign_id", column.type, nullable=False), column)
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, batch.schema, options=pa.ipc.IpcWriteOptions(compression=compression)) as writer:
        writer.write_batch(batch)
    return Record({**encode(frame).headers, "ce_laprows": str(len(column))}, sink.getvalue().to_pybytes())


def test_a_compressed_dictionary_is_refused_before_it_is_decoded() -> None:
    """Its 2^24 zeros compress to a few kB: refused with no more than the payload's own size allocated."""
    column = pa.DictionaryArray.from_arrays(pa.array([0], pa.int32()), pa.array(["0" * (1 << 24)]))
    record = campaigns(column, "zstd")
    assert len(record.payload) < 1 << 15
    refused, most = allocated(record)
    assert (refused.reason, "compressed" in str(refused)) == ("undecodable", True)
    assert most < 1 << 16


def test_a_long_text_in_every_row_is_refused_before_it_is_repeated() -> None:
    """A payload of 4 MiB that stands for 8 GiB of plain strings: refused with no more than its own size allocated."""
    column = pa.DictionaryArray.from_arrays(pa.array([0] * 2000, pa.int32()), pa.array(["0" * (1 << 22)]))
    refused, most = allocated(campaigns(column))
    assert refused.reason == "too-large"
    assert most < 1 << 20


def test_a_long_text_in_one_row_is_admitted_to_the_digest() -> None:
    """What counts is what the rows hold, not the longest word times the rows."""
    column = pa.DictionaryArray.from_arrays(
        pa.array([*range(2000)], pa.int32()), pa.array(["0" * (1 << 22), *map(str, range(1999))])
    )
    refused, _ = allocated(campaigns(column))
    assert refused.reason == "digest-mismatch"


def test_null_values_and_changes_to_dictionaries_are_refused() -> None:
    """A null among the words would hide nulls from the column's own count; a change would need a history."""
    column = pa.DictionaryArray.from_arrays(pa.array([0, 1], pa.int8()), pa.array(["a", None]))
    assert "null among the values" in str(allocated(campaigns(column))[0])
    declared = EVENTS["campaign.closed", 1]
    first, more = (
        [{**row, "campaign_id": campaign} for row in sample_batch(declared, 1).to_pylist()] for campaign in ("a", "b")
    )
    kinds = [
        (f.name, pa.dictionary(pa.int8(), pa.string()) if f.name == "campaign_id" else f.type) for f in declared.schema
    ]
    schema = pa.schema([pa.field(name, kind, nullable=False) for name, kind in kinds])
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, schema, options=pa.ipc.IpcWriteOptions(emit_dictionary_deltas=True)) as writer:
        for rows in (first, first + more):
            writer.write_batch(pa.RecordBatch.from_pylist(rows, schema=schema))
    refused, _ = allocated(Record(encode(sample_frame(declared, 1)).headers, sink.getvalue().to_pybytes()))
    assert refused.reason == "bad-schema"


@pytest.mark.parametrize("count", [0, 2])
def test_a_frame_is_one_batch(count: int) -> None:
    """No other message may follow the schema, however small."""
    frame = sample_frame(EVENTS["campaign.opened", 1])
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, frame.batch.schema) as writer:
        for _ in range(count):
            writer.write_batch(frame.batch)
    with pytest.raises(FrameError, match="one record batch and nothing else"):
        decode(Record(encode(frame).headers, sink.getvalue().to_pybytes()))


def test_a_null_where_a_value_must_be_is_refused() -> None:
    """Arrow lets a null stand in a column that its schema calls not nullable, and in a list's items; frames do not."""
    for name, column, values in [
        ("filter.decided", "rule", ["r", None, "r"]),
        ("step.taken", "groups", [["g"], [None], []]),
    ]:
        frame = sample_frame(EVENTS[name, 1])
        arrays = list(frame.batch.columns)
        index = frame.batch.schema.names.index(column)
        arrays[index] = pa.array(values, frame.batch.schema.field(column).type)
        batch = pa.RecordBatch.from_arrays(arrays, schema=frame.batch.schema)
        record = encode(make_frame(frame.declared, frame.key, frame.link, batch))
        with pytest.raises(FrameError, match=column):
            decode(record)
