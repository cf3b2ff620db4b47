"""The group of a local stream: everybody tries everything, and wakes when records arrive. It polls."""

import time
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from lapledger.ledger.streams.base import Position

if TYPE_CHECKING:
    from lapledger.ledger.streams.local import LocalStream

POLL_SECONDS = 0.02


class LocalGroup:
    """A member of a local stream's group. One thread uses it."""

    def __init__(self, stream: "LocalStream", streams: Sequence[str]) -> None:
        """Nothing is read yet."""
        self._stream = stream
        self._streams = frozenset(streams)
        self._changes = -1
        self._seen: Mapping[tuple[str, int], Position] = {}

    def assigned(self, wait_seconds: float) -> frozenset[tuple[str, int]]:
        """Every partition of the group's streams, at once when records have arrived there, else after the wait."""
        deadline = time.monotonic() + wait_seconds
        while not self._arrived() and (left := deadline - time.monotonic()) > 0:
            time.sleep(min(POLL_SECONDS, left))
        return frozenset(self._seen)

    def leave(self) -> None:
        """Nothing is held that others would wait for."""

    def _arrived(self) -> bool:
        """Whether one of the partitions has grown since it was last asked."""
        changes = self._stream.changes()
        if changes == self._changes:
            return False
        ends = {place: end for place, end in self._stream.ends().items() if place[0] in self._streams}
        grown, self._changes, self._seen = ends != self._seen, changes, ends
        return grown
