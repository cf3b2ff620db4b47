"""A store that stops answering while a ledger is proven is an outage, never damage."""

from dataclasses import replace
from pathlib import Path

from lapledger.consumers.ingest.sink import drain
from lapledger.consumers.storage.sealer import seal
from lapledger.ledger.errors import Unavailable
from lapledger.ledger.proof import verify
from lapledger.ledger.store.location import Location
from lapledger.ledger.store.open_ledger import create_ledger, open_ledger
from lapledger.ledger.streams.producer import Producer
from tests.ledger.facts import decision
from tests.support.s3_servers import Relay, S3Server

ENOUGH = 10**9


def proven(location: Location, s3: S3Server, name: str, budget: int) -> bool:
    """Whether the ledger was proven through a connection that breaks after so many bytes of requests.

    False when it was Unavailable; anything else that is said of a sound ledger fails the test.
    """
    with Relay(s3.port, budget=budget, stands_still=False).serving() as port:
        try:
            ledger = open_ledger(replace(location, store=s3.url(name, port=port)))
            assert verify(ledger).problems == ()
        except Unavailable:
            return False
        ledger.close()
        return True


def test_an_outage_is_no_damage(s3: S3Server, tmp_path: Path) -> None:
    """Wherever the connection breaks, nothing is said against the data; with the connection whole all is proven."""
    location = Location(tmp_path / "ledger", store=s3.url(tmp_path.name))
    ledger = create_ledger(location, "identity", "now")
    ledger.blobs.put(b"text")
    with_stream = ledger.stream()
    Producer(with_stream, "epoch", "test", "0").append([decision(number) for number in range(20)])
    drain(ledger, with_stream)
    seal(ledger)
    with_stream.close()
    ledger.close()
    outcomes = [proven(location, s3, tmp_path.name, budget) for budget in (700, 2500, 5000, 7500, ENOUGH)]
    assert outcomes[0] is False
    assert outcomes[-1] is True


def test_what_is_wrong_with_the_bytes_stays_a_problem(s3: S3Server, tmp_path: Path) -> None:
    """An object that is gone is damage, though the store answers well."""
    location = Location(tmp_path / "ledger", store=s3.url(tmp_path.name))
    ledger = create_ledger(location, "identity", "now")
    stream = ledger.stream()
    Producer(stream, "epoch", "test", "0").append([decision(0)])
    drain(ledger, stream)
    seal(ledger)
    (segment,) = [
        stored for stored in ledger.segments.listing() if stored.name.startswith("filter") and "parquet" in stored.name
    ]
    ledger.segments.remove(segment.name)
    assert any("is missing" in problem for problem in verify(ledger).problems)
    stream.close()
    ledger.close()
