"""The sink: takes frames from a stream into the ledger, each batch and its position in one SQL transaction.

A killed sink loses nothing and admits nothing twice; nothing is dropped: what cannot be admitted is quarantined.
"""

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from sqlalchemy import Connection, bindparam, column, insert, table, text

from ledger.errors import Fault
from ledger.frames import Frame, FrameError, decode
from ledger.store.admission import Chain, check_route
from ledger.store.engine import reading, writing
from ledger.store.heads import next_head
from ledger.store.opened import Ledger
from ledger.store.values import check_values
from ledger.streams.base import Stored, Stream

BATCH_RECORDS = 256
"""Most records taken in one transaction."""


@dataclass(frozen=True, slots=True)
class Drained:
    """What a drain did, in frames."""

    admitted: int = 0
    duplicates: int = 0
    quarantined: int = 0

    def __add__(self, other: "Drained") -> "Drained":
        return Drained(
            self.admitted + other.admitted, self.duplicates + other.duplicates, self.quarantined + other.quarantined
        )


@dataclass(frozen=True, slots=True)
class _Position:
    stream: str
    partition: int
    identity: str
    next_position: int
    admissions: int
    head: str
    lease_epoch: int


@dataclass(slots=True)
class _Batch:
    """What one transaction will write."""

    admissions: int
    head: str
    duplicates: int = 0
    frames: list[dict[str, object]] = field(default_factory=list)
    payloads: list[dict[str, object]] = field(default_factory=list)
    quarantined: list[dict[str, object]] = field(default_factory=list)


class _LostRaceError(Exception):
    """Another sink moved the position first; nothing of this transaction stays."""


def drain(ledger: Ledger, stream: Stream, limit: int | None = None, *, seen: str = "") -> Drained:
    """Counts of frames taken, up to where each partition ended when the drain began; at most `limit` records.

    `seen` labels quarantined records with a time. Fault when the stream was made anew or lost records that were read.
    """
    positions = _positions(ledger)
    ends = stream.ends()  # after the positions: another sink may be moving them beyond ends that were read before
    for place, end in ends.items():
        if place not in positions:
            raise Fault(
                f"the ledger in {ledger.root} knows no partition {place[0]}/{place[1]}; another stream is meant"
            )
        _check_identity(positions[place], stream.identity(place[0]))
        _check_end(positions[place], end)
    total, left = Drained(), limit
    for place, end in sorted(ends.items()):
        while positions[place].next_position < end and (left is None or left > 0):
            position, identity = positions[place], stream.identity(place[0])
            _check_identity(position, identity)
            count = BATCH_RECORDS if left is None else min(left, BATCH_RECORDS)
            records = stream.read(*place, position.next_position, count)
            if not records:
                break
            taken = _take(ledger, position, identity, records, seen)
            total += taken
            left = None if left is None else left - (len(records) if taken != Drained() else 0)
            positions = _positions(ledger)
    return total


def _positions(ledger: Ledger) -> dict[tuple[str, int], _Position]:
    query = text(
        "SELECT stream, partition, identity, next_position, admissions, head, lease_epoch FROM stream_position"
    )
    with reading(ledger.engine) as connection:
        positions = [_Position(*row) for row in connection.execute(query)]
    return {(position.stream, position.partition): position for position in positions}


def _check_end(position: _Position, end: int) -> None:
    if end < position.next_position:
        raise Fault(
            f"the stream {position.stream}/{position.partition} ends at {end}, but the ledger has read up to"
            f" {position.next_position}; nothing was admitted; restore the stream, it lost records"
        )


def _check_identity(position: _Position, identity: str) -> None:
    if position.identity not in ("", identity):
        raise Fault(
            f"the stream {position.stream}/{position.partition} was made anew (identity {identity}, the ledger read"
            f" {position.identity}); nothing was admitted; give the ledger its old stream back or start a new ledger"
        )


def _take(ledger: Ledger, old: _Position, identity: str, records: Sequence[Stored], seen: str) -> Drained:
    """What became of the records; all zero when another sink was faster."""
    decoded = [(stored, _decoded(stored, old)) for stored in records]
    try:
        with writing(ledger.engine) as connection:
            batch = _decide(connection, old, decoded, seen)
            _advance(connection, old, identity, records[-1].offset + 1, batch)
            _insert(connection, "frame", batch.frames)
            _insert(connection, "tail", batch.payloads)
            _insert(connection, "quarantine", batch.quarantined)
    except _LostRaceError:
        return Drained()
    return Drained(len(batch.frames), batch.duplicates, len(batch.quarantined))


