"""What is particular to the Kafka stream: its topics, its messages as others see them, and hostile ones.

What becomes of it when brokers are lost is in test_kafka_loss.py.
"""

import logging
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest
from cloudevents.core.bindings.kafka import KafkaMessage, from_binary
from cloudevents.core.formats.json import JSONFormat
from kafka import KafkaAdminClient, KafkaConsumer, KafkaProducer, TopicPartition
from kafka.admin import ConfigResource
from kafka.protocol.producer import ProduceRequest
from kafka.record.memory_records import MemoryRecordsBuilder

from lapledger.ledger.errors import Fault, LapError, UserError
from lapledger.ledger.frames.frame import FrameError, Record, decode, encode
from lapledger.ledger.streams.kafka.clients import client_config, consumer_config, producer_config
from lapledger.ledger.streams.kafka.settings import KafkaSettings
from lapledger.ledger.streams.kafka.stream import KafkaStream, fast_checksums
from tests.ledger.facts import chain_frames, decision
from tests.ledger.kafka_views import configured, everything, payloads
from tests.support.processes import until
from tests.support.servers import delete_topics

Headers = list[tuple[str, bytes | None]]
NOT_LEADER = 6

PASSWORD = "hunter2-never-shown"  # noqa: S105  (a test's)
SECRET = KafkaSettings(
    servers="127.0.0.1:1",
    security_protocol="SASL_SSL",
    sasl_mechanism="SCRAM-SHA-512",
    sasl_username="ann",
    sasl_password=PASSWORD,
    timeout_seconds=1,
)


@pytest.fixture
def stream(kafka_settings: KafkaSettings) -> Iterator[KafkaStream]:
    """A fresh stream on the run's broker."""
    with closing(KafkaStream.create(kafka_settings)) as new:
        yield new


@pytest.fixture
def admin(kafka_servers: str) -> Iterator[KafkaAdminClient]:
    """Another program's view of the broker."""
    with closing(KafkaAdminClient(bootstrap_servers=kafka_servers)) as client:
        yield client


def produce(settings: KafkaSettings, messages: list[tuple[bytes | None, Headers]]) -> None:
    """Puts one batch on partition 0 of the facts as another program might: anything the wire can carry."""
    batch = MemoryRecordsBuilder(2, 0, 1 << 20)
    for value, headers in messages:
        assert batch.append(0, None, value, headers) is not None
    batch.close()
    data = ProduceRequest.TopicProduceData
    part = data.PartitionProduceData(index=0, records=batch.buffer())
    topic = data(name=settings.topic("facts"), partition_data=[part])
    request = ProduceRequest(transactional_id=None, acks=-1, timeout_ms=5000, topic_data=[topic], max_version=9)
    with closing(KafkaAdminClient(bootstrap_servers=list(settings.bootstrap))) as client:
        code = NOT_LEADER
        while code == NOT_LEADER:  # of a topic made a moment ago
            answer = client._manager.run(client._manager.send, request)
            code = answer.responses[0].partition_responses[0].error_code
    assert code == 0


class Bytes(str):
    """A header's name that is sent as bytes that are no text."""

    __slots__ = ()

    def encode(self, *_: object, **__: object) -> bytes:
        return b"ce_\xff"


def test_topics_keep_every_record(stream: KafkaStream, admin: KafkaAdminClient) -> None:
    """Named by the prefix, with each stream's partitions, without any limit, and with leaders that have everything."""
    topic = stream.settings.topic("facts")
    assert topic == f"{stream.settings.prefix}.facts"
    (described,) = admin.describe_topics([topic])
    assert len(described["partitions"]) == 4
    configs = configured(admin, topic)
    wanted = {"retention.ms": "-1", "retention.bytes": "-1", "cleanup.policy": "delete"}
    assert {name: configs[name] for name in wanted} == wanted
    assert (configs["unclean.leader.election.enable"], configs["max.message.bytes"]) == ("false", "1048588")


@pytest.mark.parametrize(
    ("name", "value"), [("retention.ms", "1000"), ("retention.bytes", "9999"), ("cleanup.policy", "compact")]
)
def test_a_topic_that_loses_records_is_refused(
    stream: KafkaStream, admin: KafkaAdminClient, name: str, value: str
) -> None:
    """The message names the setting, what it should be, and the command that mends it."""
    topic = stream.settings.topic("control")
    admin.alter_configs([ConfigResource("topic", topic, {name: value})])
    while configured(admin, topic)[name] != value:
        pass
    with pytest.raises(UserError, match=rf"{topic} may lose records: {name} is {value}; set it to .*kafka-configs.sh"):
        KafkaStream.create(stream.settings)


