"""Killed between every two durable effects, at each named point, and begun again: nothing is lost or doubled."""

import shutil
import signal
import tempfile
from collections import Counter
from collections.abc import Callable, Mapping
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any

import pytest

from lapledger.ledger.failpoint import POINTS
from lapledger.ledger.store.open_ledger import open_ledger
from tests.chaos.checks import check_ledger_at, check_same_facts, check_same_ledger, check_state
from tests.chaos.nursery import Crash, Nursery

pytestmark = pytest.mark.chaos

COUNT = 40


@dataclass(frozen=True, slots=True)
class Stage:
    """One role in the life of a ledger: the ledger before and after it, and how often it passes each point.

    `admitted` is the ledger after it once all was admitted.
    """

    number: int
    role: str
    args: tuple[Any, ...]
    before: Path
    after: Path
    admitted: Path
    passed: Mapping[str, int]


LIFE: tuple[tuple[Any, ...], ...] = (
    ("write", "epoch-0", 0, 20),
    ("sink",),
    ("seal_tail",),
    ("write", "epoch-1", 20, 30),
    ("sink",),
    ("seal_tail",),
    ("merge",),
    ("trim",),
    ("spool", "epoch-2", 30, COUNT),
    ("sink",),
    ("campaign", "epoch-3"),
    ("reward", "epoch-4"),
    ("seal_tail",),
    ("merge",),
    ("trim",),
    ("copy",),
)
"""Every role of one life, with its arguments behind the folder of the ledger."""


@pytest.fixture(scope="module")
def life(victims: Nursery, empty: Path, memory: Path) -> list[Stage]:
    """A life that nothing disturbed, with a copy of the ledger between any two stages."""
    folder = memory / "life"
    before, stages = empty, []
    for number, (role, *args) in enumerate(LIFE):
        after = Path(shutil.copytree(before, folder / str(number)))
        passed = victims.done("passed", role, after, *args)
        check_ledger_at(after)
        admitted = Path(shutil.copytree(after, folder / f"{number}-admitted"))
        victims.done("sink", admitted)
        begun_again = {} if role == "campaign" else passed  # that one does not look at what is there
        stages.append(Stage(number, role, tuple(args), before, after, admitted, begun_again))
        before = after
    return stages


DIED: Counter[str] = Counter()


@pytest.mark.parametrize("point", sorted(POINTS))
def test_a_process_killed_at_a_point_is_begun_again_as_if_nothing_was(
    victims: Nursery, life: list[Stage], memory: Path, times: int, point: str
) -> None:
    """In every stage that passes it, at the first time and at a later one: the ledger comes out as undisturbed."""
    stages = [stage for stage in life if point in stage.passed]
    assert stages, "no stage of the life passes this point"
    choice = Random(point)  # noqa: S311  (a seed that reproduces)
    for stage in stages:
        later = [choice.randint(2, stage.passed[point]) for _ in range(times) if stage.passed[point] > 1]
        for hits in sorted({1, *later}):
            with tempfile.TemporaryDirectory(dir=memory) as folder:
                killed = Path(shutil.copytree(stage.before, Path(folder) / "ledger"))
                kill_and_begin_again(victims, stage, killed, (point, hits, "SIGKILL"))


def kill_and_begin_again(victims: Nursery, stage: Stage, killed: Path, crash: Crash) -> None:
    """One death in a stage, and what came of it."""
    assert victims.run(stage.role, killed, *stage.args, crash=crash).status == -signal.SIGKILL
    DIED[crash[0]] += 1
    check_ledger_at(killed)
    again = [f"{stage.args[0]}-again", *stage.args[1:]] if stage.args else []  # a new process, a new epoch
    victims.done(stage.role, killed, *again)
    compare(victims, stage, killed)


def compare(victims: Nursery, stage: Stage, killed: Path) -> None:
    """The ledger is as after the undisturbed stage: to the head where no new epoch came, else fact by fact."""
    if stage.args:
        victims.done("sink", killed)
    ledger, undisturbed = open_ledger(killed), open_ledger(stage.admitted if stage.args else stage.after)
    try:
        check_state(ledger)
        (check_same_facts if stage.args else check_same_ledger)(ledger, undisturbed)
        if stage.role == "copy":
            with closing(open_ledger(killed / "copy")) as copied:
                check_same_ledger(copied, undisturbed)
    finally:
        ledger.close()
        undisturbed.close()


def test_every_point_was_reached(report: Callable[[str], None], request: pytest.FixtureRequest) -> None:
    """No name in the list is dead; the counts are reported."""
    chosen = sum("killed_at_a_point" in item.name for item in request.session.items)
    if chosen < len(POINTS):
        pytest.skip("only a part of the points was chosen to run")
    assert DIED.keys() == POINTS
    report(f"crash points: {DIED.total()} processes died at {len(DIED)} named points, each begun again")
