"""Frames that arrive twice, in another order, or long after their turn: admitted once each, and the gap closes."""

from collections.abc import Callable, Sequence
from pathlib import Path
from random import Random
from typing import Any

import pytest
from sqlalchemy import text

from lapledger.consumers.ingest.sink import Drained, drain
from lapledger.ledger.frames.frame import Record
from lapledger.ledger.store.open_ledger import Ledger, open_ledger
from lapledger.ledger.store.sql.engine import reading
from lapledger.ledger.streams.base import Stream
from lapledger.ledger.streams.producer import Producer
from tests.chaos.checks import check_complete, check_same_facts, check_state
from tests.chaos.facts import facts, source, wanted
from tests.chaos.nursery import Nursery

pytestmark = pytest.mark.chaos

COUNT = 60
SEEDS = 6


class Unruly:
    """A stream that delivers what it was given twice, swapped, or much later, by a seed."""

    def __init__(self, stream: Stream, choice: Random) -> None:
        self._stream, self._choice = stream, choice
        self.max_record_bytes = stream.max_record_bytes
        self._held: list[tuple[str, int, Record]] = []
        self.repeated = self.late = 0

    def append(self, stream: str, partition: int, records: Sequence[Record]) -> None:
        """Takes the records; some come again now, some are kept for later."""
        for record in records:
            fate = self._choice.random()
            if fate < 0.25:
                self._held.append((stream, partition, record))
                self.late += 1
                continue
            copies = 2 if fate < 0.45 else 1
            self.repeated += copies - 1
            self._stream.append(stream, partition, [record] * copies)
        if self._choice.random() < 0.2:
            self.release(len(self._held) // 2)

    def release(self, count: int) -> None:
        """Delivers so many of those that were kept, in any order."""
        self._choice.shuffle(self._held)
        for stream, partition, record in [self._held.pop() for _ in range(count)]:
            self._stream.append(stream, partition, [record])

    def release_all(self) -> None:
        """Delivers the rest."""
        self.release(len(self._held))


def test_any_order_and_repetition_admits_each_frame_once(
    victims: Nursery, quick: Callable[[str], Path], report: Callable[[str], None], times: int
) -> None:
    """By seed: what was held back leaves gaps that are seen, and filled; the facts are those of an orderly stream."""
    calm = quick("calm")
    victims.done("append_only", calm, "epoch-0", 0, COUNT)
    victims.done("sink", calm)
    orderly = open_ledger(calm)
    counts = [scrambled(quick(f"unruly-{seed}"), orderly, seed) for seed in range(SEEDS * times)]
    orderly.close()
    repeated, late, gaps = (sum(column) for column in zip(*counts, strict=True))
    assert min(repeated, late, gaps) > 0
    report(f"deliveries: {repeated} frames came twice, {late} late, {gaps} gaps were open and closed")


def scrambled(root: Path, orderly: Ledger, seed: int) -> tuple[int, int, int]:
    """One unruly stream, drained now and then; how many frames came twice, how many late, and the gaps on the way."""
    ledger = open_ledger(root)
    stream: Any = ledger.stream()
    unruly = Unruly(stream, Random(seed))  # noqa: S311  (a seed that reproduces)
    producer = Producer(unruly, "epoch-0", "chaos", "0")  # type: ignore[arg-type]  # a producer only appends
    total, gaps = Drained(), 0
    ledger.blobs.put_many(source(number) for number in range(0, COUNT, 5))
    for number in range(COUNT):
        producer.append(facts(number))
        if number % 12 == 5:
            total += drain(ledger, stream)
            gaps += open_gaps(ledger)
            check_state(ledger, gaps_open=True)
    producer.close()
    unruly.release_all()
    total += drain(ledger, stream)
    assert (total.duplicates, total.quarantined) == (unruly.repeated, 0)
    assert total.admitted == producer.frames
    check_complete(ledger, COUNT)
    check_same_facts(ledger, orderly)
    stream.close()
    ledger.close()
    return unruly.repeated, unruly.late, gaps


def open_gaps(ledger: Ledger) -> int:
    """Runs of sequences that are awaited."""
    with reading(ledger.engine) as connection:
        return int(connection.execute(text("SELECT count(*) FROM gap")).scalar_one())


def test_the_facts_of_the_suite_differ() -> None:
    """Otherwise nothing above would be noticed."""
    events = list(wanted(range(COUNT)))
    assert len({repr(event) for event in events}) == len(events) > COUNT
