"""What every implementation of `Stream` must do. A new one joins by a maker in `MAKERS`."""

import threading
from collections.abc import Callable
from pathlib import Path

import pytest
from ledger_facts import places

from ledger.frames import Record
from ledger.streams import Stream
from ledger.streams.local import LocalStream

Maker = Callable[[Path, str], Stream]


def local(folder: Path, identity: str) -> Stream:
    """The same local stream again when it was made before."""
    return LocalStream.create(folder / "stream.sqlite", identity)


MAKERS = [local]


@pytest.fixture(params=MAKERS, ids=lambda maker: maker.__name__)
def make(request: pytest.FixtureRequest) -> Maker:
    """A way to open the stream of a folder."""
    return request.param


@pytest.fixture
def stream(make: Maker, tmp_path: Path) -> Stream:
    """A fresh stream."""
    return make(tmp_path, "word")


def records(count: int, start: int = 0) -> list[Record]:
    """Records that differ in header and payload."""
    return [Record({"n": str(n), "é\n": "\ud800"}, bytes([n % 256, 0, 255])) for n in range(start, start + count)]


def test_records_come_back_in_order_and_whole(stream: Stream) -> None:
    """Headers of any text and payloads of any bytes, in the order of appending, over several appends."""
    stream.append("facts", 1, records(3))
    stream.append("facts", 1, records(2, start=3))
    stored = stream.read("facts", 1, 0, 100)
    assert [one.record for one in stored] == records(5)
    assert sorted(one.offset for one in stored) == [one.offset for one in stored]


def test_reading_goes_on_from_a_position(stream: Stream) -> None:
    """The position after a record is its offset + 1; a limit cuts the answer; the end gives nothing."""
    stream.append("facts", 0, records(5))
    first = stream.read("facts", 0, 0, 2)
    rest = stream.read("facts", 0, first[-1].offset + 1, 100)
    assert [one.record for one in first + rest] == records(5)
    assert stream.read("facts", 0, rest[-1].offset + 1, 100) == []


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
    assert set(ends) == set(places())
    assert ends["facts", 2] == stream.read("facts", 2, 0, 10)[-1].offset + 1
    assert ends["facts", 0] == 0


def test_appending_nothing_changes_nothing(stream: Stream) -> None:
    """An empty append is allowed."""
    before = stream.ends()
    stream.append("facts", 0, [])
    assert stream.ends() == before


def test_identity_and_records_outlive_the_process(make: Maker, tmp_path: Path) -> None:
    """Opening a stream again finds its identity and records, whatever word is offered for a new one."""
    make(tmp_path, "first").append("facts", 0, records(2))
    again = make(tmp_path, "second")
    assert (again.identity("facts"), len(again.read("facts", 0, 0, 10))) == ("first", 2)


def test_several_writers_lose_nothing_and_keep_their_order(make: Maker, tmp_path: Path) -> None:
    """Four writers with their own connections; each one's records stay in its order."""

    def write(writer: int) -> None:
        mine = make(tmp_path, "word")
        for number in range(10):
            mine.append("facts", 0, [Record({"writer": str(writer), "n": str(number)}, b"")])

    stream = make(tmp_path, "word")
    threads = [threading.Thread(target=write, args=(writer,)) for writer in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    headers = [one.record.headers for one in stream.read("facts", 0, 0, 100)]
    for writer in range(4):
        assert [h["n"] for h in headers if h["writer"] == str(writer)] == [str(n) for n in range(10)]
