"""Reading at a cut: the same cut gives the same table, sealed or not; projections and filters only leave out."""

from contextlib import closing

import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lapledger.consumers.ingest.sink import drain
from lapledger.consumers.storage.compactor import compact
from lapledger.consumers.storage.sealer import seal
from lapledger.ledger.errors import Fault, UserError
from lapledger.ledger.events import EVENTS, from_batch
from lapledger.ledger.questions.queries import Questions
from lapledger.ledger.store.cuts import Cut
from lapledger.ledger.store.location import Location
from lapledger.ledger.store.open_ledger import Ledger, open_ledger
from lapledger.ledger.store.reader import events
from lapledger.ledger.streams.local import LocalStream
from lapledger.ledger.streams.producer import Producer, partition_of
from tests.ledger.facts import decision
from tests.support.databases import Kind, Server

PROBLEMS = [f"p{n}" for n in range(6)]
STEPS = st.lists(
    st.tuples(st.sampled_from(PROBLEMS), st.integers(1, 4)) | st.sampled_from(["drain", "seal", "compact"]),
    min_size=1,
    max_size=12,
)


@pytest.fixture
def ledger(both: Ledger) -> Ledger:
    """A fresh ledger; every test runs over both databases."""
    return both


@settings(max_examples=12, deadline=None)
@given(steps=STEPS)
def test_a_cut_gives_the_same_table_for_ever(
    kind_server: Server | None,
    empty_ledger: Location,
    tmp_path_factory: pytest.TempPathFactory,
    steps: list[tuple[str, int] | str],
) -> None:
    """However appending, draining, sealing and compacting alternate, each cut's table stays what it was when taken."""
    location = Kind(tmp_path_factory.mktemp("case"), kind_server).copy(empty_ledger, "ledger")
    with closing(open_ledger(location)) as ledger, closing(ledger.stream()) as stream:
        producer = Producer(stream, "epoch", "test", "0")
        taken = [(ledger.cut(), events(ledger, "filter.decided", 1, ledger.cut()))]
        for number, step in enumerate(steps):
            if step == "seal":
                seal(ledger)
            elif step == "compact":
                compact(ledger, 0)
            elif step == "drain":
                drain(ledger, stream, limit=3)
                taken.append((ledger.cut(), events(ledger, "filter.decided", 1, ledger.cut())))
            else:
                producer.append([decision(100 * number + n, step[0]) for n in range(step[1])])
        seal(ledger)
        compact(ledger, 0)
        for cut, table in taken:
            assert events(ledger, "filter.decided", 1, cut).equals(table)


@pytest.fixture(params=["tail", "sealed", "both"])
def filled(request: pytest.FixtureRequest, ledger: Ledger, stream: LocalStream) -> Ledger:
    """Twenty decisions about each of six problems, in the tail, in a segment, or half in each."""
    producer = Producer(stream, "epoch", "test", "0")
    for start in (0, 10):
        producer.append([decision(n, problem) for n in range(start, start + 10) for problem in PROBLEMS])
        drain(ledger, stream)
        if request.param == "sealed" or (request.param == "both" and start == 0):
            seal(ledger)
    return ledger


def test_events_come_back_complete_and_in_order(filled: Ledger) -> None:
    """Every event once, by partition in the order of appending, with the place of each."""
    table = events(filled, "filter.decided", 1, filled.cut())
    due = [decision(n, p) for n in range(20) for p in PROBLEMS]
    due.sort(key=lambda event: partition_of("facts", event.problem_id))
    declared = EVENTS["filter.decided", 1]
    batch = table.select(declared.schema.names).combine_chunks().to_batches()[0]
    assert batch.schema.equals(declared.schema)
    assert from_batch(declared, batch) == due
    origins = list(
        zip(*(table[name].to_pylist() for name in ("_stream", "_partition", "_admission", "_row")), strict=True)
    )
    assert origins == sorted(set(origins))


def test_projections_only_leave_columns_out(filled: Ledger) -> None:
    """Against the same columns of the whole table; the place of each row always comes along."""
    complete = events(filled, "filter.decided", 1, filled.cut())
    table = events(filled, "filter.decided", 1, filled.cut(), columns=["subject_id", "figure"])
    assert table.column_names == ["subject_id", "figure", "_stream", "_partition", "_admission", "_row"]
    assert table.equals(complete.select(table.column_names))


def test_only_allowed_values_come_back(filled: Ledger) -> None:
    """Against the whole table, filtered: one column or several, one that is not asked for, none of the words."""
    complete = events(filled, "filter.decided", 1, filled.cut())
    mask = [problem in ("p1", "p4") for problem in complete["problem_id"].to_pylist()]
    where = {"problem_id": ["p4", "p1"]}
    assert events(filled, "filter.decided", 1, filled.cut(), where=where).equals(complete.filter(mask))
    single = events(filled, "filter.decided", 1, filled.cut(), columns=["figure"], where=where | {"subject_id": ["7"]})
    assert single.column_names == ["figure", "_stream", "_partition", "_admission", "_row"]
    assert sorted(single["figure"].to_pylist()) == [7 / 4, 7 / 4]
    assert events(filled, "filter.decided", 1, filled.cut(), where={"problem_id": ["p9"]}).num_rows == 0
    assert events(filled, "filter.decided", 1, filled.cut(), where={"problem_id": []}).num_rows == 0
    with pytest.raises(UserError, match="has no column 'color'"):
        events(filled, "filter.decided", 1, filled.cut(), where={"color": ["red"]})