def test_a_topic_with_other_partitions_is_refused(kafka_settings: KafkaSettings, admin: KafkaAdminClient) -> None:
    """Keys would lie elsewhere than the ledger looks for them."""
    admin.create_topics({kafka_settings.topic("facts"): {"num_partitions": 3}}, wait_for_metadata=True)
    with pytest.raises(UserError, match="has 3 partitions and needs 4"):
        KafkaStream.create(kafka_settings)


@pytest.mark.parametrize("call", ["identity", "append", "read", "ends", "trim"])
def test_a_missing_topic_is_the_users_mistake(kafka_settings: KafkaSettings, call: str) -> None:
    """Nothing but `create` makes a topic, and the message says so."""
    arguments: dict[str, list[object]] = {"identity": ["facts"], "append": ["facts", 0, [Record({}, b"")]], "ends": []}
    given: list[object] = arguments.get(call, ["facts", 0, 0, 1][: 3 if call == "trim" else 4])
    with closing(KafkaStream(kafka_settings)) as stream, pytest.raises(UserError, match="lap ledger init"):
        getattr(stream, call)(*given)


def test_any_consumer_sees_cloud_events(stream: KafkaStream) -> None:
    """The CloudEvents library reads a frame that another consumer fetched: attributes in headers, the frame as data."""
    (frame,) = chain_frames([decision(1)])
    record = encode(frame)
    stream.append("facts", frame.link.partition, [record])
    topic = TopicPartition(stream.settings.topic("facts"), frame.link.partition)
    with closing(KafkaConsumer(bootstrap_servers=list(stream.settings.bootstrap), enable_auto_commit=False)) as client:
        client.assign([topic])
        client.seek(topic, 0)
        message = next(client)
    assert {name: value.decode() for name, value in message.headers} == dict(record.headers)
    assert (message.key, message.value) == (b"p", record.payload)
    event = from_binary(KafkaMessage(dict(message.headers), message.key, message.value), JSONFormat())
    assert (event.get_type(), event.get_subject(), event.get_datacontenttype()) == (
        "filter.decided",
        "p",
        "application/vnd.apache.arrow.stream",
    )
    assert event.get_data() == record.payload


HOSTILE: dict[str, Headers] = {
    "a word that is no text": [("ce_type", b"\xff\xfe")],
    "a name that is no text": [(Bytes("x"), b"word")],
    "a name that comes twice": [("ce_type", b"filter.decided"), ("ce_type", b"timing.measured")],
    "a value that is null": [("ce_type", None)],
    "an empty name": [("", b"")],
    "no headers": [],
}


@pytest.mark.parametrize("headers", HOSTILE.values(), ids=HOSTILE)
def test_hostile_headers_become_a_record_for_the_quarantine(stream: KafkaStream, headers: Headers) -> None:
    """What another program wrote is one record that no frame can be read from; those around it are whole."""
    (frame,) = chain_frames([decision(1)])
    good = [(name, value.encode()) for name, value in encode(frame).headers.items()]
    rest = [(name, value) for name, value in good if name != "ce_type"]
    payload = encode(frame).payload
    produce(stream.settings, [(payload, good), (payload, [*rest, *headers]), (None, headers), (payload, good)])
    stored = everything(stream)
    assert [record.offset for record in stored] == [0, 1, 2, 3]
    assert [decode(stored[at].record).digest for at in (0, 3)] == [frame.digest] * 2
    for at in (1, 2):
        with pytest.raises(FrameError):
            decode(stored[at].record)
    assert (stored[1].record.payload, stored[2].record.payload) == (payload, b"")
    assert [record.offset for at in range(4) for record in stream.read("facts", 0, at, 1)] == [0, 1, 2, 3]


def commit_one(stream: KafkaStream) -> None:
    """A record and the marker that commits it, which the broker writes a moment after it said so."""
    config = {"bootstrap_servers": list(stream.settings.bootstrap), "transactional_id": stream.settings.prefix}
    with closing(KafkaProducer(**config)) as client:
        client.init_transactions()
        client.begin_transaction()
        client.send(stream.settings.topic("facts"), b"committed", partition=0)
        client.commit_transaction()
    until(lambda: stream.ends()["facts", 0] == 2, "the marker")


