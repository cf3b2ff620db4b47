"""Compares the ledger with the stream that it reads: each record since the last sealing is accounted for, byte by byte.

What SQL alone cannot prove of the tail and the positions is proven here, as long as the stream is at hand.
"""

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from sqlalchemy import Row, text

from lapledger.ledger.errors import LapError
from lapledger.ledger.frames.frame import FrameError, decode
from lapledger.ledger.proof.findings import Findings
from lapledger.ledger.proof.manifests import Reached
from lapledger.ledger.store.frame_rows import FrameMeta
from lapledger.ledger.streams.base import Stored, Stream

Place = tuple[str, int]

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
class Origins:
    """The stream at hand, how far each partition was sealed, and what the quarantine says.

    `quarantine_sealed` is the last id in a segment, `retried` the places of frames that a retry took from there.
    """

    stream: Stream
    sealed: Mapping[Place, Reached]
    quarantine_sealed: int
    retried: frozenset[tuple[str, int, int]]


def check_origins(found: Findings, origins: Origins) -> None:
    """Problems where the ledger and its stream disagree; notes where the stream cannot be read that far back."""
    rows = found.connection.execute(_POSITIONS).all()
    try:
        ends = origins.stream.ends()
    except LapError as error:
        found.notes.append(f"the ledger was not compared with its stream: {error}")
        return
    for number, row in enumerate(rows, start=1):
        found.progress("stream", number, len(rows))
        try:
            with found.guarded(f"position {row.stream}/{row.partition}"):
                _check(found, origins, row, ends.get((row.stream, row.partition), 0))
        except LapError as error:
            found.notes.append(f"{row.stream}/{row.partition} was not compared with its stream: {error}")


def _check(found: Findings, origins: Origins, row: Row[Any], end: int) -> None:
    if row.identity == "" and row.next_position == 0:
        return
    identity = origins.stream.identity(row.stream)
    if row.identity != identity:
        where = f"position {row.stream}/{row.partition}"
        found.problem(f"{where} says that it read the stream {row.identity!r}, the stream at hand is {identity!r}")
        return
    start = _start(origins, row)
    walk = _Walk(found, origins, row, start)
    for stored in _records(origins.stream, row, start.next_position, min(end, row.next_position)):
        walk.take(stored)
    walk.finish()


def _start(origins: Origins, row: Row[Any]) -> Reached:
    """What was sealed of this very stream: nothing when the ledger was moved to it since."""
    sealed = origins.sealed.get((row.stream, row.partition))
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

    def __init__(self, found: Findings, origins: Origins, row: Row[Any], start: Reached) -> None:
        self._found, self._row, self._sealed = found, row, origins.quarantine_sealed
        self._at = row.stream, row.partition
        self._place: dict[str, object] = {"stream": row.stream, "partition": row.partition}
        self._end, self._duplicates = start.next_position, 0
        after = {"after": start.admissions}
        frames = found.connection.execute(_FRAMES, self._place | after, execution_options={"yield_per": 64})
        self._frames = _Cursor(frame for frame in frames if (*self._at, frame.admission) not in origins.retried)
        known = {"start": start.next_position, "after": row.moved_id}  # what came before is of an earlier stream
        self._quarantined = _Cursor(found.connection.execute(_QUARANTINED, self._place | known).all())

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
            self._found.problem(
                f"{self._row.stream}/{self._row.partition}: the record at {stored.offset} of the stream was read, but"
                " the ledger holds it neither as a frame nor in quarantine"
            )

    def finish(self) -> None:
        """Problems for what came from no record, and for a position that is not behind the last record taken."""
        self._without_record(None)
        row = self._row
        where = f"position {row.stream}/{row.partition}"
        if row.next_position != self._end:
            self._found.problem(f"{where} is {row.next_position}, the records that it took end at {self._end}")
        if row.duplicates < self._duplicates:
            self._found.problem(f"{where} counts {row.duplicates} duplicates, its stream has {self._duplicates} since")

    def _without_record(self, offset: int | None) -> None:
        """Problems for what should have come from before an offset, but no record there; None for all that is left."""
        lost = [self._found.frame_words(*self._at, row.admission) for row in self._frames.before(offset)]
        aside = self._quarantined.before(offset)
        unsealed = [row for row in aside if row.id > self._sealed]
        for what in [*lost, *(f"quarantined record {row.id}" for row in unsealed)]:
            self._found.problem(f"{what} came from a place in the stream where no record lies")

    def _compare(self, stored: Stored, frame: Row[Any]) -> None:
        same = stored.record.headers.get("ce_lapdigest") == frame.digest
        if not same or (frame.payload is not None and frame.payload != stored.record.payload):
            words = self._found.frame_words(*self._at, frame.admission)
            self._found.problem(f"{words} is not what its stream holds at {stored.offset}")

    def _compare_quarantined(self, stored: Stored, row: Row[Any]) -> None:
        if (json.loads(row.headers), row.payload) != (dict(stored.record.headers), stored.record.payload):
            self._found.problem(f"quarantined record {row.id} is not what its stream holds at {stored.offset}")

    def _is_known(self, stored: Stored) -> bool:
        """True when an admitted frame came from this record, or from an earlier one that it repeats."""
        headers = stored.record.headers
        link = {"epoch": headers.get("ce_lapepoch", ""), "digest": headers.get("ce_lapdigest", "")}
        words = headers.get("ce_lapsequence", "")
        sequence = int(words) if words.isascii() and words.isdigit() and len(words) < 16 else -1
        bound = self._place | link | {"sequence": sequence}
        offsets = self._found.connection.execute(_SAME, bound).scalars().all()
        self._duplicates += bool(offsets) and stored.offset not in offsets
        return bool(offsets)


class _Cursor:
    """Rows in order of their source offset, taken one by one."""

    def __init__(self, rows: Iterable[Row[Any]]) -> None:
        self._rows = iter(rows)
        self._next = next(self._rows, None)

    def before(self, offset: int | None) -> Iterator[Row[Any]]:
        """Takes the rows that lie before an offset, all without one."""
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
