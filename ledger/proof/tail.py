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
from lapledger.ledger.store.frame_rows import FRAME_COLUMNS, FrameMeta
from lapledger.ledger.store.reader import read_payload
from lapledger.ledger.store.segments import placed

_TAIL = text(
    "SELECT f.stream, f.partition, f.admission, f.key, f.epoch, f.sequence, f.previous, f.digest, f.rows,"
    " f.source_offset, f.type, f.version, t.type AS tail_type, t.version AS tail_version, t.payload"
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


def tail_calls(found: Findings, due: Due) -> Iterator[Callable[[], Recomputed]]:
    """The checks of all frames of the tail, some at a time, as calls for threads."""
    total = found.connection.execute(text("SELECT count(*) FROM tail")).scalar_one()
    rows = found.connection.execute(_TAIL, execution_options={"yield_per": 256})
    count = 0
    for some in rows.partitions(_AT_ONCE):
        count += len(some)
        found.progress("tail", count, total)
        kept = [one for one in (_kept(found, row) for row in some) if one is not None]
        for _, same in groupby(kept, key=lambda one: (one.declared.name, one.declared.version, one.meta.partition)):
            yield partial(_check, list(same), due)
    if count != total:
        found.problem(f"{total - count} rows of the tail belong to no frame of the ledger")


def _kept(found: Findings, row: Row[Any]) -> _Kept | None:
    meta = FrameMeta(*row[: len(FRAME_COLUMNS)])
    if (row.tail_type, row.tail_version) == (row.type, row.version) and (row.type, row.version) in EVENTS:
        return _Kept(EVENTS[row.type, row.version], meta, row.payload)
    found.problem(f"{meta.place} is {row.type} {row.version}, the tail says {row.tail_type} {row.tail_version}")
    return None


def _check(kept: Sequence[_Kept], due: Due) -> Recomputed:
    declared = kept[0].declared
    problems: list[str] = []
    metas: list[FrameMeta] = []
    batches: list[pa.RecordBatch] = []
    for one in kept:
        try:
            batch = read_payload(one.payload, one.meta.place)
            batch.validate(full=True)
            if not batch.schema.equals(declared.schema):
                raise ValueError("its columns are not those of its type")
        except (Fault, *UNREADABLE) as error:
            problems.append(f"tail: {one.meta.place} ({declared.name} of {one.meta.key!r}) cannot be read: {error}")
            continue
        metas.append(one.meta)
        batches.append(batch)
    altered = [
        found
        for meta, batch in zip(metas, batches, strict=True)
        for found in altered_frames("tail", declared, [meta], batch)
    ]
    if not metas:
        return Recomputed(declared, problems=tuple(problems))
    table = placed(declared, metas[0].partition, [meta.admission for meta in metas], batches)
    rows = table.select(declared.schema.names).combine_chunks().to_batches()[0]
    return Recomputed(declared, metas, table, tuple(altered), tuple(problems), runs_of(due, declared, rows))
