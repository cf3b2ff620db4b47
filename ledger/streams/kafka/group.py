"""Partition assignment among processes: a consumer group, used for its membership only.

It fetches nothing. What may be admitted is decided in the ledger's SQL, whatever the group assigns.
"""

import re
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any

from lapledger.ledger.errors import Unavailable
from lapledger.ledger.streams.base import Partition, Position
from lapledger.ledger.streams.kafka.clients import consumer_config, library, open_client, persistently, translated
from lapledger.ledger.streams.kafka.settings import KafkaSettings

WithAdmin = Callable[[Callable[[Any], Any]], Any]
"""Calls a function with the admin client of a stream, and returns its result."""

SESSION_SECONDS = 10.0
"""After how long without a sign of life the others take over; one that leaves is replaced at once."""

_BEAT_SECONDS = 0.3
_LEAVE_SECONDS = 2.0
_PAUSE_SECONDS = (0.01, 0.08)
"""How long to wait before looking again: a little after news, longer when nothing happens."""


class KafkaGroup:
    """A member of a consumer group. One thread uses it."""

    def __init__(
        self, settings: KafkaSettings, with_admin: WithAdmin, *, group: str, streams: Sequence[str], member: str
    ) -> None:
        """Connects; the first `assigned` joins. The topics exist: a member of a missing one would wait forever."""
        self._settings, self._with_admin = settings, with_admin
        self._group = self._settings.topic(group)
        self._member = re.sub(r"[^A-Za-z0-9._-]", "-", member)[:200]
        self._topics = {self._settings.topic(name): name for name in streams}
        self._seen: Mapping[Any, Position] = {}
        self._last: frozenset[Partition] = frozenset()
        with translated(self._settings, f"cannot join the group {self._group}"):
            self._consumer = open_client("KafkaConsumer", self._config())
            for topic in self._topics:
                self._consumer.partitions_for_topic(topic)  # who leads a group divides the partitions that it knows
            self._consumer.subscribe(list(self._topics), listener=_paused(self._consumer))

    def assigned(self, wait_seconds: float) -> frozenset[Partition]:
        """What this process should try now; back early when that changes or records arrive there."""
        deadline = time.monotonic() + wait_seconds
        pause = _PAUSE_SECONDS[0]
        while True:
            left = deadline - time.monotonic()
            now, ends = self._poll(max(0.0, min(pause, left)))
            if now != self._last or ends != self._seen or left <= 0:
                self._last, self._seen = now, ends
                return now
            pause = min(2 * pause, _PAUSE_SECONDS[1])

    def show(self, positions: Mapping[Partition, Position]) -> None:
        """Tells Kafka how far these partitions were admitted, so that its tools can show the lag; it means nothing."""
        kafka = library()
        offsets = {
            kafka.TopicPartition(self._settings.topic(stream), partition): kafka.OffsetAndMetadata(position, "", -1)
            for (stream, partition), position in positions.items()
            if (stream, partition) in self._last
        }
        if offsets:
            with translated(self._settings, f"cannot show the positions of {self._group}"):
                self._consumer.commit(offsets, timeout_ms=1000 * self._settings.timeout_seconds)

    def leave(self) -> None:
        """Hands everything to the others, now; when the broker is away they take over after `SESSION_SECONDS`."""
        from kafka.admin import MemberToRemove

        self._consumer.close(autocommit=False, timeout_ms=1000)
        member = MemberToRemove(group_instance_id=self._member)  # one with a name is waited for unless it is removed
        brief = replace(self._settings, timeout_seconds=min(_LEAVE_SECONDS, self._settings.timeout_seconds))
        with suppress(Unavailable), translated(self._settings, f"cannot leave the group {self._group}"):
            self._with_admin(
                lambda admin: persistently(brief, lambda: admin.remove_group_members(self._group, [member]))
            )

    def _config(self) -> dict[str, object]:
        from kafka.coordinator.assignors.sticky.sticky_assignor import StickyPartitionAssignor

        return consumer_config(self._settings) | {
            "group_id": self._group,
            "group_instance_id": self._member,
            "partition_assignment_strategy": [StickyPartitionAssignor],
            "session_timeout_ms": int(1000 * SESSION_SECONDS),
            "heartbeat_interval_ms": int(1000 * _BEAT_SECONDS),
            "retry_backoff_ms": 100,
        }

    def _poll(self, seconds: float) -> tuple[frozenset[Partition], Mapping[Any, Position]]:
        """What is assigned now, and where it ends."""
        with translated(self._settings, f"cannot stay in the group {self._group}"):
            if self._consumer._coordinator.rejoining:
                self._consumer._coordinator.request_rejoin()  # else it forgets a rejoin that outlasted a short poll
            with suppress(library().errors.NoOffsetForPartitionError):  # of what is being assigned at this moment
                self._consumer.poll(timeout_ms=1000 * seconds)
            mine = sorted(self._consumer.assignment())
            ends = self._consumer.end_offsets(mine, timeout_ms=1000 * self._settings.timeout_seconds) if mine else {}
        return frozenset((self._topics[partition.topic], partition.partition) for partition in mine), ends


def _paused(consumer: object) -> object:
    """A listener that stops the consumer from fetching, or looking up offsets, as soon as it is assigned something."""
    kafka = library()

    class Paused(kafka.ConsumerRebalanceListener):  # type: ignore[misc, name-defined]  # the library has no types
        def on_partitions_revoked(self, revoked: object) -> None:
            """Nothing is held that could be handed back."""

        def on_partitions_assigned(self, assigned: Sequence[object]) -> None:
            """Any position will do, as none is ever read from."""
            for partition in assigned:
                consumer.seek(partition, 0)  # type: ignore[attr-defined]
                consumer.pause(partition)  # type: ignore[attr-defined]

    return Paused()
