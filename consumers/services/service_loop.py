"""What every service shares: the loop over what its group assigns it, leases that it holds, and how it reports.

A service is given its clocks and its log; it reads neither here. Leases and groups say who tries, never what counts.
"""

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Protocol

from sqlalchemy import text

from lapledger.ledger.errors import Unavailable
from lapledger.ledger.store.open_ledger import Ledger
from lapledger.ledger.store.sql import leases
from lapledger.ledger.store.sql.engine import reading
from lapledger.ledger.store.sql.leases import FREE, Term, clock
from lapledger.ledger.streams.base import Group, Partition, Stream

"""A stream's name and the number of a partition."""

WAIT_SECONDS = 0.5
"""How long a service that is not woken waits before it looks again."""

SILENT_SECONDS = 15.0
MOST_REST_SECONDS = 15.0


class Logger(Protocol):
    """A line of the log: what happened, how grave it is (`info`, `warning` or `error`), and plain values."""

    def __call__(self, event: str, *, level: str = "info", **fields: Any) -> None:
        """Writes it."""
        ...


@dataclass(frozen=True, slots=True)
class ServiceContext:
    """What a service is given: its name among others, how long its leases last, its clocks and its log."""

    holder: str
    lasts_ms: int
    now_ms: Callable[[], int]
    monotonic: Callable[[], float]
    utc_now: Callable[[], str]
    log: Logger

    def term(self) -> Term:
        """A lease from now on."""
        return Term(self.holder, self.now_ms(), self.lasts_ms)


class Follower(Protocol):
    """A service: it works in steps, so that it can be stopped between two of them."""

    def step(self, assigned: frozenset[Partition]) -> bool:
        """Does a bounded part of what is to do for these partitions; True when there may be more at once."""
        ...

    def finish(self) -> bool:
        """Called after the stop, until it is True: nothing runs any more, and leases are given back."""
        ...


def follow(group: Group, follower: Follower, stop: threading.Event, logger: Logger) -> None:
    """Steps until `stop` is set, then finishes what runs and leaves the group. A failure leaves the group too.

    A server that does not answer is waited for: every step can be done again.
    """
    member = _Member(group, logger)
    try:
        while not stop.is_set():
            member.step(follower)
        logger("stopping")
        while not follower.finish():
            member.stay()
    finally:
        group.leave()


class _Member:
    """A follower's place in its group: what it was assigned last, and whether a server is away."""

    def __init__(self, group: Group, logger: Logger) -> None:
        self._group, self._log = group, logger
        self._assigned: frozenset[Partition] | None = None
        self._more = True
        self._away = False

    def step(self, follower: Follower) -> None:
        """One step of the follower with what is assigned now, or was last when the group does not answer.

        It steps all the same: its leases say what it may do, and it may have to say that its task has failed.
        """
        away = self._learn()
        try:
            self._more = follower.step(self._assigned or frozenset())
        except Unavailable as error:
            away = away or error
        if away is not None:
            self._rest(str(away))
        elif self._away:
            self._away = False
            self._log("server back")

    def _learn(self) -> Unavailable | None:
        """Asks what is assigned now; why that is not known, if it is not."""
        try:
            now = self._group.assigned(0.0 if self._more else WAIT_SECONDS)
        except Unavailable as error:
            return error
        if now != self._assigned:
            self._log("assigned", partitions=[f"{stream}/{partition}" for stream, partition in sorted(now)])
            self._assigned = now
        return None

    def stay(self) -> None:
        """Keeps the membership, so that what still runs here is not begun elsewhere."""
        try:
            self._group.assigned(WAIT_SECONDS)
        except Unavailable as error:
            self._rest(str(error))

    def _rest(self, reason: str) -> None:
        if not self._away:
            self._away = True
            self._log("server away", level="warning", reason=reason)
        time.sleep(WAIT_SECONDS)


class Alone:
    """A `Group` of one, for what a named lease divides: it assigns nothing."""

    def assigned(self, wait_seconds: float) -> frozenset[Partition]:
        """Nothing, after `wait_seconds`: a lease cannot be waited for."""
        time.sleep(wait_seconds)
        return frozenset()

    def leave(self) -> None:
        """There is nobody to leave."""


class NamedLease:
    """A named lease that a service takes when it is free and prolongs while it is held."""

    def __init__(self, ledger: Ledger, name: str, context: ServiceContext) -> None:
        self._ledger, self.name, self._context = ledger, name, context
        self._renew_ms = 0
        self.epoch: int | None = None

    def hold(self) -> bool:
        """Whether this process holds the lease now. To be called far more often than the lease lasts."""
        term = self._context.term()
        if self.epoch is not None and term.now_ms < self._renew_ms:
            return True
        if self.epoch is not None and not leases.renew(self._ledger.engine, self.name, term, epoch=self.epoch):
            self._context.log("lease lost", level="warning", lease=self.name, lease_epoch=self.epoch)
            self.epoch = None
        if self.epoch is None:
            self.epoch = leases.take(self._ledger.engine, self.name, term)
            if self.epoch is not None:
                self._context.log("lease taken", lease=self.name, lease_epoch=self.epoch)
        self._renew_ms = term.now_ms + term.lasts_ms // 3
        return self.epoch is not None

    def drop(self) -> None:
        """Gives it back."""
        if self.epoch is not None:
            leases.drop(self._ledger.engine, self.name, self._context.holder, epoch=self.epoch)
            self.epoch = None


class Pace:
    """Keeps dear looks rare: after each there is a rest of `rest` times as long as it took, up to 15 s."""

    def __init__(self, monotonic: Callable[[], float], rest: float = 1.0) -> None:
        self._monotonic, self._rest = monotonic, rest
        self._due = monotonic()

    def due(self) -> bool:
        """Whether the rest is over."""
        return self._monotonic() >= self._due

    @contextmanager
    def look(self) -> Iterator[None]:
        """One look: the rest begins at its end."""
        began = self._monotonic()
        yield
        ended = self._monotonic()
        self._due = ended + min(self._rest * (ended - began), MOST_REST_SECONDS)


_LEASED = text(f"SELECT count(*) FROM stream_position WHERE NOT {FREE.format(until='lease_until')}")  # noqa: S608
_READ_UP_TO = text("SELECT stream, partition, next_position FROM stream_position")


class SinkWatch:
    """A follower that says so, now and then, when records wait on the stream and no sink is there to admit them."""

    def __init__(self, follower: Follower, ledger: Ledger, stream: Stream, context: ServiceContext) -> None:
        self._follower, self._ledger, self._stream, self._context = follower, ledger, stream, context
        self._next = context.monotonic() + SILENT_SECONDS

    def step(self, assigned: frozenset[Partition]) -> bool:
        """The follower's step, and then a look: a stream that does not answer must not keep it from its work."""
        more = self._follower.step(assigned)
        if self._context.monotonic() >= self._next:
            self._next = self._context.monotonic() + SILENT_SECONDS
            waiting = self._waiting()
            if waiting:
                self._context.log("no sink", level="warning", waiting=waiting, advice="start one with `lap sink`")
        return more

    def finish(self) -> bool:
        """The follower's finish."""
        return self._follower.finish()

    def _waiting(self) -> list[str]:
        with reading(self._ledger.engine) as connection:
            if connection.execute(_LEASED, clock(self._context.now_ms())).scalar_one():
                return []
            read = {(row.stream, row.partition): row.next_position for row in connection.execute(_READ_UP_TO)}
        ends = sorted(self._stream.ends().items())
        return [f"{partition[0]}/{partition[1]}" for partition, end in ends if end > read.get(partition, 0)]
