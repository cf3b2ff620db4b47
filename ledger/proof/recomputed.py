"""Recomputes the digests of frames from their rows. Values in, values out: threads run this.

Where the rows come from is decided by `ledger.proof.sealed` and `ledger.proof.tail`.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate

import pyarrow as pa

from lapledger.ledger.events import EventType
from lapledger.ledger.frames.frame import frame_digests
from lapledger.ledger.proof.findings import NONSENSE
from lapledger.ledger.proof.timings import Runs
from lapledger.ledger.store.frame_rows import FrameMeta
from lapledger.ledger.store.quarantine import QUARANTINE, Quarantined

UNREADABLE = (OSError, *NONSENSE)
"""What Arrow and Parquet raise for bytes that were altered."""


@dataclass(frozen=True, slots=True)
class Altered:
    """A frame whose rows do not give its digest: where they are, and the rows found there."""

    where: str
    declared: EventType
    meta: FrameMeta
    batch: pa.RecordBatch


@dataclass(frozen=True, slots=True)
class Recomputed:
    """What some frames came to: those whose rows could be read, all rows in one table, and what is wrong.

    The table is None where nothing could be read. `runs` are the timings among the rows, by attempt; `notes` are
    harmless.
    """

    declared: EventType
    frames: Sequence[FrameMeta] = ()
    table: pa.Table | None = None
    altered: tuple[Altered, ...] = ()
    problems: tuple[str, ...] = ()
    runs: Runs | None = None
    notes: tuple[str, ...] = ()


def altered_frames(
    where: str, declared: EventType, metas: Sequence[FrameMeta], batch: pa.RecordBatch
) -> tuple[Altered, ...]:
    """The frames whose rows do not give their digest; `batch` holds the rows of all of them, one after another."""
    bounds = list(accumulate((meta.rows for meta in metas), initial=0))
    complete = sum(end <= batch.num_rows for end in bounds[1:])
    if declared is QUARANTINE:
        digests = _quarantine_digests(metas[:complete], batch)
    else:
        links = [(meta.key, meta.link) for meta in metas[:complete]]
        digests = frame_digests(declared, batch.columns, bounds[: complete + 1], links)
    recomputed = [*digests, *([""] * (len(metas) - complete))]
    return tuple(
        Altered(where, declared, meta, batch.slice(start, meta.rows))
        for meta, start, digest in zip(metas, bounds, recomputed, strict=False)
        if digest != meta.digest
    )


def _quarantine_digests(metas: Sequence[FrameMeta], batch: pa.RecordBatch) -> Iterator[str]:
    start = 0
    for meta in metas:
        rows = batch.slice(start, meta.rows).to_pylist()
        yield Quarantined.from_sealed(meta.admission, rows[0]).meta.digest if len(rows) == 1 else ""
        start += meta.rows
