"""What a stream may forget: the records whose frames are sealed, once every segment was proven.

Until then the stream is the second copy from which a lost database is made whole.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from lapledger.ledger.errors import Fault
from lapledger.ledger.proof.manifests import Reached, read_manifest
from lapledger.ledger.store.open_ledger import Ledger
from lapledger.ledger.store.reader import live_segments, segment_rows
from lapledger.ledger.store.sql.engine import reading
from lapledger.ledger.streams.base import Stream


@dataclass(frozen=True, slots=True)
class Trim:
    """The records of a partition before this position."""

    stream: str
    partition: int
    position: int


def trimmable(ledger: Ledger, stream: Stream) -> list[Trim]:
    """What the last sealing covers of this very stream; nothing of one that was recreated since."""
    with reading(ledger.engine) as connection:
        rows = segment_rows(connection)
    reached = read_manifest(ledger.segments, rows[-1]).positions if rows else ()
    identities = {item.stream: stream.identity(item.stream) for item in reached}
    return [
        Trim(*_offset_of(item)) for item in reached if item.next_position and item.identity == identities[item.stream]
    ]


def _offset_of(item: Reached) -> tuple[str, int, int]:
    return item.stream, item.partition, item.next_position


def trim(ledger: Ledger, stream: Stream, trims: Sequence[Trim]) -> None:
    """Lets the stream forget; Fault, and nothing is forgotten, when a segment is missing or was altered."""
    with reading(ledger.engine) as connection:
        kinds = sorted({(segment.type, segment.version) for segment in segment_rows(connection)})
        live = [segment for kind in kinds for segment in live_segments(connection, *kind)]
    for segment in live:
        if not ledger.segments.is_intact(segment):
            where = ledger.segments.where(ledger.segments.name(segment))
            raise Fault(f"segment {where} was altered; nothing of the stream was forgotten; run `lap verify`")
    for item in trims:
        stream.trim(item.stream, item.partition, item.position)
