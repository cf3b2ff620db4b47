"""One batch of records into the ledger: what is admitted, what is a duplicate, what is quarantined, in one transaction.

A position moves only by compare-and-set on where it was, how much it had admitted, and the lease's epoch: whoever
changes no row has lost and leaves no trace.
"""

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace

from sqlalchemy import Connection, bindparam, column, insert, table, text

from lapledger.ledger.disk import refuse_below_reserve
from lapledger.ledger.failpoint import failpoint
from lapledger.ledger.frames.frame import Frame, FrameError, decode
from lapledger.ledger.store.chain_rules import Chain, check_route
from lapledger.ledger.store.heads import next_head
from lapledger.ledger.store.open_ledger import Ledger
from lapledger.ledger.store.sql.engine import alone, reading, writing
from lapledger.ledger.store.values import check_values
from lapledger.ledger.streams.base import Partition, Stored

Decoded = tuple[Stored, Frame | FrameError]


@dataclass(frozen=True, slots=True)
class Position:
    """How far a partition was admitted, and the epoch of the lease that may go on."""

    stream: str
    partition: int
    identity: str
    next_position: int
    admissions: int
    head: str
    lease_epoch: int


@dataclass(frozen=True, slots=True)
class Drained:
    """What became of records, in frames."""

    admitted: int = 0
    duplicates: int = 0
    quarantined: int = 0

    def __add__(self, other: "Drained") -> "Drained":
        return Drained(
            self.admitted + other.admitted, self.duplicates + other.duplicates, self.quarantined + other.quarantined
        )


class LostRaceError(Exception):
    """Another process moved the position first; nothing of this transaction stays."""


@dataclass(slots=True)
class _Batch:
    """What one transaction will write."""

    admissions: int
    head: str
    duplicates: int = 0
    gaps: dict[str, list[tuple[int, int]]] = field(default_factory=dict)
    """The open gaps of each producer epoch whose gaps changed."""
    frames: list[dict[str, object]] = field(default_factory=list)
    payloads: list[dict[str, object]] = field(default_factory=list)
    quarantined: list[dict[str, object]] = field(default_factory=list)


def positions(ledger: Ledger) -> dict[Partition, Position]:
    """The position of every partition now."""
    query = text(
        "SELECT stream, partition, identity, next_position, admissions, head, lease_epoch FROM stream_position"
    )
    with reading(ledger.engine) as connection:
        rows = [Position(*row) for row in connection.execute(query)]
    return {(position.stream, position.partition): position for position in rows}


def decoded(stored: Stored, stream: str, partition: int) -> Frame | FrameError:
    """The frame in a record, or why it cannot be one; every check that needs no database is made here."""
    try:
        frame = decode(stored.record)
        check_route(frame, stream, partition)
        check_values(frame)
    except FrameError as error:
        return error
    return frame


def take(
    ledger: Ledger, old: Position, records: Sequence[Decoded], *, identity: str, seen: str
) -> tuple[Drained, Position] | None:
    """What became of the records and the position after them; None when another process was faster or holds the lease.

    `seen` labels quarantined records with a time. DiskFull when the disk's reserve would be touched.
    """
    if not ledger.location.sql:
        wanted = sum(len(stored.record.payload) for stored, _ in records)
        refuse_below_reserve(ledger.root, ledger.location.reserve_bytes, wanted)
    next_offset = records[-1][0].offset + 1
    try:
        with writing(ledger.engine) as connection:
            batch = _decide(connection, old, records, seen)
            new = replace(old, identity=identity, next_position=next_offset)
            new = replace(new, admissions=batch.admissions, head=batch.head)
            _advance(connection, old, new, batch.duplicates)
            failpoint("sink.advanced")
            _store(connection, old, batch)
            failpoint("sink.stored")
    except LostRaceError:
        return None
    failpoint("sink.committed")
    return Drained(len(batch.frames), batch.duplicates, len(batch.quarantined)), new


def admit_again(connection: Connection, old: Position, stored: Stored, frame: Frame) -> int | None:
    """The admission number of a frame that a retry took from the quarantine; None when the ledger holds it already.

    FrameError when its chain does not take it, LostRaceError when another process was faster.
    """
    batch = _decide(connection, old, [(stored, frame)], "", strict=True)
    if not batch.frames:
        return None
    new = replace(old, admissions=batch.admissions, head=batch.head)
    _advance(connection, old, new, 0)
    _store(connection, old, batch)
    return batch.admissions


def _decide(
    connection: Connection, old: Position, records: Sequence[Decoded], seen: str, *, strict: bool = False
) -> _Batch:
    chains = _load_chains(connection, old, [frame for _, frame in records if isinstance(frame, Frame)])
    gaps_before = {epoch: list(chain.gaps) for epoch, chain in chains.items()}
    batch = _Batch(old.admissions, old.head)
    for stored, frame in records:
        try:
            if isinstance(frame, FrameError):
                raise frame
            _admit(batch, chains[frame.link.epoch], stored, frame)
        except FrameError as error:
            if strict:
                raise
            batch.quarantined.append(_quarantine_row(old, stored, error, seen))
    batch.gaps = {epoch: chain.gaps for epoch, chain in chains.items() if chain.gaps != gaps_before[epoch]}
    return batch


