"""Servers that die: a broker alone, one of three, and PostgreSQL in the middle of a commit. Work waits and goes on."""

import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from random import Random

import pytest

from lapledger.ledger.errors import Fault
from lapledger.ledger.store.location import Location
from lapledger.ledger.store.open_ledger import create_ledger, open_ledger
from lapledger.ledger.streams.kafka.settings import KafkaSettings
from lapledger.ledger.streams.kafka.stream import KafkaStream
from lapledger.stack.kafka import KafkaServer
from lapledger.stack.postgres import PostgresServer
from tests.chaos.checks import check_complete, check_same_facts, check_same_ledger, check_state
from tests.chaos.facts import largest
from tests.chaos.nursery import Nursery
from tests.chaos.test_kills_kafka import Scene, compare, kafka_ledger, until
from tests.support.servers import delete_topics

pytestmark = pytest.mark.chaos

QUICK_SECONDS = 3.0
"""How long one try of a client lasts here, so that an absence is noticed soon."""


def test_a_broker_that_dies_while_producing_is_waited_for(
    victims: Nursery,
    fresh: Callable[[str], Path],
    kafka_cluster: Callable[..., KafkaServer],
    tmp_path: Path,
    report: Callable[[str], None],
) -> None:
    """What cannot be appended is spooled and delivered on return, in order, under the same epoch and sequences.

    Writer and sink live through it; nothing has to be started again but the broker.
    """
    server = kafka_cluster(nodes=1)
    settings = KafkaSettings(server.bootstrap, prefix="chaos", timeout_seconds=QUICK_SECONDS)
    location, address = kafka_ledger(tmp_path / "ledger", settings)
    (tmp_path / "stop").mkdir()
    scene = Scene(victims, address, tmp_path / "stop")
    with closing(open_ledger(location)) as ledger:
        scene.start("writer")
        scene.start("sink-a")
        until(lambda: largest(ledger) > 5, "nothing is admitted")
        server.kill()
        until(lambda: "spool away" in scene.living["writer"].output(), "the writer does not spool")
        spool = location.root / "spool" / "epoch-1.sqlite"
        until(lambda: spool.with_name(f"{spool.name}-wal").stat().st_size > 100_000, "nothing is spooled")
        spooled = largest(ledger)
        server.start_node(1)
        until(lambda: "spool back" in scene.living["writer"].output(), "the spool is not delivered")
        until(lambda: largest(ledger) > spooled + 5, "nothing is admitted any more")
        scene.end("writer", "writer")
        victims.done("sink", address)
        scene.end("sinks", "sink-a")
        check_complete(ledger, count := largest(ledger) + 1)
        compare(victims, fresh("undisturbed"), ledger, count)
    report(f"servers: the only broker died while producing; {count} numbers written, each admitted once")


def test_two_of_three_brokers_go_on(
    victims: Nursery,
    fresh: Callable[[str], Path],
    kafka_cluster: Callable[..., KafkaServer],
    tmp_path: Path,
    report: Callable[[str], None],
) -> None:
    """With acks=all and two replicas in sync the writer and the sink go on while a broker is dead, whichever it is."""
    cluster = kafka_cluster(nodes=3)
    settings = KafkaSettings(cluster.bootstrap, prefix="chaos", timeout_seconds=20)
    location, address = kafka_ledger(tmp_path / "ledger", settings)
    (tmp_path / "stop").mkdir()
    scene = Scene(victims, address, tmp_path / "stop")
    with closing(open_ledger(location)) as ledger:
        scene.start("writer")
        scene.start("sink-a")
        for node in (1, 2):
            before = largest(ledger)
            until(lambda before=before: largest(ledger) > before + 5, "nothing is admitted")
            cluster.kill(node)
            dead = largest(ledger)
            until(lambda dead=dead: largest(ledger) > dead + 20, f"nothing is admitted without broker {node}")
            check_state(ledger)
            cluster.start_node(node)
            until(lambda: in_sync(settings), f"broker {node} does not catch up")
        scene.end("writer", "writer")
        victims.done("sink", address)
        scene.end("sinks", "sink-a")
        check_complete(ledger, count := largest(ledger) + 1)
        compare(victims, fresh("undisturbed"), ledger, count)
    report(f"servers: two of three brokers died in turn; {count} numbers written, each admitted once")


