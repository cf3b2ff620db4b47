"""Reads partitions: a consumer that is given every position, and never chooses one.

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
from lapledger.ledger.streams.kafka.clients import FETCH_BYTES, consumer_config, library, open_client, translated
from lapledger.ledger.streams.kafka.records import salvaged, to_record
from lapledger.ledger.streams.kafka.settings import KafkaSettings

_WAIT_SECONDS = 0.5


class Reader:
    """A consumer of all partitions read so far, of which it fetches one at a time.

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
            self._consumer = open_client("KafkaConsumer", consumer_config(settings))

    def follows(self, stream: str, partition: int, position: Position) -> bool:
        """Whether the last read of a partition ended at this position."""
        return self._positions.get(self._topic_partition(stream, partition)) == position

    def read(self, stream: str, partition: int, position: Position, limit: int) -> list[Stored]:
        """From 1 to `limit` records from `position` on, which is before the end; none when only markers are left.

        Fault when it was trimmed away or the stored batch is damaged, Unavailable when no record comes in time.
        """
        at = self._topic_partition(stream, partition)
        deadline = time.monotonic() + self._settings.timeout_seconds
        with self._lock, translated(self._settings, f"cannot read {_partition_text(at)}"):
            self._turn_to(at, position)
            waiting = self._waiting[at]
            while not waiting:
                waiting.extend(self._fetched_now(at, position))
                if not waiting and self._only_markers(at, position):
                    return []
                if not waiting and time.monotonic() > deadline:
                    raise Unavailable(
                        f"cannot read {_partition_text(at)}: no record came from {self._settings.address} in time"
                    )
            records = [waiting.popleft() for _ in range(min(limit, len(waiting)))]
            self._positions[at] = records[-1].offset + 1
            return records

    def close(self) -> None:
        """Releases the connection."""
        with self._lock, suppress(library().errors.KafkaError):
            self._consumer.close(timeout_ms=1000)

    def _topic_partition(self, stream: str, partition: int) -> Any:
        return library().TopicPartition(self._settings.topic(stream), partition)

    def _turn_to(self, partition: Any, position: Position) -> None:
        """Make the consumer fetch this partition only, from this position on."""
        if partition not in self._positions:
            self._consumer.assign([*self._positions, partition])
        if self._positions.get(partition) != position:
            self._consumer.seek(partition, position)
            self._positions[partition] = position
            self._waiting[partition] = deque()
        if self._fetched != partition:
            self._consumer.pause(*(paused for paused in self._positions if paused != partition))
            self._consumer.resume(partition)
            self._fetched = partition

    def _fetched_now(self, partition: Any, position: Position) -> Sequence[Stored]:
        """What came of a fetch, all of it: kafka-python loses what is left over when it turns to another partition."""
        errors = library().errors
        try:
            messages = self._consumer.poll(timeout_ms=1000 * _WAIT_SECONDS, max_records=maxsize).get(partition, ())
        except errors.OffsetOutOfRangeError:
            gone = f"the records from {position} on were deleted, or the topic was recreated"
            raise Fault(f"cannot read {_partition_text(partition)}: {gone}") from None
        except errors.CorruptRecordError:
            return self._salvage(partition, position)
        return [Stored(message.offset, to_record(message.headers, message.value)) for message in messages]

    def _only_markers(self, partition: Any, position: Position) -> bool:
        """Whether only markers of other producers' transactions follow a position, which no poll returns."""
        reached = self._consumer.position(partition)
        return bool(reached > position and reached >= self._consumer.end_offsets([partition])[partition])

    def _salvage(self, partition: Any, position: Position) -> Sequence[Stored]:
        """The records that kafka-python could not read; a Fault when the batch was damaged after it was stored."""
        records = salvaged(self._fetch(partition, position), position)
        if records is None:
            raise Fault(
                f"cannot read {_partition_text(partition)}: the record at {position} is damaged;"
                " restore the broker's disk"
            )
        self._consumer.seek(partition, records[-1].offset + 1)  # a consumer that failed on a batch would stay there
        return records

    def _fetch(self, partition: Any, position: Position) -> bytes:
        """The stored bytes from the batch that holds `position` on; kafka-python has no public way to get them."""
        from kafka.protocol.consumer import FetchRequest

        topic = FetchRequest.FetchTopic
        part = topic.FetchPartition(
            partition=partition.partition,
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
            topics=[topic(topic=partition.topic, partitions=[part])],
            forgotten_topics_data=[],
            rack_id="",
            max_version=12,
        )
        manager: Any = self._consumer._manager
        answer = manager.run(manager.send, request, manager.cluster.leader_for_partition(partition))
        (response,) = answer.responses[0].partitions
        return bytes(response.records or b"")


def _partition_text(partition: Any) -> str:
    return f"{partition.topic}, partition {partition.partition}"
