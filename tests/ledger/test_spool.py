"""The spool: what is appended while the broker is away is durable, bounded, in order, and delivered on return."""

import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lapledger.consumers.ingest.sink import Drained, drain
from lapledger.ledger.errors import Fault, SpoolFull, Unavailable, UserError
from lapledger.ledger.frames.frame import Record
from lapledger.ledger.proof import verify
from lapledger.ledger.store.open_ledger import Ledger
from lapledger.ledger.streams.base import Group, Position, Stored, record_bytes
from lapledger.ledger.streams.local import LocalStream
from lapledger.ledger.streams.producer import Producer
from lapledger.ledger.streams.spool import Spooled, SpoolLimits, Waiting
from lapledger.ledger.streams.spool_file import SpoolFile, deliver_left_behind, left_behind
from tests.ledger.facts import decision

QUICK = SpoolLimits(bytes=10_000, full_seconds=0.1, retry_seconds=0.01)
PATIENT = SpoolLimits(bytes=10_000, full_seconds=60, retry_seconds=0.01)


class Broker:
    """A real local stream behind a switch: `away` before it stores, `mute` after it has stored, or `refusing`."""

    max_record_bytes = 5_000

    def __init__(self, stream: LocalStream) -> None:
        self.stream = stream
        self.mood = "there"

    def append(self, stream: str, partition: int, records: Sequence[Record]) -> None:
        if self.mood == "away":
            raise Unavailable("no answer")
        if self.mood == "refusing":
            raise UserError("no right to write")
        self.stream.append(stream, partition, records)
        if self.mood == "mute":
            raise Unavailable("stored, but no answer")

    def identity(self, stream: str) -> str:
        return self.stream.identity(stream)

    def read(self, stream: str, partition: int, position: Position, limit: int) -> list[Stored]:
        return self.stream.read(stream, partition, position, limit)

    def ends(self) -> Mapping[tuple[str, int], Position]:
        return self.stream.ends()

    def trim(self, stream: str, partition: int, position: Position) -> None:
        raise NotImplementedError

    def join(self, group: str, streams: Sequence[str], member: str) -> Group:
        raise NotImplementedError


@pytest.fixture
def broker(stream: LocalStream) -> Broker:
    """The ledger's stream behind a switch."""
    return Broker(stream)


@pytest.fixture
def make(broker: Broker, tmp_path: Path) -> Iterator[Callable[..., Spooled]]:
    """Makes spools of one epoch in `tmp_path/spool`, closed at the end."""
    made: list[Spooled] = []
    (tmp_path / "spool").mkdir()

    def spooled(limits: SpoolLimits = PATIENT, **more: Callable[[Waiting], None]) -> Spooled:
        made.append(Spooled(broker, tmp_path / "spool" / "epoch.sqlite", limits=limits, **more))
        return made[-1]

    yield spooled
    for spool in made:
        spool.close()


def record(number: int, size: int = 10) -> Record:
    """A record that is told from others by its header."""
    return Record({"n": str(number)}, b"x" * size)


def numbers(broker: Broker, partition: int = 0) -> list[str]:
    """The records on the stream behind, by their headers, in order."""
    return [stored.record.headers["n"] for stored in broker.read("facts", partition, 0, 1000)]


def test_with_the_broker_there_nothing_is_spooled(broker: Broker, make: Callable[..., Spooled], tmp_path: Path) -> None:
    """Appends go straight through, and no file is made."""
    spool = make()
    spool.append("facts", 0, [record(1), record(2)])
    assert (numbers(broker), spool.waiting, list((tmp_path / "spool").iterdir())) == (["1", "2"], 0, [])


def test_what_was_spooled_comes_first_and_in_order(broker: Broker, make: Callable[..., Spooled]) -> None:
    """Before, during and after the absence, over two partitions; each change is told once."""
    calls: list[tuple[str, int]] = []
    spool = make(on_change=lambda waiting: calls.append((waiting.what, waiting.records)))
    spool.append("facts", 0, [record(1)])
    broker.mood = "away"
    spool.append("facts", 0, [record(2), record(3)])
    spool.append("facts", 1, [record(4)])
    spool.append("facts", 0, [record(5)])
    assert (numbers(broker), spool.waiting) == (["1"], 4)
    broker.mood = "there"
    spool.flush(60)
    spool.append("facts", 0, [record(6)])
    assert (numbers(broker), numbers(broker, 1)) == (["1", "2", "3", "5", "6"], ["4"])
    assert calls == [("away", 0), ("back", 0)]