def in_sync(settings: KafkaSettings) -> bool:
    """Whether every partition has all its replicas in sync."""
    with closing(KafkaStream(settings)) as stream:
        try:
            topics = stream.with_admin(
                lambda admin: admin.describe_topics([settings.topic("facts"), settings.topic("control")])
            )
        except Fault:
            return False
    return all(len(part["isr_nodes"]) == 3 for topic in topics for part in topic["partitions"])


@pytest.fixture
def postgres(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PostgresServer]:
    """A server of the test's own that survives a power cut. Its folder is one that its own user can reach."""
    with tempfile.TemporaryDirectory(prefix="lap-chaos-postgres-") as folder:
        Path(folder).chmod(0o755)
        server = PostgresServer(Path(folder) / "data")
        server.start()
        try:
            yield server
        finally:
            server.stop()


COUNT = 60
AT_POINTS = ("sink.advanced", "sink.stored", "sink.committed")
AT_RANDOM = 4


def test_a_database_that_dies_in_a_commit_has_all_of_it_or_nothing(
    victims: Nursery,
    fresh: Callable[[str], Path],
    postgres: PostgresServer,
    tmp_path: Path,
    report: Callable[[str], None],
    times: int,
) -> None:
    """Killed with a transaction open, just committed, and at random moments: the sink says so in one line, exit code 1.

    Started again, the sink goes on where the last commit was, to the head of a ledger that nothing disturbed.
    """
    calm = fresh("calm")
    location = Location(tmp_path / "ledger", postgres.url)
    create_ledger(location, "identity-0", "now").close()
    address = {"root": str(location.root), "sql": location.sql}
    choice = Random(0)  # noqa: S311  (a seed that reproduces)
    died = 0
    moments: list[str] = [*AT_POINTS, *[""] * AT_RANDOM * times]
    for number, point in enumerate(moments):
        for target in (address, calm):
            victims.done("append_only", target, f"epoch-{number}", COUNT * number, COUNT * (number + 1))
        victims.done("sink", calm)
        crash = (point, 1, "SIGSTOP") if point else None
        sink = victims.start("sink", address, crash=crash)
        if point:
            sink.until_paused()
        else:
            time.sleep(choice.uniform(0, 0.3))
        postgres.kill()
        sink.go_on()
        died += sink.wait() != 0
        assert sink.status in (0, 1), sink.output()
        assert sink.output().count("\n") == 1, sink.output()
        postgres.start()
        with closing(open_ledger(location)) as ledger:
            check_state(ledger)
        victims.done("sink", address)
    with closing(open_ledger(location)) as ledger, closing(open_ledger(calm)) as undisturbed:
        check_complete(ledger, COUNT * len(moments))
        check_same_facts(ledger, undisturbed)
        check_same_ledger(ledger, undisturbed)
    assert died >= len(AT_POINTS)
    report(f"servers: PostgreSQL died {len(moments)} times, {died} of them under a sink that had to be started again")


def test_a_topic_made_anew_stops_the_sink(
    victims: Nursery, kafka_settings: KafkaSettings, tmp_path: Path, report: Callable[[str], None]
) -> None:
    """Its positions mean other records now: the sink says so and admits nothing, however many records it holds."""
    location, address = kafka_ledger(tmp_path / "ledger", kafka_settings)
    victims.done("append_only", address, "epoch-0", 0, 12)
    victims.done("sink", address)
    with closing(open_ledger(location)) as ledger:
        before = ledger.cut(), ledger.head()
        made_anew(kafka_settings)
        victims.done("append_only", address, "epoch-1", 12, 60)
        sink = victims.run("sink", address)
        assert (sink.status, sink.output().count("\n")) == (1, 1), sink.output()
        assert "was recreated" in sink.output()
        assert (ledger.cut(), ledger.head()) == before
    report("servers: a topic made anew stopped the sink; nothing was admitted")


def made_anew(settings: KafkaSettings) -> None:
    """Deletes the topics and makes them again."""
    delete_topics(settings)
    with closing(KafkaStream.create(settings)):
        pass
