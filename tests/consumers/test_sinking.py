"""The sink as a service: whose partitions it takes, what it tells, and that a lost lease costs no frame."""

from collections.abc import Iterator, Mapping
from contextlib import closing

import pytest
from sqlalchemy import text

import lapledger.consumers.services.sink
from lapledger.consumers.services.sink import PartitionLeases, SinkFollower
from lapledger.ledger.errors import Fault
from lapledger.ledger.events import CONTROL, FACTS, PARTITIONS
from lapledger.ledger.frames.frame import Record
from lapledger.ledger.store.open_ledger import Ledger
from lapledger.ledger.store.sql.engine import reading
from lapledger.ledger.streams.base import Stream
from lapledger.ledger.streams.producer import Producer, partition_of
from tests.consumers.edges import Desk
from tests.consumers.histories import Campaign, Cell, all_facts

LOCATIONS = frozenset((name, partition) for name, count in PARTITIONS.items() for partition in range(count))
SINGLE = frozenset({(FACTS, 0)})
CAMPAIGN = Campaign("main", {"alpha": {"r1": tuple(Cell() for _ in range(30))}})
HOME = partition_of(FACTS, "alpha")


@pytest.fixture
def desk() -> Desk:
    """The clock and the log of the test."""
    return Desk()


@pytest.fixture
def stream(both: Ledger) -> Iterator[Stream]:
    """The stream of the ledger."""
    with closing(both.stream()) as opening:
        yield opening


def leases(ledger: Ledger, desk: Desk, name: str, *, broker: bool = False) -> PartitionLeases:
    """The leases of the sink of that name."""
    return PartitionLeases(ledger, desk.context(name), assigned_by_broker=broker)


def test_without_a_broker_a_partition_is_taken_only_when_it_is_free(both: Ledger, desk: Desk) -> None:
    """The second gets it when the first gives it back, or when the first was not heard of for the lease's time."""
    first, second = leases(both, desk, "a"), leases(both, desk, "b")
    first.hold(SINGLE)
    second.hold(SINGLE)
    assert (set(first.held), set(second.held)) == (SINGLE, set())
    first.hold(frozenset())
    second.hold(SINGLE)
    assert (set(first.held), set(second.held)) == (set(), SINGLE)
    desk.seconds += 31
    first.hold(SINGLE)
    second.hold(SINGLE)
    assert (set(first.held), set(second.held)) == (SINGLE, set())
    assert [line["lease_epochs"] for line in desk.logged("leases lost", "b")] == [{"facts/0": 2}]


def test_what_a_broker_assigns_is_taken_at_once_and_not_taken_back(both: Ledger, desk: Desk) -> None:
    """The new owner takes it by force; the old one, which has not heard of it yet, loses it and leaves it alone."""
    first, second = leases(both, desk, "a", broker=True), leases(both, desk, "b", broker=True)
    first.hold(SINGLE)
    second.hold(SINGLE)
    assert second.held == {(FACTS, 0): 2}
    for _ in range(3):
        desk.seconds += 11
        second.hold(SINGLE)
        first.hold(SINGLE)
        assert (first.held, second.held) == ({}, {(FACTS, 0): 2})
    first.hold(frozenset())
    first.hold(SINGLE)  # assigned anew
    assert first.held == {(FACTS, 0): 3}


def sink(ledger: Ledger, stream: Stream, desk: Desk, name: str) -> SinkFollower:
    """A sink of a process of its own."""
    return SinkFollower(ledger, stream, desk.context(name), assigned_by_broker=False)


def counts(ledger: Ledger) -> tuple[int, int]:
    """(admitted frames, their distinct places in the chains)."""
    with reading(ledger.engine) as connection:
        frames = connection.execute(text("SELECT count(*) FROM frame")).scalar_one()
        links = text("SELECT count(*) FROM (SELECT DISTINCT stream, partition, epoch, sequence FROM frame) AS links")
        return frames, connection.execute(links).scalar_one()


