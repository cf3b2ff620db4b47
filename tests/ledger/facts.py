"""Facts for the ledger's tests: a deterministic sample of every event type, and ledgers filled with a few events."""

import dataclasses
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa

from lapledger.ledger.codec.canonical import rows_digest, work_id
from lapledger.ledger.events import (
    EVENTS,
    PARTITIONS,
    Event,
    EventType,
    ExecutionFinished,
    FilterDecided,
    TimingMeasured,
    from_batch,
    key_of,
    to_batch,
    type_of,
)
from lapledger.ledger.frames.frame import Frame, Link, genesis, make_frame
from lapledger.ledger.store.open_ledger import Ledger, create_ledger
from lapledger.ledger.streams.producer import partition_of

GOLDEN = Path(__file__).parents[1] / "golden"


def sample_batch(declared: EventType, rows: int = 3) -> pa.RecordBatch:
    """A batch whose values follow from column and row; the second row is null wherever it may be."""
    columns = [
        [_value(column.arrow, index, row) if row != 1 or not column.nullable else None for row in range(rows)]
        for index, column in enumerate(declared.columns)
    ]
    if declared.key:
        columns[declared.schema.names.index(declared.key)] = ["problem-ä"] * rows
    arrays = [pa.array(values, column.arrow) for values, column in zip(columns, declared.columns, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, schema=declared.schema)


def _value(arrow: pa.DataType, index: int, row: int) -> Any:
    if pa.types.is_list(arrow):
        return [_value(arrow.value_type, index, item) for item in range(row)]
    if pa.types.is_string(arrow):
        return "" if row == 2 else f"word {index}.{row} é"
    if pa.types.is_boolean(arrow):
        return (index + row) % 2 == 0
    if pa.types.is_floating(arrow):
        return index - row / 8
    return (index + 1) * 10**9 - row


def sample_frame(declared: EventType, rows: int = 3, *, sequence: int = 0, previous: str | None = None) -> Frame:
    """The sample as a frame of the epoch `epoch-0`, on the partition where its key belongs."""
    key = "problem-ä" if declared.key else ""
    partition = partition_of(declared.stream, key)
    start = genesis("epoch-0", declared.stream, partition) if previous is None else previous
    return make_frame(
        declared, key, Link("epoch-0", declared.stream, partition, sequence, start), sample_batch(declared, rows)
    )


def sample_events(declared: EventType, rows: int = 3) -> list[Any]:
    """The sample as events."""
    return from_batch(declared, sample_batch(declared, rows))


def sample_fact(name: str, version: int = 1) -> Any:
    """A sample program or test with an id of its problem, so that it is admitted."""
    (event,) = sample_events(EVENTS[name, version], 1)
    column = {"program.added": "program_id", "test.added": "test_id"}[name]
    return dataclasses.replace(event, **{column: f"{event.problem_id}/{getattr(event, column)}"})


def new_ledger(folder: Path) -> Ledger:
    """A fresh ledger in `folder`, always of one identity."""
    return create_ledger(folder, "identity-0", "2026-01-01T00:00:00Z")


def decision(number: int, problem: str = "p") -> FilterDecided:
    """A filter decision about test `number` of a problem."""
    figure = None if number % 3 == 0 else number / 4
    return FilterDecided(
        problem_id=problem,
        subject="test",
        subject_id=str(number),
        rule="r",
        campaign_id=None,
        kept=number % 2 == 0,
        reason="",
        figure=figure,
    )


def attempt(number: int, repetitions: int, problem: str = "p") -> list[Event]:
    """The timings of an attempt and the `execution.finished` that makes them visible."""
    timing = sample_events(_declared(TimingMeasured), 1)[0]
    ids = {"campaign_id": "c", "program_id": f"{problem}/program", "test_id": f"{problem}/test-{number}", "block": 0}
    work = work_id("c", ids["program_id"], ids["test_id"], 0)
    names = {"attempt_id": f"attempt-{number}", "problem_id": problem, "work_id": work, **ids}
    timings = [_changed(timing, **names, repetition=r, wall_ns=1000 * number + r) for r in range(repetitions)]
    finished = sample_events(_declared(ExecutionFinished), 1)[0]
    digest = rows_digest(to_batch(timings))
    counts = {"outcome": "accepted", "timings": repetitions, "timings_digest": digest, "output_digest": None}
    return [*timings, _changed(finished, **names, **counts)]


def _declared(cls: type) -> EventType:
    return next(declared for declared in EVENTS.values() if declared.cls is cls)


def _changed(event: Any, **values: object) -> Any:
    return dataclasses.replace(event, **values)


def partitions() -> Iterable[tuple[str, int]]:
    """Every stream and partition."""
    return [(name, partition) for name, count in PARTITIONS.items() for partition in range(count)]


def chain_frames(events: Sequence[Event], *, epoch: str = "epoch-0", size: int = 1) -> list[Frame]:
    """Events of one partition as a producer's chain of frames of `size` events."""
    declared, key = type_of(events[0]), key_of(events[0])
    partition = partition_of(declared.stream, key)
    previous, frames = genesis(epoch, declared.stream, partition), []
    for sequence, first in enumerate(range(0, len(events), size)):
        link = Link(epoch, declared.stream, partition, sequence, previous)
        frames.append(make_frame(declared, key, link, to_batch(events[first : first + size])))
        previous = frames[-1].digest
    return frames
