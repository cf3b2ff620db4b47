"""What happens beside a verification, or keeps it from its work, is told as what it is and never as damage."""

from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest
from sqlalchemy import make_url, text

from lapledger.consumers.ingest.sink import drain
from lapledger.consumers.storage.compactor import compact
from lapledger.consumers.storage.garbage_collector import GracePeriod, collect, find_garbage
from lapledger.consumers.storage.sealer import seal
from lapledger.ledger.errors import DiskFull, Fault, LapError, Unavailable
from lapledger.ledger.ordered_threads import THREADS
from lapledger.ledger.proof import verify
from lapledger.ledger.store.open_ledger import Ledger
from lapledger.ledger.store.sql import engine as engines
from lapledger.ledger.store.sql.engine import open_engine, reading, writing
from lapledger.ledger.streams.local import LocalStream
from lapledger.ledger.streams.producer import Producer
from tests.ledger.facts import decision, sample_fact

ORPHANS = 3 * THREADS
"""More blobs than are looked at ahead."""


@pytest.fixture
def filled(ledger: Ledger, stream: LocalStream) -> Ledger:
    """Segments of two types, merged by type since; many blobs, of which a program names the last."""
    for number in range(2):
        producer = Producer(stream, f"epoch-{number}", "test", "0")
        producer.append([decision(n, "p") for n in range(5)])
        drain(ledger, stream)
        seal(ledger)
    compact(ledger, 0)
    program = sample_fact("program.added")
    blobs = ledger.blobs.put_many(f"source {number}".encode() for number in range(ORPHANS + 1))
    producer.append([replace(program, source_blob=max(blobs))])
    drain(ledger, stream)
    return ledger


def test_what_a_collector_removes_meanwhile_is_no_damage(filled: Ledger) -> None:
    """Superseded segments and blobs that nobody names, gone after they were listed: notes, and all else is proven."""
    wanted = GracePeriod(filled.blobs.listing()[0].modified_ms + 10**9, grace_ms=0)
    removed: Counter[str] = Counter()

    def collect_now(part: str, done: int, _total: int) -> None:
        if done == 1 and part in ("blobs", "segments"):
            garbage = [item for item in find_garbage(filled, wanted) if item.store == part]
            removed.update(item.store for item in collect(filled, garbage))

    proof = verify(filled, collect_now)
    assert removed == {"blobs": ORPHANS, "segments": 4}
    assert proof.problems == ()
    assert sum("was superseded, and removed meanwhile" in note for note in proof.notes) == 4
    (gone,) = [int(note.split()[0]) for note in proof.notes if "blobs were removed meanwhile" in note]
    assert proof.blobs == 1 + ORPHANS - gone
    assert verify(filled).problems == ()


def test_a_named_blob_that_goes_meanwhile_is_reported(filled: Ledger) -> None:
    """No collector removes it."""
    named = max(filled.blobs.digests())

    def remove(part: str, done: int, _total: int) -> None:
        if part == "blobs" and done == 1:
            Path(filled.blobs.where(named)).unlink()

    (problem,) = verify(filled, remove).problems
    assert problem.startswith(f"blob {named} is missing: program.added names it in source_blob")


def test_a_disk_without_room_is_no_damage(filled: Ledger) -> None:
    """It is told as such, while what is broken is a problem."""

    def no_room(*_: object) -> None:
        raise DiskFull("no room")

    def broken(*_: object) -> None:
        raise Fault("it is broken")

    with pytest.raises(DiskFull, match="no room"):
        verify(filled, no_room)
    assert verify(filled, broken).problems == ("it is broken",)


def test_a_locked_database_may_answer_later(filled: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    """A writer that waits in vain for another one."""
    monkeypatch.setattr(engines, "WAIT_SECONDS", 0)
    second = open_engine(filled.engine.url)
    with writing(filled.engine), pytest.raises(Unavailable, match="is in use"), writing(second):
        pass
    second.dispose()


@pytest.mark.parametrize(
    ("state", "kind"),
    [
        ("53200", Unavailable),  # out_of_memory
        ("57014", Unavailable),  # query_canceled
        ("40P01", Unavailable),  # deadlock_detected
        ("53100", DiskFull),  # disk_full
        ("XX001", Fault),  # data_corrupted
    ],
)
def test_what_a_server_reports_of_itself_is_no_fault_of_the_data(
    postgres_database: str, state: str, kind: type[LapError]
) -> None:
    """States of PostgreSQL's appendix A, raised by a real server."""
    engine = open_engine(make_url(postgres_database))
    raised = text(f"DO $$ BEGIN RAISE EXCEPTION 'told' USING ERRCODE = '{state}'; END $$")
    with pytest.raises(LapError, match=r"told|is full") as caught, reading(engine) as connection:
        connection.execute(raised)
    assert type(caught.value) is kind
    engine.dispose()
