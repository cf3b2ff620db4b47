"""A writer, a sink and a sealer on the local stream, killed at random moments again and again."""

import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

import pytest

from lapledger.ledger.store.open_ledger import Ledger, open_ledger
from tests.chaos.checks import check_complete, check_same_facts, check_state
from tests.chaos.facts import largest
from tests.chaos.nursery import Nursery, Victim

pytestmark = pytest.mark.chaos

ROUNDS, KILLS = 4, 20
CYCLE_SECONDS = 0.03
"""About what a role takes for one of its cycles; kills fall within a few of them."""


@dataclass(slots=True)
class Scene:
    """Three processes at work on one ledger, and what has become of them."""

    victims: Nursery
    root: Path
    choice: Random
    living: dict[str, Victim] = field(default_factory=dict)
    epochs: int = 0
    inside: Counter[str] = field(default_factory=Counter)
    outside: Counter[str] = field(default_factory=Counter)

    @property
    def stop(self) -> Path:
        """The file that ends everybody in good order."""
        return self.root / "stop"

    def start(self, role: str) -> None:
        """Begins a role, as if its command were started again."""
        self.epochs += 1
        epoch = f"epoch-{self.epochs}"
        if role == "writer":
            self.living[role] = self.victims.start("write_on", self.root, epoch, self.stop)
        else:
            self.living[role] = self.victims.start("repeat", self.root, role, self.stop)

    def kill(self, role: str, *, aimed: bool) -> None:
        """Kills whoever plays a role, at a random moment or, when `aimed`, as soon as it is inside a transaction."""
        victim = self.living[role]
        databases = self.root / "ledger.sqlite", self.root / "stream.sqlite"
        time.sleep(self.choice.uniform(0, 3 * CYCLE_SECONDS))
        if aimed:
            inside = victim.pause_inside(self.choice, CYCLE_SECONDS / 10, *databases)
        else:
            victim.pause()
            inside = victim.in_transaction(*databases)
        assert victim.kill() == -9, f"{role} had ended by itself: {victim.output()}"
        (self.inside if inside else self.outside)[role] += 1

    def finish(self) -> None:
        """Lets everybody end in good order, the writer first."""
        self.stop.touch()
        for role in ("writer", "sink", "seal"):
            assert self.living[role].wait() == 0, f"{role} failed: {self.living[role].output()}"


@pytest.mark.parametrize("seed", range(ROUNDS))
def test_kills_at_random_moments_lose_and_double_nothing(
    victims: Nursery, fresh: Callable[[str], Path], report: Callable[[str], None], times: int, seed: int
) -> None:
    """After each kill the ledger is whole; at the end it holds what an undisturbed run of the same length does."""
    scene = Scene(victims, fresh("killed"), Random(seed))  # noqa: S311  (a seed that reproduces)
    ledger = open_ledger(scene.root)
    for role in ("writer", "sink", "seal"):
        scene.start(role)
    for number in range(KILLS * times):
        role = scene.choice.choice(["writer", "writer", "sink", "seal"])
        scene.kill(role, aimed=number % 2 == 0)
        check_state(ledger)
        scene.start(role)
    scene.finish()
    victims.done("sink", scene.root)
    count = largest(ledger) + 1
    check_complete(ledger, count)
    compare(victims, fresh("undisturbed"), ledger, count)
    ledger.close()
    killed = scene.inside + scene.outside
    assert killed.total() == KILLS * times
    assert scene.inside.total() > 0
    counts = ", ".join(f"{role} {scene.inside[role]} of {killed[role]}" for role in sorted(killed))
    report(
        f"local kills, seed {seed}: {killed.total()}, inside a writing transaction {scene.inside.total()} ({counts}); "
        f"{count} numbers written"
    )


def compare(victims: Nursery, root: Path, ledger: Ledger, count: int) -> None:
    """The facts of a ledger are those of a run that nothing disturbed."""
    victims.done("write", root, "epoch-0", 0, count)
    victims.done("sink", root)
    undisturbed = open_ledger(root)
    try:
        check_same_facts(ledger, undisturbed)
    finally:
        undisturbed.close()
