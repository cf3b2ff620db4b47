"""`lap ledger copy`, `backup` and `restore`: the same ledger at another location, checked against its head."""

import os
import shutil
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import asdict
from pathlib import Path

import click

from lapledger.cli.options import json_option, ledger_option
from lapledger.ledger.errors import UserError
from lapledger.ledger.store.location import Location
from lapledger.ledger.store.open_ledger import Ledger, open_ledger
from lapledger.render.output import print_json, print_line, print_message, progress
from lapledger.render.terminal import TERMINAL
from lapledger.settings import Settings, read_settings
from lapledger.workflows.session import new_id, open_writer


@click.command()
@click.argument("folder", type=click.Path(path_type=Path))
@click.option("--to-sql", default="", metavar="URL", help="Database, postgresql://...  [default: in the folder]")
@click.option("--to-store", default="", metavar="URL", help="Object store, s3://...  [default: in the folder]")
@click.option("--to-kafka", default="", metavar="SERVERS", help="Kafka brokers.  [default: a file in the folder]")
@click.option("--to-kafka-prefix", default="lap", metavar="PREFIX", help="Prefix of the topics.  [default: lap]")
@ledger_option
@json_option
def copy(
    folder: Path, to_sql: str, to_store: str, to_kafka: str, to_kafka_prefix: str, ledger: str | None, as_json: bool
) -> None:
    """Migrate the ledger to an empty location: the same cut and head, on a new stream.

    Other processes may keep writing; the copy is a snapshot of its start. Rerun an interrupted copy to resume it.
    Passwords come from PGPASSWORD and the settings `kafka_...`, keys from the AWS environment. To switch over, first
    stop all writers, then set `ledger`, `sql`, `store` and `kafka` to the new location.

    \b
    Example:
      lap ledger copy moved --to-sql postgresql://lap@db/lap --to-kafka kafka:9092
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
    """Copy the ledger with all its parts into a local folder that needs no server. A failure leaves nothing.

    \b
    Example:
      lap ledger backup /backup/2026-10-01
      lap verify --ledger /backup/2026-10-01
    """
    settings = read_settings(ledger=ledger)
    with _drained(settings.location) as source, _nothing_left(folder):
        _copy(source, _target(settings, folder, {}), as_json=as_json)


@contextmanager
def _nothing_left(folder: Path) -> Iterator[None]:
    """A folder that was not there before is gone again after a failure: half a backup is mistaken for one."""
    existed = folder.exists()
    try:
        yield
    except BaseException:
        if not existed:
            shutil.rmtree(folder, ignore_errors=True)
        raise


@click.command()
@click.argument("folder", type=click.Path(path_type=Path))
@ledger_option
@json_option
def restore(folder: Path, ledger: str | None, as_json: bool) -> None:
    """Copy the ledger from a backup into the configured location, which must be empty.

    \b
    Example:
      lap ledger restore /backup/2026-10-01 --ledger restored
      lap verify --ledger restored
    """
    target = read_settings(ledger=ledger).location
    with _drained(Location(folder, reserve_bytes=target.reserve_bytes)) as source:
        _copy(source, target, as_json=as_json)


def _target(settings: Settings, folder: Path, parts: dict[str, str]) -> Location:
    """The location of a copy; parts without an address are in its folder."""
    empty = {"sql": "", "store": "", "kafka": ""}
    changed = settings.model_dump() | empty | parts | {"ledger": folder}
    return read_settings(**changed).location


@contextmanager
def _drained(location: Location) -> Iterator[Ledger]:
    """The ledger with its stream ingested; one in a read-only folder as it is."""
    if os.access(location.root, os.W_OK):
        with open_writer(location, "lap ledger copy", TERMINAL) as writer:
            yield writer.ledger
    elif location.root.is_dir():
        with closing(open_ledger(location)) as ledger:
            yield ledger
    else:
        raise UserError(f"there is no ledger in {location}; name the folder of one")


def _copy(source: Ledger, target: Location, *, as_json: bool) -> None:
    from lapledger.consumers.storage.ledger_copy import copy_ledger

    with progress("copying", 1) as bar:
        task = bar.task_ids[0]

        def on_progress(part: str, done: int, total: int) -> None:
            bar.update(task, description=part, completed=done, total=total)

        copied = copy_ledger(source, target, stream_identity=new_id(), progress=on_progress)
    if as_json:
        print_json(asdict(copied))
        return
    print_message(
        f"copied ledger {copied.identity} into {target}: {copied.rows['frame']} frames, {copied.segments} segments,"
        f" {copied.blobs} blobs; {copied.files_copied} files of {copied.bytes_copied >> 20} MiB were copied"
    )
    print_line(f"head {copied.head}")
    print_line(f"cut {copied.cut}")
