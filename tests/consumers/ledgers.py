"""Ledgers that hold whole campaigns, made through the real path: producer, local stream, sink."""

from collections.abc import Iterable
from pathlib import Path

from consumers.sink import drain
from ledger.events import Event
from ledger.store.opened import Ledger, create_ledger
from ledger.streams.producer import Producer


def ledger_with(root: Path, *parts: Iterable[Event]) -> Ledger:
    """A fresh ledger that admitted the facts of every part, in order."""
    ledger = create_ledger(root, "identity-0", "now")
    append(ledger, "epoch-facts", *parts)
    return ledger


def append(ledger: Ledger, epoch: str, *parts: Iterable[Event]) -> None:
    """Appends and admits the facts of every part under one producer epoch."""
    stream = ledger.stream()
    try:
        producer = Producer(stream, epoch, "test", "0")
        for part in parts:
            producer.append(part)
        drain(ledger, stream)
    finally:
        stream.close()
