"""What the ledger keeps of every admitted frame for ever: its place, its link in the producer's chain, its digest.

The form shared by the table `frame`, the manifests and the proof. Values only.
"""

from typing import NamedTuple

from lapledger.ledger.frames.frame import Link


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
    def place(self) -> str:
        """How messages name it."""
        return f"frame {self.stream}/{self.partition} admission {self.admission}"

    @property
    def replay_order(self) -> tuple[str, int, str, int]:
        """How frames are sorted in a segment: rows of one problem lie together, so that its statistics are narrow."""
        return self.stream, self.partition, self.key, self.admission


FRAME_COLUMNS = FrameMeta._fields
"""What a manifest keeps of each frame, in this order."""

Range = tuple[str, int, int, int]
"""Stream, partition, first and last admission."""


def ranges_of(metas: list[FrameMeta]) -> list[Range]:
    """The admissions that some frames span, one range a partition, sorted."""
    spans: dict[tuple[str, int], tuple[int, int]] = {}
    for meta in metas:
        place = meta.stream, meta.partition
        first, last = spans.get(place, (meta.admission, meta.admission))
        spans[place] = min(first, meta.admission), max(last, meta.admission)
    return [(stream, partition, *span) for (stream, partition), span in sorted(spans.items())]
