"""Reads partitions: a consumer that is told every position, and never chooses one.

Kafka's own offsets are not used here; the position of each read comes from the caller.
"""

import threading
import time
from collections import deque
from collections.abc import Sequence
from contextlib import suppress
from sys import maxsize
from typing import Any

from lapledger.ledger.errors import Fault, Unavailable
from lapledger.ledger.streams.base import Position, Stored
from lapledger.ledger.streams.kafka.clients import FETCH_BYTES, consumer_config, library, opened, translated
from lapledger.ledger.streams.kafka.records import salvaged, to_record
from lapledger.ledger.streams.kafka.settings import KafkaSettings

_WAIT_SECONDS = 0.5


class Reader:
    """A consumer of all partitions that were asked for, of which it fetches one at a time.

    Reads that go on where the last one ended find their records fetched already.
    """

    def __init__(self, settings: KafkaSettings) -> None:
        """Connects; Fault when no broker answers."""
        self._settings = settings
        self._waiting: dict[Any, deque[Stored]] = {}
        self._positions: dict[Any, Position] = {}
        self._fetched: Any = None
        self._lock = threading.Lock()
        with translated(settings, "cannot read"):
            self._consumer = opened("KafkaConsumer", consumer_config(settings))

    def follows(self, stream: str, partition: int, position: Position) -> bool:
        """Whether the last read of a partition ended at this position."""
        return self._positions.get(self._place(stream, partition)) == position

    def read(self, stream: str, partition: int, position: Position, limit: int) -> list[Stored]:
        """From 1 to `limit` records from `position` on, which lies before the end; none when only markers are left.

        Fault when it was trimmed away or the stored batch is damaged, Unavailable when no record comes in time.
        """
        place = self._place(stream, partition)
        deadline = time.monotonic() + self._settings.timeout_seconds
        with self._lock, translated(self._settings, f"cannot read {_words(place)}"):
            self._turn_to(place, position)
            waiting = self._waiting[place]
            while not waiting:
                waiting.extend(self._fetched_now(place, position))
                if not waiting and self._only_markers(place, position):
                    return []
                if not waiting and time.monotonic() > deadline:
                    raise Unavailable(
                        f"cannot read {_words(place)}: no record came from {self._settings.address} in time"
                    )
            found = [waiting.popleft() for _ in range(min(limit, len(waiting)))]
            self._positions[place] = found[-1].offset + 1
            return found

    def close(self) -> None:
        """Releases the connection."""
        with self._lock, suppress(library().errors.KafkaError):
            self._consumer.close(timeout_ms=1000)

    def _place(self, stream: str, partition: int) -> Any:
        return library().TopicPartition(self._settings.topic(stream), partition)

    def _turn_to(self, place: Any, position: Position) -> None:
        """Lets the consumer fetch this place only, from this position on."""
        if place not in self._positions:
            self._consumer.assign([*self._positions, place])
        if self._positions.get(place) != position:
            self._consumer.seek(place, position)
            self._positions[place] = position
            self._waiting[place] = deque()
        if self._fetched != place:
            self._consumer.pause(*(other for other in self._positions if other != place))
            self._consumer.resume(place)
            self._fetched = place

    def _fetched_now(self, place: Any, position: Position) -> Sequence[Stored]:
        """What came of a fetch, all of it: kafka-python loses what is left over when it turns to another partition."""
        errors = library().errors
        try:
            messages = self._consumer.poll(timeout_ms=1000 * _WAIT_SECONDS, max_records=maxsize).get(place, ())
        except errors.OffsetOutOfRangeError:
            gone = f"the records from {position} on were deleted, or the topic was made anew"
            raise Fault(f"cannot read {_words(place)}: {gone}") from None
        except errors.CorruptRecordError:
            return self._salvage(place, position)
        return [Stored(message.offset, to_record(message.headers, message.value)) for message in messages]

    def _only_markers(self, place: Any, position: Position) -> bool:
        """Whether all that lies behind a position ends other producers' transactions, which no poll returns."""
        reached = self._consumer.position(place)
        return bool(reached > position and reached >= self._consumer.end_offsets([place])[place])

    def _salvage(self, place: Any, position: Position) -> Sequence[Stored]:
        """The records that kafka-python could not read; a Fault when the batch was damaged after it was stored."""
        found = salvaged(self._fetch(place, position), position)
        if found is None:
            raise Fault(f"cannot read {_words(place)}: the record at {position} is damaged; restore the broker's disk")
        self._consumer.seek(place, found[-1].offset + 1)  # a consumer that failed on a batch would stay there
        return found

    def _fetch(self, place: Any, position: Position) -> bytes:
        """The stored bytes from the batch that holds `position` on; kafka-python has no public way to get them."""
        from kafka.protocol.consumer import FetchRequest

        topic = FetchRequest.FetchTopic
        part = topic.FetchPartition(
            partition=place.partition,
            current_leader_epoch=-1,
            fetch_offset=position,
            last_fetched_epoch=-1,
            partition_max_bytes=FETCH_BYTES,
        )
        request = FetchRequest(
            max_wait_ms=100,
            min_bytes=1,
            max_bytes=FETCH_BYTES,
            isolation_level=0,
            session_id=0,
            session_epoch=-1,
            topics=[topic(topic=place.topic, partitions=[part])],
            forgotten_topics_data=[],
            rack_id="",
            max_version=12,
        )
        manager: Any = self._consumer._manager
        answer = manager.run(manager.send, request, manager.cluster.leader_for_partition(place))
        (found,) = answer.responses[0].partitions
        return bytes(found.records or b"")


def _words(place: Any) -> str:
    return f"{place.topic}, partition {place.partition}"
