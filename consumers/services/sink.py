"""The sink as a service: partitions that it was assigned, held by lease, are brought into the ledger as records arrive.

Kafka says who tries, SQL who may: a lost lease or a lost race costs a little work and never a frame.
"""

import json
from collections.abc import Callable, Collection, Mapping
from typing import Any

from sqlalchemy import Connection, text

from lapledger.consumers.ingest.admission import Drained, Position, positions
from lapledger.consumers.ingest.sink import drain
from lapledger.consumers.services.service_loop import ServiceContext
from lapledger.ledger.errors import LapError
from lapledger.ledger.store.cuts import Cut
from lapledger.ledger.store.open_ledger import Ledger
from lapledger.ledger.store.sql import leases
from lapledger.ledger.store.sql.engine import reading
from lapledger.ledger.store.sql.statements import LAST_QUARANTINED
from lapledger.ledger.streams.base import Partition, Stream

STEP_RECORDS = 4096
"""Most records of one step, so that leases are prolonged in time and every partition gets its turn."""

Show = Callable[[Mapping[Partition, int]], None]

_MINE_OR_FREE = text(
    f"SELECT stream, partition FROM stream_position WHERE {leases.FREE.format(until='lease_until')}"  # noqa: S608
    " OR lease_holder = :holder"
)
_FRAMES = text(
    "SELECT epoch, min(sequence) AS first, max(sequence) AS last FROM (SELECT epoch, sequence,"
    " sequence - row_number() OVER (PARTITION BY epoch ORDER BY sequence) AS run FROM frame WHERE stream = :stream"
    " AND partition = :partition AND admission > :after AND admission <= :until) AS runs"
    " GROUP BY epoch, run ORDER BY epoch, first"
)
_QUARANTINED = text(
    "SELECT id, stream, partition, source_offset, reason, headers FROM quarantine WHERE id > :after ORDER BY id"
)


class PartitionLeases:
    """The partition leases of one process."""

    def __init__(self, ledger: Ledger, context: ServiceContext, *, assigned_by_broker: bool) -> None:
        self._engine, self._context, self._force = ledger.engine, context, assigned_by_broker
        self._before: frozenset[Partition] = frozenset()
        self._renew_ms = 0
        self.held: dict[Partition, int] = {}

    def hold(self, assigned: frozenset[Partition]) -> None:
        """Prolongs, gives back and takes leases, so that those of `assigned` are held where that may be.

        What a broker has just assigned is taken from whom held it; what was lost since is taken again only once free.
        """
        self._drop(set(self.held) - assigned)
        self._renew()
        missing = assigned - set(self.held)
        if missing:
            fresh = assigned - self._before if self._force else frozenset()
            self._take(missing & (fresh | self._free()), fresh)
        self._before = assigned

    def drop(self) -> None:
        """Gives all of them back."""
        self._drop(set(self.held))

    def _take(self, partitions: Collection[Partition], fresh: Collection[Partition]) -> None:
        taken = {}
        for partition in sorted(partitions):
            epoch = leases.take_partition(self._engine, *partition, self._context.term(), force=partition in fresh)
            if epoch is not None:
                taken[partition] = epoch
        self.held |= taken
        self._log("leases taken", taken)

    def _renew(self) -> None:
        term = self._context.term()
        if not self.held or term.now_ms < self._renew_ms:
            return
        self._renew_ms = term.now_ms + term.lasts_ms // 3
        lost = {
            partition: epoch
            for partition, epoch in sorted(self.held.items())
            if not leases.renew_partition(self._engine, *partition, term, epoch=epoch)
        }
        self.held = {partition: epoch for partition, epoch in self.held.items() if partition not in lost}
        self._log("leases lost", lost, level="warning")

    def _free(self) -> frozenset[Partition]:
        bound = {**leases.clock(self._context.now_ms()), "holder": self._context.holder}
        with reading(self._engine) as connection:
            return frozenset((row.stream, row.partition) for row in connection.execute(_MINE_OR_FREE, bound))

    def _drop(self, partitions: Collection[Partition]) -> None:
        dropped = {partition: self.held.pop(partition) for partition in sorted(partitions)}
        for (stream, partition), epoch in dropped.items():
            leases.drop_partition(self._engine, stream, partition, self._context.holder, epoch=epoch)
        self._log("leases dropped", dropped)

    def _log(self, event: str, partitions: Mapping[Partition, int], *, level: str = "info") -> None:
        if partitions:
            epochs = {f"{stream}/{partition}": epoch for (stream, partition), epoch in partitions.items()}
            self._context.log(event, level=level, lease_epochs=epochs)


