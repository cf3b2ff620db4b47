"""Ledgers that hold whole campaigns or many small facts, made through the real path: producer, local stream, sink."""

import json
import multiprocessing
import signal
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
from sqlalchemy import text

from lapledger.consumers.ingest.sink import Drained, drain
from lapledger.ledger.events import EVENTS, Event, FilterDecided
from lapledger.ledger.failpoint import arm
from lapledger.ledger.frames.frame import Record
from lapledger.ledger.store.location import Location
from lapledger.ledger.store.open_ledger import Ledger, create_ledger, open_ledger
from lapledger.ledger.store.reader import events
from lapledger.ledger.store.sql.engine import reading, writing
from lapledger.ledger.streams.producer import Producer


def ledger_with(root: Path, *parts: Iterable[Event]) -> Ledger:
    """A fresh ledger that admitted the facts of every part, in order."""
    ledger = create_ledger(root, "identity-0", "now")
    append(ledger, "epoch-facts", *parts)
    return ledger


def append(ledger: Ledger, epoch: str, *parts: Iterable[Event]) -> Drained:
    """Appends the facts of every part under one producer epoch, and what became of them."""
    put(ledger, epoch, *parts)
    return admit(ledger)


def put(ledger: Ledger, epoch: str, *parts: Iterable[Event]) -> None:
    """Only appends them."""
    with closing(ledger.stream()) as stream:
        producer = Producer(stream, epoch, "test", "0")
        for part in parts:
            producer.append(part)


def admit(ledger: Ledger) -> Drained:
    """Admits what lies on the stream."""
    with closing(ledger.stream()) as stream:
        return drain(ledger, stream)


@contextmanager
def older_release(name: str = "filter.decided") -> Iterator[None]:
    """One that does not know a type of event: it quarantines what it admits meanwhile."""
    declared = EVENTS.pop((name, 1))
    try:
        yield
    finally:
        EVENTS[name, 1] = declared


def decision(number: int, problem: str = "p") -> FilterDecided:
    """A filter decision about test `number` of a problem."""
    return FilterDecided(
        problem_id=problem,
        subject="test",
        subject_id=str(number),
        rule="r",
        campaign_id=None,
        kept=True,
        reason="",
        figure=number / 2,
    )


def feed(ledger: Ledger, epoch: str, count: int = 30, problems: int = 3) -> Drained:
    """Appends and admits decisions, one frame each, about several problems in turn, in one epoch."""
    return append(ledger, epoch, *([decision(number, f"p{number % problems}")] for number in range(count)))


def put_quarantined(ledger: Ledger, *payloads: bytes) -> None:
    """Appends records that cannot be admitted, and admits the rest."""
    with closing(ledger.stream()) as stream:
        stream.append("facts", 0, [Record({}, payload) for payload in payloads])
        drain(ledger, stream)


def complete(ledger: Ledger) -> pa.Table:
    """All decisions at the cut of now."""
    return events(ledger, "filter.decided", 1, ledger.cut())


def rows(ledger: Ledger, query: str) -> list[tuple[Any, ...]]:
    """What a query finds."""
    with reading(ledger.engine) as connection:
        return [tuple(row) for row in connection.execute(text(query))]


def tamper(ledger: Ledger, *statements: str) -> None:
    """Changes what is immutable, as one who has the database can: without its guards."""
    with writing(ledger.engine) as connection:
        if connection.dialect.name == "postgresql":
            for name, table in connection.execute(
                text("SELECT tgname, tgrelid::regclass FROM pg_trigger WHERE NOT tgisinternal")
            ).all():
                connection.execute(text(f"ALTER TABLE {table} DISABLE TRIGGER {name}"))
        else:
            triggers = connection.execute(text("SELECT name FROM sqlite_master WHERE type = 'trigger'")).scalars().all()
            for name in triggers:
                connection.execute(text(f"DROP TRIGGER {name}"))
        for statement in statements:
            connection.execute(text(statement))


def parquet_files(ledger: Ledger, kind: str = "filter.decided.v1") -> list[Path]:
    """The segments of a type, by name, in its local folder."""
    return sorted((ledger.root / "segments" / kind).glob("*.parquet"))


def manifests(ledger: Ledger) -> list[dict[str, Any]]:
    """All manifests that count, in the order of their chain."""
    result = rows(ledger, "SELECT type, version, manifest FROM segment ORDER BY ordinal")
    folder = ledger.root / "segments"
    return [json.loads((folder / f"{kind}.v{version}" / f"{name}.json").read_bytes()) for kind, version, name in result]


_FORKS = multiprocessing.get_context("forkserver")
_FORKS.set_forkserver_preload(
    ["tests.consumers.ledgers", "lapledger.consumers.storage.compactor", "lapledger.consumers.storage.sealer"]
)


def killed_at(location: Location, point: str, work: Callable[[Ledger], object]) -> bool:
    """Does a test module's work on a ledger in a process that dies at a crash point; false when it ended before."""
    process = _FORKS.Process(target=_armed, args=(location, point, work))
    process.start()
    process.join()
    assert process.exitcode in (0, -signal.SIGKILL)
    return process.exitcode != 0


def _armed(location: Location, point: str, work: Callable[[Ledger], object]) -> None:
    ledger = open_ledger(location)
    arm(point)
    work(ledger)
