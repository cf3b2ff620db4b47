"""`lap ledger copy`, `backup` and `restore`: the same ledger in another place, checked against its head."""

import os
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import asdict
from pathlib import Path

import click

from lapledger.cli.options import json_option, ledger_option
from lapledger.ledger.errors import UserError
from lapledger.ledger.store.location import Location
from lapledger.ledger.store.open_ledger import Ledger, open_ledger
from lapledger.render.output import print_json, progress, say
from lapledger.render.terminal import TERMINAL
from lapledger.settings import Settings, read_settings
from lapledger.workflows.session import new_id, open_writer


@click.command()
@click.option(
    "--to", "folder", required=True, type=click.Path(path_type=Path), metavar="FOLDER", help="Its new folder."
)
@click.option("--to-sql", default="", metavar="URL", help="Its database, postgresql://...; else in the folder.")
@click.option("--to-store", default="", metavar="URL", help="Of segments and blobs, s3://...; else in the folder.")
@click.option("--to-kafka", default="", metavar="SERVERS", help="Its brokers; else a file in the folder.")
@click.option("--to-kafka-prefix", default="lap", metavar="P", help="Of its topics.  [default: lap]")
@ledger_option
@json_option
def copy(
    folder: Path, to_sql: str, to_store: str, to_kafka: str, to_kafka_prefix: str, ledger: str | None, as_json: bool
) -> None:
    """Copy the ledger into an empty place: the same ledger with the same cut and head, on a stream of its own.

    Others may go on writing; the copy is as of the moment when it began. One that was interrupted goes on when it is
    run again. Passwords come from PGPASSWORD and the settings `kafka_...`, keys from the AWS environment. To go on in
    the new place, stop what writes to the old one first, and set `ledger`, `sql`, `store` and `kafka` to the new.

    \b
    Example:
      lap ledger copy --to moved --to-sql postgresql://lap@db/lap --to-kafka kafka:9092
      LAP_SQL=postgresql://lap@db/lap LAP_KAFKA=kafka:9092 lap verify --ledger moved
    """
    settings = read_settings(ledger=ledger)
    parts = {"sql": to_sql, "store": to_store, "kafka": to_kafka, "kafka_prefix": to_kafka_prefix}
    with _drained(settings.location) as source:
        _copy(source, _target(settings, folder, parts), as_json=as_json)


@click.command()
@click.argument("folder", type=click.Path(path_type=Path))
@ledger_option
@json_option
def backup(folder: Path, ledger: str | None, as_json: bool) -> None:
    """Copy the ledger, wherever its parts lie, into a plain local folder that needs no server.

    \b
    Example:
      lap ledger backup /backup/2026-10-01
      lap verify --ledger /backup/2026-10-01
    """
    settings = read_settings(ledger=ledger)
    with _drained(settings.location) as source:
        _copy(source, _target(settings, folder, {}), as_json=as_json)


@click.command()
@click.argument("folder", type=click.Path(path_type=Path))
@ledger_option
@json_option
def restore(folder: Path, ledger: str | None, as_json: bool) -> None:
    """Copy the ledger from a backup into the configured place, which must hold none.

    \b
    Example:
      lap ledger restore /backup/2026-10-01 --ledger restored
      lap verify --ledger restored
    """
    target = read_settings(ledger=ledger).location
    with _drained(Location(folder, reserve_bytes=target.reserve_bytes)) as source:
        _copy(source, target, as_json=as_json)


def _target(settings: Settings, folder: Path, parts: dict[str, str]) -> Location:
    """The place of a copy; what is no part of it stays in its folder."""
    empty = {"sql": "", "store": "", "kafka": ""}
    changed = settings.model_dump() | empty | parts | {"ledger": folder}
    return read_settings(**changed).location


@contextmanager
def _drained(place: Location) -> Iterator[Ledger]:
    """The ledger with all that lay on its stream; one in a folder that cannot be written is taken as it is."""
    if os.access(place.root, os.W_OK):
        with open_writer(place, "lap ledger copy", TERMINAL) as writer:
            yield writer.ledger
    elif place.root.is_dir():
        with closing(open_ledger(place)) as ledger:
            yield ledger
    else:
        raise UserError(f"there is no ledger in {place}; name the folder of one")


def _copy(source: Ledger, target: Location, *, as_json: bool) -> None:
    from lapledger.consumers.storage.ledger_copy import copy_ledger

    with progress("copying", 1) as bar:
        task = bar.task_ids[0]

        def told(part: str, done: int, total: int) -> None:
            bar.update(task, description=part, completed=done, total=total)

        copied = copy_ledger(source, target, stream_identity=new_id(), progress=told)
    if as_json:
        print_json(asdict(copied))
        return
    say(
        f"copied ledger {copied.identity} into {target}: {copied.rows['frame']} frames, {copied.segments} segments,"
        f" {copied.blobs} blobs; {copied.files_copied} files of {copied.bytes_copied >> 20} MiB were missing there"
    )
    click.echo(f"head {copied.head}")
    click.echo(f"cut {copied.cut}")
