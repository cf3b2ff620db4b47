"""Status and usage: counts of what was appended, and the bytes of the files themselves."""

from sqlalchemy import event

from lapledger.consumers.ingest.sink import drain
from lapledger.consumers.storage.sealer import seal
from lapledger.ledger.frames.frame import Record, encode
from lapledger.ledger.ops.status import ledger_status
from lapledger.ledger.ops.usage import HOUR_MS, bytes_a_day, usage
from lapledger.ledger.store.objects.objects import Stored
from lapledger.ledger.store.open_ledger import Ledger
from lapledger.ledger.store.sql.leases import Term, take_partition
from lapledger.ledger.streams.local import LocalStream
from tests.ledger.facts import chain_frames, decision


def test_status_counts_what_became_of_each_record(ledger: Ledger, stream: LocalStream) -> None:
    """Of frames 0 to 5: 0 and 1 sealed, 5 admitted behind a gap, 1 again, a broken one, and one that still waits."""
    frames = [encode(frame) for frame in chain_frames([decision(n) for n in range(7)])]
    partition = int(frames[0].headers["ce_lappartition"])
    stream.append("facts", partition, frames[:2])
    drain(ledger, stream)
    seal(ledger)
    stream.append("facts", partition, [frames[5], frames[1], Record({}, b"broken")])
    drain(ledger, stream)
    stream.append("facts", partition, [frames[6]])
    status = ledger_status(ledger)
    (mine,) = (part for part in status.partitions if part.admitted)
    assert (mine.stream, mine.partition) == ("facts", partition)
    assert (mine.admitted, mine.tail, mine.waiting, mine.duplicates, mine.gaps) == (3, 1, True, 1, 3)
    assert (mine.quarantined, status.segments, status.head) == (1, 1, ledger.head())
    assert [part.waiting for part in status.partitions].count(True) == 1


def test_the_head_is_that_of_the_cut_beside_it(ledger: Ledger, stream: LocalStream) -> None:
    """Also when a frame is admitted while the status is read: it shows in neither."""
    frames = [encode(frame) for frame in chain_frames([decision(n) for n in range(2)])]
    partition = int(frames[0].headers["ce_lappartition"])
    stream.append("facts", partition, frames[:1])
    drain(ledger, stream)
    before = (str(ledger.cut()), ledger.head())
    stream.append("facts", partition, frames[1:])

    def admit(_connection: object, _cursor: object, statement: str, *_: object) -> None:
        if not admitted and "stream_position" in statement:
            admitted.append(statement)
            drain(ledger, stream)

    admitted: list[str] = []
    event.listen(ledger.engine, "after_cursor_execute", admit)
    status = ledger_status(ledger)
    assert (status.cut, status.head) == before
    assert (str(ledger.cut()), ledger.head()) != before


def test_a_lease_names_its_holder_until_it_ends(ledger: Ledger) -> None:
    """As of the time that is asked for; without a time, whoever had it last and did not give it back."""
    assert take_partition(ledger.engine, "facts", 1, Term("somebody", 1_000, 500)) == 1
    for now_ms, holder in ((1_499, "somebody"), (1_500, "")):
        held = {part.holder for part in ledger_status(ledger, now_ms=now_ms).partitions if part.partition == 1}
        assert held - {""} == {holder} - {""}


def test_growth_is_unknown_without_an_hour_of_history() -> None:
    """Then it is what came together in the time between the oldest and the newest file."""
    assert bytes_a_day([], 10) is None
    assert bytes_a_day([Stored("a", 1, 0), Stored("b", 1, HOUR_MS - 1)], 10) is None
    assert bytes_a_day([Stored("b", 1, 2 * HOUR_MS), Stored("a", 1, 0)], 10) == 120


def test_usage_counts_rows_and_bytes(ledger: Ledger, stream: LocalStream) -> None:
    """Rows by type, sealed or not; bytes against the files."""
    for frame in chain_frames([decision(n) for n in range(10)], size=3):
        stream.append("facts", frame.link.partition, [encode(frame)])
    drain(ledger, stream, limit=2)
    seal(ledger)
    drain(ledger, stream)
    ledger.blobs.put(b"12345")
    room = usage(ledger)
    assert [(kind.name, kind.frames, kind.rows) for kind in room.types] == [("filter.decided", 4, 10)]
    files = [path for path in (ledger.root / "segments").rglob("*") if path.is_file()]
    assert room.segment_bytes == room.types[0].segment_bytes == sum(path.stat().st_size for path in files)
    assert (room.blob_bytes, room.quarantine_bytes) == (5, 0)
    assert room.sql_bytes > room.tail_bytes > 0
