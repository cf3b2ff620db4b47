"""Health checks for probes: each part gets a short time to answer; one that does not is reported as failing.

Read-only: nothing is repaired, and no failure of a server is raised.
"""

import threading
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, TypeVar

from sqlalchemy import text

from lapledger.ledger.errors import LapError, Unavailable, UserError
from lapledger.ledger.ops.status import LedgerStatus, database_status, waiting_records
from lapledger.ledger.ops.usage import bytes_a_day, free_bytes
from lapledger.ledger.store.location import Location
from lapledger.ledger.store.open_ledger import Ledger, open_ledger
from lapledger.ledger.store.reader import segment_rows
from lapledger.ledger.store.sql.engine import reading
from lapledger.ledger.streams.base import Partition, describe_unread
from lapledger.ledger.streams.kafka.stream import brokers, fast_checksums

OK, DEGRADED, FAILING = "ok", "degraded", "failing"
_ORDER = (OK, DEGRADED, FAILING)

PATIENCE_SECONDS = 4
"""How long a part may take to answer, in seconds."""

TAIL_BYTES = 4 << 30
"""A larger tail means that no sealer is running."""

LOW_FACTOR = 2
"""A disk with less free than this many times its reserve is reported before writers stop."""

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Check:
    """One part: its state, a message with what to do next, and figures."""

    name: str
    state: str
    message: str
    figures: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Health:
    """All checks, and the worst of their states."""

    state: str
    checks: tuple[Check, ...]


def health(location: Location, *, now_ms: int) -> Health:
    """The state of a ledger and of what it stands on, within a few seconds whatever is down.

    UserError when there is no ledger, or a setting names none.
    """
    location = _hurried(location)
    try:
        ledger = _in_time("the database", lambda: open_ledger(location))
        status = _in_time("the database", lambda: database_status(ledger, now_ms=now_ms))
    except UserError:
        raise
    except LapError as error:
        checks = [Check("database", FAILING, str(error)), *_broker(location), _disk(location, None)]
    else:
        try:
            checks = list(_all(ledger, status))
        finally:
            ledger.close()
    checks += _checksums(location)
    return Health(max((check.state for check in checks), key=_ORDER.index), tuple(checks))


def _hurried(location: Location) -> Location:
    """The same location with short server timeouts."""
    kafka = location.kafka and replace(location.kafka, timeout_seconds=PATIENCE_SECONDS / 2)
    if not location.sql:
        return replace(location, kafka=kafka)
    url = location.sql_url.update_query_dict({"connect_timeout": "2"})
    return replace(location, kafka=kafka, sql=url.render_as_string(hide_password=False))


def _in_time(what: str, call: Callable[[], T]) -> T:
    """The answer; Unavailable when it takes too long, whatever a library below waits for."""
    answers: list[T] = []
    errors: list[LapError] = []

    def run() -> None:
        try:
            answers.append(call())
        except LapError as error:
            errors.append(error)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    thread.join(PATIENCE_SECONDS)
    if errors:
        raise errors[0]
    if not answers:
        raise Unavailable(f"{what} did not answer within {PATIENCE_SECONDS} seconds; check the server and the network")
    return answers[0]


def _all(ledger: Ledger, status: LedgerStatus) -> Iterator[Check]:
    admitted = sum(part.admitted for part in status.partitions)
    message = f"{counted(admitted, 'frame')} admitted, {counted(status.segments, 'segment')}"
    yield Check("database", OK, message, {"admitted": admitted, "segments": status.segments, "cut": status.cut})
    yield from _stream(ledger, status)
    yield from _clocks(status)
    yield _gaps(status)
    for name, check in (("quarantine", _quarantine), ("tail", _tail), ("segments", _store)):
        yield _guarded(name, partial(check, ledger))
    yield _guarded("disk", lambda: _disk(ledger.location, ledger))


def _guarded(name: str, check: Callable[[], Check]) -> Check:
    """The check's result, or a failing one when its part does not answer."""
    try:
        return _in_time(f"the {name}", check)
    except LapError as error:
        return Check(name, FAILING, str(error))


def _stream(ledger: Ledger, status: LedgerStatus) -> Iterator[Check]:
    """Whether the stream answers and has the identity that was read, and the consumer lag."""
    names = sorted({part.stream for part in status.partitions})

    def identify() -> tuple[dict[str, str], Mapping[Partition, int], list[str]]:
        stream = ledger.stream()
        try:
            identities = {name: stream.identity(name) for name in names}
            return identities, waiting_records(stream, status), list(describe_unread(stream))
        finally:
            stream.close()

    try:
        identities, waiting, unread = _in_time("the stream", identify)
    except LapError as error:
        yield Check("stream", FAILING, str(error))
        return
    recreated = [name for name in names if not _same(status, name, identities[name])]
    if recreated:
        yield Check(
            "stream",
            FAILING,
            f"{', '.join(recreated)} was recreated since it was last read; restore the original stream",
        )
        return
    message = "; ".join(["stream identity matches", *unread])
    yield Check("stream", DEGRADED if unread else OK, message, {"identity": identities})
    yield _lag(status, waiting)


def _same(status: LedgerStatus, name: str, identity: str) -> bool:
    return all(part.identity in ("", identity) for part in status.partitions if part.stream == name)


