"""Starting and stopping the Kafka broker and PostgreSQL of one folder, one process at a time."""

import fcntl
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from secrets import token_urlsafe

from lapledger.ledger.disk import make_private
from lapledger.ledger.errors import UserError, io_fault
from lapledger.workflows.reporter import Reporter

SERVERS = ("postgres", "kafka")


def start_servers(
    folder: Path, names: tuple[str, ...], reporter: Reporter, *, password: bool = False
) -> dict[str, str]:
    """Settings by name of the servers that now run; if one fails to start, those started here are stopped again.

    With `password` servers that are made now ask for one, permanently; it lies in the folder, for its owner only.
    UserError where they were made without.
    """
    from lapledger.stack.kafka import KafkaServer
    from lapledger.stack.postgres import PostgresServer

    settings: dict[str, str] = {}
    started: list[KafkaServer | PostgresServer] = []
    with _locked(folder):
        secret = _password(folder, wanted=password)
        kafka = KafkaServer(folder / "kafka", password=secret)
        postgres = PostgresServer(folder / "postgres", password=secret)
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
                settings |= _login(secret) if secret else {}
        except BaseException:
            for server in started:
                server.stop()
            raise
    return settings


def _password(folder: Path, *, wanted: bool) -> str:
    """The password of the servers in a folder; "" where they ask for none."""
    file = folder / "password"
    if file.exists() and (kept := file.read_text().strip()):  # an empty one is of a start that was killed
        return kept
    if not wanted:
        return ""
    if any((folder / name).exists() for name in SERVERS):
        raise UserError(f"the servers in {folder} were made without a password; choose another --folder")
    make_private(file)
    file.write_text(token_urlsafe(24) + "\n")
    return file.read_text().strip()


def _login(password: str) -> dict[str, str]:
    from lapledger.stack.kafka_node import USER

    return {
        "kafka_security": "SASL_PLAINTEXT",
        "kafka_mechanism": "PLAIN",
        "kafka_username": USER,
        "kafka_password": password,
    }


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
