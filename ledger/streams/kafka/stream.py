"""The Kafka stream: one topic for each stream, idempotent appends, reads from positions that the ledger gives.

Transactions of other producers are not looked at: what is on a topic counts, and the ledger decides what to admit.
"""

import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any, TypeVar

from lapledger.ledger.errors import Fault
from lapledger.ledger.events import PARTITIONS
from lapledger.ledger.failpoint import failpoint
from lapledger.ledger.frames.frame import Record
from lapledger.ledger.streams.base import Partition, Position, Stored, record_bytes
from lapledger.ledger.streams.kafka.clients import (
    client_config,
    library,
    open_client,
    persistently,
    producer_config,
    translated,
)
from lapledger.ledger.streams.kafka.group import KafkaGroup
from lapledger.ledger.streams.kafka.reader import Reader
from lapledger.ledger.streams.kafka.records import MAX_RECORD_BYTES, Message, together
from lapledger.ledger.streams.kafka.settings import KafkaSettings
from lapledger.ledger.streams.kafka.topics import make_topics, topic_identity, topic_partitions

T = TypeVar("T")


class KafkaStream:
    """A `Stream` on a Kafka cluster. Threads may share it; a forked child makes its own."""

    max_record_bytes = MAX_RECORD_BYTES

    def __init__(self, settings: KafkaSettings) -> None:
        """Connects to nothing yet; UserError when kafka-python is not installed."""
        library()
        self.settings = settings
        self._clients = threading.Lock()
        self._appending = threading.Lock()
        self._admin: Any = None
        self._producer: Any = None
        self._existing: set[str] = set()
        self._reader: Reader | None = None
        self._ends: dict[Partition, Position] = {}

    @classmethod
    def create(cls, settings: KafkaSettings) -> "KafkaStream":
        """The stream, its topics made unless they exist; UserError when an existing one may lose records."""
        stream = cls(settings)
        try:
            stream.with_admin(lambda admin: make_topics(admin, settings))
        except BaseException:
            stream.close()
            raise
        return stream

    def identity(self, stream: str) -> str:
        """The topic's id, which is new when a topic is deleted and recreated."""
        return self.with_admin(lambda admin: topic_identity(admin, self.settings, stream))

    def append(self, stream: str, partition: int, records: Sequence[Record]) -> None:
        """Returns when all records are on every in-sync replica, in this order.

        On a Fault none, or the first ones, may have been stored; appended again they are duplicates to the ledger.
        """
        topic = self.settings.topic(stream)
        what = f"cannot append to {topic}, partition {partition}"
        for record in records:
            if (size := record_bytes(record)) > MAX_RECORD_BYTES:
                raise Fault(f"{what}: a record of {size} bytes is too large, {MAX_RECORD_BYTES} are the most")
        failpoint("stream.append.before")
        with self._appending:
            if records and stream not in self._existing:
                self.identity(stream)  # a producer would wait for a missing topic until its time is over
                self._existing.add(stream)
            for messages in together(records):
                self._send(what, topic, partition, messages)
                failpoint("stream.append.stored")
        failpoint("stream.appended")

    def read(self, stream: str, partition: int, position: Position, limit: int) -> list[Stored]:
        """Up to `limit` records from `position` on, in order; empty at the end.

        Fault when the position is not between the first kept record and the end, and when the broker is away.
        """
        at = (stream, partition)
        end = self._ends.get(at, 0)
        if position >= end:
            end = self._ends[at] = self._bounds([at], "LATEST")[at]
        if position == end:
            return []
        reader = self._open_reader()
        if not reader.follows(stream, partition, position):
            self._check_kept(at, position, end)
        try:
            return reader.read(stream, partition, position, limit)
        except BaseException:
            self._ends.pop(at, None)  # what was known of it may be of another topic
            self._forget_reader()
            raise

    def ends(self) -> Mapping[Partition, Position]:
        """For every partition the position after its last record."""
        return self._bounds([(name, at) for name, count in PARTITIONS.items() for at in range(count)], "LATEST")

    def unread(self) -> Mapping[Partition, int]:
        """Records of partitions beyond those of a stream: somebody widened its topic."""
        counts = self.with_admin(lambda admin: topic_partitions(admin, self.settings))
        extra = [(name, at) for name, count in counts.items() for at in range(PARTITIONS[name], count)]
        first, end = (self._bounds(extra, which) if extra else {} for which in ("EARLIEST", "LATEST"))
        return {at: end[at] - first[at] for at in extra if end[at] > first[at]}

    def trim(self, stream: str, partition: int, position: Position) -> None:
        """The brokers forget the records before `position`; Fault when it is past the end."""
        topic = self.settings.topic(stream)
        topic_partition = library().TopicPartition(topic, partition)
        with translated(self.settings, f"cannot trim {topic}, partition {partition}, up to {position}"):
            self.with_admin(
                lambda admin: persistently(self.settings, lambda: admin.delete_records({topic_partition: position}))
            )
        failpoint("stream.trimmed")

    def join(self, group: str, streams: Sequence[str], member: str) -> KafkaGroup:
        """This process as a member of a consumer group."""
        for name in streams:
            self.identity(name)  # UserError for a missing topic
        return KafkaGroup(self.settings, self.with_admin, group=group, streams=streams, member=member)

    def close(self) -> None:
        """Releases all connections."""
        with self._appending:
            self._forget_producer()
        self._forget_reader()
        with self._clients:
            if self._admin is not None:
                self._admin.close()
                self._admin = None

    def with_admin(self, call: Callable[[Any], T]) -> T:
        """The result of a call with the admin client, which is made on first use."""
        with self._clients:
            if self._admin is None:
                with translated(self.settings, "cannot connect"):
                    self._admin = open_client("KafkaAdminClient", client_config(self.settings))
            admin = self._admin
        return call(admin)

    def _bounds(self, partitions: Sequence[Partition], which: str) -> dict[Partition, Position]:
        kafka = library()
        requested = {kafka.TopicPartition(self.settings.topic(name), at): (name, at) for name, at in partitions}
        spec = dict.fromkeys(requested, kafka.OffsetSpec[which])
        with translated(self.settings, "cannot find the ends of the topics"):
            offsets = self.with_admin(
                lambda admin: persistently(self.settings, lambda: admin.list_partition_offsets(spec))
            )
        return {partition_key: offsets[topic].offset for topic, partition_key in requested.items()}

    def _check_kept(self, at: Partition, position: Position, end: Position) -> None:
        first = self._bounds([at], "EARLIEST")[at]
        if not first <= position < end:
            raise Fault(
                f"cannot read {self.settings.topic(at[0])}, partition {at[1]}, from {position}: it holds {first}"
                f" to {end}; records were deleted there, or the topic was recreated"
            )

    def _open_reader(self) -> Reader:
        with self._clients:
            if self._reader is None:
                self._reader = Reader(self.settings)
            return self._reader

    def _send(self, what: str, topic: str, partition: int, messages: Sequence[Message]) -> None:
        """Appends one batch and waits for it; after an error the next one gets a new producer."""
        seconds = self.settings.timeout_seconds
        with translated(self.settings, what):
            if self._producer is None:
                self._producer = open_client("KafkaProducer", producer_config(self.settings))
            try:
                sent = [
                    self._producer.send(topic, value=value, key=key, headers=headers, partition=partition)
                    for key, value, headers in messages
                ]
                self._producer.flush(2 * seconds)
                for future in sent:
                    future.get(seconds)
            except BaseException:
                self._forget_producer(broken=True)
                raise

    def _forget_reader(self) -> None:
        """Closes the consumer. One that failed within a batch must not be used: kafka-python would loop forever."""
        with self._clients:
            reader, self._reader = self._reader, None
        if reader is not None:
            reader.close()

    def _forget_producer(self, *, broken: bool = False) -> None:
        producer, self._producer = self._producer, None
        self._existing.clear()
        if producer is None:
            return
        if broken:
            producer._sender.force_close()  # without it, what waits to be sent would keep `close` waiting
        with suppress(library().errors.KafkaError):
            producer.close(timeout=1 if broken else self.settings.timeout_seconds)


def brokers(settings: KafkaSettings) -> int:
    """How many brokers of the cluster are at work; Unavailable when none answers in time."""
    with translated(settings, "cannot connect"):
        admin = open_client("KafkaAdminClient", client_config(settings))
        try:
            known = persistently(settings, admin.describe_cluster)["brokers"]
            return sum(not broker.get("is_fenced") for broker in known)
        finally:
            admin.close()


def fast_checksums() -> bool:
    """Whether kafka-python computes checksums in C; without it, it silently does 10 MB/s."""
    from kafka.record import util

    return util.crc32c_c is not None