def _lag(status: LedgerStatus, waiting: Mapping[Partition, int]) -> Check:
    behind = {f"{stream}/{partition}": count for (stream, partition), count in waiting.items() if count}
    holders = {f"{part.stream}/{part.partition}": part.holder for part in status.partitions if part.holder}
    alone = sorted(set(behind) - set(holders))
    figures = {"records": sum(behind.values()), "partitions": behind, "holders": holders}
    message = f"consumer lag {figures['records']}; {counted(len(set(holders.values())), 'active sink')}"
    if alone:
        return Check("lag", DEGRADED, f"{message}; no sink for {', '.join(alone)}: start `lap sink`", figures)
    return Check("lag", OK, message, figures)


def _clocks(status: LedgerStatus) -> Iterator[Check]:
    """Who took leases by a clock that was far ahead, where anybody did."""
    ahead = {f"{part.stream}/{part.partition}": part for part in status.partitions if part.ahead_holder}
    if ahead:
        latest = max(ahead.values(), key=lambda part: part.ahead_ms)
        message = (
            f"{latest.ahead_holder} took {counted(len(ahead), 'partition')} by a clock that was"
            f" {latest.ahead_ms / 3_600_000:.1f} h ahead; nobody waits for it: start `lap sink`, set that clock right"
        )
        yield Check("clocks", DEGRADED, message, {"holders": {name: part.ahead_holder for name, part in ahead.items()}})


def counted(count: int, noun: str) -> str:
    """A count with its noun in the right number: "1 frame", "2 frames"."""
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


def _gaps(status: LedgerStatus) -> Check:
    count = sum(part.gaps for part in status.partitions)
    if not count:
        return Check("gaps", OK, "none open", {"frames": 0})
    return Check("gaps", DEGRADED, f"{counted(count, 'frame')} missing in producer sequences", {"frames": count})


_WAITING = text(
    "SELECT reason, count(*) AS n FROM quarantine WHERE id NOT IN (SELECT id FROM quarantine_retry)"
    " GROUP BY reason ORDER BY reason"
)


def _quarantine(ledger: Ledger) -> Check:
    with reading(ledger.engine) as connection:
        reasons = {row.reason: row.n for row in connection.execute(_WAITING)}
    if not reasons:
        return Check("quarantine", OK, "empty", {"records": 0, "reasons": {}})
    figures = {"records": sum(reasons.values()), "reasons": reasons}
    message = f"{counted(figures['records'], 'record')}: " + ", ".join(
        f"{count} {reason}" for reason, count in reasons.items()
    )
    message += "; two producers used one identity, which a retry cannot repair" if "fork" in reasons else ""
    return Check("quarantine", DEGRADED, f"{message}; see `lap quarantine list`", figures)


_TAIL = text("SELECT count(*) AS frames, coalesce(sum(length(payload)), 0) AS bytes FROM tail")


def _tail(ledger: Ledger) -> Check:
    with reading(ledger.engine) as connection:
        row = connection.execute(_TAIL).one()
    figures = {"frames": int(row.frames), "bytes": int(row.bytes)}
    message = f"{counted(row.frames, 'unsealed frame')}, {int(row.bytes) >> 20} MiB"
    if figures["bytes"] > TAIL_BYTES:
        return Check("tail", DEGRADED, f"{message}; run `lap seal`", figures)
    return Check("tail", OK, message, figures)


def _store(ledger: Ledger) -> Check:
    """Whether the newest segment can be read."""
    with reading(ledger.engine) as connection:
        rows = segment_rows(connection)
    if not rows:
        return Check("segments", OK, "none sealed yet")
    ledger.segments.check_opens(rows[-1:])
    return Check("segments", OK, "newest segment is readable")


def _disk(location: Location, ledger: Ledger | None) -> Check:
    """Free space on the local disk against its reserve, and how long it will last."""
    free, reserve = free_bytes(location.root), location.reserve_bytes
    rate = None
    if ledger is not None and not location.store:
        listing = ledger.segments.listing()
        rate = bytes_a_day(listing, sum(stored.bytes for stored in listing))
    days = max(0, free - reserve) / rate if rate else None
    figures = {"free_bytes": free, "reserve_bytes": reserve, "days_to_full": days}
    message = f"{free >> 20} MiB free, {reserve >> 20} MiB in reserve"
    message += "" if days is None else f", full in {days:.0f} days at the current rate"
    if free < reserve:
        return Check("disk", FAILING, f"{message}; writers stop: free some space", figures)
    return Check("disk", DEGRADED if free < LOW_FACTOR * reserve else OK, message, figures)


def _broker(location: Location) -> list[Check]:
    """Whether a broker answers, when the database does not."""
    if location.kafka is None:
        return []
    settings = location.kafka
    try:
        count = _in_time("the broker", lambda: brokers(settings))
    except LapError as error:
        return [Check("stream", FAILING, str(error))]
    return [Check("stream", OK, f"{counted(count, 'broker')} responding")]


def _checksums(location: Location) -> list[Check]:
    if location.kafka is None:
        return []
    if fast_checksums():
        return [Check("checksums", OK, "computed in C")]
    return [Check("checksums", DEGRADED, "computed in Python, at 10 MB/s; pip install 'lapledger[kafka]'")]
