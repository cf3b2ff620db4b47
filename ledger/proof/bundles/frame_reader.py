"""Reads single frames of a ledger from segments and tail alike, and verifies their digests."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import groupby, pairwise

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from sqlalchemy import Connection, bindparam, text

from lapledger.ledger.codec.packing import plain
from lapledger.ledger.errors import Fault
from lapledger.ledger.events import EVENTS, EventType
from lapledger.ledger.frames.frame import Frame, make_frame
from lapledger.ledger.store.frame_rows import FRAME_COLUMNS, FRAME_SELECTION, FrameMeta
from lapledger.ledger.store.open_ledger import Ledger
from lapledger.ledger.store.reader import live_segments, read_payload

FrameAdmissions = Mapping[tuple[str, int], Collection[int]]
"""Stream and partition -> admissions."""

_METAS = text(
    f"SELECT {FRAME_SELECTION}, f.type, f.version, t.payload FROM frame f LEFT JOIN tail t ON t.stream = f.stream"  # noqa: S608
    " AND t.partition = f.partition AND t.admission = f.admission WHERE f.stream = :stream"
    " AND f.partition = :partition AND f.admission IN :wanted ORDER BY f.type, f.version, f.admission"
).bindparams(bindparam("wanted", expanding=True))
_AT_ONCE = 500


def frames_at(ledger: Ledger, connection: Connection, admissions: FrameAdmissions) -> Iterator[tuple[int, Frame]]:
    """The frames with some admissions, each with its admission; Fault when one is missing or altered."""
    for (stream, partition), numbers in sorted(admissions.items()):
        wanted = sorted(numbers)
        for start in range(0, len(wanted), _AT_ONCE):
            batch = wanted[start : start + _AT_ONCE]
            parameters = {"stream": stream, "partition": partition, "wanted": batch}
            rows = connection.execute(_METAS, parameters).all()
            if len(rows) != len(batch):
                raise Fault(f"{len(batch) - len(rows)} frames of {stream}/{partition} are missing; run `lap verify`")
            for kind, group in groupby(rows, key=lambda row: (row.type, row.version)):
                payloads = [(FrameMeta(*row[: len(FRAME_COLUMNS)]), row.payload) for row in group]
                yield from _frames(ledger, connection, EVENTS[kind], payloads)


def _frames(
    ledger: Ledger, connection: Connection, declared: EventType, payloads: Sequence[tuple[FrameMeta, bytes | None]]
) -> Iterator[tuple[int, Frame]]:
    sealed = _sealed(ledger, connection, declared, [meta for meta, payload in payloads if payload is None])
    for meta, payload in payloads:
        batch = sealed.get(meta.admission) if payload is None else read_payload(payload, meta.location)
        if batch is None or batch.num_rows != meta.rows:
            raise Fault(f"{meta.location} is incomplete in its segment; run `lap verify`")
        frame = make_frame(declared, meta.key, meta.link, batch)
        if frame.digest != meta.digest:
            raise Fault(f"{meta.location} was altered; run `lap verify`")
        yield meta.admission, frame


def _sealed(
    ledger: Ledger, connection: Connection, declared: EventType, metas: Sequence[FrameMeta]
) -> dict[int, pa.RecordBatch]:
    """Admission -> the rows of a sealed frame of one partition."""
    if not metas:
        return {}
    first, last = metas[0].admission, metas[-1].admission
    stream, partition = metas[0].stream, metas[0].partition
    segments = [
        segment
        for segment in live_segments(connection, declared.name, declared.version)
        if any(span[:2] == (stream, partition) and span[2] <= last and span[3] >= first for span in segment.admissions)
    ]
    admissions = [meta.admission for meta in metas]
    wanted = (
        (pc.field("_partition") == partition) & (pc.field("_admission") >= first) & (pc.field("_admission") <= last)
    )
    with ledger.segments.scanning(segments):
        table = ledger.segments.dataset(declared, segments).to_table(
            filter=wanted & pc.field("_admission").isin(admissions)
        )
    if not len(table):
        return {}
    table = table.sort_by([("_admission", "ascending"), ("_row", "ascending")]).combine_chunks()
    rows = plain(table.select(declared.schema.names).to_batches()[0])
    numbers = table["_admission"].to_numpy()
    bounds = [0, *(np.flatnonzero(np.diff(numbers)) + 1).tolist(), len(numbers)]
    return {int(numbers[start]): rows.slice(start, end - start) for start, end in pairwise(bounds)}
