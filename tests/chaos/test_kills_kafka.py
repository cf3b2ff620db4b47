"""A writer with a spool and two sinks of one group on a real broker, killed at random moments again and again."""

import time
from collections import Counter
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from random import Random
from typing import Any

import pytest

from lapledger.ledger.store.location import Location
from lapledger.ledger.store.open_ledger import Ledger, create_ledger, open_ledger
from lapledger.ledger.streams.kafka.settings import KafkaSettings
from tests.chaos.checks import check_complete, check_same_facts, check_state
from tests.chaos.facts import largest
from tests.chaos.nursery import PATIENCE, Nursery, Victim

pytestmark = pytest.mark.chaos

KILLS = 12
SINKS = ("sink-a", "sink-b")


def kafka_ledger(root: Path, settings: KafkaSettings) -> tuple[Location, dict[str, Any]]:
    """A fresh ledger whose streams are on Kafka: its place, and the same as plain words for victims."""
    location = Location(root, kafka=settings)
    create_ledger(location, "identity-0", "now").close()
    address = {"servers": settings.address, "prefix": settings.prefix, "timeout_seconds": settings.timeout_seconds}
    return location, {"root": str(root), "kafka": address}


class Scene:
    """A writer and two sinks, each begun again when it was killed; a sink always under its own name in the group."""

    def __init__(self, victims: Nursery, address: dict[str, Any], stop: Path) -> None:
        self.victims, self.address, self.stop = victims, address, stop
        self.living: dict[str, Victim] = {}
        self.epochs = 0

    def start(self, role: str) -> None:
        """Begins a role as a new process."""
        self.epochs += 1
        if role == "writer":
            self.living[role] = self.victims.start("write_on", self.address, f"epoch-{self.epochs}", self.stop / role)
        else:
            self.living[role] = self.victims.start("service", self.address, role, self.stop / "sinks")

    def end(self, name: str, *roles: str) -> None:
        """Lets roles end in good order."""
        (self.stop / name).touch()
        for role in roles:
            assert self.living[role].wait() == 0, self.living[role].output()


def until(come: Callable[[], bool], what: str) -> None:
    """Returns when something came true."""
    deadline = time.monotonic() + PATIENCE
    while not come():
        assert time.monotonic() < deadline, what
        time.sleep(0.02)


def test_kills_at_random_moments_lose_and_double_nothing(
    victims: Nursery,
    fresh: Callable[[str], Path],
    kafka_settings: KafkaSettings,
    tmp_path: Path,
    report: Callable[[str], None],
    times: int,
) -> None:
    """After each kill the ledger is whole, and somebody goes on; at the end it is as an undisturbed run's."""
    location, address = kafka_ledger(tmp_path / "ledger", kafka_settings)
    choice = Random(0)  # noqa: S311  (a seed that reproduces)
    (tmp_path / "stop").mkdir()
    scene = Scene(victims, address, tmp_path / "stop")
    inside, killed = Counter[str](), Counter[str]()
    with closing(open_ledger(location)) as ledger:
        for role in ("writer", *SINKS):
            scene.start(role)
        for number in range(KILLS * times):
            before = largest(ledger)
            until(lambda before=before: largest(ledger) > before + 3, "nothing is admitted any more")
            time.sleep(choice.uniform(0, 0.1))
            role = choice.choice(["writer", *SINKS])
            victim, database = scene.living[role], location.root / "ledger.sqlite"
            if number % 2 and role in SINKS:
                inside[role] += victim.pause_inside(choice, 0.003, database)
            else:
                victim.pause()
                inside[role] += victim.in_transaction(database)
            killed[role] += 1
            assert victim.kill() == -9, f"{role} had ended by itself: {victim.output()}"
            check_state(ledger)
            scene.start(role)
        scene.end("writer", "writer")
        victims.done("sink", address)
        scene.end("sinks", *SINKS)
        count = largest(ledger) + 1
        check_complete(ledger, count)
        compare(victims, fresh("undisturbed"), ledger, count)
    report(
        f"kafka kills: {killed.total()} ({', '.join(f'{role} {n}' for role, n in sorted(killed.items()))}),"
        f" inside an SQL transaction {inside.total()}; {count} numbers written"
    )


def compare(victims: Nursery, root: Path, ledger: Ledger, count: int) -> None:
    """The facts of a ledger are those of a run on the local stream that nothing disturbed."""
    victims.done("write", root, "epoch-0", 0, count)
    victims.done("sink", root)
    with closing(open_ledger(root)) as undisturbed:
        check_same_facts(ledger, undisturbed)
