"""Sealing as a service: under one lease, the tail is sealed when it is large or old enough, then small segments merge.

Age is counted from when this process first saw a frame in the tail: no time is kept with a frame.
"""

from dataclasses import dataclass
from typing import Any

from sqlalchemy import text

from lapledger.consumers.services.service_loop import NamedLease, Pace, ServiceContext
from lapledger.consumers.storage.compactor import compact
from lapledger.consumers.storage.sealer import Sealed, seal
from lapledger.ledger.store.open_ledger import Ledger
from lapledger.ledger.store.sql.engine import reading
from lapledger.ledger.streams.base import Partition

LEASE = "seal"
TOGETHER = 8
"""Small segments of a type that are merged at once: each row is written again once in so many sealings, not in each."""

_TAIL = text(
    "SELECT stream, partition, min(admission) AS first, sum(length(payload)) AS bytes FROM tail"
    " GROUP BY stream, partition"
)
_LAST_SEGMENT = text("SELECT coalesce(max(ordinal), 0) FROM segment")
_RANGES = text(
    "SELECT stream, partition, min(first) AS first, max(last) AS last FROM segment_range"
    " WHERE ordinal > :after AND type <> 'quarantine' GROUP BY stream, partition ORDER BY stream, partition"
)


@dataclass(frozen=True, slots=True)
class SealWhen:
    """When the tail is sealed: it holds this many bytes of payload, or a frame waited this long in it."""

    bytes: int
    seconds: float


class SealFollower:
    """Seals and compacts while it holds the lease; a second one waits for the first to end."""

    def __init__(self, ledger: Ledger, context: ServiceContext, when: SealWhen) -> None:
        self._ledger, self._context, self._when = ledger, context, when
        self._lease = NamedLease(ledger, LEASE, context)
        self._pace = Pace(context.monotonic, rest=10)
        self._seen: dict[Partition, tuple[int, float]] = {}

    def step(self, assigned: frozenset[Partition]) -> bool:
        """Seals when it is time to; nothing without the lease."""
        if self._lease.hold() and self._pace.due():
            with self._pace.look():
                due = self._due()
            if due:
                self._seal()
        return False

    def finish(self) -> bool:
        """Gives the lease back."""
        self._lease.drop()
        return True

    def _due(self) -> bool:
        now = self._context.monotonic()
        with reading(self._ledger.engine) as connection:
            tail = {(row.stream, row.partition): (row.first, row.bytes) for row in connection.execute(_TAIL)}
        before = self._seen
        self._seen = {
            partition: before[partition] if partition in before and before[partition][0] == first else (first, now)
            for partition, (first, _) in tail.items()
        }
        large = sum(int(size) for _, size in tail.values()) >= self._when.bytes
        oldest = min((since for _, since in self._seen.values()), default=now)
        return bool(tail) and (large or now - oldest >= self._when.seconds)

    def _seal(self) -> None:
        with reading(self._ledger.engine) as connection:
            after = int(connection.execute(_LAST_SEGMENT).scalar_one())
        sealed = seal(self._ledger)
        if sealed != Sealed():
            self._context.log("sealed", **self._log_fields(sealed, after))
        if not self._lease.hold():
            return
        merged = compact(self._ledger, self._context.now_ms(), at_least=TOGETHER)
        if merged.segments:
            self._context.log(
                "compacted",
                superseded=merged.superseded,
                segments=merged.segments,
                bytes_before=merged.bytes_before,
                bytes_after=merged.bytes_after,
                lease_epoch=self._lease.epoch,
            )

    def _log_fields(self, sealed: Sealed, after: int) -> dict[str, Any]:
        with reading(self._ledger.engine) as connection:
            rows = connection.execute(_RANGES, {"after": after}).all()
            last = int(connection.execute(_LAST_SEGMENT).scalar_one())
        return {
            "frames": sealed.frames,
            "rows": sealed.rows,
            "bytes": sealed.bytes,
            "segments": [after + 1, last],
            "admissions": {f"{row.stream}/{row.partition}": [row.first, row.last] for row in rows},
            "cut": str(self._ledger.cut()),
            "lease_epoch": self._lease.epoch,
        }
