"""Frames and digests: values decide the digest, bytes do not; whatever arrives either decodes or is a FrameError."""

import hashlib
import struct

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from ledger_facts import sample_batch, sample_frame

from ledger.digests import rows_digest
from ledger.events import EVENTS, EventType
from ledger.frames import Frame, FrameError, Link, Record, decode, encode, make_frame

TYPES = st.sampled_from(sorted(EVENTS)).map(EVENTS.__getitem__)
_WORDS = st.text(max_size=8)
_VALUES = {
    pa.string(): _WORDS,
    pa.int64(): st.integers(-(2**63), 2**63 - 1),
    pa.float64(): st.floats(allow_nan=False),
    pa.bool_(): st.booleans(),
}


@st.composite
def batches(draw: st.DrawFn) -> tuple[EventType, pa.RecordBatch]:
    """Any type with one to five rows of any values."""
    declared, rows = draw(TYPES), draw(st.integers(1, 5))
    arrays = []
    for column in declared.columns:
        nested = pa.types.is_list(column.arrow)
        values = _VALUES[column.arrow.value_type if nested else column.arrow]
        values = st.lists(values, max_size=3) if nested else values
        values = st.none() | values if column.nullable else values
        arrays.append(pa.array(draw(st.lists(values, min_size=rows, max_size=rows)), column.arrow))
    return declared, pa.RecordBatch.from_arrays(arrays, schema=declared.schema)


def plain_digest(batch: pa.RecordBatch) -> str:
    """The canonical form written again with plain Python values, after its definition."""

    def column(kind: pa.DataType, values: list[object]) -> bytes:
        nested = pa.types.is_list(kind)
        out = b"list" if nested else str(kind).encode()
        nulls = [value is None for value in values]
        out += b"\x01" if any(nulls) else b"\x00"
        if any(nulls):
            bits = sum(1 << place for place, null in enumerate(nulls) if not null)
            out += bits.to_bytes((len(values) + 7) // 8, "little")
        if nested:
            out += b"".join(struct.pack("<q", len(value or [])) for value in values)
            return out + column(kind.value_type, [item for value in values for item in value or []])
        if pa.types.is_string(kind):
            data = [(value or "").encode() for value in values]
            return out + b"".join(struct.pack("<i", len(word)) for word in data) + b"".join(data)
        form = {pa.int64(): "<q", pa.float64(): "<d", pa.bool_(): "<?"}[kind]
        return out + b"".join(struct.pack(form, value or 0) for value in values)

    body = b"".join(column(array.type, array.to_pylist()) for array in batch.columns)
    return hashlib.sha256(struct.pack("<q", batch.num_rows) + body).hexdigest()


@settings(max_examples=40, deadline=None)
@given(batches())
def test_the_digest_is_that_of_its_definition(case: tuple[EventType, pa.RecordBatch]) -> None:
    """Against an independent writing of the canonical form."""
    assert rows_digest(case[1]) == plain_digest(case[1])


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
    whole = pa.Table.from_batches([junk.slice(0, front), batch, junk.slice(0, back)]).combine_chunks().to_batches()[0]
    assert rows_digest(whole.slice(front, batch.num_rows)) == rows_digest(batch)


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
        [["a"], []] if pa.types.is_list(kind) else data.draw(st.lists(_VALUES[kind], min_size=2, unique=True)),
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
    frame = sample_frame(declared)
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
    """Whatever a header says, the record decodes to the values it carries or is refused with a reason."""
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


def test_a_dictionary_is_refused_before_it_is_decoded() -> None:
    """Its 2^24 zeros compress to 17 kB: refused for its schema, with no more than the payload's own size allocated."""
    frame = sample_frame(EVENTS["campaign.opened", 1])
    words = pa.DictionaryArray.from_arrays(pa.array([0], pa.int32()), pa.array(["0" * (1 << 24)]))
    batch = pa.RecordBatch.from_arrays([words], names=["campaign_id"])
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, batch.schema, options=pa.ipc.IpcWriteOptions(compression="zstd")) as writer:
        writer.write_batch(batch)
    record = Record(encode(frame).headers, sink.getvalue().to_pybytes())
    assert len(record.payload) < 1 << 15
    pool, default = pa.proxy_memory_pool(pa.default_memory_pool()), pa.default_memory_pool()
    pa.set_memory_pool(pool)
    try:
        with pytest.raises(FrameError, match=r"columns differ from campaign\.opened version 1") as caught:
            decode(record)
    finally:
        pa.set_memory_pool(default)
    assert caught.value.reason == "bad-schema"
    assert (pool.max_memory() or 0) < 1 << 16


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