def test_admitted_frames_are_reported_with_their_ids(both: Ledger, stream: Stream, desk: Desk) -> None:
    """One line a partition: the first and last admission, the frames, the lease, the position and the cut."""
    producer = Producer(stream, "epoch-1", "test", "0")
    producer.append(all_facts(CAMPAIGN))
    follower = sink(both, stream, desk, "a")
    assert not follower.step(LOCATIONS)
    lines = {(line["stream"], line["partition"]): line for line in desk.logged("admitted")}
    count = both.cut().at(FACTS, HOME)
    assert count > 1
    logged = lines[FACTS, HOME]
    assert (logged["first"], logged["last"]) == (1, count)
    assert logged["frames"] == [f"epoch-1.{FACTS}.{HOME}.0-{count - 1}"]
    assert logged["lease_epoch"] == 1
    assert logged["cut"] == str(both.cut())
    assert lines[CONTROL, 0]["frames"] == [f"epoch-1.{CONTROL}.0.0-1"]
    before = len(desk.lines)
    follower.step(LOCATIONS)
    assert len(desk.lines) == before
    assert follower.finish()
    assert set(desk.logged("leases dropped")[0]["lease_epochs"]) == {f"{name}/{number}" for name, number in LOCATIONS}


def test_quarantine_raises_an_alarm_without_the_payload(both: Ledger, stream: Stream, desk: Desk) -> None:
    """What the record calls itself is told, cut short and in plain letters; what it holds is not."""
    stream.append(FACTS, 0, [Record({"ce_id": "e.facts.0.7\x1b" + "x" * 500}, b"a secret")])
    sink(both, stream, desk, "a").step(LOCATIONS)
    (line,) = desk.logged("quarantined")
    assert (line["level"], line["alarm"], line["reason"]) == ("warning", True, "bad-header")
    assert line["ce_id"].startswith("e.facts.0.7\\x1b")
    assert len(line["ce_id"]) < 200
    assert "secret" not in str(desk.lines)
    assert desk.logged("passed")[0]["position"] > 0


def test_a_sink_whose_lease_was_taken_leaves_the_partition_alone(both: Ledger, stream: Stream, desk: Desk) -> None:
    """The old holder admits nothing there any more; the new one goes on where the ledger is, and nothing is twice."""
    producer = Producer(stream, "epoch-1", "test", "0")
    producer.append(all_facts(CAMPAIGN))
    old, new = sink(both, stream, desk, "old"), sink(both, stream, desk, "new")
    old.step(LOCATIONS)
    first = counts(both)[0]
    desk.seconds += 31
    new.step(LOCATIONS)
    producer.append(all_facts(CAMPAIGN))
    old.step(LOCATIONS)
    assert counts(both)[0] == first
    assert set(desk.logged("leases lost", "old")[0]["lease_epochs"]) == {
        f"{name}/{number}" for name, number in LOCATIONS
    }
    new.step(LOCATIONS)
    assert counts(both)[0] == counts(both)[1] > first


def test_positions_are_shown_to_a_broker_and_a_refusal_stops_nothing(both: Ledger, stream: Stream, desk: Desk) -> None:
    """At most once a second, and only when something moved; a display that is refused is told of."""
    shown: list[dict[tuple[str, int], int]] = []

    def show(positions: Mapping[tuple[str, int], int]) -> None:
        shown.append(dict(positions))
        if len(shown) == 2:
            raise Fault("refused")

    follower = SinkFollower(both, stream, desk.context("a"), assigned_by_broker=False, show=show)
    for seconds in (0.0, 0.5, 0.6, 2.0):
        stream.append(FACTS, 0, [Record({}, b"")])
        desk.seconds += seconds
        follower.step(SINGLE)
    desk.seconds += 5
    follower.step(SINGLE)
    ends = [positions[FACTS, 0] for positions in shown]
    assert ends == sorted(ends)
    assert len(ends) == 3
    assert ends[-1] == stream.ends()[FACTS, 0]
    assert [line["reason"] for line in desk.logged("positions not shown")] == ["refused"]


def test_one_busy_partition_keeps_no_other_waiting(
    both: Ledger, stream: Stream, desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With two records a step and a hundred on `control`, the partition behind it moves before they are all taken."""
    monkeypatch.setattr(lapledger.consumers.services.sink, "STEP_RECORDS", 2)
    stream.append(CONTROL, 0, [Record({}, b"") for _ in range(100)])
    stream.append(FACTS, 0, [Record({}, b"")])
    follower = sink(both, stream, desk, "a")
    for _ in range(8):
        assert follower.step(LOCATIONS)
    locations = {(line["stream"], line["partition"]) for line in desk.logged("passed")}
    assert locations == {(CONTROL, 0), (FACTS, 0)}
    while follower.step(LOCATIONS):
        pass
    assert len(desk.logged("quarantined")) == 101
