"""Recomputes every frame's digest: from the rows of sealed segments and from the payloads of the tail."""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
from sqlalchemy import text

from ledger.errors import Fault
from ledger.events import EVENTS, EventType
from ledger.frames import Link, frame_digest
from ledger.proof.findings import Findings, place
from ledger.store.heads import NO_MANIFEST
from ledger.store.reader import read_payload, segment_rows
from ledger.store.segments import FRAME_COLUMNS, PLACE, Segment, file_digest, placed, placed_schema

_FRAMES = text(
    "SELECT stream, partition, admission, key, epoch, sequence, previous, digest, rows, source_offset FROM frame"
    " WHERE type = :type AND version = :version AND stream = :stream AND partition = :partition"
    " AND admission BETWEEN :first AND :last ORDER BY admission"
)
_TAIL = text(
    "SELECT f.stream, f.partition, f.admission, f.key, f.epoch, f.sequence, f.previous, f.digest, f.rows,"
    " f.source_offset, f.type, f.version, t.type AS tail_type, t.version AS tail_version, t.payload"
    " FROM tail t JOIN frame f ON f.stream = t.stream AND f.partition = t.partition"
    " AND f.admission = t.admission ORDER BY t.stream, t.partition, t.admission"
)
_UNREADABLE = (pa.ArrowException, OSError, ValueError, KeyError, TypeError)


@dataclass(frozen=True, slots=True)
class FrameMeta:
    """A frame as a manifest or the table `frame` describes it, in the order of `FRAME_COLUMNS`."""

    stream: str
    partition: int
    admission: int
    key: str
    epoch: str
    sequence: int
    previous: str
    digest: str
    rows: int
    source_offset: int

    @property
    def place(self) -> str:
        """How a problem names it."""
        return place(self.stream, self.partition, self.admission)


def sealed_tables(found: Findings) -> Iterator[tuple[EventType, pa.Table]]:
    """Checks all segments with their manifests, and hands out the rows that could be read, a row group at a time."""
    segments = segment_rows(found.connection)
    link = NO_MANIFEST
    for number, segment in enumerate(segments, start=1):
        found.progress("segments", number, len(segments))
        if (segment.type, segment.version) not in EVENTS:
            found.problem(f"segment {segment.name} is of the unknown type {segment.type} {segment.version}")
            continue
        if segment.ordinal != number:
            found.problem(f"segment {segment.name} has place {segment.ordinal} in the chain, {number} was due")
        metas = _manifest(found, segment, link)
        link = segment.manifest
        _compare(found, segment, metas)
        yield from _groups(found, segment, metas)


def tail_tables(found: Findings) -> Iterator[tuple[EventType, pa.Table]]:
    """Checks all frames of the tail, and hands out their rows, a frame at a time."""
    total = found.connection.execute(text("SELECT count(*) FROM tail")).scalar_one()
    rows = found.connection.execute(_TAIL, execution_options={"yield_per": 256})
    count = 0
    for count, row in enumerate(rows, start=1):
        found.progress("tail", count, total)
        meta = FrameMeta(*row[: len(FRAME_COLUMNS)])
        if (row.tail_type, row.tail_version) != (row.type, row.version) or (row.type, row.version) not in EVENTS:
            found.problem(f"{meta.place} is {row.type} {row.version}, the tail says {row.tail_type} {row.tail_version}")
            continue
        declared = EVENTS[row.type, row.version]
        batch = _tail_batch(found, declared, meta, row.payload)
        if batch is not None:
            yield declared, placed(declared, meta.partition, [meta.admission], [batch])
    if count != total:
        found.problem(f"{total - count} rows of the tail belong to no frame of the ledger")


def _tail_batch(found: Findings, declared: EventType, meta: FrameMeta, payload: bytes) -> pa.RecordBatch | None:
    try:
        batch = read_payload(payload, meta.place)
        batch.validate(full=True)
        if not batch.schema.equals(declared.schema):
            raise ValueError("its columns are not those of its type")
    except (Fault, *_UNREADABLE) as error:
        found.problem(f"tail: {meta.place} ({declared.name}) cannot be read: {error}")
        return None
    _check_frame(found, "tail", declared, meta, batch)
    return batch


def _check_frame(found: Findings, where: str, declared: EventType, meta: FrameMeta, batch: pa.RecordBatch) -> None:
    found.mark(meta.stream, meta.partition, meta.admission, meta.rows)
    link = Link(meta.epoch, meta.stream, meta.partition, meta.sequence, meta.previous)
    if batch.num_rows != meta.rows or frame_digest(declared, meta.key, link, batch) != meta.digest:
        found.problem(f"{where}: {meta.place} ({declared.name}, {meta.rows} events) was altered: its digest differs")


