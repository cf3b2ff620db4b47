"""How far a ledger has come: what was admitted of each partition, what waits, and what was put aside."""

from dataclasses import dataclass

from sqlalchemy import text

from ledger.store.engine import reading
from ledger.store.opened import Ledger, cut_now, head_now

_PARTITIONS = text(
    "SELECT p.stream, p.partition, p.admissions, p.next_position, p.duplicates,"
    " (SELECT count(*) FROM tail t WHERE t.stream = p.stream AND t.partition = p.partition) AS tail,"
    " (SELECT coalesce(sum(last_missing - first_missing + 1), 0) FROM gap g"
    "  WHERE g.stream = p.stream AND g.partition = p.partition) AS gaps,"
    " (SELECT count(*) FROM quarantine q WHERE q.stream = p.stream AND q.partition = p.partition) AS quarantined"
    " FROM stream_position p ORDER BY p.stream, p.partition"
)


@dataclass(frozen=True, slots=True)
class PartitionStatus:
    """One partition, in frames: admitted, of these not sealed yet, duplicates, missing in gaps; and records put aside.

    `waiting` is true when the local stream holds records that were not read yet.
    """

    stream: str
    partition: int
    admitted: int
    tail: int
    waiting: bool
    duplicates: int
    gaps: int
    quarantined: int


@dataclass(frozen=True, slots=True)
class LedgerStatus:
    """The whole ledger: its partitions, sealed segments, and the cut with the head that belongs to it."""

    identity: str
    cut: str
    partitions: tuple[PartitionStatus, ...]
    segments: int
    head: str


def ledger_status(ledger: Ledger) -> LedgerStatus:
    """What was admitted, what waits and what was put aside, as of now."""
    stream = ledger.stream()
    try:
        ends = stream.ends()
    finally:
        stream.close()
    with reading(ledger.engine) as connection:
        partitions = tuple(
            PartitionStatus(
                row.stream,
                row.partition,
                row.admissions,
                row.tail,
                ends.get((row.stream, row.partition), 0) > row.next_position,
                row.duplicates,
                row.gaps,
                row.quarantined,
            )
            for row in connection.execute(_PARTITIONS)
        )
        segments = int(connection.execute(text("SELECT count(*) FROM segment")).scalar_one())
        cut = str(cut_now(connection))
        return LedgerStatus(ledger.identity, cut, partitions, segments, head_now(connection))
