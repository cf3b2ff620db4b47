"""The sink: nothing lost, nothing twice, whatever arrives and wherever it is killed."""

import shutil
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import event, text

import lapledger.consumers.ingest.admission
from lapledger.consumers.ingest.sink import Drained, drain
from lapledger.ledger.errors import Fault
from lapledger.ledger.events import FilterDecided, to_batch, type_of
from lapledger.ledger.frames.frame import Frame, Link, Record, encode, genesis, make_frame
from lapledger.ledger.proof import verify
from lapledger.ledger.store.location import Location
from lapledger.ledger.store.open_ledger import Ledger, open_ledger
from lapledger.ledger.store.reader import events
from lapledger.ledger.store.sql.engine import reading
from lapledger.ledger.store.sql.leases import Term, take_partition
from lapledger.ledger.streams.base import Position, Stored, Stream
from lapledger.ledger.streams.local import LocalStream
from lapledger.ledger.streams.producer import partition_of
from tests.support.databases import Kind

PARTITION = partition_of("facts", "p")


def chain(count: int, *, epoch: str = "epoch-0", salt: str = "") -> list[Frame]:
    """A producer's chain of `count` frames about problem `p`, one event each."""
    previous, made = genesis(epoch, "facts", PARTITION), []
    for sequence in range(count):
        fact = FilterDecided(
            problem_id="p",
            subject="test",
            subject_id=f"{sequence}{salt}",
            rule="r",
            campaign_id=None,
            kept=True,
            reason="",
            figure=None,
        )
        link = Link(epoch, "facts", PARTITION, sequence, previous)
        made.append(make_frame(type_of(fact), "p", link, to_batch([fact])))
        previous = made[-1].digest
    return made


@pytest.fixture
def ledger(both: Ledger) -> Ledger:
    """A fresh ledger; every test runs over both databases."""
    return both


def send(stream: Stream, made: Sequence[Frame], *order: int) -> None:
    """Appends the frames with these numbers, in this order; all of them when none is named."""
    stream.append("facts", PARTITION, [encode(made[n]) for n in order or range(len(made))])


def digests(ledger: Ledger) -> list[str]:
    """Digests of the admitted frames in order of admission."""
    return [digest for (digest,) in rows(ledger, "SELECT digest FROM frame ORDER BY stream, partition, admission")]


def rows(ledger: Ledger, query: str) -> list[tuple[Any, ...]]:
    """What a query finds."""
    with reading(ledger.engine) as connection:
        return [tuple(row) for row in connection.execute(text(query))]


def test_frames_are_admitted_in_stream_order(ledger: Ledger) -> None:
    """Each once; draining again finds nothing; the cut counts them."""
    stream, made = ledger.stream(), chain(5)
    send(stream, made)
    assert drain(ledger, stream) == Drained(admitted=5)
    assert drain(ledger, stream) == Drained()
    assert digests(ledger) == [frame.digest for frame in made]
    assert ledger.cut().at("facts", PARTITION) == 5
    assert verify(ledger).problems == ()


def test_a_limit_bounds_the_records_taken(ledger: Ledger) -> None:
    """The next drain goes on where this one stopped."""
    stream = ledger.stream()
    send(stream, chain(5))
    assert [drain(ledger, stream, limit=2).admitted for _ in range(4)] == [2, 2, 1, 0]


def test_duplicates_are_counted_once_admitted(ledger: Ledger) -> None:
    """In the same batch and in a later one; nothing is stored twice."""
    stream, made = ledger.stream(), chain(3)
    send(stream, made, 0, 1, 1, 0)
    assert drain(ledger, stream) == Drained(admitted=2, duplicates=2)
    send(stream, made, 1, 2)
    assert drain(ledger, stream) == Drained(admitted=1, duplicates=1)
    assert digests(ledger) == [frame.digest for frame in made]
    assert sum(count for (count,) in rows(ledger, "SELECT duplicates FROM stream_position")) == 3
    assert verify(ledger).problems == ()


