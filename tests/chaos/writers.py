"""Roles of victims that append: numbered facts by every way a command has, a campaign, rewards, blobs."""

import time
from collections.abc import Callable
from itertools import count
from pathlib import Path
from random import Random
from typing import Any

from lapledger.consumers.derive.rewarder import assign
from lapledger.consumers.ingest.sink import drain
from lapledger.ledger.streams.producer import Producer
from lapledger.ledger.streams.spool import Spooled, SpoolLimits
from lapledger.ledger.streams.spool_file import deliver_left_behind
from lapledger.replay.criteria import Criterion
from tests.chaos.access import Address, Switched, append, missing, open_for, producing
from tests.chaos.facts import facts, largest
from tests.consumers.histories import Campaign, Cell, all_facts

LOCAL_REST_SECONDS, BROKER_REST_SECONDS = 0.01, 0.04
"""Between two numbers of a writer that goes on, so that ledgers that are proven again and again stay small."""

BATCH = 3
"""Numbers whose facts a writer appends at once."""


def write(root: Address, epoch: str, first: int, last: int) -> int:
    """Admits what lies on the stream, then appends what is missing of the numbers in [first, last)."""
    with open_for(root) as (ledger, stream):
        drain(ledger, stream, seen="now")
        with producing(ledger, epoch) as producer:
            todo = missing(ledger, range(first, last))
            for at in range(0, len(todo), BATCH):
                append(ledger, producer, todo[at : at + BATCH])
        return len(todo)


def append_only(root: Address, epoch: str, first: int, last: int) -> int:
    """Appends the numbers in [first, last), and admits nothing."""
    with open_for(root) as (ledger, stream):
        producer = Producer(stream, epoch, "chaos", "0")
        for number in range(first, last):
            append(ledger, producer, facts(number))
        producer.close()
        return last - first


def write_on(root: Address, epoch: str, stop: str) -> int:
    """Appends ever more numbers, after what is missing below the largest that the ledger holds, until a file exists."""
    with open_for(root) as (ledger, stream), producing(ledger, epoch) as producer:
        drain(ledger, stream, seen="now")
        end = largest(ledger) + 1
        append(ledger, producer, missing(ledger, range(end + 1)))  # of the last one a part may be there
        for number in count(end + 1):
            append(ledger, producer, facts(number))
            time.sleep(LOCAL_REST_SECONDS if ledger.location.kafka is None else BROKER_REST_SECONDS)
            if Path(stop).exists():
                return number + 1
    return 0


def put(root: Address) -> int:
    """Stores some larger blobs."""
    with open_for(root) as (ledger, _):
        return len(ledger.blobs.put_many(Random(number).randbytes(40_000) for number in range(20)))  # noqa: S311


def spool(root: str, epoch: str, first: int, last: int) -> int:
    """As `write`, but the broker is away until all is appended; what a dead one left is delivered first."""
    with open_for(root) as (ledger, stream):
        folder, away = Path(root) / "spool", Path(root) / "away"
        folder.mkdir(exist_ok=True)
        away.unlink(missing_ok=True)
        deliver_left_behind(stream, folder)
        drain(ledger, stream, seen="now")
        limits = SpoolLimits(retry_seconds=0.002, full_seconds=60)
        spooled = Spooled(Switched(stream, away), folder / f"{epoch}.sqlite", limits=limits)
        producer = Producer(spooled, epoch, "chaos", "0")
        todo = missing(ledger, range(first, last))
        away.touch()
        for at in range(0, len(todo), BATCH):
            append(ledger, producer, todo[at : at + BATCH])
        producer.close()
        away.unlink()
        spooled.flush(60)
        spooled.close()
        return len(todo)


CAMPAIGN = Campaign(
    "c",
    {
        "q": {
            name: (Cell(), Cell(ms=(float(ms),)))
            for name, ms in (("r1", 10), ("r2", 20), ("r3", 30), ("m1", 5), ("m2", 25), ("m3", 40))
        }
    },
)


def campaign(root: Address, epoch: str) -> int:
    """A whole campaign of six programs, admitted."""
    with open_for(root) as (ledger, stream):
        ledger.blobs.put_many([b"in", b"out", *(name.encode() for name in CAMPAIGN.cells["q"])])
        producer = Producer(stream, epoch, "chaos", "0")
        producer.append(all_facts(CAMPAIGN))
        producer.close()
        return drain(ledger, stream, seen="now").admitted


def reward(root: Address, epoch: str) -> int:
    """Assigns what rewards the campaign lacks, and admits them."""
    with open_for(root) as (ledger, stream):
        drain(ledger, stream, seen="now")
        producer = Producer(stream, epoch, "chaos", "0")
        done = assign(ledger, producer, Criterion(tau="50"), name="p_50")
        producer.close()
        drain(ledger, stream, seen="now")
        return len(done.new)


ROLES: tuple[Callable[..., Any], ...] = (write, append_only, write_on, spool, campaign, reward, put)
