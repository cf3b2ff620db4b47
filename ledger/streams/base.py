"""The stream boundary: append records to a partition, read them from a position, and get the end of a partition.

No opinion about frames, the ledger or delivery: positions live in the ledger's SQL, never in the stream.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from lapledger.ledger.frames.frame import Record

Partition = tuple[str, int]
"""A stream and the number of one of its partitions."""

Position = int
"""First offset that has not been read yet; 0 at the start. Offsets rise, not always by one."""


@dataclass(frozen=True, slots=True)
class Stored:
    """A record as a stream returned it, with its offset; the next position is offset + 1."""

    offset: int
    record: Record


def record_bytes(record: Record) -> int:
    """The size of a record: its payload plus the names and values of its headers, in bytes."""
    header_bytes = sum(len(text.encode(errors="surrogatepass")) for pair in record.headers.items() for text in pair)
    return len(record.payload) + header_bytes


class Group(Protocol):
    """A process among those of one name that divide partitions among themselves: a hint, never a permission."""

    def assigned(self, wait_seconds: float) -> frozenset[Partition]:
        """What this process should try now, as (stream, partition).

        Comes back when that changes or records arrive there, at the latest after `wait_seconds`. A call at least every
        few minutes keeps the membership.
        """
        ...

    def leave(self) -> None:
        """Hands everything to the others, now."""
        ...


class Stream(Protocol):
    """Durable, ordered partitions of records. Every implementation passes one shared contract suite."""

    @property
    def max_record_bytes(self) -> int:
        """The largest record that can be appended, as `record_bytes` counts."""
        ...

    def identity(self, stream: str) -> str:
        """An id that changes when the stream is recreated, so that positions in an older one are refused."""
        ...

    def append(self, stream: str, partition: int, records: Sequence[Record]) -> None:
        """Returns when all records are durable, in this order; on an error none, or a prefix, may have been stored.

        Fault when one is larger than `max_record_bytes`; then none was.
        """
        ...

    def read(self, stream: str, partition: int, position: Position, limit: int) -> list[Stored]:
        """Up to `limit` records from `position` on, in order; empty at the end.

        Fault when the position is not between the first kept record and the end: nothing is ever skipped.
        """
        ...

    def ends(self) -> Mapping[Partition, Position]:
        """For every partition the position after its last record."""
        ...

    def unread(self) -> Mapping[tuple[str, int], int]:
        """How many records lie in each stream and partition that no reader knows; empty in a sound stream."""
        ...

    def trim(self, stream: str, partition: int, position: Position) -> None:
        """Records before `position` may be forgotten; Fault when it is past the end."""
        ...

    def join(self, group: str, streams: Sequence[str], member: str) -> Group:
        """This process as a member of a group for these streams; no two live ones have the same `member`."""
        ...

    def close(self) -> None:
        """Releases connections and files; the stream is not used again."""
        ...


def describe_unread(stream: Stream) -> Iterator[str]:
    """A line for each stream or partition with records that no reader knows."""
    for (name, partition), count in stream.unread().items():
        what = f"{count} record{'s lie' if count > 1 else ' lies'} in {str(name)[:60]!r}, partition {partition}"
        yield f"{what}, which no reader knows: another program or a newer release wrote there"
