"""Reads sealed segments back frame by frame, each proven against the digest that it was admitted with.

For compaction and garbage collection; readers of facts use `ledger.store.reader`.
"""

from collections.abc import Iterator, Sequence

import pyarrow as pa

from lapledger.consumers.storage.segment_writer import Piece, is_as_admitted
from lapledger.ledger.errors import Fault
from lapledger.ledger.events import EventType
from lapledger.ledger.proof.manifests import read_manifest
from lapledger.ledger.store.frame_rows import FrameMeta
from lapledger.ledger.store.objects.objects import stored_errors
from lapledger.ledger.store.open_ledger import Ledger
from lapledger.ledger.store.quarantine import NAME, QUARANTINE
from lapledger.ledger.store.reader import declared_type
from lapledger.ledger.store.segments import Segment, schema_with_origin


def declared_of(segment: Segment) -> EventType:
    """The event type of a segment, or the form of sealed quarantine; UserError when a newer release wrote it."""
    return QUARANTINE if segment.type == NAME else declared_type(segment.type, segment.version)


def pieces_of(ledger: Ledger, segment: Segment) -> Iterator[Piece]:
    """The frames of a segment with their rows, in its order, a row group in memory at a time.

    Fault when it is missing or a row was altered since its frame was admitted.
    """
    declared = declared_of(segment)
    metas = read_manifest(ledger.segments, segment).frames
    schema = schema_with_origin(declared)
    where = f"segment {ledger.segments.where(ledger.segments.name(segment))}"
    at = 0
    with ledger.segments.open(segment) as file:
        for number in range(file.num_row_groups):
            with stored_errors(where):
                table = file.read_row_group(number).cast(schema).combine_chunks()
            for piece in _frames(declared, table, metas[at:]):
                if not is_as_admitted(declared, piece):
                    raise Fault(f"{piece[0].location} was altered in {where}; run `lap verify`")
                yield piece
                at += 1
    if at != len(metas):
        raise Fault(f"{where} lacks {len(metas) - at} of its frames; run `lap verify`")


def _frames(declared: EventType, table: pa.Table, metas: Sequence[FrameMeta]) -> Iterator[Piece]:
    """The frames of a row group: as many of `metas` as it has rows for."""
    if not table.num_rows:
        return
    batch = table.select(declared.schema.names).to_batches()[0]
    start = 0
    for meta in metas:
        if start == batch.num_rows:
            return
        yield meta, batch.slice(start, meta.rows)
        start += meta.rows