def _decoded(stored: Stored, position: _Position) -> Frame | FrameError:
    try:
        frame = decode(stored.record)
        check_route(frame, position.stream, position.partition)
        check_values(frame)
    except FrameError as error:
        return error
    return frame


def _decide(
    connection: Connection, old: _Position, decoded: Iterable[tuple[Stored, Frame | FrameError]], seen: str
) -> _Batch:
    pairs = list(decoded)
    chains = _load_chains(connection, old, [frame for _, frame in pairs if isinstance(frame, Frame)])
    gaps_before = {epoch: list(chain.gaps) for epoch, chain in chains.items()}
    batch = _Batch(old.admissions, old.head)
    for stored, frame in pairs:
        try:
            if isinstance(frame, FrameError):
                raise frame
            _admit(batch, chains[frame.link.epoch], stored, frame)
        except FrameError as error:
            batch.quarantined.append(_quarantine_row(old, stored, error, seen))
    for epoch, chain in chains.items():
        if chain.gaps != gaps_before[epoch]:
            _store_gaps(connection, old, epoch, chain)
    return batch


def _admit(batch: _Batch, chain: Chain, stored: Stored, frame: Frame) -> None:
    link = frame.link
    if not chain.is_new(link.sequence, link.previous, frame.digest):
        batch.duplicates += 1
        return
    chain.admit(link.sequence, link.previous, frame.digest)
    batch.admissions += 1
    batch.head = next_head(batch.head, frame.digest)
    place = {"stream": link.stream, "partition": link.partition, "admission": batch.admissions}
    kind = {"type": frame.declared.name, "version": frame.declared.version}
    batch.payloads.append(place | kind | {"payload": stored.record.payload})
    batch.frames.append(
        place
        | kind
        | {"key": frame.key, "epoch": link.epoch, "sequence": link.sequence, "previous": link.previous}
        | {"digest": frame.digest, "rows": frame.batch.num_rows, "source_offset": stored.offset}
    )


def _quarantine_row(old: _Position, stored: Stored, error: FrameError, seen: str) -> dict[str, object]:
    return {
        "stream": old.stream,
        "partition": old.partition,
        "source_offset": stored.offset,
        "reason": error.reason,
        "message": str(error)
        .encode("ascii", "backslashreplace")
        .decode(),  # a hostile header may hold half a character
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


def _load_chains(connection: Connection, old: _Position, frames: Iterable[Frame]) -> dict[str, Chain]:
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


def _store_gaps(connection: Connection, old: _Position, epoch: str, chain: Chain) -> None:
    place = {"stream": old.stream, "partition": old.partition, "epoch": epoch}
    connection.execute(_CLOSE_GAPS, place)
    _insert(connection, "gap", [place | {"first_missing": a, "last_missing": b} for a, b in chain.gaps])


def _advance(connection: Connection, old: _Position, identity: str, position: int, batch: _Batch) -> None:
    """Moves the position by compare-and-set; whoever changes no row has lost and leaves no trace."""
    changed = connection.execute(
        text(
            "UPDATE stream_position SET identity = :identity, next_position = :position, admissions = :admissions,"
            " head = :head, duplicates = duplicates + :duplicates WHERE stream = :stream AND partition = :partition"
            " AND next_position = :old AND identity = :old_identity AND lease_epoch = :lease"
        ),
        {
            "identity": identity,
            "position": position,
            "admissions": batch.admissions,
            "head": batch.head,
            "duplicates": batch.duplicates,
            "stream": old.stream,
            "partition": old.partition,
            "old": old.next_position,
            "old_identity": old.identity,
            "lease": old.lease_epoch,
        },
    )
    if changed.rowcount != 1:
        raise _LostRaceError


def _insert(connection: Connection, name: str, rows: Sequence[dict[str, object]]) -> None:
    if rows:
        connection.execute(insert(table(name, *(column(key) for key in rows[0]))), rows)
