"""Compares the ledger with the stream that it reads: each record since the last sealing is accounted for, byte by byte.

What SQL alone cannot prove of the tail and the positions is proven here, as long as the stream is at hand.
"""

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from sqlalchemy import Row, text

from lapledger.ledger.errors import Damage, LapError, Unavailable
from lapledger.ledger.frames.frame import FrameError, altered_headers, decode
from lapledger.ledger.proof.findings import Findings
from lapledger.ledger.proof.manifests import Reached
from lapledger.ledger.store.frame_rows import FrameMeta
from lapledger.ledger.streams.base import Partition, Stored, Stream, describe_unread

_POSITIONS = text(
    "SELECT stream, partition, identity, next_position, duplicates, moves, moved, moved_id FROM stream_position"
    " ORDER BY stream, partition"
)
_FRAMES = text(
    "SELECT f.admission, f.source_offset, f.digest, t.payload FROM frame f LEFT JOIN tail t ON t.stream = f.stream"
    " AND t.partition = f.partition AND t.admission = f.admission WHERE f.stream = :stream"
    " AND f.partition = :partition AND f.admission > :after ORDER BY f.admission"
)
_QUARANTINED = text(
    "SELECT id, source_offset, headers, payload FROM quarantine WHERE stream = :stream AND partition = :partition"
    " AND source_offset >= :start AND id > :after ORDER BY source_offset"
)
_SAME = text(
    "SELECT source_offset FROM frame WHERE stream = :stream AND partition = :partition AND epoch = :epoch"
    " AND sequence = :sequence AND digest = :digest"
)
_AT_ONCE = 256


@dataclass(frozen=True, slots=True)
class CrosscheckInputs:
    """The stream at hand, how far each partition was sealed, and the state of the quarantine.

    `quarantine_sealed` is the last id in a segment, `retried` the positions of frames that a retry took from there.
    """

    stream: Stream
    sealed: Mapping[Partition, Reached]
    quarantine_sealed: int
    retried: frozenset[tuple[str, int, int]]


def crosscheck_stream(findings: Findings, inputs: CrosscheckInputs) -> None:
    """Problems where the ledger and its stream disagree; notes where the stream cannot be read that far back."""
    rows = findings.connection.execute(_POSITIONS).all()
    try:
        ends = inputs.stream.ends()
        findings.notes.extend(describe_unread(inputs.stream))
    except Unavailable as error:
        findings.notes.append(f"the ledger was not compared with its stream: {error}")
        return
    except LapError as error:
        report_unreadable(findings, error)
        return
    for number, row in enumerate(rows, start=1):
        findings.progress("stream", number, len(rows))
        try:
            with findings.guarded(f"position {row.stream}/{row.partition}"):
                _check(findings, inputs, row, ends.get((row.stream, row.partition), 0))
        except Unavailable as error:
            findings.notes.append(f"{row.stream}/{row.partition} was not compared with its stream: {error}")
        except LapError as error:
            report_unreadable(findings, error)


def report_unreadable(findings: Findings, error: LapError) -> None:
    """A problem where unsealed facts rest on a damaged stream; else a note, as for a copy without its stream."""
    unsealed = findings.connection.execute(text("SELECT count(*) FROM tail")).scalar_one()
    message = f"the ledger was not compared with its stream: {error}"
    if unsealed and isinstance(error, Damage):
        findings.problem(f"{message}; {unsealed} frames that are not sealed depend on it")
    else:
        findings.notes.append(message)


def _check(findings: Findings, inputs: CrosscheckInputs, row: Row[Any], end: int) -> None:
    if row.identity == "" and row.next_position == 0:
        return
    identity = inputs.stream.identity(row.stream)
    if row.identity != identity:
        where = f"position {row.stream}/{row.partition}"
        findings.problem(f"{where} names the stream {row.identity!r}, the stream at hand is {identity!r}")
        return
    start = _start(inputs, row)
    walk = _Walk(findings, inputs, row, start)
    for stored in _records(inputs.stream, row, start.next_position, min(end, row.next_position)):
        walk.take(stored)
    walk.finish()


def _start(inputs: CrosscheckInputs, row: Row[Any]) -> Reached:
    """What was sealed of this very stream: nothing when the ledger was moved to it since."""
    sealed = inputs.sealed.get((row.stream, row.partition))
    if sealed is None or sealed.identity not in ("", row.identity):
        return Reached(row.stream, row.partition, row.identity, 0, row.moved, "")
    return sealed


def _records(stream: Stream, row: Row[Any], position: int, end: int) -> Iterator[Stored]:
    while position < end:
        some = stream.read(row.stream, row.partition, position, _AT_ONCE)
        yield from (stored for stored in some if stored.offset < end)
        position = some[-1].offset + 1 if some else end


