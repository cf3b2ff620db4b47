"""Follows the chains: the running head of each partition, the producers' chains with their gaps, and the positions."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import groupby

from sqlalchemy import Row, text

from ledger.frames import genesis
from ledger.proof.findings import Findings, place
from ledger.store.cuts import Cut
from ledger.store.heads import first_head, ledger_head, next_head

_POSITIONS = text(
    "SELECT stream, partition, next_position, admissions, head, duplicates FROM stream_position"
    " ORDER BY stream, partition"
)
_ADMITTED = text(
    "SELECT admission, digest, source_offset FROM frame WHERE stream = :stream AND partition = :partition"
    " ORDER BY admission"
)
_CHAINS = text(
    "SELECT epoch, sequence, previous, digest, admission FROM frame"
    " WHERE stream = :stream AND partition = :partition ORDER BY epoch, sequence"
)
_GAPS = text(
    "SELECT epoch, first_missing, last_missing FROM gap WHERE stream = :stream AND partition = :partition"
    " ORDER BY epoch, first_missing"
)
_TAKEN = text(
    "SELECT coalesce(max(source_offset) + 1, 0) FROM quarantine WHERE stream = :stream AND partition = :partition"
)


@dataclass(slots=True)
class Heads:
    """Recomputed heads by partition: (admissions, head), at the end and at the cut of a written head."""

    now: dict[tuple[str, int], tuple[int, str]] = field(default_factory=dict)
    then: dict[tuple[str, int], tuple[int, str]] = field(default_factory=dict)


def check_partitions(found: Findings, cut: Cut | None) -> Heads:
    """The recomputed heads, also at `cut` where one is given; problems where a chain or position does not hold."""
    heads = Heads()
    positions = found.connection.execute(_POSITIONS).all()
    for number, position in enumerate(positions, start=1):
        found.progress("chains", number, len(positions))
        _check_heads(found, position, heads, cut)
        _check_chains(found, position)
    return heads


def is_written_head(heads: Mapping[tuple[str, int], tuple[int, str]], manifests: list[str], head: str) -> bool:
    """True when a head of old is proven by these partition heads and some length of the chain of manifests."""
    return any(ledger_head(heads, manifests[:length]) == head for length in range(len(manifests) + 1))


def _check_heads(found: Findings, position: Row[tuple[object, ...]], heads: Heads, cut: Cut | None) -> None:
    stream, partition = position.stream, position.partition
    until = -1 if cut is None else cut.at(stream, partition)
    head, admission, taken = first_head(found.ledger.identity, stream, partition), 0, 0
    if until == 0:
        heads.then[stream, partition] = (0, head)
    for due, row in enumerate(found.connection.execute(_ADMITTED, _bound(position)), start=1):
        admission, taken = row.admission, max(taken, row.source_offset + 1)
        if admission != due:
            found.problem(f"{stream}/{partition}: admission {due} is missing from the SQL database")
            break
        head = next_head(head, row.digest)
        if due == until:
            heads.then[stream, partition] = (due, head)
    heads.now[stream, partition] = (admission, head)
    _check_marks(found, stream, partition)
    if (admission, head) != (position.admissions, position.head):
        found.problem(f"position {stream}/{partition}: its head or count differs from its {admission} frames")
    _check_next(found, position, taken)


def _check_marks(found: Findings, stream: str, partition: int) -> None:
    """Each frame was recomputed exactly once; the first that was not stands for all of its partition."""
    marks = found.seen[stream, partition]
    for mark, where in ((0, "lies in no segment and not in the tail"), (2, "lies in more than one place")):
        first = marks.find(mark, 1)
        if first > 0:
            others = marks.count(mark, first + 1)
            more = f", and so with {others} more of its partition" if others else ""
            found.problem(f"{place(stream, partition, first)} {where}{more}")


def _check_next(found: Findings, position: Row[tuple[object, ...]], taken: int) -> None:
    """The next position lies just behind the last record kept; only duplicates, which leave no row, move it further."""
    due = max(taken, int(found.connection.execute(_TAKEN, _bound(position)).scalar_one()))
    if position.next_position < due or (position.next_position > due and position.duplicates == 0):
        found.problem(
            f"position {position.stream}/{position.partition} is {position.next_position}, its records end at {due}"
        )


def _check_chains(found: Findings, position: Row[tuple[object, ...]]) -> None:
    stream, partition = position.stream, position.partition
    missing: list[tuple[str, int, int]] = []
    rows = found.connection.execute(_CHAINS, _bound(position))
    for epoch, chain in groupby(rows, key=lambda row: row.epoch):
        missing += [(epoch, first, last) for first, last in _follow(found, stream, partition, chain)]
    recorded = [tuple(row) for row in found.connection.execute(_GAPS, _bound(position))]
    if recorded != missing:
        found.problem(f"{stream}/{partition}: the open gaps recorded are {recorded}, the chains have {missing}"[:400])
    for epoch, first, last in missing:
        found.notes.append(f"{stream}/{partition}: producer {epoch} has an open gap, sequences {first} to {last}")


def _follow(
    found: Findings, stream: str, partition: int, chain: Iterator[Row[tuple[object, ...]]]
) -> list[tuple[int, int]]:
    """The gaps in one producer's chain; a problem for each frame that does not link to the one before it."""
    gaps: list[tuple[int, int]] = []
    due, previous = 0, ""
    for row in chain:
        if row.sequence == 0:
            previous = genesis(row.epoch, stream, partition)
        if row.sequence > due:
            gaps.append((due, row.sequence - 1))
        elif row.previous != previous:
            where = place(stream, partition, row.admission)
            found.problem(f"{where} does not link to sequence {row.sequence - 1} of its producer")
        due, previous = row.sequence + 1, row.digest
    return gaps


def _bound(position: Row[tuple[object, ...]]) -> dict[str, object]:
    return {"stream": position.stream, "partition": position.partition}
