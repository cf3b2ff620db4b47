"""Checks the positions: what each partition says that it admitted, and how far it says that its stream was read.

By what SQL and the manifests say; `ledger.proof.origins` asks the stream itself.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from sqlalchemy import Row, text

from ledger.events import PARTITIONS
from ledger.proof.chains import Heads
from ledger.proof.findings import Findings
from ledger.proof.links import Links
from ledger.proof.manifests import Reached

_POSITIONS = text(
    "SELECT stream, partition, identity, next_position, admissions, head, duplicates, moved FROM stream_position"
    " ORDER BY stream, partition"
)
_READ = text(
    "SELECT f.admission, f.source_offset FROM frame f WHERE f.stream = :stream AND f.partition = :partition"
    " ORDER BY f.admission"
)
_PUT_ASIDE = text(
    "SELECT source_offset FROM quarantine WHERE stream = :stream AND partition = :partition ORDER BY source_offset"
)

Retried = frozenset[tuple[str, int, int]]
"""Places of frames that a retry took from the quarantine: they came from before the position."""


def check_positions(found: Findings, now: Heads, links: Links, retried: Retried) -> None:
    """Problems where a position is not that of the frames, or contradicts what the manifests kept of it."""
    rows = found.connection.execute(_POSITIONS).all()
    places = [(name, partition) for name, count in sorted(PARTITIONS.items()) for partition in range(count)]
    if [(row.stream, row.partition) for row in rows] != places:
        found.problem(f"the positions are not one for each of the {len(places)} partitions")
    moved = {(stream, partition): admissions for stream, partition, admissions in links.moved}
    anew = any(row.moved for row in rows)
    for row in rows:
        place = row.stream, row.partition
        with found.guarded(f"position {row.stream}/{row.partition}"):
            own = [(name, one) for name, one in links.reached if one[:2] == place]
            sealed = _Sealed(own, moved.get(place, 0), anew)
            for problem in [*_numbers(row, now), *_sealed(row, sealed), *_next(found, row, sealed, retried)]:
                found.problem(f"position {row.stream}/{row.partition}{problem}")
    for stream in PARTITIONS:
        names = {row.identity for row in rows if row.stream == stream and row.identity and not row.moved}
        if len(names) > 1:
            found.problem(f"the positions of {stream} name {len(names)} streams: {', '.join(sorted(map(str, names)))}")


@dataclass(frozen=True, slots=True)
class _Sealed:
    """What each manifest says of one position, in the order of the chain, and what came from an earlier stream.

    `anew`: the ledger was moved to another stream, this partition too, even where nothing had been admitted.
    """

    own: Sequence[tuple[str, Reached]]
    moved: int
    anew: bool

    @property
    def last(self) -> Reached | None:
        return self.own[-1][1] if self.own else None


def _numbers(row: Row[Any], now: Heads) -> Iterator[str]:
    admissions, head = now.get((row.stream, row.partition), (0, ""))
    if (row.admissions, row.head) != (admissions, head):
        yield f": its head or its count {row.admissions} differs from its {admissions} frames"
    if not 0 <= row.moved <= row.admissions or row.duplicates < 0 or row.next_position < 0:
        yield " holds numbers that cannot be"
    if row.identity == "" and row.next_position > 0:
        yield f" is {row.next_position} of a stream without a name"


def _sealed(row: Row[Any], sealed: _Sealed) -> Iterator[str]:
    """What the manifests kept of a position only grows, up to what it is now; a moved ledger begins anew."""
    now = "", Reached(row.stream, row.partition, row.identity, row.next_position, row.admissions, row.head)
    for (_, before), (name, after) in pairwise([*sealed.own, now]):
        where = f": manifest {name}" if name else ""
        if before.admissions > after.admissions:
            yield f"{where} is at admission {after.admissions}, {before.admissions} were sealed before"
        if before.identity and before.identity != after.identity and not sealed.anew:
            yield f"{where} names the stream {after.identity!r}, it was {before.identity!r} before"
    last = sealed.last
    since = last is not None and last.identity != row.identity and row.moved >= last.admissions
    if row.moved != sealed.moved and last is not None and not since:
        yield f" says that {row.moved} admissions came from an earlier stream, the last manifest says {sealed.moved}"


def _next(found: Findings, row: Row[Any], sealed: _Sealed, retried: Retried) -> Iterator[str]:
    """The next position lies behind the last record kept; only duplicates, which leave no row, move it further."""
    bound = {"stream": row.stream, "partition": row.partition}
    before = sealed.last if sealed.last is not None and sealed.last.identity == row.identity else None
    last = -1
    for admission, offset in found.connection.execute(_READ, bound):
        if admission <= row.moved or (row.stream, row.partition, admission) in retried:
            continue
        if offset <= last:
            yield f": admission {admission} came from {offset} of the stream, an earlier one from {last}"
        if before is not None and admission > before.admissions and offset < before.next_position:
            yield f": admission {admission} came from {offset} of the stream, which was sealed up to there before"
        last = max(last, offset)
    put_aside = found.connection.execute(_PUT_ASIDE, bound).scalars().all()
    due = max(last + 1, 0 if before is None else before.next_position)
    if not sealed.anew:
        due = max([due, *(offset + 1 for offset in put_aside[-1:])])
    known = row.next_position == due or (sealed.anew and row.next_position - 1 in put_aside)
    if row.next_position < due or not (known or row.duplicates):
        yield f" is {row.next_position}, its records end at {due}"
