"""What every implementation of `Stream` must do, over real ones. A new one joins by a class in `BACKENDS`."""

import multiprocessing
import sqlite3
import threading
from collections.abc import Iterator
from contextlib import closing, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import pytest
from kafka import KafkaAdminClient, KafkaProducer
from kafka.admin import NewPartitions

from lapledger.ledger.errors import Fault
from lapledger.ledger.events import PARTITIONS
from lapledger.ledger.frames.frame import Record
from lapledger.ledger.streams.base import Group, Stream, describe_unread, record_bytes
from lapledger.ledger.streams.kafka.settings import KafkaSettings
from lapledger.ledger.streams.kafka.stream import KafkaStream
from lapledger.ledger.streams.local import LocalStream
from tests.ledger.facts import partitions
from tests.support.servers import delete_topics

LONG = 60.0
"""Seconds that no test waits for: whoever is back before has not waited."""


class Backend(Protocol):
    """One implementation, with one stream that can be opened again and again, and be lost."""

    def open(self, text: str = "word") -> Stream:
        """The stream, made if there is none; `text` is offered as its identity."""
        ...

    def lose(self) -> None:
        """Destroys the stream."""
        ...

    def put_outside(self, stream: str, partition: int, count: int) -> None:
        """Puts records into a partition that no reader knows."""
        ...


@dataclass(frozen=True)
class Local:
    """The local stream in a folder."""

    folder: Path

    def open(self, text: str = "word") -> Stream:
        return LocalStream.create(self.folder / "stream.sqlite", text)

    def lose(self) -> None:
        for file in self.folder.glob("stream.sqlite*"):
            file.unlink()

    def put_outside(self, stream: str, partition: int, count: int) -> None:
        with closing(sqlite3.connect(self.folder / "stream.sqlite")) as connection, connection:
            row = "INSERT INTO record (stream, partition, headers, payload) VALUES (?, ?, '{}', x'00')"
            connection.executemany(row, [(stream, partition)] * count)


@dataclass(frozen=True)
class Kafka:
    """The Kafka stream on a real broker."""

    settings: KafkaSettings

    def open(self, text: str = "word") -> Stream:
        return KafkaStream.create(self.settings)

    def lose(self) -> None:
        delete_topics(self.settings)

    def put_outside(self, stream: str, partition: int, count: int) -> None:
        topic = self.settings.topic(stream)
        with closing(KafkaAdminClient(bootstrap_servers=self.settings.bootstrap)) as admin:
            admin.create_partitions({topic: NewPartitions(partition + 1)})
        producer = KafkaProducer(bootstrap_servers=self.settings.bootstrap)
        for _ in range(count):
            producer.send(topic, b"record", partition=partition).get(LONG)
        producer.close()


@dataclass
class Open:
    """A backend that remembers what it opened."""

    backend: Backend
    streams: list[Stream]

    def open(self, text: str = "word") -> Stream:
        self.streams.append(self.backend.open(text))
        return self.streams[-1]

    def lose(self) -> None:
        self.backend.lose()


@pytest.fixture(params=["local", "kafka"])
def backend(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Open]:
    """Each implementation in turn; what was opened is closed."""
    kind = Local(tmp_path) if request.param == "local" else Kafka(request.getfixturevalue("kafka_settings"))
    opening = Open(kind, [])
    yield opening
    for stream in opening.streams:
        stream.close()  # type: ignore[attr-defined]  # whoever opens a stream knows which it is


@pytest.fixture
def stream(backend: Open) -> Stream:
    """A fresh stream."""
    return backend.open()


def records(count: int, start: int = 0) -> list[Record]:
    """Records that differ in header and payload."""
    return [Record({"n": str(n), "é\n": "\ud800"}, bytes([n % 256, 0, 255])) for n in range(start, start + count)]


def test_records_come_back_complete_and_in_order(stream: Stream) -> None:
    """Headers of any text and payloads of any bytes, in the order of appending, over several appends."""
    stream.append("facts", 1, records(3))
    stream.append("facts", 1, records(2, start=3))
    stored = stream.read("facts", 1, 0, 100)
    assert [item.record for item in stored] == records(5)
    assert sorted(item.offset for item in stored) == [item.offset for item in stored]


def test_reading_goes_on_from_a_position(stream: Stream) -> None:
    """The position after a record is its offset + 1; a limit cuts the answer; the end gives nothing."""
    stream.append("facts", 0, records(5))
    first = stream.read("facts", 0, 0, 2)
    rest = stream.read("facts", 0, first[-1].offset + 1, 100)
    assert [item.record for item in first + rest] == records(5)
    assert stream.read("facts", 0, rest[-1].offset + 1, 100) == []