def test_a_marker_at_the_end_is_no_record(stream: KafkaStream) -> None:
    """Where only a marker is left a read gives nothing, at once, and later records come after it."""
    commit_one(stream)
    assert [record.offset for record in stream.read("facts", 0, 0, 10)] == [0]
    assert stream.read("facts", 0, 1, 10) == []
    stream.append("facts", 0, [Record({}, b"later")])
    assert [(record.offset, record.record.payload) for record in stream.read("facts", 0, 1, 10)] == [(2, b"later")]


def test_transactions_of_others_are_no_hindrance(stream: KafkaStream) -> None:
    """Their markers are passed over, before a batch that kafka-python cannot read too."""
    commit_one(stream)
    produce(stream.settings, [(b"hostile", [(Bytes("x"), b"")])])
    stored = everything(stream)
    assert [(record.offset, record.record.payload) for record in stored] == [(0, b"committed"), (2, b"hostile")]
    assert [record.record.payload for record in stream.read("facts", 0, 1, 10)] == [b"hostile"]


def test_what_was_hostile_stays_visible(stream: KafkaStream) -> None:
    """The quarantine shows what came: bytes as escapes, doubled and null headers under a name that says so."""
    headers: Headers = [("a", b"1"), ("a", b"2"), ("b", None), ("c", b"\xff"), (Bytes("x"), b"word")]
    produce(stream.settings, [(b"", headers)])
    assert dict(stream.read("facts", 0, 0, 1)[0].record.headers) == {
        "malformed 0 a": "1",
        "malformed 1 a": "2",
        "malformed 2 b": "null",
        "c": "\\xff",
        "ce_\\xff": "word",
    }


def test_reading_goes_on_after_a_hostile_batch(stream: KafkaStream) -> None:
    """A batch that kafka-python cannot read stops neither what lies in it nor what came before and after."""
    stream.append("facts", 0, [Record({}, b"before")])
    produce(stream.settings, [(b"bad", [(Bytes("x"), b"")]), (b"good", [])])
    stream.append("facts", 0, [Record({}, b"after")])
    payloads_read: list[bytes] = []
    while stored := stream.read("facts", 0, len(payloads_read), 1):
        payloads_read += [record.record.payload for record in stored]
    assert payloads_read == [b"before", b"bad", b"good", b"after"]
    assert payloads(stream) == payloads_read


@pytest.mark.parametrize("codec", ["gzip", "lz4", "zstd"])
def test_other_producers_may_compress(stream: KafkaStream, codec: str) -> None:
    """So may ours; and a position may lie inside of a compressed batch."""
    if codec != "gzip":
        with closing(KafkaStream(replace(stream.settings, compression=codec))) as ours:
            ours.append("facts", 0, [Record({}, b"x" * 999)] * 3)
    else:
        with closing(
            KafkaProducer(bootstrap_servers=list(stream.settings.bootstrap), compression_type=codec)
        ) as client:
            for _ in range(3):
                client.send(stream.settings.topic("facts"), b"x" * 999, partition=0)
    assert payloads(stream) == [b"x" * 999] * 3
    assert payloads(stream, 2) == [b"x" * 999]


def test_a_topic_made_anew_under_a_reader_is_loud(stream: KafkaStream) -> None:
    """The position of the old topic lies beyond the end of the new one."""
    stream.append("facts", 0, [Record({}, b"old")] * 5)
    assert payloads(stream) == [b"old"] * 5
    delete_topics(stream.settings)
    with closing(KafkaStream.create(stream.settings)) as anew:
        anew.append("facts", 0, [Record({}, b"new")])
    with pytest.raises(Fault, match="facts, partition 0"):
        stream.read("facts", 0, 5, 10)


