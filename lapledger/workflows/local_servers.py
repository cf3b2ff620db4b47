"""Starting and stopping the Kafka broker and PostgreSQL of one folder, one process at a time."""

import fcntl
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from lapledger.ledger.errors import io_fault
from lapledger.workflows.reporter import Reporter

SERVERS = ("postgres", "kafka")


def start_servers(folder: Path, names: tuple[str, ...], reporter: Reporter) -> dict[str, str]:
    """Settings by name of the servers that now run; if one fails to start, those started here are stopped again."""
    from lapledger.stack.kafka import KafkaServer
    from lapledger.stack.postgres import PostgresServer

    settings: dict[str, str] = {}
    started: list[KafkaServer | PostgresServer] = []
    with _locked(folder):
        kafka, postgres = KafkaServer(folder / "kafka"), PostgresServer(folder / "postgres")
        try:
            if "postgres" in names:
                started += [] if postgres.pid else [postgres]
                state = "starting" if started else "already running"
                reporter.message(f"postgres: {state} in {postgres.folder}")
                postgres.start()
                settings["sql"] = postgres.url
            if "kafka" in names:
                running = bool(kafka.running())
                started += [] if running else [kafka]
                state = "already running" if running else "starting (takes some seconds)"
                reporter.message(f"kafka: {state} in {kafka.folder}")
                kafka.start()
                settings["kafka"] = kafka.bootstrap
        except BaseException:
            for server in started:
                server.stop()
            raise
    return settings


def stop_servers(folder: Path) -> dict[str, tuple[int, ...]]:
    """Process ids that were ended, by server; empty where none ran."""
    from lapledger.stack.kafka import KafkaServer
    from lapledger.stack.postgres import PostgresServer

    if not folder.is_dir():
        return {}
    with _locked(folder):
        pids = {"kafka": KafkaServer(folder / "kafka").stop(), "postgres": PostgresServer(folder / "postgres").stop()}
    return {name: ended for name, ended in pids.items() if ended}


@contextmanager
def _locked(folder: Path) -> Iterator[None]:
    """The folder, created if missing and locked, so that no other process starts or stops its servers meanwhile."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        file = (folder / "lock").open("w")
    except OSError as error:
        raise io_fault(error, f"cannot use {folder}") from error
    with file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield
