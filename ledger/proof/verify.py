"""The whole verification in one reading transaction: frames, chains, timings, files, and a head written down before."""

from collections.abc import Sequence
from dataclasses import dataclass

from sqlalchemy import Connection, text

from ledger.errors import Fault
from ledger.proof.chains import Heads, check_partitions, is_written_head
from ledger.proof.files import BlobCheck, note_orphans
from ledger.proof.findings import Findings, Progress
from ledger.proof.frames import sealed_tables, tail_tables
from ledger.proof.timings import TimingCheck
from ledger.store.cuts import Cut
from ledger.store.engine import reading
from ledger.store.heads import ledger_head
from ledger.store.opened import Ledger
from ledger.store.reader import check_cut


@dataclass(frozen=True, slots=True)
class Written:
    """A head that was written down outside the ledger, with the cut that it was printed beside."""

    cut: Cut
    head: str


@dataclass(frozen=True, slots=True)
class Proof:
    """What was checked, in numbers; `problems` prove damage, `notes` are harmless.

    `head` is the recomputed head and `cut` what it covers, in the text form; both empty when nothing could be read.
    """

    frames: int
    events: int
    segments: int
    blobs: int
    cut: str
    head: str
    problems: tuple[str, ...]
    notes: tuple[str, ...] = ()


def verify(ledger: Ledger, progress: Progress | None = None, *, written: Written | None = None) -> Proof:
    """What a full recomputation of the ledger found; damage is collected in `problems`, never raised.

    With `written`, also whether the ledger still holds what that head proved; UserError when its cut lies beyond.
    """
    problems: list[str] = []
    try:
        with reading(ledger.engine) as connection:
            if written is not None:
                check_cut(connection, written.cut)
            found = Findings(ledger, connection, progress or (lambda *_: None), _marks(connection), problems)
            return _verified(found, written)
    except Fault as fault:
        return Proof(0, 0, 0, 0, "", "", (*problems, str(fault)))


def _verified(found: Findings, written: Written | None) -> Proof:
    blobs, timings = BlobCheck(found), TimingCheck(found)
    for tables in (sealed_tables(found), tail_tables(found)):
        for declared, table in tables:
            blobs.take(declared, table)
            timings.take(declared, table)
    timings.finish()
    heads = check_partitions(found, written.cut if written else None)
    note_orphans(found)
    _note_quarantine(found)
    manifests = found.connection.execute(text("SELECT manifest FROM segment ORDER BY ordinal")).scalars().all()
    _check_written(found, heads, manifests, written)
    return Proof(
        found.frames,
        found.events,
        len(manifests),
        blobs.count,
        str(Cut.of({place: admissions for place, (admissions, _) in heads.now.items()})),
        ledger_head(heads.now, manifests),
        tuple(found.problems),
        tuple(found.notes),
    )


def _marks(connection: Connection) -> dict[tuple[str, int], bytearray]:
    rows = connection.execute(text("SELECT stream, partition, max(admission) AS last FROM frame GROUP BY 1, 2"))
    last = {(row.stream, row.partition): row.last for row in rows}
    places = connection.execute(text("SELECT stream, partition FROM stream_position"))
    return {(stream, partition): bytearray(last.get((stream, partition), 0) + 1) for stream, partition in places}


def _check_written(found: Findings, heads: Heads, manifests: Sequence[str], written: Written | None) -> None:
    if written is not None and not is_written_head(heads.then, list(manifests), written.head):
        found.problem(
            f"the head {written.head} is not that of this ledger at {written.cut}: what it proved was changed"
        )


def _note_quarantine(found: Findings) -> None:
    rows = found.connection.execute(text("SELECT reason, count(*) FROM quarantine GROUP BY reason ORDER BY reason"))
    found.notes += [f"{count} records in quarantine: {reason}" for reason, count in rows]
