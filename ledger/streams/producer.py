"""Turns events into frames and appends them: one producer epoch, one chain for each (stream, partition).

A producer is made once for a process; its epoch is passed in; it never creates an id or reads a clock.
"""

import threading
import zlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby

import pyarrow as pa
import pyarrow.compute as pc

from lapledger.ledger.codec.packing import holds, packed, packed_slices
from lapledger.ledger.errors import Fault
from lapledger.ledger.events import PARTITIONS, EpochClosed, EpochOpened, Event, EventType, key_of, to_batch, type_of
from lapledger.ledger.frames.frame import Link, Record, genesis, make_record
from lapledger.ledger.streams.base import Partition, Stream, record_bytes

MAX_ROWS = 1000
"""Most events in a frame."""

APPEND_ROWS = 64_000
"""Most rows of a table that travel in one append."""

Piece = tuple[EventType, str, pa.RecordBatch]


def partition_of(stream: str, key: str) -> int:
    """The partition of a key: CRC-32 modulo the stream's fixed number of partitions."""
    return zlib.crc32(key.encode()) % PARTITIONS[stream]


@dataclass(slots=True)
class _Chain:
    """The end of one chain while records are added to it."""

    epoch: str
    stream: str
    partition: int
    sequence: int
    previous: str

    def extend(self, declared: EventType, key: str, rows: pa.RecordBatch, limit: int) -> Iterator[Record]:
        """Packed rows as one record, or as many as keep each within `limit` bytes; Fault when one row has more."""
        link = Link(self.epoch, self.stream, self.partition, self.sequence, self.previous)
        record, digest = make_record(declared, key, link, rows)
        size, half = record_bytes(record), rows.num_rows // 2
        if size <= limit:
            self.sequence, self.previous = self.sequence + 1, digest
            yield record
        elif half:
            yield from self.extend(declared, key, packed(rows.slice(0, half)), limit)
            yield from self.extend(declared, key, packed(rows.slice(half)), limit)
        else:
            raise Fault(
                f"one {declared.name} event takes a record of {size} bytes, and the stream takes {limit}; it was not"
                " stored; raise the stream's limit, or leave the event out"
            )


class Producer:
    """Appends events in order, with gap-free sequences. Threads may share it.

    After a failed append it takes no more: whether the records were stored is unknown, and other ones under the same
    sequence would be a fork.
    """

    def __init__(self, stream: Stream, epoch: str, label: str, release: str, *, frame_rows: int = MAX_ROWS) -> None:
        """Nothing is appended yet: the first append opens the epoch with a fact of its own.

        `frame_rows` is the most events in a frame.
        """
        self._stream, self._frame_rows = stream, frame_rows
        self._opening = EpochOpened(epoch=epoch, label=label, release=release)
        self.epoch = epoch
        self._links: dict[Partition, tuple[int, str]] = {}
        self._lock = threading.Lock()
        self._failed = False

    @property
    def frames(self) -> int:
        """Frames appended so far, over all partitions."""
        return sum(sequence for sequence, _ in self._links.values())

    def append(self, events: Iterable[Event]) -> None:
        """Returns when all events are durable. Runs of one type and partition share frames of up to 1,000 events.

        All frames of one partition travel in one append, in the given order: what belongs together arrives together.
        Fault when the stream fails; or when one event is too large for it, then nothing was stored.
        """
        given = list(events)
        if given:
            with self._lock:
                self._append_events(given)

    def append_rows(self, declared: EventType, key: str, rows: pa.RecordBatch | pa.Table) -> None:
        """Returns when all rows are durable: facts of one type and key, in frames of up to 1,000.

        Many rows take several appends, each atomic. ValueError when the rows are not of the type or have other keys.
        """
        table = rows if isinstance(rows, pa.Table) else pa.Table.from_batches([rows])
        _check_rows(declared, key, table)
        at = declared.stream, partition_of(declared.stream, key)
        with self._lock:
            if not self._links:
                self._append_events([])
            step = self._frame_rows * (APPEND_ROWS // self._frame_rows)
            for start in range(0, table.num_rows, step):
                batches = _batches(table.slice(start, step), self._frame_rows)
                self._append(at, self._records(at, ((declared, key, batch) for batch in batches)))

    def close(self) -> None:
        """Closes the epoch with a fact; one that was never opened, or whose append failed, is left as it is."""
        if self._links and not self._failed:
            self.append([EpochClosed(epoch=self.epoch, frames=self.frames + 1)])

    def _append_events(self, given: Sequence[Event]) -> None:
        opening = [] if self._links else [self._opening]
        routed = sorted(((_route(event), event) for event in [*opening, *given]), key=lambda pair: pair[0])
        ready = [
            (at, self._records(at, _pieces([event for _, event in group], self._frame_rows)))
            for at, group in groupby(routed, key=lambda pair: pair[0])
        ]
        for at, records in ready:
            self._append(at, records)

    def _records(self, at: Partition, pieces: Iterable[Piece]) -> "_Ready":
        sequence, previous = self._links.get(at, (0, genesis(self.epoch, *at)))
        chain = _Chain(self.epoch, *at, sequence, previous)
        limit = self._stream.max_record_bytes
        records = [record for piece in pieces for record in chain.extend(*piece, limit)]
        return _Ready(records, chain.sequence, chain.previous)

    def _append(self, at: Partition, ready: "_Ready") -> None:
        if self._failed:
            raise Fault(f"producer {self.epoch} failed before and takes no more; start the command again")
        self._failed = True
        self._stream.append(*at, ready.records)
        self._failed = False
        self._links[at] = (ready.sequence, ready.previous)


@dataclass(frozen=True, slots=True)
class _Ready:
    """Records of one partition, and the end of its chain once they are appended."""

    records: list[Record]
    sequence: int
    previous: str


def _route(event: Event) -> Partition:
    stream = type_of(event).stream
    return stream, partition_of(stream, key_of(event))


def _pieces(events: Sequence[Event], most: int) -> Iterator[Piece]:
    for (key, _), run in groupby(events, key=lambda event: (key_of(event), type(event))):
        rows = list(run)
        for first in range(0, len(rows), most):
            yield type_of(rows[0]), key, packed(to_batch(rows[first : first + most]))


def _batches(table: pa.Table, most: int) -> Iterator[pa.RecordBatch]:
    """The rows in batches of at most so many, packed."""
    (batch,) = table.combine_chunks().to_batches()
    yield from packed_slices(batch, [*range(0, batch.num_rows, most), batch.num_rows])


def _check_rows(declared: EventType, key: str, table: pa.Table) -> None:
    if not holds(table.schema, declared.schema):
        raise ValueError(f"these rows have other columns than {declared.name} version {declared.version}")
    for column, values in zip(declared.columns, table.columns, strict=True):
        if values.null_count and not column.nullable:
            raise ValueError(f"null in column {column.name} of {declared.name}, which must have a value")
    if declared.key and pc.unique(table[declared.key]).to_pylist() not in ([], [key]):
        raise ValueError(f"these rows have other keys than {key!r} in column {declared.key}")
