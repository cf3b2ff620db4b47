"""The verification in one reading transaction: frames, chains, timings, files, and a head recorded before."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace

from sqlalchemy import Connection, text

from lapledger.ledger.errors import DiskFull, Fault, LapError
from lapledger.ledger.ordered_threads import in_order
from lapledger.ledger.proof.chains import Heads, WantedHeads, check_chains, is_written_head
from lapledger.ledger.proof.files import BlobCheck, note_orphans
from lapledger.ledger.proof.findings import Findings, Progress
from lapledger.ledger.proof.heads import RecordedHead
from lapledger.ledger.proof.links import Links, check_links
from lapledger.ledger.proof.positions import check_positions
from lapledger.ledger.proof.quarantine_check import QuarantineCheck, retried_frames
from lapledger.ledger.proof.recomputed import Recomputed
from lapledger.ledger.proof.sealed import sealed_calls
from lapledger.ledger.proof.stream_crosscheck import CrosscheckInputs, crosscheck_stream, report_unreadable, witness
from lapledger.ledger.proof.tail import tail_calls
from lapledger.ledger.proof.tamper_report import describe_altered
from lapledger.ledger.proof.timings import TimingCheck
from lapledger.ledger.store.cuts import Cut
from lapledger.ledger.store.heads import ledger_head
from lapledger.ledger.store.open_ledger import Ledger, cut_now
from lapledger.ledger.store.quarantine import QUARANTINE
from lapledger.ledger.store.sql.engine import reading
from lapledger.ledger.streams.base import Partition, Stream


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


def verify(
    ledger: Ledger,
    progress: Progress | None = None,
    *,
    written: RecordedHead | None = None,
    stream: Stream | None = None,
    stream_error: LapError | None = None,
) -> Proof:
    """What a full recomputation of the ledger found; damage is collected in `problems`, never raised.

    Unavailable when a database or store stops answering meanwhile, DiskFull when there is no room: neither proves
    anything.

    With `written`, also whether the ledger still holds what that head proved. With `stream`, the one that the ledger
    reads, also whether tail, positions and unsealed quarantine match it; `stream_error` is why it cannot be opened,
    which is a problem where facts depend on it.
    """
    problems: list[str] = []
    try:
        with reading(ledger.engine) as connection:
            findings = Findings(ledger, connection, progress or (lambda *_: None), _marks(connection), problems)
            proof = _verified(findings, written, stream)
            if stream_error is None:
                return proof
            report_unreadable(findings, stream_error)
            return replace(proof, problems=tuple(findings.problems), notes=tuple(findings.notes))
    except DiskFull:
        raise
    except Fault as fault:
        return Proof(0, 0, 0, 0, "", "", (*problems, str(fault)))


def _verified(findings: Findings, written: RecordedHead | None, stream: Stream | None) -> Proof:
    links = check_links(findings)
    work = _Work(findings, stream)
    with findings.guarded("the list of segments"):
        work.take_all(sealed_calls(findings, links, work.timings.due))
    with findings.guarded("the tail"):
        work.take_all(tail_calls(findings, work.timings.due))
    work.timings.finish()
    heads = check_chains(findings, WantedHeads(_cut_within(findings, written), links.reached))
    with findings.guarded("the quarantine"):
        work.quarantine.finish()
    _check_positions(findings, links, heads, work, stream)
    note_orphans(findings)
    _check_written(findings, heads, links, written)
    return Proof(
        findings.frames,
        findings.events,
        len(links.digests),
        work.blobs.count,
        str(Cut.of({partition: admissions for partition, (admissions, _) in heads.now.items()})),
        ledger_head(heads.now, links.digests),
        tuple(findings.problems),
        tuple(findings.notes),
    )


class _Work:
    """Takes what the threads recomputed, on the one thread that may touch the findings."""

    def __init__(self, findings: Findings, stream: Stream | None) -> None:
        self._findings, self._stream = findings, stream
        self.blobs, self.timings, self.quarantine = (
            BlobCheck(findings),
            TimingCheck(findings),
            QuarantineCheck(findings),
        )

    def take_all(self, calls: Iterable[Callable[[], Recomputed]]) -> None:
        """Runs the checks and takes their results in order."""
        for done in in_order(calls):
            self._take(done)

    def _take(self, done: Recomputed) -> None:
        for problem in done.problems:
            self._findings.problem(problem)
        self._findings.notes += done.notes
        for altered in done.altered:
            before = witness(self._stream, altered.meta)
            self._findings.problem(describe_altered(altered, self.timings.due, before))
        if done.declared is QUARANTINE:
            self.quarantine.take(done.frames)
            return
        for meta in done.frames:
            self._findings.mark(meta)
        self.timings.take(done.runs)
        if done.table is not None:
            self.blobs.take(done.declared, done.table)


def _check_positions(findings: Findings, links: Links, heads: Heads, work: _Work, stream: Stream | None) -> None:
    with findings.guarded("the positions"):
        retried = retried_frames(findings)
        check_positions(findings, heads.now, links, retried)
        if stream is not None:
            sealed = {reached[:2]: reached for _, reached in links.reached}
            crosscheck_stream(findings, CrosscheckInputs(stream, sealed, work.quarantine.last_sealed, retried))


def _marks(connection: Connection) -> dict[Partition, bytearray]:
    rows = connection.execute(text("SELECT stream, partition, count(*) AS n FROM frame GROUP BY stream, partition"))
    return {(row.stream, row.partition): bytearray(row.n + 1) for row in rows}


def _cut_within(findings: Findings, written: RecordedHead | None) -> Cut | None:
    """The cut to recompute heads at; a problem when it is ahead of this ledger."""
    if written is None:
        return None
    now = cut_now(findings.connection)
    if not written.cut <= now:
        findings.problem(
            f"the head that was written down covers {written.cut}, this ledger ends at {now}: it was cut off"
        )
    return written.cut


def _check_written(findings: Findings, heads: Heads, links: Links, written: RecordedHead | None) -> None:
    if written is None or any(written.cut.at(*partition) > reached[0] for partition, reached in heads.now.items()):
        return
    if not is_written_head(heads.then, links.digests, written.head):
        findings.problem(
            f"the head {written.head} is not that of this ledger at {written.cut}: what it proved was changed"
        )
