"""What a stream may forget: what is sealed, and only after every segment was proven."""

from contextlib import closing

import pytest

from lapledger.consumers.ingest.sink import drain
from lapledger.consumers.storage.compactor import compact
from lapledger.consumers.storage.sealer import seal
from lapledger.consumers.storage.stream_trim import trim, trimmable
from lapledger.ledger.errors import Fault
from lapledger.ledger.proof import verify
from lapledger.ledger.store.open_ledger import Ledger
from lapledger.ledger.streams.local import LocalStream
from tests.consumers.ledgers import complete, feed, parquet_files, put, rows


@pytest.fixture
def ledger(both: Ledger) -> Ledger:
    """Sealed decisions, others in the tail; every test runs over both databases."""
    feed(both, "epoch-0", count=12)
    seal(both)
    feed(both, "epoch-1", count=6)
    return both


def records(ledger: Ledger, stream: LocalStream) -> dict[tuple[str, int], int]:
    """How many records each partition of the stream keeps."""
    return {location: stream.waiting(*location, 0) for location, end in stream.ends().items() if end}


def test_what_is_sealed_is_forgotten_and_the_rest_is_kept(ledger: Ledger) -> None:
    """As many records stay as frames are in the tail; the sink, the proof and the next sealing do not notice."""
    with closing(ledger.stream()) as stream:
        trim(ledger, stream, trimmable(ledger, stream))
        tail = rows(ledger, "SELECT stream, partition, count(*) FROM tail GROUP BY stream, partition")
        kept = {location: count for location, count in records(ledger, stream).items() if count}
        assert kept == {(name, partition): count for name, partition, count in tail}
        put(ledger, "epoch-2", [])
        feed(ledger, "epoch-3", count=6)
        assert drain(ledger, stream).admitted == 0
        assert complete(ledger).num_rows == 24
        seal(ledger)
        compact(ledger, 0)
        trim(ledger, stream, trimmable(ledger, stream))
        assert sum(records(ledger, stream).values()) == 0
    feed(ledger, "epoch-4", count=6)
    assert complete(ledger).num_rows == 30
    assert verify(ledger).problems == ()


def test_nothing_is_sealed_nothing_is_forgotten(both: Ledger) -> None:
    """A fresh ledger, with and without frames in its tail."""
    with closing(both.stream()) as stream:
        assert trimmable(both, stream) == []
        feed(both, "epoch-0")
        assert trimmable(both, stream) == []


def test_a_stream_made_anew_forgets_nothing(ledger: Ledger) -> None:
    """Its offsets are others than those that were sealed."""
    second = LocalStream.create(ledger.root / "other.sqlite", "another")
    with closing(second):
        assert trimmable(ledger, second) == []


def test_a_damaged_ledger_keeps_its_stream(ledger: Ledger) -> None:
    """The stream may be needed to mend it."""
    (path,) = parquet_files(ledger)
    path.chmod(0o644)
    data = bytearray(path.read_bytes())
    data[100] ^= 1
    path.write_bytes(data)
    with closing(ledger.stream()) as stream:
        before = records(ledger, stream)
        with pytest.raises(Fault, match="was altered; nothing of the stream was forgotten"):
            trim(ledger, stream, trimmable(ledger, stream))
        path.unlink()
        with pytest.raises(Fault, match="is missing"):
            trim(ledger, stream, trimmable(ledger, stream))
        assert records(ledger, stream) == before
