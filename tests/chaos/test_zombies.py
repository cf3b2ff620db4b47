"""A process that was stopped, lost its lease and wakes again commits nothing, whatever it holds in its hands."""

from collections.abc import Callable
from pathlib import Path

import pytest

from lapledger.ledger.store.open_ledger import open_ledger
from tests.chaos.checks import check_complete, check_same_ledger
from tests.chaos.nursery import Nursery

pytestmark = pytest.mark.chaos

COUNT = 60


def test_a_sink_that_wakes_after_its_lease_is_gone_commits_nothing(
    victims: Nursery, quick: Callable[[str], Path], report: Callable[[str], None]
) -> None:
    """It sleeps with records read and decoded; another takes the lease and admits them; the sleeper finds it lost."""
    root, plain = quick("zombie"), quick("plain")
    for root_folder in (root, plain):
        victims.done("write", root_folder, "epoch-0", 0, COUNT)
    victims.done("sink", plain)
    sleeper = victims.start("pausing_sink", root, "sleeper", 0)
    sleeper.until_paused()
    early = victims.done("sink_as", root, "heir", 29_999)
    late = victims.done("sink_as", root, "heir", 30_000)
    ledger = open_ledger(root)
    admitted, head = ledger.cut(), ledger.head()
    while not sleeper.ended():  # it stops again at each read
        sleeper.go_on()
        sleeper.until_paused()
    assert sleeper.wait() == 0, sleeper.output()
    assert (early["leased"], early["admitted"]) == (0, 0)  # the lease still lasts
    assert (late["leased"], late["admitted"]) == (13, frames(plain))
    assert (sleeper.result()["leased"], sleeper.result()["admitted"], sleeper.result()["duplicates"]) == (13, 0, 0)
    assert (ledger.cut(), ledger.head()) == (admitted, head)
    check_complete(ledger, COUNT)
    undisturbed = open_ledger(plain)
    check_same_ledger(ledger, undisturbed)
    undisturbed.close()
    ledger.close()
    report(f"zombies: a sink with {sleeper.result()['leased']} lost leases woke and committed nothing")


@pytest.mark.parametrize("point", ["seal.segment", "seal.manifest", "seal.settled"])
def test_a_sealer_that_wakes_after_another_has_sealed_commits_nothing(
    victims: Nursery, quick: Callable[[str], Path], report: Callable[[str], None], point: str
) -> None:
    """It sleeps with its segments written and not yet counted; another seals the same frames, and later ones."""
    root, plain = quick("zombie"), quick("plain")
    first = [("write", "epoch-0", 0, COUNT // 2), ("sink",)]
    then = [("seal_tail",), ("write", "epoch-1", COUNT // 2, COUNT), ("sink",), ("seal_tail",)]
    for role, *args in first:
        victims.done(role, root, *args)
    sleeper = victims.start("seal_tail", root, crash=(point, 1, "SIGSTOP"))
    sleeper.until_paused()
    for role, *args in then:
        victims.done(role, root, *args)
    for role, *args in first + then:
        victims.done(role, plain, *args)
    sleeper.go_on()
    assert (sleeper.wait(), sleeper.result()) == (0, 0), sleeper.output()
    ledger, undisturbed = open_ledger(root), open_ledger(plain)
    check_complete(ledger, COUNT)
    check_same_ledger(ledger, undisturbed)
    ledger.close()
    undisturbed.close()
    report(f"zombies: a sealer that slept at {point} woke and committed nothing")


def frames(root: Path) -> int:
    """Frames admitted."""
    ledger = open_ledger(root)
    try:
        return sum(count for _, counts in ledger.cut().counts for count in counts)
    finally:
        ledger.close()
