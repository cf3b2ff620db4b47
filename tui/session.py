"""The edge of every command: opens the ledger, gives producers their epoch, and brings the stream into the ledger.

Here, and only here, a command meets the clock and fresh ids. With the local stream a command is its own sink: it admits
what lies on the stream before it starts, and what it appended before it ends.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING

import click

from ledger.errors import UserError
from ledger.store.cuts import Cut
from ledger.store.opened import Ledger, create_ledger, open_ledger

if TYPE_CHECKING:
    from ledger.questions import Questions
    from ledger.streams.producer import Producer


def new_id() -> str:
    """A fresh UUIDv7."""
    from uuid_utils import uuid7

    return str(uuid7())


def utc_now() -> str:
    """Wall time as a label."""
    return datetime.now(UTC).isoformat(timespec="milliseconds")


def release() -> str:
    """The version of lapledger."""
    return version("lapledger")


def make_ledger(root: Path) -> Ledger:
    """The ledger in a folder, made or upgraded."""
    return create_ledger(root, new_id(), utc_now())


@dataclass(frozen=True, slots=True)
class Writing:
    """An open ledger with a producer; `admit` brings the stream into the ledger and returns the frames admitted."""

    ledger: Ledger
    producer: "Producer"
    admit: Callable[[], int]


@contextmanager
def asking(root: Path, at: str | None = None) -> Iterator["Questions"]:
    """Questions to the ledger at a cut, by default at everything admitted; UserError for a cut that lies ahead."""
    from ledger.questions import Questions

    ledger = open_ledger(root)
    try:
        cut = ledger.cut() if at is None else Cut.parse(at)
        if not cut <= ledger.cut():
            raise UserError(
                f"the cut {cut} lies ahead of this ledger, which stands at {ledger.cut()}; copy an older one"
            )
        questions = Questions(ledger, cut)
        try:
            yield questions
        finally:
            questions.close()
    finally:
        ledger.close()


@contextmanager
def writing(root: Path, label: str) -> Iterator[Writing]:
    """A ledger to append to: the stream is admitted first and last, the producer's epoch is opened and closed."""
    from consumers.sink import drain
    from ledger.streams.producer import Producer

    ledger = open_ledger(root)
    stream = ledger.stream()

    def admit() -> int:
        drained = drain(ledger, stream)
        if drained.quarantined:
            click.echo(f"lap: {drained.quarantined} records were quarantined; see `lap ledger status`", err=True)
        return drained.admitted

    try:
        admit()
        producer = Producer(stream, new_id(), label, release())
        try:
            yield Writing(ledger, producer, admit)
        finally:
            producer.close()
            admit()
    finally:
        stream.close()
        ledger.close()
