"""What must hold after every fault, whatever was killed: the checks that all scenarios share."""

from collections import Counter
from contextlib import closing
from typing import Any

from sqlalchemy import text

from lapledger.ledger.proof import verify
from lapledger.ledger.store.location import LedgerPath
from lapledger.ledger.store.open_ledger import Ledger, open_ledger
from lapledger.ledger.store.sql.engine import reading
from tests.chaos.facts import DERIVED, NAMES, held, name_of, table, wanted

_CHAINS = text(
    "SELECT stream, partition, epoch, count(*) AS n, min(sequence) AS first, max(sequence) AS last FROM frame"
    " GROUP BY stream, partition, epoch"
)


def check_state(ledger: Ledger, *, gaps_open: bool = False) -> None:
    """Producer sequences have no gap, no fact stands twice, nothing is quarantined, and the proof finds no damage.

    With `gaps_open` a sequence may still be awaited.
    """
    with reading(ledger.engine) as connection:
        broken = [tuple(row) for row in connection.execute(_CHAINS) if (row.first, row.last) != (0, row.n - 1)]
        gaps, quarantined = (
            connection.execute(text(f"SELECT count(*) FROM {name}")).scalar_one() for name in ("gap", "quarantine")
        )
    assert quarantined == 0
    assert gaps_open or (broken, gaps) == ([], 0)
    repeated = [name for name, times in Counter(held(ledger)).items() if times > 1]
    assert repeated == []
    stream: Any = ledger.stream()
    with closing(stream):
        assert verify(ledger, stream=stream).problems == ()


def check_ledger_at(location: LedgerPath) -> None:
    """`check_state` of a ledger that is not open here."""
    ledger = open_ledger(location)
    try:
        check_state(ledger)
    finally:
        ledger.close()


def check_complete(ledger: Ledger, count: int) -> None:
    """The ledger holds the facts of the numbers below `count`, each once, and no others."""
    check_state(ledger)
    assert sorted(held(ledger)) == sorted(name_of(event) for event in wanted(range(count)))


def check_same_facts(ledger: Ledger, undisturbed: Ledger) -> None:
    """Every type has the same values, whatever epochs and frames brought them."""
    for kind in (*NAMES, *DERIVED):
        assert table(ledger, kind, with_positions=False).equals(table(undisturbed, kind, with_positions=False)), kind


def check_same_ledger(ledger: Ledger, undisturbed: Ledger) -> None:
    """Every type has the same values in the same places, under the same cut and the same head."""
    for kind in (*NAMES, *DERIVED):
        assert table(ledger, kind, with_positions=True).equals(table(undisturbed, kind, with_positions=True)), kind
    assert (ledger.cut(), ledger.head()) == (undisturbed.cut(), undisturbed.head())
    assert verify(ledger).head == ledger.head()
