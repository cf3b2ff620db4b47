"""The stream boundary: append records to a partition, read them from a position, and say where a partition ends.

No opinion about frames, the ledger or delivery: positions live in the ledger's SQL, never in the stream.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from ledger.frames import Record

Position = int
"""First offset that has not been read yet; 0 at the start. Offsets rise, not always by one."""


@dataclass(frozen=True, slots=True)
class Stored:
    """A record as a stream returned it, with its offset; the next position is offset + 1."""

    offset: int
    record: Record


class Stream(Protocol):
    """Durable, ordered partitions of records. Every implementation passes one shared contract suite."""

    def identity(self, stream: str) -> str:
        """A word that changes when the stream was made anew, so that positions in an older one are refused."""
        ...

    def append(self, stream: str, partition: int, records: Sequence[Record]) -> None:
        """Returns when all records are durable, in this order; on an error none, or a prefix, may have been stored."""
        ...

    def read(self, stream: str, partition: int, position: Position, limit: int) -> list[Stored]:
        """Up to `limit` records from `position` on, in order; empty at the end."""
        ...

    def ends(self) -> Mapping[tuple[str, int], Position]:
        """For every partition the position after its last record."""
        ...
