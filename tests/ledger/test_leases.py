"""Leases: one holder at a time, an epoch that only rises, and a holder of an older one that has lost."""

from concurrent.futures import ThreadPoolExecutor
from contextlib import closing

import pytest

from lapledger.ledger.store.location import Location
from lapledger.ledger.store.open_ledger import Ledger, open_ledger
from lapledger.ledger.store.sql.leases import (
    LONGEST_MS,
    Term,
    drop,
    drop_partition,
    live,
    renew,
    renew_partition,
    take,
    take_partition,
)

PARTITION = ("facts", 2)


@pytest.fixture
def ledger(both: Ledger) -> Ledger:
    """A fresh ledger; every test runs over both databases."""
    return both


def test_a_partition_has_one_holder_until_its_time_is_over(ledger: Ledger) -> None:
    """Others wait; the holder itself may take it again; afterwards the next one gets a higher epoch."""
    engine = ledger.engine
    assert take_partition(engine, *PARTITION, Term("a", 1000, 500)) == 1
    assert take_partition(engine, *PARTITION, Term("b", 1499)) is None
    assert take_partition(engine, *PARTITION, Term("a", 1400, 500)) == 2
    assert take_partition(engine, *PARTITION, Term("b", 1899)) is None
    assert take_partition(engine, *PARTITION, Term("b", 1900)) == 3
    assert take_partition(engine, "facts", 3, Term("c", 1900)) == 1


def test_a_lost_partition_is_neither_prolonged_nor_given_back(ledger: Ledger) -> None:
    """The epoch decides, whatever the clocks say."""
    engine = ledger.engine
    assert take_partition(engine, *PARTITION, Term("a", 0)) == 1
    assert renew_partition(engine, *PARTITION, Term("a", 20_000), epoch=1)
    assert take_partition(engine, *PARTITION, Term("b", 49_999)) is None
    assert take_partition(engine, *PARTITION, Term("b", 0), force=True) == 2
    assert not renew_partition(engine, *PARTITION, Term("a", 0), epoch=1)
    drop_partition(engine, *PARTITION, "a", epoch=1)
    assert take_partition(engine, *PARTITION, Term("c", 29_999)) is None
    drop_partition(engine, *PARTITION, "b", epoch=2)
    assert take_partition(engine, *PARTITION, Term("c", 0)) == 3


def test_named_leases_follow_the_same_rules(ledger: Ledger) -> None:
    """Each name by itself."""
    engine = ledger.engine
    assert take(engine, "seal", Term("a", 0, 10)) == 1
    assert take(engine, "seal", Term("b", 9)) is None
    assert take(engine, "calibrate", Term("b", 9)) == 1
    assert renew(engine, "seal", Term("a", 9, 10), epoch=1)
    assert take(engine, "seal", Term("b", 18)) is None
    assert take(engine, "seal", Term("b", 19)) == 2
    assert not renew(engine, "seal", Term("a", 19), epoch=1)
    drop(engine, "seal", "a", epoch=1)
    assert take(engine, "seal", Term("c", 20)) is None
    drop(engine, "seal", "b", epoch=2)
    assert take(engine, "seal", Term("c", 20)) == 3


def test_of_many_who_try_at_once_one_gets_the_lease(location: Location) -> None:
    """Each over a connection of its own."""

    def try_once(number: int) -> tuple[int | None, int | None]:
        with closing(open_ledger(location)) as ledger:
            term = Term(str(number), 0)
            return take_partition(ledger.engine, *PARTITION, term), take(ledger.engine, "seal", term)

    with ThreadPoolExecutor(8) as pool:
        epochs = list(pool.map(try_once, range(8)))
    assert sorted(epoch or 0 for epoch, _ in epochs) == [0] * 7 + [1]
    assert sorted(epoch or 0 for _, epoch in epochs) == [0] * 7 + [1]


@pytest.mark.parametrize("ahead_ms", [24 * 3_600_000, LONGEST_MS + 1])
def test_a_clock_that_was_ahead_holds_nobody_up(ledger: Ledger, ahead_ms: int) -> None:
    """A lease that ends later than any lease can is nobody's: the next holder starts at once."""
    engine, now = ledger.engine, 1_700_000_000_000
    assert take_partition(engine, *PARTITION, Term("ahead", now + ahead_ms)) == 1
    assert take(engine, "seal", Term("ahead", now + ahead_ms)) == 1
    assert live(engine, ["seal"], now) == frozenset()
    assert take_partition(engine, *PARTITION, Term("b", now)) == 2
    assert take(engine, "seal", Term("b", now)) == 2
    assert not renew_partition(engine, *PARTITION, Term("ahead", now + ahead_ms), epoch=1)
    assert take_partition(engine, *PARTITION, Term("c", now + 1)) is None
    assert live(engine, ["seal"], now + 1) == {"seal"}


def test_no_lease_lasts_longer_than_the_longest(ledger: Ledger) -> None:
    """A longer one is cut, so that it is never taken for one of a wrong clock."""
    assert take(ledger.engine, "seal", Term("a", 0, 10 * LONGEST_MS)) == 1
    assert take(ledger.engine, "seal", Term("b", LONGEST_MS - 1)) is None
    assert take(ledger.engine, "seal", Term("b", LONGEST_MS)) == 2
