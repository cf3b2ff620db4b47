"""Real Kafka brokers and PostgreSQL servers for tests: those that LAP_KAFKA and LAP_SQL name, else own ones.

Workers of one test run share a server: the first starts it, the last one ends it. A lost worker's claim ends with it.
"""

import contextlib
import fcntl
import os
import secrets
import shutil
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from kafka import KafkaAdminClient

from lapledger.ledger.events import PARTITIONS
from lapledger.ledger.streams.kafka.settings import KafkaSettings
from lapledger.stack.kafka import KafkaServer
from lapledger.stack.postgres import PostgresServer

SWEEP_SECONDS = 600
GIVEN = "GIVEN_"
"""What a setting of the user's is called during the tests, so that no test's command meets it."""


def hide_given() -> None:
    """Renames the variables that name servers; the workers of a parallel run inherit them under the other name."""
    for name in ("LAP_KAFKA", "LAP_SQL"):
        if name in os.environ:
            os.environ[GIVEN + name] = os.environ.pop(name)


@contextlib.contextmanager
def kafka_running(run: str) -> Iterator[str]:
    """The address of a broker that all workers of a run share."""
    if given := os.environ.get(f"{GIVEN}LAP_KAFKA"):
        yield given
        return
    with _shared(run, "kafka") as folder:
        server = KafkaServer(folder / "data")
        with _used(folder, server):
            yield server.bootstrap


@contextlib.contextmanager
def postgres_running(run: str) -> Iterator[str]:
    """The address of a database server that all workers of a run share."""
    if given := os.environ.get(f"{GIVEN}LAP_SQL"):
        yield given
        return
    with _shared(run, "postgres") as folder:
        server = PostgresServer(folder / "data")
        with _used(folder, server):
            yield server.url


@contextlib.contextmanager
def _shared(run: str, name: str) -> Iterator[Path]:
    """A folder of the whole run. Not below pytest's own, whose permissions other runs tighten meanwhile."""
    root = Path(tempfile.gettempdir())
    for left in root.glob(f"lap-tests-*/{name}"):
        _sweep(left)
    folder = root / f"lap-tests-{run}" / name
    folder.mkdir(parents=True, exist_ok=True)
    yield folder


def _sweep(folder: Path) -> None:
    """Ends the server of a run that was killed: nobody holds its claim, and it is no new one."""
    if time.time() - folder.stat().st_mtime < SWEEP_SECONDS:
        return
    with contextlib.suppress(OSError), _locked(folder), (folder / "users").open("r+") as users:
        fcntl.flock(users, fcntl.LOCK_EX | fcntl.LOCK_NB)
        for server in (KafkaServer(folder / "data"), PostgresServer(folder / "data")):
            server.stop()
        shutil.rmtree(folder.parent, ignore_errors=True)


@contextlib.contextmanager
def _used(folder: Path, server: KafkaServer | PostgresServer) -> Iterator[None]:
    """A running server; it ends, and its folder goes, when nobody uses it any more."""
    with (folder / "users").open("w") as users:
        with _locked(folder):
            server.start()
            fcntl.flock(users, fcntl.LOCK_SH)
        try:
            yield
        finally:
            with _locked(folder):
                fcntl.flock(users, fcntl.LOCK_UN)
                with contextlib.suppress(BlockingIOError):
                    fcntl.flock(users, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    server.stop()
                    shutil.rmtree(folder / "data", ignore_errors=True)


@contextlib.contextmanager
def _locked(folder: Path) -> Iterator[None]:
    with (folder / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


@contextlib.contextmanager
def own_cluster(folder: Path, nodes: int) -> Iterator[KafkaServer]:
    """A running cluster that nobody else uses; it has ended when this returns."""
    cluster = KafkaServer(folder / f"{nodes}-{secrets.token_hex(2)}", nodes)
    try:
        cluster.start()
        yield cluster
    finally:
        cluster.kill()


@contextlib.contextmanager
def fresh_topics(servers: str, **more: object) -> Iterator[KafkaSettings]:
    """Settings with a prefix of their own; its topics are gone afterwards."""
    settings = KafkaSettings(servers=servers, prefix=f"test-{secrets.token_hex(6)}", timeout_seconds=20, **more)
    yield settings
    delete_topics(settings)


def delete_topics(settings: KafkaSettings) -> None:
    """Deletes the topics that exist, and returns when the broker knows it."""
    admin = KafkaAdminClient(bootstrap_servers=list(settings.bootstrap))
    try:
        while topics := {settings.topic(stream) for stream in PARTITIONS} & set(admin.list_topics()):
            admin.delete_topics(sorted(topics), raise_errors=False)
    finally:
        admin.close()
