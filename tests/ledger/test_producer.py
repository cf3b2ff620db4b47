"""The producer: what is appended comes back whole, in frames that the stream takes, in one chain without gaps."""

import threading
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lapledger.ledger.errors import Fault
from lapledger.ledger.events import EVENTS, EventType, from_batch, to_batch
from lapledger.ledger.frames.frame import Frame, Record, decode, genesis
from lapledger.ledger.streams.base import Stored, record_bytes
from lapledger.ledger.streams.local import LocalStream
from lapledger.ledger.streams.producer import MAX_ROWS, Producer, partition_of
from tests.ledger.facts import decision, sample_batch, sample_events

DECISION = EVENTS["filter.decided", 1]
APPENDED = [declared for declared in EVENTS.values() if declared.name != "epoch.opened"]
PARTITION = ("facts", partition_of("facts", "p"))


class Narrow(LocalStream):
    """A local stream that takes records of few bytes, and may refuse to append."""

    max_record_bytes = 6000
    refuses = False

    def append(self, stream: str, partition: int, records: Sequence[Record]) -> None:
        """As a full disk would, when told."""
        if self.refuses:
            raise Fault("no")
        super().append(stream, partition, records)


@pytest.fixture
def stream(tmp_path: Path) -> Iterator[Narrow]:
    """A fresh stream that takes records of up to 6,000 bytes."""
    LocalStream.create(tmp_path / "stream.sqlite", "word").close()
    narrow = Narrow(tmp_path / "stream.sqlite")
    yield narrow
    narrow.close()


def frames(stored: Sequence[Stored]) -> list[Frame]:
    """The decoded frames, whose chain has neither gap nor fork."""
    decoded = [decode(record.record) for record in stored]
    previous = genesis(decoded[0].link.epoch, decoded[0].link.stream, decoded[0].link.partition)
    for sequence, frame in enumerate(decoded):
        assert (frame.link.sequence, frame.link.previous) == (sequence, previous)
        previous = frame.digest
    return decoded


def events_of(decoded: Sequence[Frame]) -> list[Any]:
    """All events of the frames, in order."""
    return [event for frame in decoded for event in from_batch(frame.declared, frame.batch)]


def decisions(count: int, reason: str = "") -> list[Any]:
    """Filter decisions on one problem, with as long a reason as is wanted."""
    return [replace(decision(number), reason=reason) for number in range(count)]


@settings(max_examples=25, deadline=None)
@given(st.integers(1, 2 * MAX_ROWS + 1), st.integers(0, 2000))
def test_no_record_is_larger_than_the_stream_takes(
    tmp_path_factory: pytest.TempPathFactory, count: int, length: int
) -> None:
    """Frames are halved until they fit, and hold the same events in the same order."""
    path = tmp_path_factory.mktemp("stream") / "stream.sqlite"
    LocalStream.create(path, "word").close()
    stream, given_events = Narrow(path), decisions(min(count, 200 if length else count), "x" * length)
    Producer(stream, "e", "test", "0").append(given_events)
    stored = stream.read(*PARTITION, 0, 10_000)
    assert max(record_bytes(record.record) for record in stored) <= stream.max_record_bytes
    assert events_of(frames(stored)) == given_events
    stream.close()


def test_an_event_that_no_record_can_hold_is_refused_by_name_and_size(stream: Narrow) -> None:
    """Nothing of the append was stored, and the producer goes on with what fits."""
    producer = Producer(stream, "e", "test", "0")
    with pytest.raises(
        Fault, match=r"one filter\.decided event takes a record of 6\d{3} bytes, and the stream takes 6000"
    ):
        producer.append([*decisions(3), replace(decision(4), reason="x" * 5000)])
    assert stream.read(*PARTITION, 0, 10) == []
    producer.append(decisions(3))
    producer.close()
    assert events_of(frames(stream.read(*PARTITION, 0, 10))) == decisions(3)
    closed = frames(stream.read("control", 0, 0, 10))
    assert [frame.declared.name for frame in closed] == ["epoch.opened", "epoch.closed"]


