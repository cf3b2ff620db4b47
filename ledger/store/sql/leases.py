"""Leases: which process works on what, so that work continues when one dies. Correctness depends on no lease or clock.

A lease is an epoch that only rises. Whoever holds an older one has lost: every compare-and-set names the epoch.
"""

from collections.abc import Collection
from dataclasses import dataclass

from sqlalchemy import Engine, bindparam, text

from lapledger.ledger.store.sql.engine import reading, writing

LONGEST_MS = 600_000
"""No lease lasts longer. One that ends later was taken by a clock that was ahead, and holds nobody up."""
FREE = "(NOT {until} BETWEEN :now + 1 AND :latest)"
"""The condition that nobody holds a lease now; `until` is the column with its end."""


def clock(now_ms: int) -> dict[str, int]:
    """The values that FREE names."""
    return {"now": now_ms, "latest": now_ms + LONGEST_MS}


@dataclass(frozen=True, slots=True)
class Term:
    """The requesting holder, the current time and the lease time, both in milliseconds."""

    holder: str
    now_ms: int
    lasts_ms: int = 30_000

    @property
    def bound(self) -> dict[str, object]:
        """The values that the statements below name."""
        return {"holder": self.holder, "until": self.now_ms + min(self.lasts_ms, LONGEST_MS), **clock(self.now_ms)}


_TAKE_PARTITION = text(
    "UPDATE stream_position SET lease_epoch = lease_epoch + 1, lease_holder = :holder, lease_until = :until"  # noqa: S608  (constants of this module)
    f" WHERE stream = :stream AND partition = :partition AND ({FREE.format(until='lease_until')}"
    " OR lease_holder = :holder OR :force) RETURNING lease_epoch"
)
_RENEW_PARTITION = text(
    "UPDATE stream_position SET lease_until = :until"
    " WHERE stream = :stream AND partition = :partition AND lease_epoch = :epoch AND lease_holder = :holder"
)
_DROP_PARTITION = text(
    "UPDATE stream_position SET lease_until = 0, lease_holder = ''"
    " WHERE stream = :stream AND partition = :partition AND lease_epoch = :epoch AND lease_holder = :holder"
)
_KNOW = text("INSERT INTO lease (name, epoch, holder, until) VALUES (:name, 0, '', 0) ON CONFLICT DO NOTHING")
_TAKE = text(
    "UPDATE lease SET epoch = epoch + 1, holder = :holder, until = :until"  # noqa: S608  (constants of this module)
    f" WHERE name = :name AND ({FREE.format(until='until')} OR holder = :holder) RETURNING epoch"
)
_RENEW = text("UPDATE lease SET until = :until WHERE name = :name AND epoch = :epoch AND holder = :holder")
_LIVE = text(f"SELECT name FROM lease WHERE name IN :names AND NOT {FREE.format(until='until')}").bindparams(  # noqa: S608  (constants of this module)
    bindparam("names", expanding=True)
)
_DROP = text("UPDATE lease SET until = 0, holder = '' WHERE name = :name AND epoch = :epoch AND holder = :holder")


def take_partition(engine: Engine, stream: str, partition: int, term: Term, *, force: bool = False) -> int | None:
    """The new epoch of a partition's lease, None while another holds it.

    `force` takes it anyway, for whom a broker assigned the partition: the holder before then commits nothing more.
    """
    bound = term.bound | {"stream": stream, "partition": partition, "force": force}
    with writing(engine) as connection:
        epoch = connection.execute(_TAKE_PARTITION, bound).scalar_one_or_none()
    return None if epoch is None else int(epoch)


def renew_partition(engine: Engine, stream: str, partition: int, term: Term, *, epoch: int) -> bool:
    """True when the lease of that epoch was prolonged, False when it was lost."""
    bound = term.bound | {"stream": stream, "partition": partition, "epoch": epoch}
    with writing(engine) as connection:
        return connection.execute(_RENEW_PARTITION, bound).rowcount == 1


def drop_partition(engine: Engine, stream: str, partition: int, holder: str, *, epoch: int) -> None:
    """Gives a partition's lease back, so that the next need not wait; nothing when it was lost already."""
    with writing(engine) as connection:
        connection.execute(
            _DROP_PARTITION, {"stream": stream, "partition": partition, "epoch": epoch, "holder": holder}
        )


def take(engine: Engine, name: str, term: Term) -> int | None:
    """The new epoch of a named lease, None while another process holds it."""
    with writing(engine) as connection:
        connection.execute(_KNOW, {"name": name})
        epoch = connection.execute(_TAKE, term.bound | {"name": name}).scalar_one_or_none()
    return None if epoch is None else int(epoch)


def renew(engine: Engine, name: str, term: Term, *, epoch: int) -> bool:
    """True when the named lease of that epoch was prolonged, False when it was lost."""
    with writing(engine) as connection:
        return connection.execute(_RENEW, term.bound | {"name": name, "epoch": epoch}).rowcount == 1


def drop(engine: Engine, name: str, holder: str, *, epoch: int) -> None:
    """Gives a named lease back; nothing when it was lost already."""
    with writing(engine) as connection:
        connection.execute(_DROP, {"name": name, "epoch": epoch, "holder": holder})


def live(engine: Engine, names: Collection[str], now_ms: int) -> frozenset[str]:
    """Which of these named leases somebody holds now."""
    with reading(engine) as connection:
        return frozenset(connection.execute(_LIVE, {"names": sorted(names), **clock(now_ms)}).scalars())