def _manifest(found: Findings, segment: Segment, link: str) -> list[FrameMeta]:
    """The frames that a segment's manifest lists; problems where the manifest is damaged or out of its chain."""
    path = found.ledger.segments.manifest_path(segment.type, segment.version, segment.manifest)
    try:
        if file_digest(path) != segment.manifest:
            found.problem(f"manifest {path} was altered: its SHA-256 differs from its name")
        manifest = json.loads(path.read_bytes())
        metas = [FrameMeta(*frame) for frame in manifest["frames"]]
        said = [manifest[name] for name in ("segment", "ordinal", "previous", "type", "version", "rows", "bytes")]
        covered = [tuple(part) for part in manifest["admissions"]]
    except (Fault, *_UNREADABLE) as error:
        found.problem(f"manifest {path} cannot be read: {error}")
        return []
    due = [segment.name, segment.ordinal, link, segment.type, segment.version, segment.rows, segment.bytes]
    if said != due or covered != list(segment.admissions) or len(metas) != segment.frames:
        found.problem(f"manifest {path} does not match its place in the ledger's chain of segments")
    return metas


def _compare(found: Findings, segment: Segment, metas: Sequence[FrameMeta]) -> None:
    """Problems where the manifest and the table `frame` disagree about the frames of a segment."""
    kept: list[FrameMeta] = []
    for stream, partition, first, last in segment.admissions:
        bound = {"stream": stream, "partition": partition, "first": first, "last": last}
        rows = found.connection.execute(_FRAMES, bound | {"type": segment.type, "version": segment.version})
        kept += [FrameMeta(*row) for row in rows]
    for mine, theirs in zip(metas, kept, strict=False):
        if mine != theirs:
            found.problem(f"{mine.place} differs between the manifest of segment {segment.name} and the SQL database")
            return
    if len(metas) != len(kept):
        found.problem(f"segment {segment.name} lists {len(metas)} frames, the SQL database {len(kept)}")


def _groups(found: Findings, segment: Segment, metas: list[FrameMeta]) -> Iterator[tuple[EventType, pa.Table]]:
    path = found.ledger.segments.path(segment.type, segment.version, segment.name)
    declared = EVENTS[segment.type, segment.version]
    try:
        if file_digest(path) != segment.name:
            found.problem(f"segment {path} was altered: its SHA-256 differs from its name")
        file = pq.ParquetFile(path)
    except (Fault, *_UNREADABLE) as error:
        found.problem(f"segment {path} cannot be read: {error}")
        return
    with file:
        start, held = 0, file.metadata.num_rows
        for number in range(file.num_row_groups):
            rows = file.metadata.row_group(number).num_rows
            end = _frames_of(metas, start, rows)
            table = _read_group(found, file, number, path, metas[start:end], declared)
            if table is not None:
                _check_group(found, path, declared, metas[start:end], table)
                yield declared, table
            start = end
    if start != len(metas) or held != segment.rows:
        found.problem(
            f"segment {path} holds {held} rows of {start} frames, {segment.rows} rows of {len(metas)} frames were due"
        )


def _frames_of(metas: Sequence[FrameMeta], start: int, rows: int) -> int:
    """The index after the last frame of a row group that starts with frame `start` and holds `rows` rows."""
    end = start
    while end < len(metas) and rows > 0:
        rows -= metas[end].rows
        end += 1
    return end


def _read_group(
    found: Findings, file: pq.ParquetFile, number: int, path: Path, metas: Sequence[FrameMeta], declared: EventType
) -> pa.Table | None:
    try:
        table = file.read_row_group(number).cast(placed_schema(declared)).combine_chunks()
        table.validate(full=True)
        if table.num_rows == 0:
            raise ValueError("it is empty")
    except _UNREADABLE as error:
        span = f"{metas[0].place} to {metas[-1].place}" if metas else "no listed frame"
        found.problem(f"segment {path}: row group {number} cannot be read ({span}): {error}")
        return None
    return table


def _check_group(found: Findings, path: Path, declared: EventType, metas: Sequence[FrameMeta], table: pa.Table) -> None:
    batch = table.select(declared.schema.names).to_batches()[0]
    starts = [0, *accumulate(meta.rows for meta in metas)]
    parts = [batch.slice(start, meta.rows) for start, meta in zip(starts, metas, strict=False)]
    for meta, part in zip(metas, parts, strict=True):
        _check_frame(found, f"segment {path.name}", declared, meta, part)
    if starts[-1] != table.num_rows or len({(meta.stream, meta.partition) for meta in metas}) != 1:
        found.problem(f"segment {path.name}: a row group does not hold the rows of its frames")
        return
    due = placed(declared, metas[0].partition, [meta.admission for meta in metas], parts)
    if not due.select(PLACE).equals(table.select(PLACE)):
        found.problem(f"segment {path.name}: rows from {metas[0].place} on stand in other places than their frames")
