"""What all tests share: the property tests' profile, where third-party data lies, one run of the demo."""

import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from lapledger.ledger.streams.kafka.settings import KafkaSettings
from lapledger.stack.kafka import KafkaServer
from tests.support.lap import lap
from tests.support.s3_servers import S3Server, s3_server
from tests.support.servers import fresh_topics, hide_given, kafka_running, own_cluster, postgres_running
from tests.support.shared import build_once

pytest_plugins = ["tests.support.databases"]

settings.register_profile("lap", deadline=None, suppress_health_check=[HealthCheck.too_slow], print_blob=True)
settings.load_profile("lap")
hide_given()

REAL_DATA = Path(__file__).resolve().parents[2] / "shared" / "data"


@pytest.fixture(scope="session")
def real_data() -> Path:
    """The folder of third-party files; a test that needs it is skipped where they are not at hand."""
    if not REAL_DATA.is_dir():
        pytest.skip(f"third-party data is not at hand in {REAL_DATA}")
    return REAL_DATA


@pytest.fixture(scope="session")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The ledger that `lap demo --into demo` made, once for all workers; for reading only."""

    def build(folder: Path) -> None:
        done = lap("demo", "--into", "demo", cwd=folder)
        if done.code:
            pytest.fail(f"lap demo ended with {done.code}: {done.err[-600:]}", pytrace=False)

    return build_once(tmp_path_factory, "demo", build) / "demo"


@pytest.fixture(scope="session")
def s3_running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[S3Server]:
    """One S3 server for all tests; each takes a prefix of its own."""
    with s3_server(tmp_path_factory.mktemp("s3")) as server:
        yield server


@pytest.fixture
def s3(s3_running: S3Server, monkeypatch: pytest.MonkeyPatch) -> S3Server:
    """The S3 server, and its keys in the environment."""
    for name, value in s3_running.environment.items():
        monkeypatch.setenv(name, value)
    return s3_running


@pytest.fixture(scope="session")
def run_id(request: pytest.FixtureRequest) -> str:
    """A word that the workers of one test run have in common."""
    return str(getattr(request.config, "workerinput", {}).get("testrunuid", os.getpid()))


@pytest.fixture(scope="session")
def kafka_servers(run_id: str) -> Iterator[str]:
    """The address of a real Kafka: that of LAP_KAFKA, else one broker for the whole run."""
    with kafka_running(run_id) as address:
        yield address


@pytest.fixture(scope="session")
def postgres_url(run_id: str) -> Iterator[str]:
    """The address of a real PostgreSQL: that of LAP_SQL, else one server for the whole run."""
    with postgres_running(run_id) as url:
        yield url


@pytest.fixture
def kafka_settings(kafka_servers: str) -> Iterator[KafkaSettings]:
    """Settings with topics of the test's own, which it makes; they are deleted after it."""
    with fresh_topics(kafka_servers) as fresh:
        yield fresh


@pytest.fixture
def kafka_cluster(tmp_path: Path) -> Iterator[Callable[..., KafkaServer]]:
    """Starts clusters of the test's own, to be killed and frozen: `kafka_cluster(nodes=3)`; they end with the test."""
    with ExitStack() as stack:
        yield lambda nodes=3: stack.enter_context(own_cluster(tmp_path / "kafka", nodes))