def test_any_position_may_be_read_again(stream: Stream) -> None:
    """Reads need not follow each other: forward, back, and in turns with another partition, by small limits."""
    for partition in (0, 1):
        stream.append("facts", partition, records(20, start=100 * partition))
    start = {partition: stream.read("facts", partition, 0, 1)[0].offset for partition in (0, 1)}
    read_back: dict[int, list[Record]] = {0: [], 1: []}
    position = dict(start)
    for _ in range(7):
        for partition in (0, 1):
            stored = stream.read("facts", partition, position[partition], 3)
            read_back[partition] += [item.record for item in stored]
            position[partition] = stored[-1].offset + 1 if stored else position[partition]
    assert read_back == {0: records(20), 1: records(20, start=100)}
    assert [item.record for item in stream.read("facts", 0, start[0], 2)] == records(2)


def test_partitions_are_apart(stream: Stream) -> None:
    """A record is in its stream and partition only."""
    stream.append("facts", 0, records(2))
    stream.append("control", 0, records(1, start=9))
    assert [len(stream.read(name, partition, 0, 10)) for name, partition in (("facts", 0), ("control", 0))] == [2, 1]
    assert stream.read("facts", 1, 0, 10) == []


def test_ends_name_every_partition(stream: Stream) -> None:
    """An end is the position after the last record, 0 where there is none."""
    stream.append("facts", 2, records(3))
    ends = stream.ends()
    assert set(ends) == set(partitions())
    assert ends["facts", 2] == stream.read("facts", 2, 0, 10)[-1].offset + 1
    assert ends["facts", 0] == 0


def test_records_that_no_reader_knows_are_counted(backend: Open, stream: Stream) -> None:
    """A partition beyond those of a stream, as another program or a newer release would write."""
    stream.append("facts", 1, records(3))
    assert (stream.unread(), list(describe_unread(stream))) == ({}, [])
    backend.backend.put_outside("facts", PARTITIONS["facts"], 2)
    assert stream.unread() == {("facts", PARTITIONS["facts"]): 2}
    assert list(describe_unread(stream)) == [
        "2 records lie in 'facts', partition 4, which no reader knows: another program or a newer release wrote there"
    ]


def test_appending_nothing_changes_nothing(stream: Stream) -> None:
    """An empty append is allowed."""
    before = stream.ends()
    stream.append("facts", 0, [])
    assert stream.ends() == before


def test_a_position_past_the_end_raises(stream: Stream) -> None:
    """A reader that has seen more than there is reads another stream: a Fault, and no silent wait."""
    stream.append("facts", 0, records(2))
    with pytest.raises(Fault, match=r"facts, partition 0.*from 9\d*: .*holds 0 to"):
        stream.read("facts", 0, stream.ends()["facts", 0] + 90, 10)


def test_identity_and_records_outlive_the_process(backend: Open) -> None:
    """Opening a stream again finds its identity and records, whatever word is offered for a new one."""
    first = backend.open("first")
    first.append("facts", 0, records(2))
    again = backend.open("second")
    assert again.identity("facts") == first.identity("facts")
    assert [item.record for item in again.read("facts", 0, 0, 10)] == records(2)


def test_a_stream_made_anew_has_another_identity(backend: Open) -> None:
    """Positions in a lost stream mean nothing in the one that took its place."""
    before = backend.open("first").identity("facts")
    backend.lose()
    after = backend.open("second")
    assert after.identity("facts") != before
    assert after.read("facts", 0, 0, 10) == []


def write(backend: Backend, writer: int) -> None:
    """Appends ten times, by a connection of its own."""
    mine = backend.open()
    for number in range(10):
        mine.append("facts", 0, [Record({"writer": str(writer), "n": str(number)}, b"")])
    mine.close()  # type: ignore[attr-defined]


def check_writers(stream: Stream, writers: int) -> None:
    """Asserts that each writer's records are there, in its order."""
    headers = [item.record.headers for item in stream.read("facts", 0, 0, 1000)]
    for writer in range(writers):
        assert [h["n"] for h in headers if h["writer"] == str(writer)] == [str(n) for n in range(10)]


