"""A group that divides by leases what its stream does not: on a local stream every member would try everything.

Members sit on numbered seats, each a named lease; the partitions are dealt out to the taken seats in turn.
"""

from lapledger.consumers.services.service_loop import NamedLease, ServiceContext
from lapledger.ledger.store.open_ledger import Ledger
from lapledger.ledger.store.sql import leases
from lapledger.ledger.streams.base import Group, Partition

SEATS = 32
"""Most members of one group; further ones wait for a seat."""


class SeatedGroup:
    """A `Group` over one that assigns everything to everybody. Until a seat that fell empty is noticed, by the end of
    its lease, its partitions rest."""

    def __init__(self, inner: Group, ledger: Ledger, name: str, context: ServiceContext) -> None:
        self._inner, self._ledger, self._context = inner, ledger, context
        self._seats = [NamedLease(ledger, f"{name}#{number}", context) for number in range(SEATS)]
        self._mine: int | None = None

    def assigned(self, wait_seconds: float) -> frozenset[Partition]:
        """This member's share; the inner group says when to come back."""
        everything = sorted(self._inner.assigned(wait_seconds))
        mine = self._seat()
        if mine is None:
            return frozenset()
        taken = leases.live(self._ledger.engine, [seat.name for seat in self._seats], self._context.now_ms())
        order = [number for number, seat in enumerate(self._seats) if seat.name in taken or number == mine]
        return frozenset(everything[order.index(mine) :: len(order)])

    def leave(self) -> None:
        """Frees the seat, for the others to see at once."""
        if self._mine is not None:
            self._seats[self._mine].drop()
            self._mine = None
        self._inner.leave()

    def _seat(self) -> int | None:
        """The number of this member's seat; without one it takes the first that is free."""
        if self._mine is None or not self._seats[self._mine].hold():
            self._mine = next((number for number, seat in enumerate(self._seats) if seat.hold()), None)
        return self._mine
