"""The edge of every command: opens the ledger, gives producers their epoch, and brings the stream into the ledger.

Here, and only here, a command meets the clock and fresh ids. With the local stream a command is its own sink: it admits
what lies on the stream before it starts, and what it appended before it ends.
"""

import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from importlib.metadata import version

from lapledger.ledger.store.location import LedgerPath
from lapledger.ledger.store.open_ledger import Ledger, create_ledger, open_ledger
from lapledger.workflows.interrupts import SHORT_BURST_S, Interrupts
from lapledger.workflows.reporter import Reporter


def new_id() -> str:
    """A fresh UUIDv7."""
    from uuid_utils import uuid7

    return str(uuid7())


def utc_now() -> str:
    """Wall time as a label."""
    return datetime.now(UTC).isoformat(timespec="milliseconds")


def now_ms() -> int:
    """Wall time in milliseconds, for leases: they say who tries, never what counts."""
    return time.time_ns() // 1_000_000


@contextmanager
def stopping(on_stop: Callable[[], None] = lambda: None) -> Iterator[threading.Event]:
    """An event that SIGTERM and Ctrl-C set. Nothing is raised the first time, so that nothing is cut in two.

    A second Ctrl-C, after a pause, raises KeyboardInterrupt; a burst of them is one. `on_stop` is called within the
    signal's handler, so it takes no lock and writes nothing; for the same reason the main thread only asks the event
    and never waits for it.
    """
    stop = threading.Event()
    interrupts = Interrupts(SHORT_BURST_S)

    def on_signal(number: int, _frame: object) -> None:
        again = number == signal.SIGINT and interrupts.is_new() and stop.is_set()
        if not stop.is_set():
            stop.set()
            on_stop()
        if again:
            raise KeyboardInterrupt

    before = {number: signal.signal(number, on_signal) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield stop
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def release() -> str:
    """The version of lapledger."""
    return version("lapledger")


def make_ledger(location: LedgerPath) -> Ledger:
    """The ledger in a folder, made or upgraded."""
    return create_ledger(location, new_id(), utc_now())


class LedgerWriter:
    """An open ledger to append to, with a producer whose epoch is opened only when something is appended.

    Whoever holds it may report through its reporter.
    """

    def __init__(self, ledger: Ledger, label: str, reporter: Reporter) -> None:
        from lapledger.workflows.spooled_producer import SpooledProducer, broker_message

        self.ledger, self.reporter = ledger, reporter
        self._spooled = SpooledProducer(
            ledger,
            new_id(),
            label,
            release=release(),
            on_change=lambda change: reporter.warning(broker_message(change)),
        )
        self.producer, self.ready = self._spooled.producer, self._spooled.ready

    def admit(self) -> int:
        """Brings the stream into the ledger; the frames admitted. Quarantined records are reported."""
        from lapledger.consumers.ingest.sink import drain

        drained = drain(self.ledger, self._spooled.stream, seen=utc_now())
        if drained.quarantined:
            plural = "record was" if drained.quarantined == 1 else "records were"
            self.reporter.warning(f"{drained.quarantined} {plural} quarantined; see `lap status --partitions`")
        return drained.admitted

    def close(self) -> None:
        """Closes the epoch, admits what was appended, and releases the files."""
        try:
            self._spooled.finish()
            self.admit()
        finally:
            self._spooled.close()
            self.ledger.close()


@contextmanager
def open_writer(location: LedgerPath, label: str, reporter: Reporter) -> Iterator[LedgerWriter]:
    """A ledger to append to: what lies on its stream is admitted first, what was appended is admitted last."""
    writer = LedgerWriter(open_ledger(location), label, reporter)
    try:
        writer.admit()
        yield writer
    finally:
        writer.close()