class _Walk:
    """One partition's records since the last sealing, each to be found in the ledger once."""

    def __init__(self, findings: Findings, inputs: CrosscheckInputs, row: Row[Any], start: Reached) -> None:
        self._findings, self._row, self._sealed = findings, row, inputs.quarantine_sealed
        self._at = row.stream, row.partition
        self._bound: dict[str, object] = {"stream": row.stream, "partition": row.partition}
        self._end, self._duplicates = start.next_position, 0
        after = {"after": start.admissions}
        frames = findings.connection.execute(_FRAMES, self._bound | after, execution_options={"yield_per": 64})
        self._frames = _Cursor(frame for frame in frames if (*self._at, frame.admission) not in inputs.retried)
        known = {"start": start.next_position, "after": row.moved_id}  # what came before is of an earlier stream
        self._quarantined = _Cursor(findings.connection.execute(_QUARANTINED, self._bound | known).all())

    def take(self, stored: Stored) -> None:
        """Accounts for one record."""
        self._end = stored.offset + 1
        self._without_record(stored.offset)
        frame, quarantined = self._frames.at(stored.offset), self._quarantined.at(stored.offset)
        if frame is not None:
            self._compare(stored, frame)
        elif quarantined is not None:
            self._compare_quarantined(stored, quarantined)
        elif not self._is_known(stored):
            self._findings.problem(
                f"{self._row.stream}/{self._row.partition}: the record at {stored.offset} of the stream was read, but"
                " the ledger holds it neither as a frame nor in quarantine"
            )

    def finish(self) -> None:
        """Problems for what came from no record, and for a position that is not behind the last record taken."""
        self._without_record(None)
        row = self._row
        where = f"position {row.stream}/{row.partition}"
        if row.next_position != self._end:
            self._findings.problem(f"{where} is {row.next_position}, the records that it took end at {self._end}")
        if row.duplicates < self._duplicates:
            self._findings.problem(
                f"{where} counts {row.duplicates} duplicates, its stream has {self._duplicates} since"
            )

    def _without_record(self, offset: int | None) -> None:
        """Problems for what should have come from before an offset, but no record there; None for all that is left."""
        lost = [self._findings.describe_frame(*self._at, row.admission) for row in self._frames.before(offset)]
        quarantined = self._quarantined.before(offset)
        unsealed = [row for row in quarantined if row.id > self._sealed]
        for what in [*lost, *(f"quarantined record {row.id}" for row in unsealed)]:
            self._findings.problem(f"{what} came from an offset of the stream that holds no record")

    def _compare(self, stored: Stored, frame: Row[Any]) -> None:
        """A problem unless the record is the frame, header by header: from it the ledger must be rebuilt some day."""
        frame_text = self._findings.describe_frame(*self._at, frame.admission)
        try:
            held = decode(stored.record)
        except FrameError as error:
            self._findings.problem(f"{frame_text}: the record at {stored.offset} of its stream was altered ({error})")
            return
        if held.digest != frame.digest or frame.payload not in (None, stored.record.payload):
            self._findings.problem(f"{frame_text} is not what its stream holds at {stored.offset}")
        elif altered := altered_headers(stored.record, held):
            names = ", ".join(altered)
            self._findings.problem(
                f"{frame_text}: its stream holds it at {stored.offset} with altered headers: {names}"
            )

    def _compare_quarantined(self, stored: Stored, row: Row[Any]) -> None:
        if (json.loads(row.headers), row.payload) != (dict(stored.record.headers), stored.record.payload):
            self._findings.problem(f"quarantined record {row.id} is not what its stream holds at {stored.offset}")

    def _is_known(self, stored: Stored) -> bool:
        """True when an admitted frame came from this record, or from an earlier one that it repeats."""
        headers = stored.record.headers
        link = {"epoch": headers.get("ce_lapepoch", ""), "digest": headers.get("ce_lapdigest", "")}
        text = headers.get("ce_lapsequence", "")
        sequence = int(text) if text.isascii() and text.isdigit() and len(text) < 16 else -1
        bound = self._bound | link | {"sequence": sequence}
        offsets = self._findings.connection.execute(_SAME, bound).scalars().all()
        self._duplicates += bool(offsets) and stored.offset not in offsets
        return bool(offsets)


class _Cursor:
    """Rows in order of their source offset, taken one by one."""

    def __init__(self, rows: Iterable[Row[Any]]) -> None:
        self._rows = iter(rows)
        self._next = next(self._rows, None)

    def before(self, offset: int | None) -> Iterator[Row[Any]]:
        """Take the rows before an offset; all of them without one."""
        while self._next is not None and (offset is None or self._next.source_offset < offset):
            yield self._next
            self._next = next(self._rows, None)

    def at(self, offset: int) -> Row[Any] | None:
        """Takes the row at an offset, if it is the next."""
        if self._next is None or self._next.source_offset != offset:
            return None
        taken, self._next = self._next, next(self._rows, None)
        return taken


def witness(stream: Stream | None, meta: FrameMeta) -> pa.RecordBatch | None:
    """The rows of a frame as its stream still holds them; None where it holds them no more."""
    if stream is None:
        return None
    try:
        for stored in stream.read(meta.stream, meta.partition, meta.source_offset, 1):
            frame = decode(stored.record)
            return frame.batch if frame.digest == meta.digest else None
    except (LapError, FrameError):
        return None
    return None