def test_several_writers_lose_nothing_and_keep_their_order(backend: Open, stream: Stream) -> None:
    """Four writers with their own connections; each one's records stay in its order."""
    threads = [threading.Thread(target=write, args=(backend.backend, writer)) for writer in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    check_writers(stream, 4)


def test_several_processes_lose_nothing_and_keep_their_order(backend: Open, stream: Stream) -> None:
    """The same with two processes."""
    spawn = multiprocessing.get_context("spawn")
    processes = [spawn.Process(target=write, args=(backend.backend, writer)) for writer in range(2)]
    for process in processes:
        process.start()
    for process in processes:
        process.join()
    assert [process.exitcode for process in processes] == [0, 0]
    check_writers(stream, 2)


def test_threads_share_a_stream(stream: Stream) -> None:
    """Appends of several threads by one stream do not mix, while another reads to the end."""

    def append(writer: int) -> None:
        for number in range(10):
            stream.append(
                "facts", 0, [Record({"writer": str(writer), "n": f"{number}.{half}"}, b"") for half in (0, 1)]
            )

    threads = [threading.Thread(target=append, args=(writer,)) for writer in range(3)]
    for thread in threads:
        thread.start()
    read_back: list[Record] = []
    position = 0
    while len(read_back) < 60:
        stored = stream.read("facts", 0, position, 7)
        read_back += [item.record for item in stored]
        position = stored[-1].offset + 1 if stored else position
    for thread in threads:
        thread.join()
    pairs = [(a.headers["writer"], b.headers["writer"]) for a, b in zip(read_back[::2], read_back[1::2], strict=True)]
    assert all(a == b for a, b in pairs)


def test_the_largest_record_travels_and_a_larger_one_is_refused(stream: Stream) -> None:
    """One byte too many is a Fault that stores nothing, not even the small record before it."""
    headers = {"ce_subject": "p", "é": "word"}
    largest = Record(headers, bytes(stream.max_record_bytes - record_bytes(Record(headers, b""))))
    stream.append("facts", 0, [largest])
    with pytest.raises(Fault, match=f"{stream.max_record_bytes}"):
        stream.append("facts", 0, [*records(1), Record(headers, largest.payload + b"x")])
    assert [item.record for item in stream.read("facts", 0, 0, 10)] == [largest]


def test_many_records_of_one_append_keep_their_order(stream: Stream) -> None:
    """More than fit into one message batch of any broker."""
    numerous = [Record({"n": str(n)}, bytes(30_000)) for n in range(100)]
    stream.append("facts", 3, numerous)
    read_back: list[Record] = []
    position = 0
    while stored := stream.read("facts", 3, position, 40):
        read_back += [item.record for item in stored]
        position = stored[-1].offset + 1
    assert read_back == numerous


def test_what_was_trimmed_is_never_skipped(backend: Open, stream: Stream) -> None:
    """A read from before the first kept record is a Fault, in this process and in the next; the rest stays readable."""
    stream.append("facts", 0, records(5))
    stream.append("facts", 1, records(2))
    stored = stream.read("facts", 0, 0, 10)
    end = stream.ends()["facts", 0]
    stream.trim("facts", 0, stored[3].offset)
    for reader in (stream, backend.open()):
        with pytest.raises(Fault, match="deleted"):
            reader.read("facts", 0, stored[0].offset, 10)
        assert reader.read("facts", 0, stored[3].offset, 10) == stored[3:]
        assert len(reader.read("facts", 1, 0, 10)) == 2
        assert reader.ends()["facts", 0] == end


def test_trimming_everything_keeps_the_end(stream: Stream) -> None:
    """Positions go on after it; trimming less than before changes nothing, and more than there is is a Fault."""
    stream.append("facts", 0, records(3))
    end = stream.ends()["facts", 0]
    stream.trim("facts", 0, end)
    stream.trim("facts", 0, 1)
    assert stream.ends()["facts", 0] == end
    assert stream.read("facts", 0, end, 10) == []
    with pytest.raises(Fault, match="cannot trim"):
        stream.trim("facts", 0, end + 1)
    stream.append("facts", 0, records(1, start=7))
    (stored,) = stream.read("facts", 0, end, 10)
    assert stored.offset >= end
    assert stored.record == records(1, start=7)[0]


def settled(group: Group, count: int) -> frozenset[tuple[str, int]]:
    """What a group's member is assigned once that are `count` partitions."""
    read_back: frozenset[tuple[str, int]] = frozenset()
    while len(read_back) != count:
        read_back = group.assigned(5.0)
    return read_back


@pytest.fixture
def group(stream: Stream) -> Iterator[Group]:
    """The only member of a group for the facts."""
    joined = stream.join("sinks", ["facts"], "member-1")
    yield joined
    with suppress(Fault):
        joined.leave()


def test_an_only_member_tries_everything(group: Group) -> None:
    """It is assigned every partition of the group's streams, and of no other."""
    assert settled(group, 4) == {partition for partition in partitions() if partition[0] == "facts"}


def test_a_member_wakes_when_records_arrive(group: Group, stream: Stream) -> None:
    """An append in an assigned partition ends the wait."""
    settled(group, 4)
    back = threading.Thread(target=group.assigned, args=(LONG,), daemon=True)
    back.start()
    stream.append("facts", 2, records(1))
    back.join(LONG / 2)
    assert not back.is_alive()


def test_records_between_two_waits_are_not_missed(group: Group, stream: Stream) -> None:
    """What arrived while nobody waited ends the next wait at once; without news it lasts."""
    settled(group, 4)
    stream.append("facts", 1, records(1))
    back = threading.Thread(target=group.assigned, args=(LONG,), daemon=True)
    back.start()
    back.join(LONG / 2)
    assert not back.is_alive()
    stream.append("control", 0, records(1))  # not of this group
    assert len(group.assigned(0.2)) == 4
