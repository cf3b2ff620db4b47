"""Follows the chains: the running head of each partition, and the producers' chains with their gaps."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from typing import Any

from sqlalchemy import Row, text

from lapledger.ledger.events import PARTITIONS, REQUESTS
from lapledger.ledger.frames.frame import genesis
from lapledger.ledger.proof.findings import Findings, frame_location
from lapledger.ledger.proof.manifests import Reached
from lapledger.ledger.store.cuts import Cut
from lapledger.ledger.store.heads import first_head, ledger_head, next_head
from lapledger.ledger.store.sql.statements import FRAME_DIGESTS
from lapledger.ledger.streams.base import Partition

PartitionHeads = dict[Partition, tuple[int, str]]
"""Admissions and head of each partition."""

_CHAINS = text(
    "SELECT epoch, sequence, previous, digest, admission FROM frame"
    " WHERE stream = :stream AND partition = :partition ORDER BY epoch, sequence"
)
_GAPS = text(
    "SELECT epoch, first_missing, last_missing FROM gap WHERE stream = :stream AND partition = :partition"
    " ORDER BY epoch, first_missing"
)
_STORED_PARTITIONS = text(
    "SELECT stream, partition FROM frame UNION SELECT stream, partition FROM tail UNION"
    " SELECT stream, partition FROM gap UNION SELECT stream, partition FROM quarantine"
)


@dataclass(frozen=True, slots=True)
class WantedHeads:
    """At which admissions the heads are wanted: those of a cut, where one is given, and those that manifests name."""

    cut: Cut | None
    reached: Sequence[tuple[str, Reached]]


@dataclass(slots=True)
class Heads:
    """Recomputed heads: of now, and of the requested cut."""

    now: PartitionHeads = field(default_factory=dict)
    then: PartitionHeads = field(default_factory=dict)


def check_chains(findings: Findings, wanted_heads: WantedHeads) -> Heads:
    """The recomputed heads of every partition; problems where frames are missing or a chain does not hold."""
    heads = Heads()
    partitions = [(name, partition) for name, count in sorted(PARTITIONS.items()) for partition in range(count)]
    for number, (stream, partition) in enumerate(partitions, start=1):
        findings.progress("chains", number, len(partitions))
        with findings.guarded(f"the frames of {stream}/{partition}"):
            _check_heads(findings, (stream, partition), wanted_heads, heads)
            _check_marks(findings, stream, partition)
            _check_gaps(findings, stream, partition)
    for row in findings.connection.execute(_STORED_PARTITIONS):
        if tuple(row) not in partitions:
            findings.problem(f"{row.stream}/{row.partition} is not a partition, yet the database has rows for it")
    return heads


def is_written_head(then: PartitionHeads, manifests: Sequence[str], head: str) -> bool:
    """True when a head of old is proven by these partition heads and some length of the chain of manifests.

    Heads that were recorded while requests had one partition covered no other lane; then those were empty.
    """
    few = {partition: reached for partition, reached in then.items() if partition[0] != REQUESTS or partition[1] == 0}
    shapes = [then] if any(then[partition][0] for partition in then.keys() - few.keys()) else [then, few]
    return any(ledger_head(shape, manifests[:n]) == head for shape in shapes for n in range(len(manifests) + 1))


def _check_heads(findings: Findings, at: Partition, wanted_heads: WantedHeads, heads: Heads) -> None:
    due = {(sealed.admissions, sealed.head): name for name, sealed in wanted_heads.reached if sealed[:2] == at}
    wanted: dict[int, list[str]] = {}
    for admissions, head in due:
        wanted.setdefault(admissions, []).append(head)
    until = -1 if wanted_heads.cut is None else wanted_heads.cut.at(*at)
    reached = 0
    for reached, head in _running(findings, at):
        for head_named in wanted.pop(reached, ()):
            if head_named != head:
                name = due[reached, head_named]
                findings.problem(f"manifest {name} names another head of {at[0]}/{at[1]} after admission {reached}")
        if reached == until:
            heads.then[at] = (reached, head)
        heads.now[at] = (reached, head)
    for admissions, lost in wanted.items():
        findings.problem(
            f"{at[0]}/{at[1]} ends at admission {reached}, but manifest {due[admissions, lost[0]]} covers {admissions}:"
            " frames were cut off"
        )


def _running(findings: Findings, at: Partition) -> Iterator[tuple[int, str]]:
    """(admission, head) from 0 to the last frame, or to the first that is missing."""
    head = first_head(findings.ledger.identity, *at)
    yield 0, head
    for due, row in enumerate(findings.connection.execute(FRAME_DIGESTS, _bound(at)), start=1):
        if row.admission != due:
            findings.problem(f"{frame_location(*at, due)} is missing from the SQL database, {row.admission} follows")
            return
        head = next_head(head, row.digest)
        yield due, head


def _check_marks(findings: Findings, stream: str, partition: int) -> None:
    """Each frame was recomputed exactly once; the first that was not stands for all of its partition."""
    marks = findings.seen.get((stream, partition), bytearray(1))
    for mark, where in ((0, "is in no readable segment and not in the tail"), (2, "is stored twice")):
        first = marks.find(mark, 1)
        if first > 0:
            rest = marks.count(mark, first + 1)
            more = f", and so with {rest} more of its partition" if rest else ""
            findings.problem(f"{findings.describe_frame(stream, partition, first)} {where}{more}")


def _check_gaps(findings: Findings, stream: str, partition: int) -> None:
    missing: list[tuple[str, int, int]] = []
    rows = findings.connection.execute(_CHAINS, _bound((stream, partition)))
    for epoch, chain in groupby(rows, key=lambda row: row.epoch):
        missing += [(epoch, first, last) for first, last in _follow(findings, stream, partition, chain)]
    recorded = [tuple(row) for row in findings.connection.execute(_GAPS, _bound((stream, partition)))]
    if recorded != missing:
        findings.problem(
            f"{stream}/{partition}: the open gaps recorded are {recorded}, the chains have {missing}"[:400]
        )
    for epoch, first, last in missing:
        findings.notes.append(f"{stream}/{partition}: producer {epoch} has an open gap, sequences {first} to {last}")


def _follow(findings: Findings, stream: str, partition: int, chain: Iterator[Row[Any]]) -> list[tuple[int, int]]:
    """The gaps in one producer's chain; a problem for each frame that does not link to the one before it."""
    gaps: list[tuple[int, int]] = []
    due, previous = 0, ""
    for row in chain:
        if row.sequence == 0:
            previous = genesis(row.epoch, stream, partition)
        if row.sequence > due:
            gaps.append((due, row.sequence - 1))
        elif row.previous != previous:
            where = findings.describe_frame(stream, partition, row.admission)
            findings.problem(f"{where} does not link to sequence {row.sequence - 1} of its producer {row.epoch}")
        due, previous = row.sequence + 1, row.digest
    return gaps


def _bound(at: Partition) -> Mapping[str, object]:
    return {"stream": at[0], "partition": at[1]}
