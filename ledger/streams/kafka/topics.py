"""The topics of a ledger's streams: made once with settings that keep every record, and checked ever after."""

from collections.abc import Mapping
from typing import Any

from lapledger.ledger.errors import UserError
from lapledger.ledger.events import PARTITIONS
from lapledger.ledger.streams.kafka.clients import library, persistently, translated
from lapledger.ledger.streams.kafka.records import MAX_MESSAGE_BYTES
from lapledger.ledger.streams.kafka.settings import KafkaSettings

KEPT: Mapping[str, str] = {
    "cleanup.policy": "delete",
    "retention.ms": "-1",
    "retention.bytes": "-1",
    "unclean.leader.election.enable": "false",
}
"""What an existing topic must have, or records would be lost before the ledger has them."""

MADE: Mapping[str, str] = {
    **KEPT,
    "max.message.bytes": str(MAX_MESSAGE_BYTES + 12),
}
_EXISTS, _UNKNOWN = 36, 3  # error codes of Kafka


def make_topics(admin: Any, settings: KafkaSettings) -> None:
    """Makes the topics that are missing and checks the others; UserError with the fix for one that may lose records."""
    with translated(settings, "cannot make the topics"):
        missing = [name for name in PARTITIONS if not _described(admin, settings, name)]
        if missing:
            _make(admin, settings, missing)
    check_topics(admin, settings)


def topic_identity(admin: Any, settings: KafkaSettings, stream: str) -> str:
    """The id that Kafka gave a topic when it was made; UserError when it is missing."""
    with translated(settings, f"cannot find {settings.topic(stream)}"):
        described = _awaited(admin, settings, stream)
    if not described:
        raise UserError(
            f"there is no topic {settings.topic(stream)} on {settings.address}; make it with `lap ledger init`"
        )
    return str(described["topic_id"])


def topic_partitions(admin: Any, settings: KafkaSettings) -> dict[str, int]:
    """How many partitions the topic of each stream has; 0 where it is missing."""
    with translated(settings, "cannot find the topics"):
        return {name: len(_described(admin, settings, name).get("partitions", ())) for name in PARTITIONS}


def check_topics(admin: Any, settings: KafkaSettings) -> None:
    """UserError when a topic has another number of partitions than its stream, or may lose records."""
    for stream, count in PARTITIONS.items():
        topic = settings.topic(stream)
        with translated(settings, f"cannot check {topic}"):
            partitions = len(_awaited(admin, settings, stream).get("partitions", ()))
            configured = _configured(admin, settings, topic)
        if partitions != count:
            raise UserError(
                f"the topic {topic} has {partitions} partitions and needs {count}; they never change,"
                " so choose another prefix or delete the topic"
            )
        for name, value in KEPT.items():
            if configured.get(name) != value:
                raise UserError(
                    f"the topic {topic} may lose records: {name} is {configured.get(name)}; set it to {value}"
                    f" (kafka-configs.sh --alter --topic {topic} --add-config {name}={value})"
                )
        least = MADE["max.message.bytes"]
        if int(configured.get("max.message.bytes", 0)) < int(least):
            raise UserError(
                f"the topic {topic} takes no records of {MAX_MESSAGE_BYTES} bytes; set max.message.bytes to {least}"
                f" (kafka-configs.sh --alter --topic {topic} --add-config max.message.bytes={least})"
            )


def _make(admin: Any, settings: KafkaSettings, streams: list[str]) -> None:
    wanted: dict[str, dict[str, Any]] = {
        settings.topic(stream): {
            "num_partitions": PARTITIONS[stream],
            "replication_factor": settings.replication or -1,
            "configs": dict(MADE),
        }
        for stream in streams
    }
    planned = persistently(settings, lambda: admin.create_topics(wanted, validate_only=True, raise_errors=False))
    for topic in planned["topics"]:
        if topic["replication_factor"] >= 3:
            wanted[topic["name"]]["configs"]["min.insync.replicas"] = "2"
    made = persistently(settings, lambda: admin.create_topics(wanted, raise_errors=False))
    for topic in made["topics"]:
        if topic["error_code"] not in (0, _EXISTS):  # another process may have been faster
            raise library().errors.for_code(topic["error_code"])(topic["error_message"])
    admin.wait_for_topics(list(wanted), timeout_ms=1000 * settings.timeout_seconds)


def _described(admin: Any, settings: KafkaSettings, stream: str) -> dict[str, Any]:
    """What the brokers know of a topic; empty when there is none."""
    described: dict[str, Any]
    (described,) = persistently(settings, lambda: admin.describe_topics([settings.topic(stream)]))
    if described["error_code"] == _UNKNOWN:
        return {}
    if described["error_code"]:
        raise library().errors.for_code(described["error_code"])(settings.topic(stream))
    return described


def _awaited(admin: Any, settings: KafkaSettings, stream: str) -> dict[str, Any]:
    """What the brokers know of a topic that was made, of which one may learn a moment later; empty when none does."""
    unknown = library().errors.UnknownTopicOrPartitionError

    def describe() -> dict[str, Any]:
        topic = _described(admin, settings, stream)
        if not topic.get("partitions"):
            raise unknown(settings.topic(stream))
        return topic

    try:
        return persistently(settings, describe)
    except unknown:
        return {}


def _configured(admin: Any, settings: KafkaSettings, topic: str) -> dict[str, str]:
    from kafka.admin import ConfigResource

    resource = ConfigResource("topic", topic)
    configs = persistently(settings, lambda: admin.describe_configs([resource], config_filter="all"))
    return {name: entry["value"] for name, entry in configs["topic"][topic].items()}
