"""The edge of every service: its clocks, log, leases and group, and the signals that stop it.

A service appends only what it derives. It is not its own sink: `lap sink` brings the stream into the ledger.
"""

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from threading import Event

from lapledger.consumers.services.partition_assignment import SeatedGroup
from lapledger.consumers.services.service_loop import Alone, Follower, ServiceContext, SinkWatch, follow
from lapledger.ledger.codec.canonical import sha256_fields
from lapledger.ledger.errors import LapError
from lapledger.ledger.store.location import Location
from lapledger.ledger.store.open_ledger import Ledger, open_ledger
from lapledger.ledger.streams.base import Group, Stream
from lapledger.ledger.streams.producer import Producer
from lapledger.ledger.streams.spool import Waiting
from lapledger.workflows.logs import Form, make_log
from lapledger.workflows.malloc import keep_freed_memory
from lapledger.workflows.session import new_id, now_ms, release, stopping, utc_now
from lapledger.workflows.spooled_producer import SpooledProducer, broker_message


class ServiceFailed(LapError):  # noqa: N818  (it names what happened, as the log does)
    """A service ended by an error that its log holds already; the exit code is the error's."""

    def __init__(self, error: LapError) -> None:
        super().__init__(str(error))
        self.exit_code = error.exit_code


@dataclass(frozen=True, slots=True)
class Service:
    """An open ledger with its stream, a producer whose id is the service's own, and what it is given from outside."""

    ledger: Ledger
    spooled: SpooledProducer
    context: ServiceContext
    stop: Event

    @property
    def stream(self) -> Stream:
        """The ledger's stream."""
        return self.spooled.stream

    @property
    def producer(self) -> Producer:
        """The producer of this process."""
        return self.spooled.producer

    def group(self, name: str, streams: Sequence[str]) -> Group:
        """This process as a member: the broker divides, or seats in SQL where the stream is local."""
        inner = self.stream.join(name, streams, self.context.holder)
        return SeatedGroup(inner, self.ledger, name, self.context) if self.ledger.location.kafka is None else inner

    def run(self, group: Group, follower: Follower) -> None:
        """Follows until a signal stops it."""
        follow(group, follower, self.stop, self.context.log)

    def derive(self, group: Group, follower: Follower) -> None:
        """As `run`, for who needs a sink beside it, and says so when there is none."""
        self.run(group, SinkWatch(follower, self.ledger, self.stream, self.context))

    def alone(self) -> Group:
        """No group, for what a named lease divides."""
        return Alone()


@contextmanager
def serving(location: Location, name: str, log: Form, lease_seconds: float) -> Iterator[Service]:
    """A service until SIGTERM or Ctrl-C; at the end its epoch is closed and everything released.

    ServiceFailed after an error, which the log holds; the error itself where the ledger cannot be opened.
    """
    keep_freed_memory()
    holder = new_id()
    logger = make_log(log, service=name, process=holder)
    context = ServiceContext(holder, round(1000 * lease_seconds), now_ms, time.monotonic, utc_now, logger)
    ledger = open_ledger(location)
    try:
        with _spooled(ledger, f"lap {name}", context) as spooled, stopping() as stop:
            logger("started", ledger=str(location), cut=str(ledger.cut()), release=release())
            try:
                yield Service(ledger, spooled, context, stop)
            finally:
                spooled.finish()
            logger("stopped", frames=spooled.producer.frames, cut=str(ledger.cut()))
    except LapError as error:
        logger("failed", level="error", alarm=True, reason=str(error))
        raise ServiceFailed(error) from error
    finally:
        ledger.close()


@contextmanager
def _spooled(ledger: Ledger, label: str, context: ServiceContext) -> Iterator[SpooledProducer]:
    def on_change(change: Waiting) -> None:
        level = "info" if change.what == "back" else "warning"
        context.log(
            f"broker {change.what}",
            level=level,
            records=change.records,
            bytes=change.bytes,
            advice=broker_message(change),
        )

    spooled = SpooledProducer(ledger, context.holder, label, release=release(), on_change=on_change)
    try:
        yield spooled
    finally:
        spooled.close()


def group_name(kind: str, *parts: str) -> str:
    """The name of the group of those who do the same thing."""
    return f"{kind}-{sha256_fields(*parts)[:12]}"
