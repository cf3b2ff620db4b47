"""All rows of a type at a cut as SQL scans them: datasets over sealed segments, and the tail.

Nothing of a segment is read here.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from lapledger.ledger.events import PARTITIONS, EventType, versions_of
from lapledger.ledger.store.cuts import Cut
from lapledger.ledger.store.open_ledger import Ledger
from lapledger.ledger.store.reader import check_cut, declared_type, live_segments, tail_rows
from lapledger.ledger.store.segments import Segment
from lapledger.ledger.store.sql.engine import reading

if TYPE_CHECKING:
    import pyarrow.dataset as ds


@dataclass(frozen=True, slots=True)
class Stored:
    """The rows of one stored version of a type at a cut: the sealed ones, read as they are scanned, and the tail's."""

    declared: EventType
    segments: tuple[Segment, ...]
    sealed: "ds.Dataset"
    tail: pa.Table


def stored(ledger: Ledger, name: str, version: int, cut: Cut) -> list[Stored]:
    """All rows of a type at a cut with their origin, by stored version, oldest first. No segment is read yet.

    Scan segments within `Segments.scanning`. UserError when the type is unknown, or the cut is ahead
    of this ledger.
    """
    declared = declared_type(name, version)
    parts = []
    with reading(ledger.engine) as connection:
        check_cut(connection, cut)
        for version_type in versions_of(declared):
            segments = [s for s in live_segments(connection, name, version_type.version) if s.starts_within(cut)]
            sealed = ledger.segments.dataset(version_type, segments)
            if not all(segment.ends_within(cut) for segment in segments):
                sealed = sealed.filter(_expression(version_type, cut))
            parts.append(Stored(version_type, tuple(segments), sealed, tail_rows(connection, version_type, cut)))
    return parts


def _expression(declared: EventType, cut: Cut) -> pc.Expression:
    """Whether a row is within a cut, as a scan filter."""
    inside = pc.scalar(False)
    for partition in range(PARTITIONS[declared.stream]):
        last = cut.at(declared.stream, partition)
        inside = inside | ((pc.field("_partition") == partition) & (pc.field("_admission") <= last))
    return inside