class SinkFollower:
    """Brings its partitions into the ledger. `show` tells a broker how far they are, for its displays of lag."""

    def __init__(
        self,
        ledger: Ledger,
        stream: Stream,
        context: ServiceContext,
        *,
        assigned_by_broker: bool,
        show: Show | None = None,
    ) -> None:
        self._ledger, self._stream, self._context, self._show = ledger, stream, context, show
        self._leases = PartitionLeases(ledger, context, assigned_by_broker=assigned_by_broker)
        self._last_quarantined = _last_quarantined(ledger)
        self._turns: list[Partition] = []
        self._full = False
        self._shown: dict[Partition, int] = {}
        self._show_at = context.monotonic()

    def step(self, assigned: frozenset[Partition]) -> bool:
        """Takes what lies on the stream; True when more does than one step takes."""
        self._leases.hold(assigned)
        held = self._leases.held
        turn = {partition: held[partition] for partition in self._turns[:1] if partition in held} or dict(held)
        self._turns = self._turns[1:]
        if turn:
            before = positions(self._ledger)
            self._full |= self._drain(turn)
            self._log(before, turn)
        if self._full and not self._turns:  # one by one: a busy partition must not keep the others waiting
            self._turns, self._full = sorted(held), False
        return bool(self._turns)

    def finish(self) -> bool:
        """Gives the leases back."""
        self._leases.drop()
        return True

    def _display(self, after: Mapping[Partition, Position], partitions: Collection[Partition]) -> None:
        """Shows the positions of these partitions, at most once a second."""
        now = self._context.monotonic()
        fresh = {partition: after[partition].next_position for partition in partitions}
        if self._show is None or now < self._show_at or not fresh.items() - self._shown.items():
            return
        self._shown |= fresh
        self._show_at = now + 1.0
        try:
            self._show(fresh)
        except LapError as error:  # a display of lag, refused while members come and go, stops no sink
            self._context.log("positions not shown", level="warning", reason=str(error))

    def _drain(self, leased: Mapping[Partition, int]) -> bool:
        """True when the step's limit ended it."""
        drained = drain(self._ledger, self._stream, STEP_RECORDS, seen=self._context.utc_now(), leases=leased)
        if drained.duplicates:
            self._context.log("duplicates", count=drained.duplicates)
        if drained.quarantined:
            self._last_quarantined = self._log_quarantined(leased)
        return total(drained) >= STEP_RECORDS

    def _log_quarantined(self, partitions: Collection[Partition]) -> int:
        """Reports every record quarantined since the last time, with an alarm; the id of the last one."""
        with reading(self._ledger.engine) as connection:
            rows = connection.execute(_QUARANTINED, {"after": self._last_quarantined}).all()
        for row in rows:
            if (row.stream, row.partition) in partitions:
                fields = {name: getattr(row, name) for name in ("id", "stream", "partition", "source_offset", "reason")}
                level = "error" if row.reason == "fork" else "warning"
                self._context.log("quarantined", level=level, alarm=True, ce_id=_ce_id(row.headers), **fields)
        return int(rows[-1].id) if rows else self._last_quarantined

    def _log(self, before: Mapping[Partition, Position], leased: Mapping[Partition, int]) -> None:
        after = positions(self._ledger)
        still_leased = [partition for partition in sorted(leased) if after[partition].lease_epoch == leased[partition]]
        moved = [
            partition for partition in still_leased if after[partition].next_position != before[partition].next_position
        ]
        cut = str(Cut.of({partition: position.admissions for partition, position in after.items()}))
        with reading(self._ledger.engine) as connection:
            for partition in moved:
                event = "admitted" if after[partition].admissions > before[partition].admissions else "passed"
                fields = _log_fields(connection, before[partition], after[partition])
                self._context.log(event, **fields, lease_epoch=leased[partition], cut=cut)
        self._display(after, leased)


def total(drained: Drained) -> int:
    """How many records were taken."""
    return drained.admitted + drained.duplicates + drained.quarantined


def frame_ids(connection: Connection, partition: Partition, after: int, until: int) -> list[str]:
    """The ids of the frames admitted after one admission and until another, a run `EPOCH.STREAM.PARTITION.A-B` each."""
    stream, number = partition
    bound = {"stream": stream, "partition": number, "after": after, "until": until}
    runs = connection.execute(_FRAMES, bound).all()
    return [
        f"{run.epoch}.{stream}.{number}.{run.first}" + (f"-{run.last}" if run.last > run.first else "") for run in runs
    ]


def _ce_id(headers: str) -> str:
    """What the record says it is, cut short: it may say anything."""
    fields = json.loads(headers).get("ce_id", "")
    return ascii(fields[:120])[1:-1] if isinstance(fields, str) else ""


def _log_fields(connection: Connection, before: Position, after: Position) -> dict[str, Any]:
    """What became of a partition: its position and, when frames were admitted, their numbers and ids."""
    partition = before.stream, before.partition
    fields: dict[str, Any] = {"stream": partition[0], "partition": partition[1], "position": after.next_position}
    if after.admissions == before.admissions:
        return fields
    ids = frame_ids(connection, partition, before.admissions, after.admissions)
    return fields | {"first": before.admissions + 1, "last": after.admissions, "frames": ids}


def _last_quarantined(ledger: Ledger) -> int:
    with reading(ledger.engine) as connection:
        return int(connection.execute(LAST_QUARANTINED).scalar_one())
