"""Clocks that jump by hours, forth and back, while leases are held: who tries changes, what is admitted does not."""

import time
from collections.abc import Callable, Iterator
from importlib.resources import files
from pathlib import Path

import pytest
from sqlalchemy import text

from lapledger.ledger.store.open_ledger import Ledger, open_ledger
from lapledger.ledger.store.sql.engine import reading
from tests.chaos.checks import check_complete, check_same_facts, check_same_ledger
from tests.chaos.nursery import PATIENCE, Nursery, Victim, nursery

pytestmark = pytest.mark.chaos

LIBRARY = Path(str(files("libfaketime"))) / "vendor" / "libfaketime" / "src" / "libfaketime.so.1"
CHUNK = 12

JUMPS = (
    ("a", "+0"),  # alone: holds everything
    ("b", "+5h"),  # finds every lease over
    ("a", "+10h"),  # and so does this one
    ("a", "-7h"),  # keeps what it holds, until a moment long ago for the other
    ("b", "-2h"),
    ("a", "+9000h"),
    ("a", "+0"),
    ("b", "+1h"),
)
"""Whose clock goes where; after each jump it must be this one that holds the leases."""


@pytest.fixture
def jumping(tmp_path: Path) -> Iterator[Nursery]:
    """A nursery whose victims take the time of day from a file."""
    clock = tmp_path / "clock"
    clock.write_text("+0")
    fake = {"FAKETIME_TIMESTAMP_FILE": str(clock), "FAKETIME_CACHE_DURATION": "1", "FAKETIME_DONT_FAKE_MONOTONIC": "1"}
    (tmp_path / "jumping").mkdir()
    with nursery(tmp_path / "jumping", LD_PRELOAD=str(LIBRARY), **fake) as made:
        yield made


def test_jumping_clocks_change_no_answer(
    victims: Nursery, jumping: Nursery, quick: Callable[[str], Path], tmp_path: Path, report: Callable[[str], None]
) -> None:
    """Two sinks take the leases from each other, as neither trusts the clock of the other; all is admitted once."""
    root, calm, stop = quick("jumping-ledger"), quick("calm"), tmp_path / "stop"
    ledger = open_ledger(root)
    sinks = {}
    for number, (who, offset) in enumerate(JUMPS):
        clock = tmp_path / f"clock-{who}"
        clock.with_suffix(".new").write_text(offset)
        clock.with_suffix(".new").rename(clock)
        if who not in sinks:
            sinks[who] = jumping.start("sink_by_clock", root, who, clock, stop)
        until(lambda who=who, offset=offset: sum(jumps(sinks[who])) == int(offset.rstrip("h")))
        until(lambda who=who: holders(ledger) == {who})
        for folder in (root, calm):
            victims.done("append_only", folder, f"epoch-{number}", CHUNK * number, CHUNK * (number + 1))
        until(lambda: waiting(ledger) == 0)
        check_complete(ledger, CHUNK * (number + 1))
    stop.touch()
    for sink in sinks.values():
        assert sink.wait() == 0, sink.output()
    victims.done("sink", calm)
    undisturbed = open_ledger(calm)
    check_same_facts(ledger, undisturbed)
    check_same_ledger(ledger, undisturbed)
    undisturbed.close()
    assert {who: jumps(sink) for who, sink in sinks.items()} == {"a": [10, -17, 9007, -9000], "b": [5, -7, 3]}
    assert min(sink.result()["admitted"] for sink in sinks.values()) > 0
    ledger.close()
    report(f"clocks: {len(JUMPS) - 1} jumps by hours under held leases; {CHUNK * len(JUMPS)} numbers admitted once")


def until(come: Callable[[], bool]) -> None:
    """Returns when something came true."""
    deadline = time.monotonic() + PATIENCE
    while not come():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def jumps(sink: Victim) -> list[int]:
    """By how many hours the clock jumped, each time the sink saw it."""
    return [int(line.split()[1]) for line in sink.output().splitlines() if line.startswith("jump ")]


def holders(ledger: Ledger) -> set[str]:
    """Who holds the leases of the partitions."""
    with reading(ledger.engine) as connection:
        return set(connection.execute(text("SELECT lease_holder FROM stream_position")).scalars())


def waiting(ledger: Ledger) -> int:
    """Partitions with records that are not admitted yet."""
    stream = ledger.stream()
    with reading(ledger.engine) as connection:
        rows = connection.execute(text("SELECT stream, partition, next_position FROM stream_position")).all()
    known = {(row.stream, row.partition): row.next_position for row in rows}
    ends = stream.ends()
    stream.close()  # type: ignore[attr-defined]
    return sum(end > known[partition] for partition, end in ends.items())