def test_nothing_stays_on_the_disk_when_all_was_delivered(
    broker: Broker, make: Callable[..., Spooled], tmp_path: Path
) -> None:
    """A spool that is closed empty removes its file and its lock."""
    spool = make()
    broker.mood = "away"
    spool.append("facts", 0, [record(1)])
    assert {path.name for path in (tmp_path / "spool").iterdir()} >= {"epoch.sqlite", "epoch.lock"}
    broker.mood = "there"
    spool.flush(60)
    spool.close()
    assert list((tmp_path / "spool").iterdir()) == []


def test_epoch_and_sequence_are_kept_and_an_unknown_outcome_is_a_duplicate(
    ledger: Ledger, broker: Broker, make: Callable[..., Spooled]
) -> None:
    """A broker that stored without saying so gets the same frames again; the ledger admits each once, without a gap."""
    spool = make()
    producer = Producer(spool, "epoch-0", "test", "0")
    producer.append([decision(1)])
    broker.mood = "mute"
    producer.append([decision(2)])
    broker.mood = "away"
    producer.append([decision(3)])
    broker.mood = "there"
    spool.flush(60)
    producer.close()
    assert drain(ledger, broker) == Drained(admitted=5, duplicates=1)
    assert verify(ledger).problems == ()
    assert verify(ledger).notes == ()  # no gap is open


def test_the_next_start_delivers_what_a_dead_process_left(
    broker: Broker, make: Callable[..., Spooled], tmp_path: Path
) -> None:
    """In order; while the broker is still away it says so and everything stays."""
    broker.mood = "away"
    spool = make()
    spool.append("facts", 0, [record(1), record(2)])
    spool.append("facts", 0, [record(3)])
    spool.close()
    with pytest.raises(Unavailable):
        deliver_left_behind(broker, tmp_path / "spool")
    broker.mood = "there"
    assert deliver_left_behind(broker, tmp_path / "spool") == 3
    assert numbers(broker) == ["1", "2", "3"]
    assert deliver_left_behind(broker, tmp_path / "spool") == 0
    assert list((tmp_path / "spool").iterdir()) == []


def test_the_spool_of_a_living_process_is_left_alone(
    broker: Broker, make: Callable[..., Spooled], tmp_path: Path
) -> None:
    """Its lock says that it lives: nobody else delivers from it, nor opens it."""
    broker.mood = "away"
    spool = make()
    spool.append("facts", 0, [record(1)])
    assert list(left_behind(tmp_path / "spool")) == []
    with pytest.raises(Fault, match="two producers never share an epoch"):
        make().append("facts", 0, [record(2)])
    assert spool.waiting == 1


def test_a_full_spool_holds_appends_back_until_there_is_room(broker: Broker, make: Callable[..., Spooled]) -> None:
    """The append waits, and goes behind what waited before it."""
    full = threading.Event()
    spool = make(on_change=lambda waiting: full.set() if waiting.what == "full" else None)
    broker.mood = "away"
    spool.append("facts", 0, [record(1, 4000), record(2, 4000)])
    late = threading.Thread(target=spool.append, args=("facts", 0, [record(3, 4000)]))
    late.start()
    assert full.wait(60)
    assert spool.waiting == 2
    broker.mood = "there"
    late.join(60)
    spool.flush(60)
    assert numbers(broker) == ["1", "2", "3"]


def test_a_spool_that_stays_full_raises_and_loses_nothing(
    broker: Broker, make: Callable[..., Spooled], tmp_path: Path
) -> None:
    """`ready` fails first, with room left for what runs; then `append` does; what waits is there at the next start."""
    spool = make(QUICK)
    broker.mood = "away"
    spool.ready()
    spool.append("facts", 0, [record(1, 4500), record(2, 4500)])
    with pytest.raises(SpoolFull, match=r"is full and the broker away for .* the 2 records that wait are delivered"):
        spool.ready()
    spool.append("facts", 0, [record(3, 500)])
    with pytest.raises(SpoolFull, match="the 3 records that wait are delivered"):
        spool.append("facts", 0, [record(4, 600)])
    with pytest.raises(Unavailable, match="3 records still wait"):
        spool.flush(0)
    spool.close()
    broker.mood = "there"
    deliver_left_behind(broker, tmp_path / "spool")
    assert numbers(broker) == ["1", "2", "3"]


