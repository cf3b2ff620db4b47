"""What the ledger keeps of each admitted frame permanently: its position, its link in the producer's chain, its digest.

The form shared by the table `frame`, the manifests and the proof. Values only.
"""

from typing import NamedTuple

from lapledger.ledger.frames.frame import Link
from lapledger.ledger.streams.base import Partition


class FrameMeta(NamedTuple):
    """One admitted frame without its rows; a manifest lists these fields in this order."""

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
    def link(self) -> Link:
        """Its link in the producer's chain."""
        return Link(self.epoch, self.stream, self.partition, self.sequence, self.previous)

    @property
    def location(self) -> str:
        """Its stream, partition and admission, for messages."""
        return f"frame {self.stream}/{self.partition} admission {self.admission}"

    @property
    def replay_order(self) -> tuple[str, int, str, int]:
        """Sort key of frames in a segment: rows of one problem are adjacent, so that row group statistics are tight."""
        return self.stream, self.partition, self.key, self.admission


FRAME_COLUMNS = FrameMeta._fields
"""What a manifest keeps of each frame, in this order."""

FRAME_SELECTION = ", ".join(f"f.{column}" for column in FRAME_COLUMNS)
"""The same columns in SQL, of the table `frame AS f`."""

Range = tuple[str, int, int, int]
"""Stream, partition, first and last admission."""


def ranges_of(metas: list[FrameMeta]) -> list[Range]:
    """The admissions that some frames span, one range a partition, sorted."""
    spans: dict[Partition, tuple[int, int]] = {}
    for meta in metas:
        partition = meta.stream, meta.partition
        first, last = spans.get(partition, (meta.admission, meta.admission))
        spans[partition] = min(first, meta.admission), max(last, meta.admission)
    return [(stream, partition, *span) for (stream, partition), span in sorted(spans.items())]