def test_rows_are_sorted_only_on_request(filled: Ledger) -> None:
    """The same rows in any case."""
    complete = events(filled, "filter.decided", 1, filled.cut())
    loose = events(filled, "filter.decided", 1, filled.cut(), in_order=False)
    origins = [(name, "ascending") for name in ("_partition", "_admission", "_row")]
    assert loose.sort_by(origins).equals(complete)


def test_row_groups_without_an_allowed_value_are_not_read(ledger: Ledger, stream: LocalStream) -> None:
    """Bytes of another problem's row group are spoilt: a question about this problem does not notice."""
    producer = Producer(stream, "epoch", "test", "0")
    by_partition = {partition_of("facts", f"q{n}"): f"q{n}" for n in range(40)}
    mine, theirs = list(by_partition.values())[:2]
    for problem in (mine, theirs):
        producer.append([decision(n, problem) for n in range(50)])
    drain(ledger, stream)
    seal(ledger)
    (path,) = (ledger.root / "segments").glob("filter.decided.v1/*.parquet")
    with pq.ParquetFile(path) as file:
        groups = [file.metadata.row_group(n).column(0) for n in range(file.num_row_groups)]
        spoilt = next(group for group in groups if group.statistics.min == theirs)
        start = spoilt.dictionary_page_offset or spoilt.data_page_offset
    path.chmod(0o644)
    data = bytearray(path.read_bytes())
    data[start : start + spoilt.total_compressed_size] = bytes(spoilt.total_compressed_size)
    path.write_bytes(data)
    filtered = events(ledger, "filter.decided", 1, ledger.cut(), where={"problem_id": [mine]})
    assert set(filtered["problem_id"].to_pylist()) == {mine}
    assert Questions(ledger).rows(f"SELECT count(*) AS n FROM filter_decided WHERE problem_id = '{mine}'") == [
        {"n": 50}
    ]
    with pytest.raises(Fault):
        events(ledger, "filter.decided", 1, ledger.cut(), where={"problem_id": [theirs]})


def test_a_smaller_cut_shows_the_first_frames_of_each_partition(filled: Ledger) -> None:
    """Counted against the admission numbers of the whole table."""
    now = filled.cut()
    cut = Cut.of({("control", 0): 1, **{("facts", p): now.at("facts", p) // 3 for p in range(4)}})
    complete = events(filled, "filter.decided", 1, now).to_pylist()
    due = [row for row in complete if row["_admission"] <= cut.at("facts", row["_partition"])]
    assert events(filled, "filter.decided", 1, cut).to_pylist() == due


def test_a_type_without_events_is_an_empty_table(filled: Ledger) -> None:
    """With its full schema, so that questions need no special case."""
    table = events(filled, "timing.measured", 1, filled.cut())
    assert table.num_rows == 0
    assert table.schema.names[: len(EVENTS["timing.measured", 1].columns)] == EVENTS["timing.measured", 1].schema.names


def test_mistakes_are_the_users(ledger: Ledger) -> None:
    """An unknown type, an unknown column, and a cut that this ledger has not reached."""
    with pytest.raises(UserError, match=r"no event type no\.such version 1"):
        events(ledger, "no.such", 1, ledger.cut())
    with pytest.raises(UserError, match="has no column 'color'"):
        events(ledger, "filter.decided", 1, ledger.cut(), columns=["color"])
    with pytest.raises(UserError, match="is ahead of this ledger"):
        events(ledger, "filter.decided", 1, Cut.parse("control=1,facts=0.0.0.0,requests=0"))


def test_a_lost_segment_is_a_fault_that_names_the_check(ledger: Ledger, stream: LocalStream) -> None:
    """Reading never answers from less than it should."""
    Producer(stream, "epoch", "test", "0").append([decision(0)])
    drain(ledger, stream)
    seal(ledger)
    (path,) = (ledger.root / "segments").glob("filter.decided.v1/*.parquet")
    path.unlink()
    lost = path.name
    with pytest.raises(Fault, match=f"{lost} is missing; run `lap verify`"):
        events(ledger, "filter.decided", 1, ledger.cut())
    with pytest.raises(Fault, match=f"{lost} is missing; run `lap verify`"):
        Questions(ledger).rows("SELECT * FROM filter_decided")
    with pytest.raises(Fault, match=f"{lost} is missing; run `lap verify`"):
        Questions(ledger).query_user("SELECT kept FROM filter")