@pytest.mark.parametrize("sizes", [[5_001], [4_000, 4_000, 4_000]])
def test_what_can_never_be_delivered_is_not_spooled(
    broker: Broker, make: Callable[..., Spooled], sizes: list[int]
) -> None:
    """A record larger than the stream takes, and an append larger than the spool, fail at once and stop nothing."""
    spool = make()
    broker.mood = "away"
    spool.append("facts", 0, [record(1)])
    with pytest.raises(Fault):
        spool.append("facts", 0, [record(2, size) for size in sizes])
    spool.append("facts", 0, [record(3)])
    broker.mood = "there"
    spool.flush(60)
    assert numbers(broker) == ["1", "3"]


def test_what_the_broker_refuses_is_raised_at_once(broker: Broker, make: Callable[..., Spooled]) -> None:
    """A missing right is no absence: the append fails, and nothing is spooled."""
    spool = make()
    broker.mood = "refusing"
    with pytest.raises(UserError, match="no right"):
        spool.append("facts", 0, [record(1)])
    assert spool.waiting == 0


def test_a_refusal_on_delivery_reaches_the_producer(
    broker: Broker, make: Callable[..., Spooled], tmp_path: Path
) -> None:
    """Whoever flushes or appends next hears it; what waits stays."""
    spool = make()
    broker.mood = "away"
    spool.append("facts", 0, [record(1)])
    broker.mood = "refusing"
    with pytest.raises(UserError, match="no right"):
        spool.flush(60)
    with pytest.raises(UserError, match="no right"):
        spool.append("facts", 0, [record(2)])
    with pytest.raises(UserError, match="no right"):
        spool.ready()
    spool.close()
    broker.mood = "there"
    assert deliver_left_behind(broker, tmp_path / "spool") == 1


def test_reading_sees_the_stream_behind(broker: Broker, make: Callable[..., Spooled]) -> None:
    """What waits is on no stream yet."""
    spool = make()
    spool.append("facts", 0, [record(1)])
    broker.mood = "away"
    spool.append("facts", 0, [record(2)])
    assert [stored.record.headers["n"] for stored in spool.read("facts", 0, 0, 10)] == ["1"]
    assert (spool.ends(), spool.identity("facts")) == (broker.ends(), broker.identity("facts"))


def test_a_spool_file_counts_what_it_holds(tmp_path: Path) -> None:
    """The same after it was opened again; headers may hold anything."""
    path = tmp_path / "one.sqlite"
    strange = Record({"é\n": "\ud800\0"}, b"\0\xff")
    with closing(SpoolFile.claimed(path)) as file:
        file.put("facts", 3, [strange, record(2)])
    with closing(SpoolFile.claimed(path)) as file:
        assert (file.records, file.bytes) == (2, record_bytes(strange) + record_bytes(record(2)))
        run = file.oldest()
        assert (run.stream, run.partition, run.records) == ("facts", 3, [strange, record(2)])
        file.forget(run)
        assert (file.records, file.bytes, file.oldest()) == (0, 0, None)


STEPS = st.one_of(
    st.tuples(st.just("append"), st.integers(0, 2), st.integers(1, 3)),
    st.tuples(st.just("mood"), st.sampled_from(["there", "away", "mute"]), st.just(0)),
    st.tuples(st.just("restart"), st.just(0), st.just(0)),
)


@settings(max_examples=40)
@given(steps=st.lists(STEPS, max_size=25))
def test_whatever_happens_each_partition_keeps_its_order(
    steps: list[tuple[str, int | str, int]], tmp_path_factory: pytest.TempPathFactory
) -> None:
    """Absences, unknown outcomes and restarts at any time: without repeats the stream holds what was appended."""
    folder = tmp_path_factory.mktemp("spool")
    broker = Broker(LocalStream.create(folder / "stream.sqlite", "word"))
    (folder / "spool").mkdir()
    wide = SpoolLimits(bytes=1 << 20, full_seconds=60, retry_seconds=0.001)
    appended: dict[int, list[str]] = {}
    count = 0

    def opening(epoch: int) -> Spooled:
        return Spooled(broker, folder / "spool" / f"{epoch}.sqlite", limits=wide)

    spool = opening(0)
    for step, (what, choice, size) in enumerate(steps, start=1):
        if what == "mood":
            broker.mood = str(choice)
        elif what == "restart":
            spool.close()
            broker.mood = "there"
            deliver_left_behind(broker, folder / "spool")
            spool = opening(step)
        else:
            spool.append("facts", int(choice), [record(count + n) for n in range(size)])
            appended.setdefault(int(choice), []).extend(str(count + n) for n in range(size))
            count += size
    broker.mood = "there"
    spool.flush(60)
    spool.close()
    for partition, wanted in appended.items():
        assert list(dict.fromkeys(numbers(broker, partition))) == wanted
    broker.stream.close()