def test_a_gap_is_admitted_and_open_until_filled(ledger: Ledger) -> None:
    """Order of admission is order of arrival; the gap table shows what is missing and verify notes it."""
    stream, made = ledger.stream(), chain(6)
    send(stream, made, 0, 4)
    assert drain(ledger, stream) == Drained(admitted=2)
    assert rows(ledger, "SELECT epoch, first_missing, last_missing FROM gap") == [("epoch-0", 1, 3)]
    assert any("open gap, sequences 1 to 3" in note for note in verify(ledger).notes)
    send(stream, made, 2)
    drain(ledger, stream)
    assert rows(ledger, "SELECT first_missing, last_missing FROM gap ORDER BY 1") == [(1, 1), (3, 3)]
    send(stream, made, 3, 1, 5)
    assert drain(ledger, stream) == Drained(admitted=3)
    assert rows(ledger, "SELECT * FROM gap") == []
    assert digests(ledger) == [made[n].digest for n in (0, 4, 2, 3, 1, 5)]
    assert verify(ledger).problems == ()


def test_forks_are_quarantined(ledger: Ledger) -> None:
    """The same sequence with other values, and a frame that follows another history; the first history stays."""
    stream, made, second = ledger.stream(), chain(3), chain(3, salt="x")
    send(stream, made, 0, 1)
    send(stream, second, 1, 2)
    assert drain(ledger, stream) == Drained(admitted=2, quarantined=2)
    assert rows(ledger, "SELECT reason FROM quarantine") == [("fork",), ("fork",)]
    send(stream, made, 2)
    assert drain(ledger, stream) == Drained(admitted=1)
    assert digests(ledger) == [frame.digest for frame in made]
    assert verify(ledger).problems == ()


def test_what_cannot_be_admitted_is_kept_with_its_reason(ledger: Ledger) -> None:
    """The stream goes on behind it, and headers and payload stay as they came."""
    good = encode(chain(1)[0])
    bad = [
        (Record({}, b""), "bad-header"),
        (Record({**good.headers, "ce_type": "no.such"}, good.payload), "unknown-type"),
        (Record({**good.headers, "ce_type": "\ud800\0"}, good.payload), "unknown-type"),
        (Record(good.headers, good.payload[:40]), "undecodable"),
        (Record({**good.headers, "ce_lapdigest": "0"}, good.payload), "digest-mismatch"),
    ]
    stream = ledger.stream()
    stream.append("facts", PARTITION, [record for record, _ in bad])
    stream.append("facts", (PARTITION + 1) % 4, [good])
    stream.append("facts", PARTITION, [good])
    assert drain(ledger, stream, seen="today") == Drained(admitted=1, quarantined=6)
    kept = rows(ledger, "SELECT reason, payload, seen FROM quarantine ORDER BY source_offset")
    assert kept == [(reason, record.payload, "today") for record, reason in bad] + [
        ("misrouted", good.payload, "today")
    ]
    assert verify(ledger).problems == ()


def test_a_stream_made_anew_stops_the_sink(ledger: Ledger, tmp_path: Path) -> None:
    """Positions in the old one mean nothing there; nothing is admitted."""
    stream = ledger.stream()
    send(stream, chain(2))
    drain(ledger, stream)
    anew = LocalStream.create(tmp_path / "anew.sqlite", "another")
    with pytest.raises(Fault, match="was recreated"):  # shorter than what was read
        drain(ledger, anew)
    send(anew, chain(9, epoch="epoch-1"))
    with pytest.raises(Fault, match=r"was recreated \(identity another, the ledger read identity-0\)"):
        drain(ledger, anew)
    assert ledger.cut().at("facts", PARTITION) == 2


def test_a_stream_that_lost_records_stops_the_sink(ledger: Ledger, tmp_path: Path) -> None:
    """An older copy of the stream ends before the position that was read."""
    stream = ledger.stream()
    send(stream, chain(2))
    drain(ledger, stream)
    older = LocalStream.create(tmp_path / "older.sqlite", "identity-0")
    with pytest.raises(Fault, match="it lost records"):
        drain(ledger, older)


