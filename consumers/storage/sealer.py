"""The sealer: moves the tail into immutable Parquet segments, and copies new quarantine there, extending their chain.

Files first, each durable under its digest; then one SQL transaction makes them count and empties the tail. A crash
leaves the old state or the new one, and at worst unreferenced files.
"""

import json
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import takewhile
from typing import Any

from sqlalchemy import Connection, bindparam, text

from lapledger.consumers.storage.sealed_positions import positions_at
from lapledger.consumers.storage.segment_writer import (
    Chain,
    Part,
    Piece,
    insert_part,
    last_link,
    moved,
    write_manifest,
    write_part,
)
from lapledger.ledger.disk import refuse_below_reserve
from lapledger.ledger.errors import Fault
from lapledger.ledger.events import EventType
from lapledger.ledger.failpoint import failpoint
from lapledger.ledger.frames.frame import FrameError, payload_digest
from lapledger.ledger.store.frame_rows import FRAME_SELECTION, FrameMeta
from lapledger.ledger.store.open_ledger import Ledger
from lapledger.ledger.store.quarantine import NAME, PAGE, QUARANTINE, quarantine_metas, quarantined
from lapledger.ledger.store.reader import declared_type, read_packed
from lapledger.ledger.store.sql.engine import alone, reading, writing

ROUND_FRAMES = 50_000
"""Most frames of one partition that are sealed at once, so that memory stays bounded."""

SEGMENT_BYTES = 512 << 20
"""Payload after which a new segment begins; compressed it is a third to a half of that."""

FETCH_FRAMES = 64
WRITERS = 2

_ROUND = text(
    "SELECT stream, partition, min(admission) - 1 + :frames AS until FROM tail GROUP BY stream, partition"
    " ORDER BY stream, partition"
)
_METAS = text(
    f"SELECT {FRAME_SELECTION}, t.type, t.version, length(t.payload) AS bytes FROM tail t"  # noqa: S608
    " JOIN frame f ON f.stream = t.stream"
    " AND f.partition = t.partition AND f.admission = t.admission"
    " WHERE t.stream = :stream AND t.partition = :partition AND t.admission <= :until"
)
_PAYLOADS = text(
    "SELECT admission, payload FROM tail WHERE stream = :stream AND partition = :partition AND admission IN :wanted"
).bindparams(bindparam("wanted", expanding=True))
_DELETE = text(
    "DELETE FROM tail WHERE type = :type AND version = :version AND stream = :stream AND partition = :partition"
    " AND admission <= :last"
)


@dataclass(frozen=True, slots=True)
class Sealed:
    """What a sealing moved."""

    segments: int = 0
    frames: int = 0
    rows: int = 0
    bytes: int = 0

    def __add__(self, other: "Sealed") -> "Sealed":
        return Sealed(
            self.segments + other.segments,
            self.frames + other.frames,
            self.rows + other.rows,
            self.bytes + other.bytes,
        )


class SealRaceError(Exception):
    """Another process sealed these frames meanwhile."""


@dataclass(frozen=True, slots=True)
class _Plan:
    """What one round seals: the end of the chain, the positions after it, frames of each new segment, their bytes."""

    ordinal: int
    previous: str
    positions: list[list[Any]]
    moved: list[list[Any]]
    parts: list[tuple[EventType, list[FrameMeta]]]
    bytes: int


def seal(ledger: Ledger) -> Sealed:
    """What was moved from the tail into segments, by this process; nothing is left in the tail of when it began.

    Fault when the disk is full or a frame of the tail was altered; the tail then stays as it was.
    """
    total = Sealed()
    while True:
        with reading(ledger.engine) as connection:
            plan = _plan(ledger, connection)
        if not plan.parts:
            return total
        total += _seal_round(ledger, plan)


def _seal_round(ledger: Ledger, plan: _Plan) -> Sealed:
    """What one round moved; nothing when another process was faster."""
    if not ledger.location.store:
        refuse_below_reserve(ledger.root, ledger.location.reserve_bytes, plan.bytes)
    try:
        with ThreadPoolExecutor(WRITERS, "lap-seal") as pool:
            parts = list(pool.map(lambda part: write_part(ledger, part[0], _pieces(ledger, *part)), plan.parts))
    except SealRaceError:
        return Sealed()
    failpoint("seal.segment")
    link = plan.previous
    together = plan.ordinal + 1, plan.ordinal + len(parts)
    for number, part in enumerate(parts, start=1):
        write_manifest(ledger, part, Chain(plan.ordinal + number, link, together, plan.positions, plan.moved))
        link = part.manifest
    for part in parts:
        ledger.segments.settle(part.declared.name, part.declared.version)
    failpoint("seal.settled")
    if not _commit(ledger, parts, plan.ordinal):
        return Sealed()
    failpoint("seal.committed")
    return Sealed(
        len(parts),
        sum(len(part.frames) for part in parts if part.declared is not QUARANTINE),
        sum(part.rows for part in parts if part.declared is not QUARANTINE),
        sum(part.bytes for part in parts),
    )


