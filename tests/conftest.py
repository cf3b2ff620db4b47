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
settings.register_profile("quick", settings.get_profile("lap"), max_examples=20)
settings.load_profile("lap")
hide_given()

SLOW_FIXTURES = {
    *("kafka_servers", "kafka_cluster", "postgres_server", "postgres_url", "s3_running"),
    *("broker", "secured", "demo", "real_data", "victims", "ray", "address"),
}
"""Fixtures that start servers and clusters, run many programs in the sandbox, or read much third-party data."""

SERVERS = {"postgresql", "kafka", "s3", "kafka_settings", "postgres_url"}
"""Parameters of tests that run over a server."""

SLOW_FILES = (
    "test_wheel.py",
    "test_readme.py",
    "chaos/",
    "corpus/",
    "consumers/test_exports_",
    "consumers/test_loading.py",
    "consumers/test_rewarder.py",
    "consumers/test_scoring.py",
    "lapledger/test_bundle.py",
    "lapledger/test_commands.py",
    "lapledger/test_errors.py",
    "lapledger/test_export.py",
    "lapledger/test_import_samples.py",
    "lapledger/test_interrupts.py",
    "lapledger/test_operations.py",
    "lapledger/test_own_limits.py",
    "lapledger/test_run.py",
    "lapledger/test_services.py",
    "lapledger/test_sql_command.py",
    "lapledger/test_stack.py",
    "lapledger/test_trainers.py",
    "lapledger/test_trl.py",
    "producers/test_real_packages.py",
    "producers/test_results_",
    "producers/test_sandbox",
    "producers/test_worker_pool.py",
    "tui/test_screens.py",
)
"""Beginnings of the paths of tests that run programs in the sandbox, commands as processes, many random histories, or
kill processes."""

TESTS = Path(__file__).resolve().parent
REAL_DATA = TESTS.parents[1] / "shared" / "data"


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Marks the slow tests, and puts their files first, so that all workers end at the same time.

    A file that needs the demo comes before all others: its worker builds the demo while others run what needs none.
    """
    for item in items:
        if is_slow(item):
            item.add_marker(pytest.mark.slow)
    first = {item.path for item in items if item.get_closest_marker("slow")}
    builder = next((item.path for item in items if "demo" in getattr(item, "fixturenames", ())), None)
    items.sort(key=lambda item: (item.path != builder, item.path not in first))


def is_slow(item: pytest.Item) -> bool:
    """Whether a test needs a slow fixture, runs over a server, or lies in a slow file."""
    path = item.path.relative_to(TESTS).as_posix()
    parameters = item.callspec.params.values() if hasattr(item, "callspec") else ()
    over_a_server = any(isinstance(value, str) and value in SERVERS for value in parameters)
    fixtures = set(getattr(item, "fixturenames", ()))
    return path.startswith(SLOW_FILES) or over_a_server or not fixtures.isdisjoint(SLOW_FIXTURES)


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