class Racing:
    """A stream during whose first read another sink drains it."""

    def __init__(self, stream: LocalStream, ledger: Ledger) -> None:
        self.stream, self.ledger, self.raced = stream, ledger, Drained()

    def identity(self, stream: str) -> str:
        return self.stream.identity(stream)

    def append(self, stream: str, partition: int, records: Sequence[Record]) -> None:
        self.stream.append(stream, partition, records)

    def ends(self) -> Mapping[tuple[str, int], Position]:
        return self.stream.ends()

    def read(self, stream: str, partition: int, position: Position, limit: int) -> list[Stored]:
        result = self.stream.read(stream, partition, position, limit)
        if self.raced == Drained():
            self.raced = drain(self.ledger, self.stream, limit=2)
        return result


def test_a_faster_sink_on_a_growing_stream_is_no_lost_record(ledger: Ledger) -> None:
    """Another sink that moves beyond the ends seen here, because the stream grew, is not taken for a damaged stream."""
    stream, made = ledger.stream(), chain(4)
    send(stream, made, 0, 1)

    class Growing(Racing):
        def ends(self) -> Mapping[tuple[str, int], Position]:
            result = self.stream.ends()
            if self.raced == Drained():
                send(self.stream, made, 2, 3)
                self.raced = drain(self.ledger, self.stream)
            return result

    assert drain(ledger, Growing(stream, ledger)) == Drained()
    assert digests(ledger) == [frame.digest for frame in made]


def test_the_slower_of_two_sinks_leaves_no_trace(ledger: Ledger) -> None:
    """It begins again from the database: together they admit each frame once, and see no duplicate."""
    stream, made = ledger.stream(), chain(5)
    send(stream, made)
    racing = Racing(stream, ledger)
    assert drain(ledger, racing) == Drained(admitted=3)
    assert racing.raced == Drained(admitted=2)
    assert digests(ledger) == [frame.digest for frame in made]
    assert verify(ledger).problems == ()


class KilledError(Exception):
    """Stands for the death of the process."""


def test_a_sink_killed_anywhere_loses_and_doubles_nothing(kind: Kind, empty_ledger: Location) -> None:
    """Killed before its 1st, 2nd, ... SQL statement or commit, then run again: the same ledger as without the kill."""
    made, second = chain(4), chain(4, salt="x")
    reference = open_ledger(kind.copy(empty_ledger, "reference"))
    stream = reference.stream()
    send(stream, made, 0, 0, 2, 3)
    send(stream, second, 1)
    assert drain(reference, stream) == Drained(admitted=3, duplicates=1, quarantined=1)
    stream.close()
    kills = 0
    while True:
        location = kind.copy(empty_ledger, f"killed-{kills}")
        shutil.copy(reference.root / "stream.sqlite", location.root / "stream.sqlite")
        victim = open_ledger(location)
        finished = _drain_until(victim, kills)
        victim.close()
        again = open_ledger(location)
        assert verify(again).problems == ()
        assert again.cut().at("facts", PARTITION) in ({3} if finished else {0, 3})
        drain(again, again.stream())
        assert digests(again) == digests(reference)
        assert again.head() == reference.head()
        assert [_contents(again, table) for table in TABLES] == [_contents(reference, table) for table in TABLES]
        again.close()
        if finished:
            break
        kills += 1
    assert kills > 10


TABLES = ("gap", "quarantine", "stream_position", "tail")


def _contents(ledger: Ledger, table: str) -> list[tuple[Any, ...]]:
    """All rows; a quarantined record's number leaves gaps where transactions were rolled back."""
    result = [row[1:] if table == "quarantine" else row for row in rows(ledger, f"SELECT * FROM {table}")]
    return sorted(result)


def _drain_until(ledger: Ledger, left: int) -> bool:
    """Drains, dying before statement or commit number `left`; true when it finished earlier."""

    def count(*_args: object) -> None:
        nonlocal left
        if left == 0:
            raise KilledError
        left -= 1

    stream = ledger.stream()
    event.listen(ledger.engine, "before_cursor_execute", count)
    event.listen(ledger.engine, "commit", count)
    try:
        drain(ledger, stream)
    except KilledError:
        return False
    finally:
        stream.close()
    return True