def test_a_failed_append_ends_the_producer(stream: Narrow) -> None:
    """Whether the records were stored is unknown: other ones under their sequence would be a fork."""
    producer = Producer(stream, "e", "test", "0")
    producer.append(decisions(1))
    stream.refuses = True
    with pytest.raises(Fault, match="no"):
        producer.append(decisions(1))
    stream.refuses = False
    for take_more in (lambda: producer.append(decisions(1)), lambda: producer.append_rows(DECISION, "p", rows(1))):
        with pytest.raises(Fault, match="failed before and takes no more"):
            take_more()
    producer.close()
    assert [len(stream.read(*partition, 0, 10)) for partition in (PARTITION, ("control", 0))] == [1, 1]


def rows(count: int) -> pa.RecordBatch:
    """Filter decisions on problem `p` as a batch."""
    return to_batch(decisions(count))


@pytest.mark.parametrize("declared", APPENDED, ids=lambda declared: declared.name)
@pytest.mark.parametrize("count", [1, 70])
def test_rows_arrive_as_their_events_would(stream: Narrow, declared: EventType, count: int) -> None:
    """Every type can be appended in columns; a frame of them is that of the same events."""
    stream.max_record_bytes = 1 << 20
    key = "problem-ä" if declared.key else ""
    partition = declared.stream, partition_of(declared.stream, key)
    Producer(stream, "e", "test", "0").append_rows(declared, key, sample_batch(declared, count))
    by_rows = stream.read(*partition, 0, 10)
    Producer(stream, "e", "test", "0").append(sample_events(declared, count))
    by_events = stream.read(*partition, by_rows[-1].offset + 1, 10)
    assert [record.record for record in by_rows] == [record.record for record in by_events]


@pytest.mark.parametrize("form", ["table", "chunks", "dictionary", "slice"])
def test_many_rows_take_many_frames(stream: Narrow, form: str) -> None:
    """Of 1,000 each, halved where they are too large, from any table of the type's columns."""
    table = pa.Table.from_batches([rows(2500)])
    if form == "chunks":
        table = pa.concat_tables([table.slice(0, 1), table.slice(1, 1234), table.slice(1235)])
    elif form == "dictionary":
        column = table.schema.get_field_index("rule")
        encoded = pa.chunked_array([table["rule"].chunk(0).slice(a, 1250).dictionary_encode() for a in (0, 1250)])
        table = table.set_column(column, pa.field("rule", encoded.type, nullable=False), encoded)
    elif form == "slice":
        table = pa.concat_tables([table.slice(7, 9), table]).slice(9)
    Producer(stream, "e", "test", "0").append_rows(DECISION, "p", table)
    decoded = frames(stream.read(*PARTITION, 0, 100))
    assert events_of(decoded) == decisions(2500)
    assert max(frame.rows for frame in decoded) <= MAX_ROWS


def test_no_rows_are_no_frame(stream: Narrow) -> None:
    """An empty table is allowed."""
    Producer(stream, "e", "test", "0").append_rows(DECISION, "p", rows(1).slice(1))
    assert stream.read(*PARTITION, 0, 10) == []


def test_rows_of_another_type_key_or_with_nulls_are_refused(stream: Narrow) -> None:
    """They would be quarantined; nothing is stored."""
    producer, good = Producer(stream, "e", "test", "0"), rows(2)
    nulls = good.set_column(0, DECISION.schema.field(0), pa.array([None, "p"]))
    for batch, key, message in (
        (good.select([0]), "p", "other columns"),
        (good, "q", "other keys"),
        (nulls, "p", "null in"),
    ):
        with pytest.raises(ValueError, match=message):
            producer.append_rows(DECISION, key, batch)
    assert (stream.read(*PARTITION, 0, 10), producer.frames) == ([], 0)


def test_threads_share_one_chain(stream: Narrow) -> None:
    """Whoever comes first, sequences have no gap, and nothing is lost."""
    producer = Producer(stream, "e", "test", "0")
    calls = [lambda: producer.append(decisions(5)), lambda: producer.append_rows(DECISION, "p", rows(5))]
    threads = [threading.Thread(target=call) for call in calls for _ in range(5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(events_of(frames(stream.read(*PARTITION, 0, 100)))) == 50
    assert producer.frames == 11
