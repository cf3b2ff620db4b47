"""The edge of every command: opens the ledger, gives producers their epoch, and brings the stream into the ledger.

Here, and only here, a command meets the clock and fresh ids. With the local stream a command is its own sink: it admits
what lies on the stream before it starts, and what it appended before it ends.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING

import click

from ledger.store.cuts import Cut
from ledger.store.engine import reading
from ledger.store.opened import Ledger, create_ledger, open_ledger

if TYPE_CHECKING:
    from ledger.questions import Questions


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


class Writing:
    """An open ledger to append to, with a producer whose epoch is opened only when something is appended."""

    def __init__(self, ledger: Ledger, label: str) -> None:
        from ledger.streams.producer import Producer

        self.ledger = ledger
        self._stream = ledger.stream()
        self.producer = Producer(self._stream, new_id(), label, release())

    def admit(self) -> int:
        """Brings the stream into the ledger; the frames admitted. Quarantined records are told on stderr."""
        from consumers.sink import drain

        drained = drain(self.ledger, self._stream, seen=utc_now())
        if drained.quarantined:
            click.echo(f"lap: {drained.quarantined} records were quarantined; see `lap ledger status`", err=True)
        return drained.admitted

    def close(self) -> None:
        """Closes the epoch, admits what was appended, and releases the files."""
        try:
            self.producer.close()
            self.admit()
        finally:
            self._stream.close()
            self.ledger.close()


@contextmanager
def asking(root: Path, at: str | None = None) -> Iterator["Questions"]:
    """Questions to the ledger at a cut, by default at everything admitted; UserError for a cut that lies beyond."""
    from ledger.questions import Questions
    from ledger.store.reader import check_cut

    ledger = open_ledger(root)
    try:
        cut = ledger.cut() if at is None else Cut.parse(at)
        with reading(ledger.engine) as connection:
            check_cut(connection, cut)
        questions = Questions(ledger, cut)
        try:
            yield questions
        finally:
            questions.close()
    finally:
        ledger.close()


@contextmanager
def writing(root: Path, label: str) -> Iterator[Writing]:
    """A ledger to append to: what lies on its stream is admitted first, what was appended is admitted last."""
    open_ = Writing(open_ledger(root), label)
    try:
        open_.admit()
        yield open_
    finally:
        open_.close()
