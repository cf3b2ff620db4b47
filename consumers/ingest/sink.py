"""The sink: takes frames from a stream into the ledger, each batch and its position in one SQL transaction.

A killed sink loses nothing and admits nothing twice; nothing is dropped: what cannot be admitted is quarantined.
Records are read and decoded ahead on a second thread while a batch commits.
"""

from collections.abc import Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass, field

from lapledger.consumers.ingest.admission import Decoded, Drained, Position, decoded, positions, take
from lapledger.ledger.errors import Fault
from lapledger.ledger.prefetch import prefetch
from lapledger.ledger.store.open_ledger import Ledger
from lapledger.ledger.streams.base import Partition, Stream

BATCH_RECORDS = 256
"""Most records taken in one transaction."""


@dataclass(slots=True)
class _Drain:
    """One drain under way: whose stream, counts, and how many more records it may take (None without a limit)."""

    ledger: Ledger
    stream: Stream
    identities: Mapping[str, str]
    seen: str
    left: int | None
    total: Drained = field(default_factory=Drained)


def drain(
    ledger: Ledger,
    stream: Stream,
    limit: int | None = None,
    *,
    seen: str = "",
    leases: Mapping[Partition, int] | None = None,
) -> Drained:
    """Counts of frames taken, up to where each partition ended when the drain began; at most `limit` records.

    `seen` labels quarantined records with a time. With `leases`, only their partitions are taken, each as long as its
    lease still has that epoch. Fault when the stream was recreated or lost records that were not read.
    """
    known = positions(ledger)
    ends = stream.ends()  # after the positions: another sink may be moving them beyond ends that were read before
    identities = {name: stream.identity(name) for name in sorted({name for name, _ in ends})}
    for partition, end in ends.items():
        if partition not in known:
            raise Fault(
                f"the ledger in {ledger.root} knows no partition {partition[0]}/{partition[1]}; another stream is meant"
            )
        _check_identity(known[partition], identities[partition[0]])
        _check_end(known[partition], end)
    work = _Drain(ledger, stream, identities, seen, limit)
    for partition, end in sorted(ends.items()):
        if leases is None or partition in leases:
            _drain_partition(work, known[partition], end, None if leases is None else leases[partition])
    return work.total


def _drain_partition(work: _Drain, position: Position, end: int, lease: int | None) -> None:
    """Takes one partition up to `end`; begins again from the ledger's position when another process was faster."""
    while work.left is None or work.left > 0:
        if lease is not None and position.lease_epoch != lease:
            return
        if position.next_position >= end or _take_all(work, position, end):
            return
        position = positions(work.ledger)[position.stream, position.partition]


def _take_all(work: _Drain, position: Position, end: int) -> bool:
    """True when all was taken, False when another process moved the position meanwhile."""
    identity = work.identities[position.stream]
    _check_identity(position, identity)
    with closing(prefetch(_batches(work, position, end))) as batches:
        for batch in batches:
            taken = take(work.ledger, position, batch, identity=identity, seen=work.seen)
            if taken is None:
                return False
            drained, position = taken
            work.total += drained
            work.left = None if work.left is None else work.left - len(batch)
    return True


def _batches(work: _Drain, position: Position, end: int) -> Iterator[list[Decoded]]:
    """The decoded batches of a partition, up to `end`."""
    stream, partition, start, left = position.stream, position.partition, position.next_position, work.left
    while start < end and left != 0:
        count = BATCH_RECORDS if left is None else min(left, BATCH_RECORDS)
        records = work.stream.read(stream, partition, start, count)
        batch = [(stored, decoded(stored, stream, partition)) for stored in records if stored.offset < end]
        if not batch:
            return
        yield batch
        start, left = batch[-1][0].offset + 1, None if left is None else left - len(batch)


def _check_end(position: Position, end: int) -> None:
    if end < position.next_position:
        raise Fault(
            f"the stream {position.stream}/{position.partition} ends at {end}, but the ledger has read up to"
            f" {position.next_position}; nothing was admitted; restore the stream, it lost records"
        )


def _check_identity(position: Position, identity: str) -> None:
    if position.identity not in ("", identity):
        raise Fault(
            f"the stream {position.stream}/{position.partition} was recreated (identity {identity}, the ledger read"
            f" {position.identity}); nothing was admitted; give the ledger its old stream back or start a new ledger"
        )
