"""Checks the tail: the frames that are not sealed yet, payload by payload, on several threads."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import groupby
from typing import Any

import pyarrow as pa
from sqlalchemy import Row, text

from lapledger.ledger.errors import Fault
from lapledger.ledger.events import EVENTS, EventType
from lapledger.ledger.proof.findings import Findings
from lapledger.ledger.proof.recomputed import UNREADABLE, Recomputed, altered_frames
from lapledger.ledger.proof.timings import Due, runs_of
from lapledger.ledger.store.frame_rows import FRAME_COLUMNS, FRAME_SELECTION, FrameMeta
from lapledger.ledger.store.reader import read_payload
from lapledger.ledger.store.segments import with_origin

_TAIL = text(
    f"SELECT {FRAME_SELECTION}, f.type, f.version, t.type AS tail_type, t.version AS tail_version, t.payload"  # noqa: S608
    " FROM tail t JOIN frame f ON f.stream = t.stream AND f.partition = t.partition"
    " AND f.admission = t.admission ORDER BY t.stream, t.partition, t.admission"
)
_AT_ONCE = 64


@dataclass(frozen=True, slots=True)
class _Kept:
    """A frame of the tail with its payload."""

    declared: EventType
    meta: FrameMeta
    payload: bytes


def tail_calls(findings: Findings, due: Due) -> Iterator[Callable[[], Recomputed]]:
    """The checks of all frames of the tail, some at a time, as calls for threads."""
    total = findings.connection.execute(text("SELECT count(*) FROM tail")).scalar_one()
    rows = findings.connection.execute(_TAIL, execution_options={"yield_per": 256})
    count = 0
    for some in rows.partitions(_AT_ONCE):
        count += len(some)
        findings.progress("tail", count, total)
        kept = [frame for frame in (_kept(findings, row) for row in some) if frame is not None]
        for _, same in groupby(
            kept, key=lambda frame: (frame.declared.name, frame.declared.version, frame.meta.partition)
        ):
            yield partial(_check, list(same), due)
    if count != total:
        findings.problem(f"{total - count} rows of the tail belong to no frame of the ledger")


def _kept(findings: Findings, row: Row[Any]) -> _Kept | None:
    meta = FrameMeta(*row[: len(FRAME_COLUMNS)])
    if (row.tail_type, row.tail_version) == (row.type, row.version) and (row.type, row.version) in EVENTS:
        return _Kept(EVENTS[row.type, row.version], meta, row.payload)
    findings.problem(f"{meta.location} is {row.type} {row.version}, the tail has {row.tail_type} {row.tail_version}")
    return None


def _check(kept: Sequence[_Kept], due: Due) -> Recomputed:
    declared = kept[0].declared
    problems: list[str] = []
    metas: list[FrameMeta] = []
    batches: list[pa.RecordBatch] = []
    for frame in kept:
        try:
            batch = read_payload(frame.payload, frame.meta.location)
            batch.validate(full=True)
            if not batch.schema.equals(declared.schema):
                raise ValueError("its columns are not those of its type")
        except (Fault, *UNREADABLE) as error:
            problems.append(
                f"tail: {frame.meta.location} ({declared.name} of {frame.meta.key!r}) cannot be read: {error}"
            )
            continue
        metas.append(frame.meta)
        batches.append(batch)
    altered = [
        altered_frame
        for meta, batch in zip(metas, batches, strict=True)
        for altered_frame in altered_frames("tail", declared, [meta], batch)
    ]
    if not metas:
        return Recomputed(declared, problems=tuple(problems))
    table = with_origin(declared, metas[0].partition, [meta.admission for meta in metas], batches)
    rows = table.select(declared.schema.names).combine_chunks().to_batches()[0]
    return Recomputed(declared, metas, table, tuple(altered), tuple(problems), runs_of(due, declared, rows))