def _plan(ledger: Ledger, connection: Connection) -> _Plan:
    until = {(row.stream, row.partition): row.until for row in connection.execute(_ROUND, {"frames": ROUND_FRAMES})}
    kinds: dict[tuple[str, int], list[tuple[FrameMeta, int]]] = {}
    for (stream, partition), last in until.items():
        rows = connection.execute(_METAS, {"stream": stream, "partition": partition, "until": last})
        for *meta, name, version, size in rows:
            kinds.setdefault((name, version), []).append((FrameMeta(*meta), size))
    parts = [(declared_type(*kind), metas) for kind, sized in sorted(kinds.items()) for metas in _chunks(sized)]
    positions, earlier = positions_at(ledger, connection, until), moved(connection)
    fresh = _fresh_quarantine(connection, positions, earlier)
    if fresh:
        parts.append((QUARANTINE, fresh))
    ordinal, previous = last_link(connection)
    size = sum(length for sized in kinds.values() for _, length in sized)
    return _Plan(ordinal, previous, positions, earlier, parts, size)


def _chunks(frames: list[tuple[FrameMeta, int]]) -> Iterator[list[FrameMeta]]:
    """The frames in replay order, a list for each segment."""
    held: list[FrameMeta] = []
    size = 0
    for meta, bytes_ in sorted(frames, key=lambda pair: pair[0].replay_order):
        held.append(meta)
        size += bytes_
        if size >= SEGMENT_BYTES:
            yield held
            held, size = [], 0
    if held:
        yield held


_QUARANTINED = text("SELECT id, stream, partition, source_offset FROM quarantine WHERE id > :last ORDER BY id")


def _fresh_quarantine(
    connection: Connection, positions: Sequence[Sequence[Any]], earlier: Sequence[Sequence[Any]]
) -> list[FrameMeta]:
    """Quarantined records that no segment holds yet, up to the first that the sealed positions do not lie behind.

    A rebuild reads the stream on from there, and would put the same record aside a second time.
    """
    behind = {(stream, partition): next_position for stream, partition, _, next_position, *_ in positions}
    came_before = {(stream, partition): last for stream, partition, _, _, last in earlier}
    last = connection.execute(
        text("SELECT coalesce(max(last), 0) FROM segment_range WHERE type = :name"), {"name": NAME}
    ).scalar_one()

    def is_covered(row: Any) -> bool:
        partition = row.stream, row.partition
        return bool(row.source_offset < behind[partition] or row.id <= came_before.get(partition, 0))

    covered = [row.id for row in takewhile(is_covered, connection.execute(_QUARANTINED, {"last": last}))]
    return quarantine_metas(connection, after=last)[: len(covered)]


def _pieces(ledger: Ledger, declared: EventType, metas: Sequence[FrameMeta]) -> Iterator[Piece]:
    """The frames with their rows, some at a time; Fault when one was altered since it was admitted."""
    if declared is QUARANTINE:
        yield from _quarantine_pieces(ledger, metas)
        return
    for start in range(0, len(metas), FETCH_FRAMES):
        some = metas[start : start + FETCH_FRAMES]
        payloads = _payloads(ledger, some)
        for meta in some:
            payload = payloads[meta.stream, meta.partition, meta.admission]
            if not _is_as_admitted(declared, meta, payload):
                raise Fault(f"{meta.location} was altered in the tail and is not sealed; run `lap verify`")
            yield meta, read_packed(payload, meta.location)


def _is_as_admitted(declared: EventType, meta: FrameMeta, payload: bytes) -> bool:
    """True when a payload of the tail still gives the digest of its frame."""
    try:
        return payload_digest(declared, meta.key, meta.link, payload) == meta.digest
    except FrameError:
        return False


def _quarantine_pieces(ledger: Ledger, metas: Sequence[FrameMeta]) -> Iterator[Piece]:
    for start in range(0, len(metas), PAGE):
        some = metas[start : start + PAGE]
        with reading(ledger.engine) as connection:
            records = quarantined(connection, after=some[0].admission - 1, limit=len(some))
        yield from ((record.meta, record.batch) for record in records)


def _payloads(ledger: Ledger, metas: Sequence[FrameMeta]) -> dict[tuple[str, int, int], bytes]:
    payloads: dict[tuple[str, int, int], bytes] = {}
    with reading(ledger.engine) as connection:
        for stream, partition in sorted({(meta.stream, meta.partition) for meta in metas}):
            wanted = [meta.admission for meta in metas if (meta.stream, meta.partition) == (stream, partition)]
            bound = {"stream": stream, "partition": partition, "wanted": wanted}
            payloads |= {(stream, partition, a): payload for a, payload in connection.execute(_PAYLOADS, bound)}
    if len(payloads) != len(metas):
        raise SealRaceError
    return payloads


def _commit(ledger: Ledger, parts: Sequence[Part], ordinal: int) -> bool:
    """True when the segments count now; False when another process sealed since they were read."""
    with writing(ledger.engine) as connection:
        alone(connection, "seal")
        if last_link(connection)[0] != ordinal:
            return False
        for number, part in enumerate(parts, start=1):
            insert_part(connection, part, ordinal + number, json.dumps(part.ranges))
        for part in parts:
            kind = {"type": part.declared.name, "version": part.declared.version}
            for stream, partition, _, last in part.ranges if part.declared is not QUARANTINE else ():
                connection.execute(_DELETE, kind | {"stream": stream, "partition": partition, "last": last})
        failpoint("seal.deleted")
    return True
