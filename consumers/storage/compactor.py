"""Compaction: small segments of one type become one, and the chain gains a link that names what it supersedes.

No frame changes and no cut gives another answer; superseded files stay until `garbage_collector` removes them.
"""

import heapq
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby, pairwise

from sqlalchemy import Connection, text

from lapledger.consumers.storage.segment_reader import declared_of, pieces_of
from lapledger.consumers.storage.segment_writer import Chain, Piece, insert_part, last_link, write_manifest, write_part
from lapledger.ledger.failpoint import failpoint
from lapledger.ledger.proof.manifests import read_manifest
from lapledger.ledger.store.open_ledger import Ledger
from lapledger.ledger.store.reader import segment_rows
from lapledger.ledger.store.segments import Segment
from lapledger.ledger.store.sql.engine import alone, reading, writing
from lapledger.ledger.store.sql.statements import SUPERSEDED

TARGET_BYTES = 128 << 20
"""Size that compacted segments come to at most; one of half that size is left alone.

Larger ones would mix more campaigns in each row group, and a question about one campaign would read them all.
"""

MOST = 16
"""Segments merged at once: a row group of each is in memory."""


@dataclass(frozen=True, slots=True)
class Compacted:
    """What compaction did: segments superseded, new ones, and the bytes of both."""

    superseded: int = 0
    segments: int = 0
    bytes_before: int = 0
    bytes_after: int = 0

    def __add__(self, other: "Compacted") -> "Compacted":
        return Compacted(
            self.superseded + other.superseded,
            self.segments + other.segments,
            self.bytes_before + other.bytes_before,
            self.bytes_after + other.bytes_after,
        )


def compact(ledger: Ledger, now_ms: int, *, target_bytes: int = TARGET_BYTES, at_least: int = 2) -> Compacted:
    """What was merged; `now_ms` begins the grace period of the old files.

    Nothing when no type has `at_least` small segments, or two that come to half the target: who compacts again and
    again asks for more than two, or would write the same rows each time.
    Fault when a segment cannot be read or was altered; nothing changes then.
    """
    total = Compacted()
    while True:
        with reading(ledger.engine) as connection:
            group = _candidates(_live(connection), target_bytes, at_least)
        if not group:
            return total
        total += _merge(ledger, group, now_ms)


def _live(connection: Connection) -> list[Segment]:
    gone = set(connection.execute(SUPERSEDED).scalars())
    return [segment for segment in segment_rows(connection) if segment.ordinal not in gone]


def _candidates(live: Sequence[Segment], target_bytes: int, at_least: int) -> list[Segment]:
    """The oldest small segments of the first type that has enough of them, up to about the target size."""
    small = sorted(
        (segment for segment in live if segment.bytes * 2 < target_bytes),
        key=lambda segment: (segment.type, segment.version, segment.ordinal),
    )
    for _, same in groupby(small, key=lambda segment: (segment.type, segment.version)):
        group: list[Segment] = []
        for segment in same:
            if len(group) == MOST or sum(segment.bytes for segment in group) + segment.bytes > target_bytes:
                break
            group.append(segment)
        enough = len(group) >= at_least or 2 * sum(segment.bytes for segment in group) >= target_bytes
        if len(group) > 1 and enough:
            return group
    return []


def _merge(ledger: Ledger, group: Sequence[Segment], now_ms: int) -> Compacted:
    """What was done; nothing when another process compacted one of the group meanwhile."""
    declared = declared_of(group[0])
    merged = heapq.merge(*(_in_order(ledger, segment) for segment in group), key=lambda piece: piece[0].replay_order)
    part = write_part(ledger, declared, merged)
    failpoint("compact.segment")
    while True:
        chain = _next_link(ledger, group)
        write_manifest(ledger, part, chain)
        ledger.segments.settle(declared.name, declared.version)
        failpoint("compact.manifest")
        with writing(ledger.engine) as connection:
            alone(connection, "seal")
            if not {segment.ordinal for segment in _live(connection)}.issuperset(segment.ordinal for segment in group):
                return Compacted()
            if last_link(connection)[0] == chain.ordinal - 1:
                insert_part(connection, part, chain.ordinal, json.dumps(part.ranges))
                for segment in group:
                    connection.execute(_SUPERSEDE, {"old": segment.ordinal, "new": chain.ordinal, "now": now_ms})
                break
    failpoint("compact.committed")
    return Compacted(len(group), 1, sum(segment.bytes for segment in group), part.bytes)


def _next_link(ledger: Ledger, group: Sequence[Segment]) -> Chain:
    """A place at the end of the chain as it is now; nothing more is sealed than before it."""
    with reading(ledger.engine) as connection:
        ordinal, previous = last_link(connection)
        last = read_manifest(ledger.segments, segment_rows(connection)[-1])
    superseded = tuple(segment.manifest for segment in group)
    positions, moved = [list(position) for position in last.positions], [list(row) for row in last.moved]
    return Chain(ordinal + 1, previous, (ordinal + 1, ordinal + 1), positions, moved, superseded)


_SUPERSEDE = text('INSERT INTO supersession (ordinal, "by", since) VALUES (:old, :new, :now)')


def _in_order(ledger: Ledger, segment: Segment) -> Iterator[Piece]:
    """The frames in replay order; the first releases sealed in the order of admission."""
    metas = read_manifest(ledger.segments, segment).frames
    pieces = pieces_of(ledger, segment)
    if all(before.replay_order <= after.replay_order for before, after in pairwise(metas)):
        return pieces
    return iter(sorted(pieces, key=lambda piece: piece[0].replay_order))
