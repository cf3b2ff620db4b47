"""What the Kafka stream tells when brokers are away, silent, killed or damaged, and that nothing is lost meanwhile."""

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import replace
from pathlib import Path

import pytest
from kafka import KafkaAdminClient

from lapledger.ledger.errors import Fault, Unavailable
from lapledger.ledger.frames.frame import Record
from lapledger.ledger.streams.kafka.settings import KafkaSettings
from lapledger.ledger.streams.kafka.stream import KafkaStream, brokers
from lapledger.stack.kafka import KafkaServer
from tests.ledger.kafka_views import configured, payloads
from tests.support.processes import until
from tests.support.servers import own_cluster

Clusters = Callable[..., KafkaServer]


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KafkaServer]:
    """A broker that only this file uses, so that it may kill it."""
    with own_cluster(tmp_path_factory.mktemp("broker"), nodes=1) as server:
        yield server


@pytest.mark.parametrize("call", ["create", "identity", "append", "read", "ends", "trim", "join", "brokers"])
def test_no_broker_is_reported_in_time(call: str) -> None:
    """Every call gives up after its timeout, in one line that names the address, and leaves no thread behind."""
    settings = KafkaSettings(servers="127.0.0.1:1", timeout_seconds=0.5)
    stream = KafkaStream(settings)
    calls: dict[str, Callable[[], object]] = {
        "create": lambda: KafkaStream.create(settings),
        "identity": lambda: stream.identity("facts"),
        "append": lambda: stream.append("facts", 0, [Record({}, b"")]),
        "read": lambda: stream.read("facts", 0, 0, 1),
        "ends": stream.ends,
        "trim": lambda: stream.trim("facts", 0, 0),
        "join": lambda: stream.join("sinks", ["facts"], "member"),
        "brokers": lambda: brokers(settings),
    }
    before = set(threading.enumerate())
    with pytest.raises(Unavailable, match=r"the broker 127.0.0.1:1 .*check that it runs") as caught:
        calls[call]()
    assert "\n" not in str(caught.value)
    left = set(threading.enumerate()) - before
    assert not [thread for thread in left if thread.name.startswith("kafka-io-lapledger")]


def test_a_killed_broker_is_reported_and_its_records_stay(broker: KafkaServer) -> None:
    """Appends fail while it is away; after its restart they go on, and what was acknowledged is there in order."""
    settings = KafkaSettings(servers=broker.bootstrap, prefix="killed", timeout_seconds=3)
    with closing(KafkaStream.create(settings)) as stream:
        acknowledged, failed = 0, threading.Event()

        def append() -> None:
            nonlocal acknowledged
            with suppress(Unavailable):
                while True:
                    stream.append("facts", 0, [Record({}, str(acknowledged).encode())])
                    acknowledged += 1
            failed.set()

        thread = threading.Thread(target=append)
        thread.start()
        while acknowledged < 20:
            pass
        broker.kill()
        thread.join()
        assert failed.is_set()
        with pytest.raises(Unavailable):
            stream.read("facts", 0, 10, 1)
        broker.start()
        stream.append("facts", 0, [Record({}, b"after")])
        stored = payloads(stream)
        assert stored[:acknowledged] == [str(n).encode() for n in range(acknowledged)]
        assert stored[acknowledged:] in ([b"after"], [str(acknowledged).encode(), b"after"])


@contextmanager
def frozen(broker: KafkaServer) -> Iterator[None]:
    """The broker stands still, every thread of it, as the kernel says; it goes on afterwards whatever happens."""
    (node,) = broker.nodes()
    threads = Path(f"/proc/{node.pid}/task")
    broker.signal(signal.SIGSTOP)
    try:
        until(lambda: all(state(thread) == "T" for thread in threads.iterdir()), "the broker stands still")
        yield
    finally:
        broker.signal(signal.SIGCONT)


def state(thread: Path) -> str:
    """The state of a thread in one letter; T where it is stopped, or gone."""
    with suppress(FileNotFoundError, ProcessLookupError):
        return (thread / "stat").read_text().rpartition(")")[2].split()[0]
    return "T"


def test_a_frozen_broker_is_reported_in_time(broker: KafkaServer) -> None:
    """It takes connections and does not answer: every call gives up; thawed, it goes on, in order."""
    settings = KafkaSettings(servers=broker.bootstrap, prefix="frozen", timeout_seconds=2)
    with closing(KafkaStream.create(settings)) as stream:
        stream.append("facts", 0, [Record({}, b"before")])
        with frozen(broker):
            with pytest.raises(Unavailable):
                stream.append("facts", 0, [Record({}, b"unknown")])
            for call in (stream.ends, lambda: stream.read("facts", 0, 0, 1), lambda: stream.identity("facts")):
                with pytest.raises(Unavailable):
                    call()
        with closing(KafkaStream(replace(settings, timeout_seconds=20))) as patient:
            patient.append("facts", 0, [Record({}, b"after")])
            stored = payloads(patient)
    assert sorted(set(stored) - {b"unknown"}, key=stored.index) == [b"before", b"after"]


def test_a_damaged_batch_is_loud(broker: KafkaServer) -> None:
    """A byte that changed on the broker's disk is neither skipped nor quarantined: the reader stops and says where."""
    settings = KafkaSettings(servers=broker.bootstrap, prefix="damaged")
    with closing(KafkaStream.create(settings)) as stream:
        for payload in (b"first", b"second", b"third"):
            stream.append("facts", 0, [Record({}, payload)])
    assert len(broker.stop()) == 1
    (log,) = broker.folder.glob("node-1/data/damaged.facts-0/*.log")
    log.write_bytes(log.read_bytes().replace(b"second", b"sEcond"))
    broker.start()
    with closing(KafkaStream(settings)) as stream:
        assert stream.read("facts", 0, 0, 1)[0].record.payload == b"first"
        for _ in range(2):
            with pytest.raises(Fault, match="the record at 1 is damaged"):
                stream.read("facts", 0, 1, 10)
        assert payloads(stream, 2) == [b"third"]


@pytest.mark.chaos
def test_a_lost_leader_is_replaced_and_two_lost_brokers_are_reported(kafka_cluster: Clusters) -> None:
    """Three copies, of which two must have a record before it counts; what was acknowledged survives every loss."""
    cluster = kafka_cluster(nodes=3)
    settings = KafkaSettings(servers=cluster.bootstrap, replication=3, timeout_seconds=20)
    with closing(KafkaStream.create(settings)) as stream:
        stream.append("facts", 0, [Record({}, b"before")])
        with closing(KafkaAdminClient(bootstrap_servers=cluster.bootstrap)) as client:
            assert configured(client, "lap.facts")["min.insync.replicas"] == "2"
            leader = client.describe_topics(["lap.facts"])[0]["partitions"][0]["leader_id"]
        cluster.kill(leader)
        stream.append("facts", 0, [Record({}, b"one lost")])
        assert payloads(stream) == [b"before", b"one lost"]
        cluster.kill(leader % 3 + 1)
        with closing(KafkaStream(replace(settings, timeout_seconds=2))) as hasty, pytest.raises(Unavailable):
            hasty.append("facts", 0, [Record({}, b"unknown")])
        cluster.start()
        stream.append("facts", 0, [Record({}, b"all back")])
        stored = payloads(stream)
    assert [stored[0], stored[1], stored[-1]] == [b"before", b"one lost", b"all back"]
    assert set(stored[2:-1]) <= {b"unknown"}
