"""Old facts read as new ones: old versions of `execution.requested`, sealed and in the tail, by Arrow and by SQL."""

from contextlib import closing
from dataclasses import asdict

import pyarrow as pa
import pytest

from lapledger.consumers.ingest.sink import drain
from lapledger.consumers.storage.compactor import compact
from lapledger.consumers.storage.sealer import seal
from lapledger.ledger.codec.canonical import work_id
from lapledger.ledger.events import (
    EVENTS,
    ExecutionRequested,
    ExecutionRequestedV1,
    latest,
    project,
    steps,
    versions_of,
)
from lapledger.ledger.proof import verify
from lapledger.ledger.questions.queries import Questions
from lapledger.ledger.store.open_ledger import Ledger
from lapledger.ledger.store.reader import events
from lapledger.ledger.streams.producer import Producer
from tests.ledger.facts import GOLDEN

NAME = "execution.requested"
OLD, MIDDLE, NEW = (EVENTS[NAME, version] for version in (1, 2, 3))


def request(position: int) -> dict[str, object]:
    """What all versions have of a work."""
    ids = {"campaign_id": "c", "program_id": "p/g", "test_id": f"p/t{position}"}
    return {
        "work_id": work_id("c", "p/g", f"p/t{position}", 0),
        "problem_id": "p",
        "block": 0,
        "position": position,
        **ids,
    }


def old(position: int) -> ExecutionRequestedV1:
    """A request of version 1."""
    return ExecutionRequestedV1(**request(position))


def new(position: int, lane: str) -> ExecutionRequested:
    """A request of version 3."""
    return ExecutionRequested(**request(position), lane=lane)


@pytest.fixture(params=["tail", "sealed", "old sealed", "compacted"])
def mixed(request: pytest.FixtureRequest, both: Ledger) -> Ledger:
    """Four old requests, then four new ones, two of them on the lane where the old ones are read."""
    with closing(both.stream()) as stream:
        first = Producer(stream, "epoch-1", "test", "1")
        for position in range(4):
            first.append([old(position)])
            if request.param == "compacted":
                drain(both, stream)
                seal(both)
        drain(both, stream)
        if request.param == "old sealed":
            seal(both)
        Producer(stream, "epoch-2", "test", "2").append([new(4, "4"), new(5, "5"), new(6, "4"), new(7, "7")])
        drain(both, stream)
    if request.param in ("sealed", "compacted"):
        seal(both)
    if request.param == "compacted":
        assert compact(both, 0).superseded > 4
    return both


DUE = [asdict(new(position, lane)) for position, lane in enumerate("44444547")]


def by_position(rows: list[dict[str, object]]) -> list[dict[str, object]]:
    """Rows in the order in which the works were asked for."""
    return sorted(rows, key=lambda row: str(row["position"]))


def test_arrow_reads_old_requests_as_new_ones(mixed: Ledger) -> None:
    """Every column, in the order of version 3; each stored version by itself is still there."""
    table = events(mixed, NAME, 3, mixed.cut())
    assert table.column_names[: len(NEW.columns)] == NEW.schema.names
    assert by_position(table.select(NEW.schema.names).to_pylist()) == DUE
    assert events(mixed, NAME, 1, mixed.cut())["position"].to_pylist() == [0, 1, 2, 3]
    assert verify(mixed).problems == ()


def test_sql_reads_old_requests_as_new_ones(mixed: Ledger) -> None:
    """The same rows as Arrow, raw and through a view, for our own questions and for a user's."""
    columns = ", ".join(NEW.schema.names)
    with closing(Questions(mixed)) as questions:
        assert by_position(questions.rows(f"SELECT {columns} FROM execution_requested")) == DUE
        assert by_position(questions.rows(f"SELECT {columns} FROM request")) == DUE
        assert by_position(questions.rows("SELECT * FROM request WHERE campaign_id = $c", c="c")) == DUE
        raw = questions.query("SELECT * FROM execution_requested ORDER BY _stream, _partition, _admission, _row")
        assert raw.equals(events(mixed, NAME, 3, mixed.cut()).cast(raw.schema))
        user = questions.query_user("SELECT position FROM execution_requested WHERE lane = '4' ORDER BY position")
        assert user.table["position"].to_pylist() == [0, 1, 2, 3, 4, 6]


