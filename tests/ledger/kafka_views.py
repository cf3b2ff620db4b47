"""What lies on a Kafka stream and how its topics are set, for tests."""

from kafka import KafkaAdminClient
from kafka.admin import ConfigResource

from lapledger.ledger.streams.base import Stored
from lapledger.ledger.streams.kafka.stream import KafkaStream


def everything(stream: KafkaStream, position: int = 0) -> list[Stored]:
    """All records from a position on in partition 0 of the facts."""
    records: list[Stored] = []
    while stored := stream.read("facts", 0, records[-1].offset + 1 if records else position, 1000):
        records += stored
    return records


def payloads(stream: KafkaStream, position: int = 0) -> list[bytes]:
    """Their payloads."""
    return [stored.record.payload for stored in everything(stream, position)]


def configured(admin: KafkaAdminClient, topic: str) -> dict[str, str]:
    """A topic's settings."""
    configs = admin.describe_configs([ConfigResource("topic", topic)], config_filter="all")
    return {name: entry["value"] for name, entry in configs["topic"][topic].items()}