def _store(connection: Connection, old: Position, batch: _Batch) -> None:
    """Writes what was decided. Only after the position moved: until then another process may decide the same."""
    for epoch, gaps in batch.gaps.items():
        key = {"stream": old.stream, "partition": old.partition, "epoch": epoch}
        connection.execute(_CLOSE_GAPS, key)
        _insert(connection, "gap", [key | {"first_missing": first, "last_missing": last} for first, last in gaps])
    _insert(connection, "frame", batch.frames)
    _insert(connection, "tail", batch.payloads)
    if batch.quarantined:
        alone(connection, "quarantine")  # ids rise in the order of commits, as sealing relies on
        _insert(connection, "quarantine", batch.quarantined)


def _admit(batch: _Batch, chain: Chain, stored: Stored, frame: Frame) -> None:
    link = frame.link
    if not chain.is_new(link.sequence, link.previous, frame.digest):
        batch.duplicates += 1
        return
    chain.admit(link.sequence, link.previous, frame.digest)
    batch.admissions += 1
    batch.head = next_head(batch.head, frame.digest)
    key = {"stream": link.stream, "partition": link.partition, "admission": batch.admissions}
    kind = {"type": frame.declared.name, "version": frame.declared.version}
    batch.payloads.append(key | kind | {"payload": stored.record.payload})
    batch.frames.append(
        key
        | kind
        | {"key": frame.key, "epoch": link.epoch, "sequence": link.sequence, "previous": link.previous}
        | {"digest": frame.digest, "rows": frame.rows, "source_offset": stored.offset}
    )


def _quarantine_row(old: Position, stored: Stored, error: FrameError, seen: str) -> dict[str, object]:
    message = str(error).encode("ascii", "backslashreplace").decode()  # a hostile header may hold half a character
    return {
        "stream": old.stream,
        "partition": old.partition,
        "source_offset": stored.offset,
        "reason": error.reason,
        "message": message.replace("\0", "\\0"),
        "headers": json.dumps(dict(stored.record.headers)),
        "payload": stored.record.payload,
        "seen": seen,
    }


_NEIGHBOURS = text(
    "SELECT sequence, digest, previous FROM frame"
    " WHERE stream = :stream AND partition = :partition AND epoch = :epoch AND sequence IN :wanted"
).bindparams(bindparam("wanted", expanding=True))
_END = text(
    "SELECT coalesce(max(sequence) + 1, 0) FROM frame"
    " WHERE stream = :stream AND partition = :partition AND epoch = :epoch"
)
_GAPS = text(
    "SELECT first_missing, last_missing FROM gap"
    " WHERE stream = :stream AND partition = :partition AND epoch = :epoch ORDER BY first_missing"
)
_CLOSE_GAPS = text("DELETE FROM gap WHERE stream = :stream AND partition = :partition AND epoch = :epoch")


def _load_chains(connection: Connection, old: Position, frames: Iterable[Frame]) -> dict[str, Chain]:
    wanted: dict[str, set[int]] = {}
    for frame in frames:
        sequence = frame.link.sequence
        wanted.setdefault(frame.link.epoch, set()).update((sequence - 1, sequence, sequence + 1))
    chains: dict[str, Chain] = {}
    for epoch, sequences in wanted.items():
        chain = {"stream": old.stream, "partition": old.partition, "epoch": epoch}
        neighbours = connection.execute(_NEIGHBOURS, chain | {"wanted": sorted(sequences)})
        known = {sequence: (digest, previous) for sequence, digest, previous in neighbours}
        gaps = [(first, last) for first, last in connection.execute(_GAPS, chain)]
        chains[epoch] = Chain(known, connection.execute(_END, chain).scalar_one(), gaps)
    return chains


_ADVANCE = text(
    "UPDATE stream_position SET identity = :identity, next_position = :position, admissions = :admissions,"
    " head = :head, duplicates = duplicates + :duplicates WHERE stream = :stream AND partition = :partition"
    " AND next_position = :old_position AND admissions = :old_admissions AND identity = :old_identity"
    " AND lease_epoch = :lease"
)


def _advance(connection: Connection, old: Position, new: Position, duplicates: int) -> None:
    """Moves the position; LostRaceError when it is not at the old place any more."""
    changed = connection.execute(
        _ADVANCE,
        {
            "identity": new.identity,
            "position": new.next_position,
            "admissions": new.admissions,
            "head": new.head,
            "duplicates": duplicates,
            "stream": old.stream,
            "partition": old.partition,
            "old_position": old.next_position,
            "old_admissions": old.admissions,
            "old_identity": old.identity,
            "lease": old.lease_epoch,
        },
    )
    if changed.rowcount != 1:
        raise LostRaceError


def _insert(connection: Connection, name: str, rows: Sequence[dict[str, object]]) -> None:
    if rows:
        connection.execute(insert(table(name, *(column(key) for key in rows[0]))), rows)
