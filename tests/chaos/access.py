"""How a victim opens a ledger and appends to it, and streams that misbehave on purpose."""

import os
import signal
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from lapledger.ledger.errors import Unavailable
from lapledger.ledger.events import Event
from lapledger.ledger.frames.frame import Record
from lapledger.ledger.store.location import Location
from lapledger.ledger.store.open_ledger import Ledger, open_ledger
from lapledger.ledger.streams.base import Position, Stored, Stream
from lapledger.ledger.streams.kafka.settings import KafkaSettings
from lapledger.ledger.streams.producer import Producer
from lapledger.ledger.streams.spool import Waiting
from lapledger.workflows.spooled_producer import SpooledProducer
from tests.chaos.facts import held, name_of, source, wanted

REST_SECONDS = 0.003
"""Between two rounds of a role that goes on, so that two cores are enough for all."""


class Behind:
    """A stream that passes everything on, to build others from."""

    def __init__(self, stream: Stream) -> None:
        self._stream = stream
        self.max_record_bytes = stream.max_record_bytes

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


class Switched(Behind):
    """A stream whose broker is away as long as a file exists."""

    def __init__(self, stream: Stream, away: Path) -> None:
        super().__init__(stream)
        self._away = away

    def append(self, stream: str, partition: int, records: Sequence[Record]) -> None:
        """Appends, unless the broker is away."""
        if self._away.exists():
            raise Unavailable("the broker is away")
        self._stream.append(stream, partition, records)


class Pausing(Behind):
    """A stream that stops its process by SIGSTOP after it has read some records, and before it gives them."""

    def read(self, stream: str, partition: int, position: Position, limit: int) -> list[Stored]:
        """Records, read before the stop."""
        records = self._stream.read(stream, partition, position, limit)
        if records:
            os.kill(os.getpid(), signal.SIGSTOP)
        return records


Address = str | dict[str, Any]
"""A folder, or the words of a `Location`: `root`, `sql`, and `kafka` with those of `KafkaSettings`."""


def location(address: Address) -> Location:
    """The location that plain words name."""
    if isinstance(address, str):
        return Location(Path(address))
    kafka = KafkaSettings(**address["kafka"]) if "kafka" in address else None
    return Location(Path(address["root"]), address.get("sql", ""), kafka=kafka)


@contextmanager
def open_for(address: Address) -> Iterator[tuple[Ledger, Any]]:
    """A ledger and its stream."""
    ledger = open_ledger(location(address))
    stream: Any = ledger.stream()
    try:
        yield ledger, stream
    finally:
        stream.close()
        ledger.close()


@contextmanager
def producing(ledger: Ledger, epoch: str) -> Iterator[Producer]:
    """A producer as a command has it: on Kafka behind a spool, after what dead ones left was delivered."""
    spooled = SpooledProducer(ledger, epoch, "chaos", release="0", on_change=print_state)
    try:
        yield spooled.producer
        spooled.finish()
    finally:
        spooled.close()


def print_state(waiting: Waiting) -> None:
    """Prints what a spool reports."""
    print(f"spool {waiting.what} {waiting.records}", flush=True)


def append(ledger: Ledger, producer: Producer, events: Sequence[Event]) -> None:
    """Appends facts, each blob before the fact that names it."""
    numbers = [int(name_of(event).rsplit("-", 1)[1]) for event in events if "/program-" in name_of(event)]
    ledger.blobs.put_many(source(number) for number in numbers)
    producer.append(events)


def missing(ledger: Ledger, numbers: Sequence[int]) -> list[Event]:
    """The facts of some numbers that the ledger does not hold."""
    known = set(held(ledger))
    return [event for event in wanted(numbers) if name_of(event) not in known]