def test_many_frames_need_several_transactions(ledger: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    """A chain that crosses batches is checked across them."""
    monkeypatch.setattr("lapledger.consumers.ingest.sink.BATCH_RECORDS", 4)
    stream, made = ledger.stream(), chain(10)
    send(stream, made)
    assert drain(ledger, stream) == Drained(admitted=10)
    assert events(ledger, "filter.decided", 1, ledger.cut())["subject_id"].to_pylist() == [str(n) for n in range(10)]


def test_a_zombie_commits_nothing(ledger: Ledger) -> None:
    """Whoever was given the partition later has a higher epoch; what the older holder decided leaves no trace."""
    stream, made = ledger.stream(), chain(6)
    send(stream, made)
    index = ("facts", PARTITION)
    old = take_partition(ledger.engine, *index, Term("old", 0))
    assert old == 1
    assert drain(ledger, stream, 2, leases={index: old}) == Drained(admitted=2)

    class Taking(Racing):
        """The lease changes hands while the zombie reads."""

        def read(self, stream: str, partition: int, position: Position, limit: int) -> list[Stored]:
            result = self.stream.read(stream, partition, position, limit)
            assert take_partition(self.ledger.engine, *index, Term("new", 1), force=True) == 2
            return result

    assert drain(ledger, Taking(stream, ledger), leases={index: old}) == Drained()
    assert drain(ledger, stream, leases={index: old}) == Drained()
    assert rows(ledger, "SELECT count(*) FROM frame") == [(2,)]
    assert drain(ledger, stream, leases={index: 2}) == Drained(admitted=4)
    assert verify(ledger).problems == ()


def test_a_sink_takes_only_the_partitions_that_it_holds(ledger: Ledger) -> None:
    """A record elsewhere stays on the stream for whoever holds that partition."""
    stream = ledger.stream()
    send(stream, chain(2))
    epoch = take_partition(ledger.engine, "control", 0, Term("me", 0))
    assert epoch == 1
    assert drain(ledger, stream, leases={("control", 0): epoch}) == Drained()


def test_several_sinks_share_a_ledger(location: Location) -> None:
    """Four threads drain one stream, gaps, duplicates, forks and broken records included: each is counted once."""
    made, second = chain(60), chain(60, salt="x")
    order = [n for n in range(60) if n % 7] + [0, 3, 3, 7, 14]
    with closing(open_ledger(location)) as ledger, closing(ledger.stream()) as stream:
        for start in range(0, len(order), 4):
            send(stream, made, *order[start : start + 4])
            send(stream, second, 1)
        stream.append("facts", PARTITION, [Record({}, b"broken")])
        with ThreadPoolExecutor(4) as pool:
            result = list(pool.map(_drain_often, [location] * 4))
        assert sum(result, start=Drained()) == Drained(admitted=54, duplicates=2, quarantined=15)
        assert len(set(digests(ledger))) == 54
        assert rows(ledger, "SELECT first_missing, last_missing FROM gap ORDER BY 1") == [
            (n, n) for n in range(21, 60, 7)
        ]
        assert verify(ledger).problems == ()


def _drain_often(location: Location) -> Drained:
    with closing(open_ledger(location)) as ledger, closing(ledger.stream()) as stream:
        return sum((drain(ledger, stream, limit=5) for _ in range(30)), start=Drained())


@pytest.mark.parametrize("kind_server", ["postgresql"], indirect=True)  # SQLite lets one writer decide at a time
def test_a_sink_that_lost_a_race_about_a_gap_leaves_no_trace(ledger: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    """Both decide to open the same gap; the position decides which of them did."""
    stream, made = ledger.stream(), chain(4)
    send(stream, made, 0, 3)
    advance = lapledger.consumers.ingest.admission._advance

    def late(*args: Any) -> None:
        monkeypatch.undo()
        assert drain(ledger, stream) == Drained(admitted=2)
        advance(*args)

    monkeypatch.setattr(lapledger.consumers.ingest.admission, "_advance", late)
    assert drain(ledger, stream) == Drained()
    assert rows(ledger, "SELECT first_missing, last_missing FROM gap") == [(1, 2)]
    assert verify(ledger).problems == ()