def test_what_a_version_added_can_be_filtered_by(mixed: Ledger) -> None:
    """Old rows meet the value that they are read with."""
    cut = mixed.cut()
    lane_four = events(mixed, NAME, 3, cut, columns=["position"], where={"lane": ["4"]})
    assert sorted(lane_four["position"].to_pylist()) == [0, 1, 2, 3, 4, 6]
    assert events(mixed, NAME, 3, cut, columns=["position"], where={"lane": ["7"]})["position"].to_pylist() == [7]


def test_old_requests_keep_their_order_among_the_new_ones_of_their_partition(mixed: Ledger) -> None:
    """Versions share a partition; the order is that of admission."""
    table = events(mixed, NAME, 3, mixed.cut(), columns=["position"])
    origins = list(zip(*(table[name].to_pylist() for name in ("_partition", "_admission", "_row")), strict=True))
    assert origins == sorted(origins)


def test_each_step_is_declared_once() -> None:
    """From the declarations of versions 2 and 3 alone: one row that says what is added."""
    limits = {"limit_ns": None, "memory_bytes": None, "output_limit_bytes": None}
    assert versions_of(latest(NAME)) == [OLD, MIDDLE, NEW]
    assert steps(OLD, NEW).to_pylist() == [{"lane": "4", **limits}]
    assert steps(MIDDLE, NEW).to_pylist() == [limits]
    assert steps(NEW, NEW).num_columns == 0


@pytest.mark.parametrize("version", [1, 2, 3])
def test_a_golden_sample_of_each_version_is_read(version: int) -> None:
    """The bytes that were written then, as version 3."""
    stored = EVENTS[NAME, version]
    with pa.ipc.open_stream((GOLDEN / f"{NAME}.v{version}.arrow").read_bytes()) as reader:
        table = pa.Table.from_batches(list(reader))
    read = project(table, stored, NEW)
    assert read.schema.equals(NEW.schema)
    assert read.select(OLD.schema.names).equals(
        table.select(OLD.schema.names).cast(read.select(OLD.schema.names).schema)
    )
    if version < 3:
        assert read["limit_ns"].null_count == len(table)
    if version == 1:
        assert read["lane"].to_pylist() == ["4"] * len(table)


@pytest.mark.parametrize(
    ("name", "unknown"),
    [
        ("group.opened", {"policy", "prompt_blob"}),
        ("rollout.sampled", {"policy", "prompt_tokens", "completion_tokens", "temperature"}),
    ],
)
def test_an_event_of_training_may_leave_more_unknown_than_before(name: str, unknown: set[str]) -> None:
    """Version 2 has the columns of version 1 with the same values, and these may be null beside those that could."""
    first, second = EVENTS[name, 1], EVENTS[name, 2]
    assert [(c.name, c.arrow) for c in first.columns] == [(c.name, c.arrow) for c in second.columns]
    assert {c.name for c in second.columns if c.nullable} == unknown | {c.name for c in first.columns if c.nullable}
    with pa.ipc.open_stream((GOLDEN / f"{name}.v1.arrow").read_bytes()) as reader:
        table = pa.Table.from_batches(list(reader))
    read = project(table, first, second)
    assert read.schema.names == second.schema.names
    assert read.to_pydict() == table.to_pydict()


def test_a_list_that_a_version_added_is_empty_in_older_rows() -> None:
    """`arguments` of `test.added` 3; a table without rows is projected, too."""
    first, third = EVENTS["test.added", 1], EVENTS["test.added", 3]
    with pa.ipc.open_stream((GOLDEN / "test.added.v1.arrow").read_bytes()) as reader:
        table = pa.Table.from_batches(list(reader))
    read = project(table, first, third)
    assert read["arguments"].to_pylist() == [[]] * len(table)
    assert read["validator_flags"].to_pylist() == [""] * len(table)
    assert project(table.slice(0, 0), first, third).num_rows == 0
