"""Checks the positions: how much each partition admitted, and how far its stream was read.

By SQL and the manifests; `ledger.proof.stream_crosscheck` compares with the stream itself.
"""

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any

from sqlalchemy import Row, text

from lapledger.ledger.events import PARTITIONS
from lapledger.ledger.proof.chains import PartitionHeads
from lapledger.ledger.proof.findings import Findings
from lapledger.ledger.proof.links import Links
from lapledger.ledger.proof.manifests import Moved, Reached
from lapledger.ledger.store.sql.statements import LAST_QUARANTINED

_POSITIONS = text(
    "SELECT stream, partition, identity, next_position, admissions, head, duplicates, moves, moved, moved_id"
    " FROM stream_position ORDER BY stream, partition"
)
_READ = text(
    "SELECT f.admission, f.source_offset FROM frame f WHERE f.stream = :stream AND f.partition = :partition"
    " ORDER BY f.admission"
)
_QUARANTINED = text(
    "SELECT source_offset FROM quarantine WHERE stream = :stream AND partition = :partition AND id > :moved_id"
    " ORDER BY source_offset"
)

Retried = frozenset[tuple[str, int, int]]
"""Positions of frames that a retry took from the quarantine: they came from before the next position."""

Step = tuple[str, Reached, Moved]
"""What a manifest (its digest; none: the database now) records of one position and of earlier streams."""


def check_positions(findings: Findings, now: PartitionHeads, links: Links, retried: Retried) -> None:
    """Problems where a position is not that of the frames, or contradicts what the manifests kept of it."""
    rows, last = (
        findings.connection.execute(_POSITIONS).all(),
        findings.connection.execute(LAST_QUARANTINED).scalar_one(),
    )
    partitions = [(name, partition) for name, count in sorted(PARTITIONS.items()) for partition in range(count)]
    if [(row.stream, row.partition) for row in rows] != partitions:
        findings.problem(f"the positions are not one for each of the {len(partitions)} partitions")
    if len({(row.moves, row.moved_id) for row in rows}) > 1 or any(row.moved_id > last for row in rows):
        findings.problem(
            "the positions do not agree on how often the ledger was moved, and on what was quarantined then"
        )
    for row in rows:
        with findings.guarded(f"position {row.stream}/{row.partition}"):
            steps = _steps(links, row)
            for problem in [*_numbers(row, now), *_sealed(steps), *_next(findings, row, steps, retried)]:
                findings.problem(f"position {row.stream}/{row.partition}{problem}")
    for stream in PARTITIONS:
        names = {row.identity for row in rows if row.stream == stream and row.identity}
        if len(names) > 1:
            findings.problem(
                f"the positions of {stream} name {len(names)} streams: {', '.join(sorted(map(str, names)))}"
            )


def _steps(links: Links, row: Row[Any]) -> list[Step]:
    """What each manifest records of a position, in the order of the chain, and last the database now."""
    partition = row.stream, row.partition
    never = Moved(*partition, 0, 0, 0)
    sealed = [
        (name, reached, links.moved.get((name, *partition), never))
        for name, reached in links.reached
        if reached[:2] == partition
    ]
    now = Reached(*partition, row.identity, row.next_position, row.admissions, row.head)
    return [*sealed, ("", now, Moved(*partition, row.moves, row.moved, row.moved_id))]


def _numbers(row: Row[Any], now: PartitionHeads) -> Iterator[str]:
    admissions, head = now.get((row.stream, row.partition), (0, ""))
    if (row.admissions, row.head) != (admissions, head):
        yield f": its head or its count {row.admissions} differs from its {admissions} frames"
    odd = row.moves == 0 and (row.moved or row.moved_id)
    low = min(row.moves, row.moved_id, row.moved, row.admissions - row.moved, row.duplicates, row.next_position)
    if odd or low < 0:
        yield " holds numbers that cannot be"
    if row.identity == "" and row.next_position > 0:
        yield f" is {row.next_position} of a stream without a name"


def _sealed(steps: Sequence[Step]) -> Iterator[str]:
    """A position only grows; its stream, and what came from an earlier one, change only by a move."""
    for (_, before, earlier), (name, after, later) in pairwise(steps):
        where = f": manifest {name}" if name else ""
        if before.admissions > after.admissions:
            yield f"{where} is at admission {after.admissions}, {before.admissions} were sealed before"
        if earlier.moves == later.moves:
            if before.identity and before.identity != after.identity:
                yield f"{where} names the stream {after.identity!r}, it was {before.identity!r} before"
            if earlier != later:
                yield f"{where} records that {later[3:]} came from an earlier stream, it was {earlier[3:]} before"
        elif earlier.moves > later.moves or before.admissions > later.admissions:
            yield f"{where} records that the ledger was moved {later.moves} times at admission {later.admissions}"
        elif before.identity and before.identity == after.identity:
            yield f"{where} records that the ledger was moved, but its stream is {after.identity!r} as before"


def _next(findings: Findings, row: Row[Any], steps: Sequence[Step], retried: Retried) -> Iterator[str]:
    """The next position is after the last record kept; only duplicates, which leave no row, move it further."""
    bound = {"stream": row.stream, "partition": row.partition, "moved_id": row.moved_id}
    sealed = [reached for _, reached, moved in steps[:-1] if moved.moves == row.moves]
    before = sealed[-1] if sealed else None
    last = -1
    for admission, offset in findings.connection.execute(_READ, bound):
        if admission <= row.moved or (row.stream, row.partition, admission) in retried:
            continue
        if offset <= last:
            yield f": admission {admission} came from {offset} of the stream, an earlier one from {last}"
        if before is not None and admission > before.admissions and offset < before.next_position:
            yield f": admission {admission} came from {offset} of the stream, which was sealed up to there before"
        last = max(last, offset)
    quarantined = findings.connection.execute(_QUARANTINED, bound).scalars().all()
    due = max([last + 1, 0 if before is None else before.next_position, *(offset + 1 for offset in quarantined[-1:])])
    if row.next_position < due or not (row.next_position == due or row.duplicates):
        yield f" is {row.next_position}, its records end at {due}"
