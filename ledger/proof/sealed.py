"""Checks the segments that hold frames now: every byte by its file's digest, every frame by its rows."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from queue import Empty, SimpleQueue

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from lapledger.ledger.codec.encodings import strings
from lapledger.ledger.codec.packing import holds
from lapledger.ledger.errors import Fault
from lapledger.ledger.events import EVENTS, EventType
from lapledger.ledger.proof.findings import Findings
from lapledger.ledger.proof.links import Links, compare_frames, manifests
from lapledger.ledger.proof.manifests import Manifest
from lapledger.ledger.proof.recomputed import UNREADABLE, Recomputed, altered_frames
from lapledger.ledger.proof.timings import Due, runs_of
from lapledger.ledger.store.frame_rows import FrameMeta
from lapledger.ledger.store.objects.objects import raise_outages
from lapledger.ledger.store.quarantine import QUARANTINE
from lapledger.ledger.store.segments import Segment, Segments, schema_with_origin

Call = Callable[[], Recomputed]


@dataclass(frozen=True, slots=True)
class _Source:
    """A segment under check. A thread takes an open file from the pool, as no two may read one at once.

    `dictionaries` are columns of strings stored with a dictionary; they are read as such, ten times as fast.
    """

    segments: Segments
    segment: Segment
    declared: EventType
    due: Due
    dictionaries: list[str] = field(default_factory=list)
    idle: SimpleQueue[pq.ParquetFile] = field(default_factory=SimpleQueue)

    @property
    def where(self) -> str:
        return f"segment {self.segments.where(self.segments.name(self.segment))}"

    def borrow(self) -> pq.ParquetFile:
        try:
            return self.idle.get_nowait()
        except Empty:
            return self.segments.open(self.segment, dictionaries=self.dictionaries)


def sealed_calls(findings: Findings, links: Links, due: Due) -> Iterator[Call]:
    """The checks of all segments, as calls for threads; what needs the database is checked here, in between."""
    stored = {stored_object.name for stored_object in findings.ledger.segments.listing()}
    gone = 0
    for number, manifest in enumerate(manifests(findings, links), start=1):
        findings.progress("segments", number, len(links.segments))
        segment = manifest.as_segment
        declared = EVENTS.get((segment.type, segment.version), QUARANTINE)
        source = _Source(findings.ledger.segments, segment, declared, due)
        superseded = segment.ordinal in links.superseded
        if superseded and findings.ledger.segments.name(segment) not in stored:
            gone += 1
            continue
        yield partial(_check_file, source, superseded)
        if not superseded:
            if declared is not QUARANTINE:
                compare_frames(findings, manifest)
            yield from _group_calls(findings, source, manifest)
    if gone:
        findings.notes.append(
            f"{gone} superseded segments are gone; their frames are in the segments that replaced them"
        )


def _check_file(source: _Source, superseded: bool) -> Recomputed:
    name = source.segments.name(source.segment)
    try:
        altered = source.segments.digest(name) != source.segment.name
    except Fault as fault:
        if superseded and not source.segments.has(name):
            message = f"{source.where} was superseded, and removed meanwhile"
            return Recomputed(source.declared, notes=(message,))
        return Recomputed(source.declared, problems=(str(fault),))
    message = f"{source.where} was altered: its SHA-256 differs from its name"
    return Recomputed(source.declared, problems=(message,) if altered else ())


def _group_calls(findings: Findings, source: _Source, manifest: Manifest) -> Iterator[Call]:
    try:
        file = source.borrow()
    except (Fault, *UNREADABLE) as error:
        findings.problem(f"{source.where} cannot be read ({_span(manifest.frames, source.declared)}): {error}")
        return
    with file:
        start, held = 0, file.metadata.num_rows
        groups = [file.metadata.row_group(number) for number in range(file.num_row_groups)]
        sizes = [group.num_rows for group in groups]
        source.dictionaries.extend(
            _dictionary_columns(groups[0], schema_with_origin(source.declared)) if groups else ()
        )
    for number, rows in enumerate(sizes):
        end = _frames_of(manifest.frames, start, rows)
        yield partial(_check_group, source, number, manifest.frames[start:end])
        start = end
    if start != len(manifest.frames) or held != manifest.rows:
        lost = manifest.frames[start:]
        more = f"; missing: {_span(lost, source.declared)}" if lost else ""
        findings.problem(
            f"{source.where} holds {held} rows of {start} frames, {manifest.rows} rows of {len(manifest.frames)} frames"
            f" were due{more}"
        )


def _frames_of(metas: Sequence[FrameMeta], start: int, rows: int) -> int:
    """The index after the last frame of a row group that starts with frame `start` and holds `rows` rows."""
    end = start
    while end < len(metas) and rows > 0:
        rows -= metas[end].rows
        end += 1
    return end


def _dictionary_columns(group: pq.RowGroupMetaData, schema: pa.Schema) -> Iterator[str]:
    """The columns of strings that a row group stores with a dictionary."""
    for column in map(group.column, range(group.num_columns)):
        name = column.path_in_schema
        if name in schema.names and schema.field(name).type == pa.string() and "RLE_DICTIONARY" in column.encodings:
            yield name


def _check_group(source: _Source, number: int, metas: Sequence[FrameMeta]) -> Recomputed:
    declared = source.declared
    try:
        file = source.borrow()
    except (Fault, *UNREADABLE) as error:
        return Recomputed(declared, problems=(f"{source.where} cannot be read: {error}",))
    try:
        table = _group(source, file, number)
    except UNREADABLE as error:
        broken = ", ".join(_broken(file, number, declared)) or "its columns together"
        message = f"{source.where}: row group {number}, {broken} cannot be read ({_span(metas, declared)}): {error}"
        return Recomputed(declared, problems=(message,))
    source.idle.put(file)
    batch = table.select(declared.schema.names).to_batches()[0]
    return Recomputed(
        declared,
        metas,
        table,
        altered_frames(source.where, declared, metas, batch),
        tuple(_misplaced(source, metas, table)),
        runs_of(source.due, declared, batch),
    )


def _group(source: _Source, file: pq.ParquetFile, number: int) -> pa.Table:
    """The rows of a row group in one chunk, sound as Arrow sees it; one of `UNREADABLE` otherwise."""
    with raise_outages(source.where):
        table = file.read_row_group(number, use_threads=False).combine_chunks()
    table.validate(full=True)
    if not holds(table.schema, schema_with_origin(source.declared)):
        raise ValueError("its columns are not those of its type")
    if table.num_rows == 0:
        raise ValueError("it is empty")
    return table


def _broken(file: pq.ParquetFile, number: int, declared: EventType) -> Iterator[str]:
    """The columns of a row group that cannot be read."""
    for name in schema_with_origin(declared).names:
        try:
            file.read_row_group(number, columns=[name], use_threads=False).validate(full=True)
        except UNREADABLE:
            yield f"column {name}"


def _misplaced(source: _Source, metas: Sequence[FrameMeta], table: pa.Table) -> Iterator[str]:
    """Problems where the rows of a group are not those of complete frames of one partition, in order."""
    counts = np.array([meta.rows for meta in metas], dtype=np.int64)
    if counts.sum() != table.num_rows or len({(meta.stream, meta.partition) for meta in metas}) != 1:
        yield f"{source.where}: a row group does not hold the rows of its frames ({_span(metas, source.declared)})"
        return
    starts = np.repeat(np.cumsum(counts) - counts, counts)
    admissions = np.repeat(np.array([meta.admission for meta in metas], dtype=np.int64), counts)
    wrong = pc.not_equal(strings(table["_stream"].combine_chunks()), metas[0].stream).to_numpy(zero_copy_only=False)
    wrong |= table["_partition"].to_numpy() != metas[0].partition
    wrong |= table["_admission"].to_numpy() != admissions
    wrong |= table["_row"].to_numpy() != np.arange(len(wrong)) - starts
    if wrong.any():
        first = int(np.argmax(wrong))
        meta = metas[int(np.searchsorted(np.cumsum(counts), first, side="right"))]
        yield f"{source.where}: rows from {meta.location} row {first - starts[first]} on are out of position"


def _span(metas: Sequence[FrameMeta], declared: EventType) -> str:
    """A run of frames in a segment, for messages."""
    if not metas:
        return "no listed frame"
    first, last = metas[0], metas[-1]
    if len(metas) == 1:
        return f"{declared.name} of {first.key!r}, {first.location}"
    return f"{declared.name} of {first.key!r} to {last.key!r}, {first.location} to {last.location}, {len(metas)} frames"
