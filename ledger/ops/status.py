"""The state of a ledger: frames admitted per partition, consumer lag, and quarantined records."""

from collections.abc import Mapping
from dataclasses import dataclass, replace

from sqlalchemy import text

from lapledger.ledger.store.open_ledger import Ledger, cut_now, head_now
from lapledger.ledger.store.sql.engine import reading
from lapledger.ledger.store.sql.leases import LONGEST_MS
from lapledger.ledger.streams.base import Partition
from lapledger.ledger.streams.kafka.stream import KafkaStream
from lapledger.ledger.streams.local import LocalStream

_PARTITIONS = text(
    "SELECT p.stream, p.partition, p.admissions, p.identity, p.next_position, p.duplicates, p.lease_holder,"
    " p.lease_until,"
    " (SELECT count(*) FROM tail t WHERE t.stream = p.stream AND t.partition = p.partition) AS tail,"
    " CAST((SELECT coalesce(sum(last_missing - first_missing + 1), 0) FROM gap g"
    "  WHERE g.stream = p.stream AND g.partition = p.partition) AS BIGINT) AS gaps,"
    " (SELECT count(*) FROM quarantine q WHERE q.stream = p.stream AND q.partition = p.partition) AS quarantined,"
    " (SELECT count(*) FROM quarantine_retry r JOIN quarantine q ON q.id = r.id"
    "  WHERE q.stream = p.stream AND q.partition = p.partition) AS retried"
    " FROM stream_position p ORDER BY p.stream, p.partition"
)


@dataclass(frozen=True, slots=True)
class PartitionStatus:
    """One partition, in frames: admitted, unsealed (`tail`), duplicates, missing in gaps; and quarantined records.

    `waiting` counts records of the stream that were not read yet, None where unknown; of the `quarantined` ones,
    `retried` were admitted since. `holder` has the partition's lease, empty for nobody. The stream of this
    identity, empty for none so far, was read up to `position`. `ahead_holder` took a lease by a clock that was
    `ahead_ms` ahead: nobody waits for it.
    """

    stream: str
    partition: int
    admitted: int
    tail: int
    waiting: int | None
    duplicates: int
    gaps: int
    quarantined: int
    retried: int
    holder: str
    identity: str
    position: int
    ahead_holder: str = ""
    ahead_ms: int = 0


@dataclass(frozen=True, slots=True)
class LedgerStatus:
    """The ledger: its partitions, number of sealed segments, and the cut with its head."""

    identity: str
    cut: str
    partitions: tuple[PartitionStatus, ...]
    segments: int
    head: str


def ledger_status(ledger: Ledger, *, now_ms: int = 0) -> LedgerStatus:
    """Frames admitted, records waiting and quarantined, as of now; leases that end before `now_ms` have no holder.

    Unavailable when a server does not answer.
    """
    status = database_status(ledger, now_ms=now_ms)
    stream = ledger.stream()
    try:
        waiting = waiting_records(stream, status)
    finally:
        stream.close()
    partitions = tuple(replace(part, waiting=waiting[part.stream, part.partition]) for part in status.partitions)
    return replace(status, partitions=partitions)


def database_status(ledger: Ledger, *, now_ms: int = 0) -> LedgerStatus:
    """The same from the database alone."""
    with reading(ledger.engine) as connection:
        rows = connection.execute(_PARTITIONS).all()
        segments = int(connection.execute(text("SELECT count(*) FROM segment")).scalar_one())
        cut, head = str(cut_now(connection)), head_now(connection)
    partitions = tuple(
        PartitionStatus(
            stream=row.stream,
            partition=row.partition,
            admitted=row.admissions,
            tail=row.tail,
            waiting=None,
            duplicates=row.duplicates,
            gaps=row.gaps,
            quarantined=row.quarantined,
            retried=row.retried,
            holder=row.lease_holder if now_ms < row.lease_until <= now_ms + LONGEST_MS else "",
            ahead_holder=row.lease_holder if row.lease_until > now_ms + LONGEST_MS else "",
            ahead_ms=max(0, row.lease_until - now_ms - LONGEST_MS),
            identity=row.identity,
            position=row.next_position,
        )
        for row in rows
    )
    return LedgerStatus(ledger.identity, cut, partitions, segments, head)


def waiting_records(stream: LocalStream | KafkaStream, status: LedgerStatus) -> Mapping[Partition, int]:
    """Consumer lag: records of each partition on the stream that were not read yet."""
    ends = stream.ends()
    waiting = {}
    for part in status.partitions:
        partition = part.stream, part.partition
        waiting[partition] = max(0, ends.get(partition, 0) - part.position)
        if waiting[partition] and isinstance(stream, LocalStream):  # its offsets are shared by all partitions
            waiting[partition] = stream.waiting(*partition, part.position)
    return waiting
