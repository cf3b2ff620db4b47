"""Takes single frames out of a ledger again, whole and proven, from segments and tail alike."""

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
from lapledger.ledger.store.frame_rows import FRAME_COLUMNS, FrameMeta
from lapledger.ledger.store.open_ledger import Ledger
from lapledger.ledger.store.reader import live_segments, read_payload

Places = Mapping[tuple[str, int], Collection[int]]
"""Stream and partition -> admissions."""

_METAS = text(
    "SELECT f.stream, f.partition, f.admission, f.key, f.epoch, f.sequence, f.previous, f.digest, f.rows,"
    " f.source_offset, f.type, f.version, t.payload FROM frame f LEFT JOIN tail t ON t.stream = f.stream"
    " AND t.partition = f.partition AND t.admission = f.admission WHERE f.stream = :stream"
    " AND f.partition = :partition AND f.admission IN :wanted ORDER BY f.type, f.version, f.admission"
).bindparams(bindparam("wanted", expanding=True))
_AT_ONCE = 500


def frames_at(ledger: Ledger, connection: Connection, places: Places) -> Iterator[tuple[int, Frame]]:
    """The frames that lie at some places, each with its admission; Fault when one is missing or altered."""
    for (stream, partition), admissions in sorted(places.items()):
        wanted = sorted(admissions)
        for start in range(0, len(wanted), _AT_ONCE):
            some = wanted[start : start + _AT_ONCE]
            place = {"stream": stream, "partition": partition, "wanted": some}
            rows = connection.execute(_METAS, place).all()
            if len(rows) != len(some):
                raise Fault(f"{len(some) - len(rows)} frames of {stream}/{partition} are missing; run `lap verify`")
            for kind, same in groupby(rows, key=lambda row: (row.type, row.version)):
                held = [(FrameMeta(*row[: len(FRAME_COLUMNS)]), row.payload) for row in same]
                yield from _frames(ledger, connection, EVENTS[kind], held)


def _frames(
    ledger: Ledger, connection: Connection, declared: EventType, held: Sequence[tuple[FrameMeta, bytes | None]]
) -> Iterator[tuple[int, Frame]]:
    sealed = _sealed(ledger, connection, declared, [meta for meta, payload in held if payload is None])
    for meta, payload in held:
        batch = sealed.get(meta.admission) if payload is None else read_payload(payload, meta.location)
        if batch is None or batch.num_rows != meta.rows:
            raise Fault(f"{meta.location} is not whole in its segment; run `lap verify`")
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
    place = metas[0].stream, metas[0].partition
    segments = [
        segment
        for segment in live_segments(connection, declared.name, declared.version)
        if any(span[:2] == place and span[2] <= last and span[3] >= first for span in segment.admissions)
    ]
    admissions = [meta.admission for meta in metas]
    wanted = (pc.field("_partition") == place[1]) & (pc.field("_admission") >= first) & (pc.field("_admission") <= last)
    with ledger.segments.scanning(segments):
        found = ledger.segments.dataset(declared, segments).to_table(
            filter=wanted & pc.field("_admission").isin(admissions)
        )
    if not len(found):
        return {}
    found = found.sort_by([("_admission", "ascending"), ("_row", "ascending")]).combine_chunks()
    rows = plain(found.select(declared.schema.names).to_batches()[0])
    numbers = found["_admission"].to_numpy()
    edges = [0, *(np.flatnonzero(np.diff(numbers)) + 1).tolist(), len(numbers)]
    return {int(numbers[start]): rows.slice(start, end - start) for start, end in pairwise(edges)}