def test_security_settings_reach_every_client(tmp_path: Path) -> None:
    """Names as kafka-python knows them; what was left empty is not passed on."""
    authority = tmp_path / "ca.pem"
    authority.write_text("")
    for config in (client_config, producer_config, consumer_config):
        given = config(replace(SECRET, ssl_cafile=str(authority)))
        wanted = {
            "bootstrap_servers": ["127.0.0.1:1"],
            "security_protocol": "SASL_SSL",
            "sasl_mechanism": "SCRAM-SHA-512",
            "sasl_plain_username": "ann",
            "sasl_plain_password": PASSWORD,
            "ssl_cafile": str(authority),
        }
        assert {name: given.get(name) for name in wanted} == wanted
        assert "ssl_certfile" not in given
        patient = replace(SECRET, timeout_seconds=30)
        assert config(patient)["bootstrap_timeout_ms"] == 8_000  # a wrong password is an answer within 10 s
        assert config(replace(patient, sasl_mechanism=""))["bootstrap_timeout_ms"] == 30_000
    with pytest.raises(UserError, match="there is no file /nowhere/ca"):
        client_config(replace(SECRET, ssl_cafile="/nowhere/ca.pem"))


def test_appends_are_idempotent_and_acknowledged_by_all() -> None:
    """And a consumer never chooses a position, nor makes a topic."""
    given = producer_config(SECRET)
    assert (given["enable_idempotence"], given["acks"], given["allow_auto_create_topics"]) == (True, "all", False)
    given = consumer_config(SECRET)
    assert (given["auto_offset_reset"], given["check_crcs"], given["enable_auto_commit"]) == ("none", True, False)


def test_the_password_is_never_shown(kafka_servers: str, caplog: pytest.LogCaptureFixture) -> None:
    """Neither in the settings' words, nor in a message, nor in the library's own log at its most talkative."""
    wrong = replace(SECRET, servers=kafka_servers, security_protocol="SASL_PLAINTEXT", sasl_mechanism="PLAIN")
    with caplog.at_level(logging.DEBUG, "kafka"), pytest.raises(LapError) as caught:
        KafkaStream(wrong).ends()
    assert PASSWORD not in f"{wrong!r} {caught.value} {client_config(wrong)} {caplog.text}"
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"servers": " , "}, "no Kafka broker is named"),
        ({"prefix": "a/b"}, "cannot begin a topic's name"),
        ({"security_protocol": "TLS"}, "security protocol 'TLS'"),
        ({"compression": "rar"}, "choose lz4"),
        ({"timeout_seconds": 0}, "above 0 seconds"),
    ],
)
def test_settings_are_checked_at_once(wrong: dict[str, str], message: str) -> None:
    """Before any connection, as the user's mistake."""
    with pytest.raises(UserError, match=message):
        replace(SECRET, **wrong)


def test_kafka_python_is_loaded_at_its_first_use() -> None:
    """Whoever keeps the local stream pays nothing for Kafka."""
    script = "import sys, lapledger.ledger.streams.kafka; print('kafka' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"


def test_a_missing_kafka_python_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """With the extra that brings it."""
    monkeypatch.setitem(sys.modules, "kafka", None)
    with pytest.raises(UserError, match=r"kafka-python is missing.*lapledger\[kafka\]"):
        KafkaStream(SECRET)


def test_checksums_are_computed_in_c() -> None:
    """Without the extra crc32c the library is silently twenty times slower."""
    assert fast_checksums()


def test_two_members_divide_the_partitions_and_one_takes_over(
    stream: KafkaStream, kafka_settings: KafkaSettings
) -> None:
    """Each partition is one member's at a time; who leaves is replaced at once; names are fenced."""
    with closing(KafkaStream(kafka_settings)) as second_stream:
        first, second = stream.join("sinks", ["facts"], "one"), second_stream.join("sinks", ["facts"], "two/2")
        everything = {("facts", partition) for partition in range(4)}
        halves: tuple[frozenset[tuple[str, int]], ...] = (frozenset(), frozenset())
        while not (halves[0] | halves[1] == everything and len(halves[0]) == len(halves[1]) == 2):
            halves = (first.assigned(0.1), second.assigned(0.1))
        second.leave()
        while first.assigned(5.0) != everything:
            pass
        first.leave()


def test_positions_can_be_shown_to_kafka(stream: KafkaStream, admin: KafkaAdminClient) -> None:
    """So that its tools show the lag; only the member's own partitions."""
    group = stream.join("sinks", ["facts"], "one")
    while len(group.assigned(5.0)) != 4:
        pass
    stream.append("facts", 1, [Record({}, b"")] * 3)
    group.show({("facts", 1): 2, ("control", 0): 1})
    name = f"{stream.settings.prefix}.sinks"
    shown = {partition.partition: offset.offset for partition, offset in admin.list_group_offsets([name])[name].items()}
    group.leave()
    assert shown == {1: 2}
