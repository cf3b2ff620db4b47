"""A rebuild beside another stream than the one that was sealed: a copy that never sealed, or a stream that is lost."""

from contextlib import closing
from pathlib import Path

import pytest

from lapledger.consumers.ingest.sink import drain
from lapledger.consumers.storage.ledger_copy import copy_ledger
from lapledger.consumers.storage.rebuild import Now, Rebuilt, rebuild
from lapledger.consumers.storage.sealer import seal
from lapledger.ledger.proof import verify
from lapledger.ledger.store.location import Location
from lapledger.ledger.store.open_ledger import Ledger, create_ledger, open_ledger
from lapledger.ledger.streams.kafka.settings import KafkaSettings
from tests.consumers.ledgers import append, complete, decision, feed, put_quarantined
from tests.support.lap import lap

SEALED, TAIL, LATER = 30, 7, 9
NOW = Now("later", 1_000)


@pytest.fixture
def original(tmp_path: Path) -> Ledger:
    """A ledger in a folder: sealed facts, a quarantined record, and a tail."""
    ledger = create_ledger(tmp_path / "original", "identity-0", "now")
    feed(ledger, "epoch-0", SEALED)
    put_quarantined(ledger, b"broken")
    seal(ledger)
    feed(ledger, "epoch-1", TAIL)
    return ledger


def without_database(location: Location) -> Rebuilt:
    """The rebuild of a ledger in a folder that lost its database."""
    for path in location.root.glob("ledger.sqlite*"):
        path.unlink()
    return rebuild(location, NOW, stream_identity="fresh")


def check_lives_on(location: Location, due: int) -> None:
    """After its stream was read: so many facts, proven; then it takes writers, seals, and is proven again."""
    with closing(open_ledger(location)) as ledger, closing(ledger.stream()) as stream:
        assert verify(ledger, stream=stream).problems == ()
        drain(ledger, stream)
        assert complete(ledger).num_rows == due
        assert verify(ledger, stream=stream).problems == ()
        append(ledger, f"epoch-{due}", [decision(number) for number in range(LATER)])
        put_quarantined(ledger, b"broken again")
        assert verify(ledger, stream=stream).problems == ()
        seal(ledger)
        assert complete(ledger).num_rows == due + LATER
        assert verify(ledger, stream=stream).problems == ()


def test_a_copy_that_never_sealed_is_rebuilt_with_what_its_stream_holds(original: Ledger, tmp_path: Path) -> None:
    """The sealed facts come from its segments, what was appended to the copy from its stream; and so a second time."""
    copy = Location(tmp_path / "copy")
    copy_ledger(original, copy, stream_identity="of the copy", progress=lambda *_: None)
    with closing(open_ledger(copy)) as ledger:
        append(ledger, "epoch-copy", [decision(number) for number in range(LATER)])
    assert without_database(copy).other_stream
    check_lives_on(copy, SEALED + LATER)
    assert not without_database(copy).other_stream  # sealed since: the stream at hand is the one that was sealed
    check_lives_on(copy, SEALED + 2 * LATER)


def test_a_copy_on_a_broker_is_rebuilt(original: Ledger, tmp_path: Path, kafka_settings: KafkaSettings) -> None:
    """The topics of the copy have ids of their own."""
    copy = Location(tmp_path / "copy", kafka=kafka_settings)
    copy_ledger(original, copy, stream_identity="unused", progress=lambda *_: None)
    with closing(open_ledger(copy)) as ledger:
        append(ledger, "epoch-copy", [decision(number) for number in range(LATER)])
    assert without_database(copy).other_stream
    check_lives_on(copy, SEALED + LATER)


def test_database_and_stream_lost_together(original: Ledger) -> None:
    """What was sealed is all there is; the ledger takes writers on a new stream."""
    original.close()
    (original.root / "stream.sqlite").unlink()
    assert without_database(original.location).other_stream
    check_lives_on(original.location, SEALED)


def test_the_command_reports_another_stream(original: Ledger, tmp_path: Path) -> None:
    """A backup, restored, whose database is lost before it sealed."""
    root = tmp_path / "restored"
    assert lap("ledger", "backup", str(tmp_path / "backup"), "--ledger", str(original.root)).code == 0
    restored = lap("ledger", "restore", str(tmp_path / "backup"), "--ledger", str(root))
    assert restored.code == 0, restored.err
    for path in root.glob("ledger.sqlite*"):
        path.unlink()
    done = lap("ledger", "rebuild", "--ledger", str(root))
    assert (done.code, "nothing that was not sealed is restored" in done.err) == (0, True)
    assert lap("verify", "--ledger", str(root)).code == 0
    check_lives_on(Location(root), SEALED)
