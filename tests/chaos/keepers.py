"""Roles of victims that keep what was appended: sinks alone, in groups and by lease, sealers, trimmers, copies."""

import os
import threading
import time
from collections.abc import Callable
from itertools import count
from pathlib import Path
from typing import Any

from lapledger.consumers.ingest.admission import positions
from lapledger.consumers.ingest.sink import drain
from lapledger.consumers.services.service_loop import ServiceContext, follow
from lapledger.consumers.services.sink import SinkFollower
from lapledger.consumers.storage import stream_trim
from lapledger.consumers.storage.compactor import compact
from lapledger.consumers.storage.ledger_copy import copy_ledger
from lapledger.consumers.storage.sealer import seal
from lapledger.consumers.storage.stream_trim import trimmable
from lapledger.ledger.errors import UserError
from lapledger.ledger.events import PARTITIONS
from lapledger.ledger.store.location import Location
from lapledger.ledger.store.open_ledger import Ledger
from lapledger.ledger.store.sql.leases import Term, take_partition
from tests.chaos.access import REST_SECONDS, Address, Pausing, open_for


def sink(root: Address) -> dict[str, int]:
    """Admits what lies on the stream."""
    with open_for(root) as (ledger, stream):
        done = drain(ledger, stream, seen="now")
        return {"admitted": done.admitted, "duplicates": done.duplicates, "quarantined": done.quarantined}


def repeat(root: Address, what: str, stop: str) -> int:
    """Sinks, or seals and compacts, again and again until a file exists."""
    with open_for(root) as (ledger, stream):
        for done in count(1):
            if what == "sink":
                drain(ledger, stream, seen="now")
            else:
                seal(ledger)
                if done % 3 == 0:
                    compact(ledger, 0)
            time.sleep(REST_SECONDS)
            if Path(stop).exists():
                return done
    return 0


def seal_tail(root: Address) -> int:
    """Seals the tail."""
    with open_for(root) as (ledger, _):
        return seal(ledger).segments


def merge(root: Address) -> int:
    """Compacts the segments."""
    with open_for(root) as (ledger, _):
        return compact(ledger, 0).superseded


def trim(root: Address) -> int:
    """Forgets on the stream what was sealed."""
    with open_for(root) as (ledger, stream):
        trims = trimmable(ledger, stream)
        stream_trim.trim(ledger, stream, trims)
        return len(trims)


def copy(root: str) -> str:
    """Copies the ledger into a folder of its own, unless it has done so before; what it did."""
    with open_for(root) as (ledger, _):
        target = Location(Path(root) / "copy")
        try:
            return copy_ledger(ledger, target, stream_identity="of the copy", progress=lambda *_: None).head
        except UserError as error:
            if "holds a copy of this ledger already" not in str(error):
                raise
            return "nothing"


def service(root: Address, member: str, stop: str) -> str:
    """The sink as a service of a group, until a file exists."""
    ended = threading.Event()
    threading.Thread(target=_await, args=(Path(stop), ended), daemon=True).start()
    context = ServiceContext(member, 10_000, lambda: time.time_ns() // 1_000_000, time.monotonic, lambda: "now", _log)
    with open_for(root) as (ledger, stream):
        group = stream.join("sink", tuple(PARTITIONS), member)
        follow(group, SinkFollower(ledger, stream, context, assigned_by_broker=True), ended, _log)
    return member


def _await(file: Path, ended: threading.Event) -> None:
    while not file.exists():
        time.sleep(0.05)
    ended.set()


def _log(event: str, *, level: str = "info", **fields: Any) -> None:
    """Of all that a service tells only what is grave is kept."""
    if level != "info":
        print(level, event, fields, flush=True)


def sink_as(root: Address, holder: str, now_ms: int, *, pausing: bool = False) -> dict[str, int]:
    """Takes the lease of every partition that is free by this clock, and admits what lies there.

    With `pausing` the process stops after it has read the first records, with its leases in hand.
    """
    with open_for(root) as (ledger, stream):
        return sink_leased(ledger, Pausing(stream) if pausing else stream, Term(holder, now_ms))


def pausing_sink(root: Address, holder: str, now_ms: int) -> dict[str, int]:
    """A sink that stops with its leases in hand."""
    return sink_as(root, holder, now_ms, pausing=True)


def sink_leased(ledger: Ledger, stream: Any, term: Term) -> dict[str, int]:
    """One drain under fresh leases."""
    taken = {partition: take_partition(ledger.engine, *partition, term) for partition in positions(ledger)}
    leased = {partition: epoch for partition, epoch in taken.items() if epoch is not None}
    done = drain(ledger, stream, seen="now", leases=leased)
    return {"leased": len(leased), "admitted": done.admitted, "duplicates": done.duplicates}


HOUR_MS = 3_600_000


def sink_by_clock(root: Address, holder: str, clock: str, stop: str) -> dict[str, int]:
    """Drains under leases of two seconds by a clock that a file sets, again and again until another file exists.

    Each jump of the clock is a line `jump HOURS`, printed once work was done by the new time.
    """
    admitted, before = 0, time.time_ns() // 1_000_000
    os.environ["FAKETIME_TIMESTAMP_FILE"] = clock  # libfaketime reads it at every look at the clock
    with open_for(root) as (ledger, stream):
        while True:
            last, now = Path(stop).exists(), time.time_ns() // 1_000_000
            admitted += sink_leased(ledger, stream, Term(holder, now, 2_000))["admitted"]
            time.sleep(10 * REST_SECONDS)
            if hours := round((now - before) / HOUR_MS):
                print("jump", hours, flush=True)
            before = now
            if last:
                return {"admitted": admitted}


ROLES: tuple[Callable[..., Any], ...] = (
    *(sink, service, repeat, seal_tail, merge, trim, copy),
    *(sink_as, pausing_sink, sink_by_clock),
)
