"""Turns events into frames and appends them: one producer epoch, one chain for each (stream, partition).

A producer is made once for a process; it is told its epoch and never makes up an id or reads a clock.
"""

import threading
import zlib
from collections.abc import Iterable, Sequence
from itertools import groupby

from ledger.errors import Fault
from ledger.events import PARTITIONS, EpochClosed, EpochOpened, Event, key_of, to_batch, type_of
from ledger.frames import Link, Record, encode, genesis, make_frame
from ledger.streams.base import Stream

MAX_ROWS = 1000


def partition_of(stream: str, key: str) -> int:
    """The partition of a key: CRC-32 modulo the stream's fixed number of partitions."""
    return zlib.crc32(key.encode()) % PARTITIONS[stream]


class Producer:
    """Appends events in order, with gap-free sequences. Threads may share it.

    After a failed append it takes no more: whether the records were stored is unknown, and other ones under the same
    sequence would be a fork.
    """

    def __init__(self, stream: Stream, epoch: str, label: str, release: str) -> None:
        """Nothing is appended yet: the first append opens the epoch with a fact of its own."""
        self._stream = stream
        self._opening = EpochOpened(epoch=epoch, label=label, release=release)
        self.epoch = epoch
        self._links: dict[tuple[str, int], tuple[int, str]] = {}
        self._lock = threading.Lock()
        self._failed = False

    @property
    def frames(self) -> int:
        """Frames appended so far, over all partitions."""
        return sum(sequence for sequence, _ in self._links.values())

    def append(self, events: Iterable[Event]) -> None:
        """Returns when all events are durable. Runs of one type and partition share frames of up to 1,000 events.

        All frames of one partition travel in one append, in the given order: what belongs together arrives together.
        """
        given = list(events)
        if not given:
            return
        with self._lock:
            opening = [] if self._links else [self._opening]
            routed = sorted(((self._route(event), event) for event in [*opening, *given]), key=lambda pair: pair[0])
            if self._failed:
                raise Fault(f"producer {self.epoch} failed before and takes no more; start the command again")
            self._failed = True
            for (stream, partition), group in groupby(routed, key=lambda pair: pair[0]):
                self._append_partition(stream, partition, [event for _, event in group])
            self._failed = False

    def close(self) -> None:
        """Closes the epoch with a fact; one that was never opened, or whose append failed, is left as it is."""
        if self._links and not self._failed:
            self.append([EpochClosed(epoch=self.epoch, frames=self.frames + 1)])

    @staticmethod
    def _route(event: Event) -> tuple[str, int]:
        stream = type_of(event).stream
        return stream, partition_of(stream, key_of(event))

    def _append_partition(self, stream: str, partition: int, events: Sequence[Event]) -> None:
        start = (0, genesis(self.epoch, stream, partition))
        sequence, previous = self._links.get((stream, partition), start)
        records: list[Record] = []
        for (key, _), run in groupby(events, key=lambda event: (key_of(event), type(event))):
            rows = list(run)
            for first in range(0, len(rows), MAX_ROWS):
                link = Link(self.epoch, stream, partition, sequence, previous)
                batch = to_batch(rows[first : first + MAX_ROWS])
                frame = make_frame(type_of(rows[0]), key, link, batch)
                records.append(encode(frame))
                sequence, previous = sequence + 1, frame.digest
        self._stream.append(stream, partition, records)
        self._links[stream, partition] = (sequence, previous)
