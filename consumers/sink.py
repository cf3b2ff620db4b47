"""The sink: takes frames from a stream into the ledger, each batch and its position in one SQL transaction.

A killed sink loses nothing and admits nothing twice; nothing is dropped: what cannot be admitted is quarantined.
Records are read and decoded ahead on a second thread while a batch commits.
"""

from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

from consumers.intake import Decoded, Drained, Position, decoded, positions, take
from ledger.errors import Fault
from ledger.store.opened import Ledger
from ledger.streams.base import Stream

BATCH_RECORDS = 256
"""Most records taken in one transaction."""

Place = tuple[str, int]


@dataclass(slots=True)
class _Drain:
    """One drain under way: counts, and how many more records it may take (None without a limit)."""

    ledger: Ledger
    stream: Stream
    seen: str
    left: int | None
    total: Drained = field(default_factory=Drained)


def drain(
    ledger: Ledger,
    stream: Stream,
    limit: int | None = None,
    *,
    seen: str = "",
    leases: Mapping[Place, int] | None = None,
) -> Drained:
    """Counts of frames taken, up to where each partition ended when the drain began; at most `limit` records.

    `seen` labels quarantined records with a time. With `leases`, only their partitions are taken, each as long as its
    lease still has that epoch. Fault when the stream was made anew or lost records that were not read.
    """
    known = positions(ledger)
    ends = stream.ends()  # after the positions: another sink may be moving them beyond ends that were read before
    for place, end in ends.items():
        if place not in known:
            raise Fault(
                f"the ledger in {ledger.root} knows no partition {place[0]}/{place[1]}; another stream is meant"
            )
        _check_identity(known[place], stream.identity(place[0]))
        _check_end(known[place], end)
    work = _Drain(ledger, stream, seen, limit)
    for place, end in sorted(ends.items()):
        if leases is None or place in leases:
            _drain_partition(work, place, end, None if leases is None else leases[place])
    return work.total


def _drain_partition(work: _Drain, place: Place, end: int, lease: int | None) -> None:
    """Takes one partition up to `end`; begins again from the ledger's position when another process was faster."""
    while work.left is None or work.left > 0:
        position = positions(work.ledger)[place]
        if lease is not None and position.lease_epoch != lease:
            return
        if position.next_position >= end or _take_all(work, position, end):
            return


def _take_all(work: _Drain, position: Position, end: int) -> bool:
    """True when all was taken, False when another process moved the position meanwhile."""
    identity = work.stream.identity(position.stream)
    _check_identity(position, identity)
    with ThreadPoolExecutor(1, "lap-decode") as pool:
        for batch in _ahead(pool, work, position, end):
            taken = take(work.ledger, position, batch, identity=identity, seen=work.seen)
            if taken is None:
                return False
            drained, position = taken
            work.total += drained
            work.left = None if work.left is None else work.left - len(batch)
    return True


def _ahead(pool: ThreadPoolExecutor, work: _Drain, position: Position, end: int) -> Iterator[list[Decoded]]:
    """The decoded batches of a partition; the next one is read while the caller works on this one."""
    left = work.left

    def read(start: int, count: int) -> list[Decoded]:
        stream, partition = position.stream, position.partition
        records = work.stream.read(stream, partition, start, count)
        return [(stored, decoded(stored, stream, partition)) for stored in records if stored.offset < end]

    start, count = position.next_position, BATCH_RECORDS if left is None else min(left, BATCH_RECORDS)
    coming = pool.submit(read, start, count)
    while batch := coming.result():
        start = batch[-1][0].offset + 1
        left = None if left is None else left - len(batch)
        count = BATCH_RECORDS if left is None else min(left, BATCH_RECORDS)
        if start < end and count:
            coming = pool.submit(read, start, count)
            yield batch
        else:
            yield batch
            return


def _check_end(position: Position, end: int) -> None:
    if end < position.next_position:
        raise Fault(
            f"the stream {position.stream}/{position.partition} ends at {end}, but the ledger has read up to"
            f" {position.next_position}; nothing was admitted; restore the stream, it lost records"
        )


def _check_identity(position: Position, identity: str) -> None:
    if position.identity not in ("", identity):
        raise Fault(
            f"the stream {position.stream}/{position.partition} was made anew (identity {identity}, the ledger read"
            f" {position.identity}); nothing was admitted; give the ledger its old stream back or start a new ledger"
        )
