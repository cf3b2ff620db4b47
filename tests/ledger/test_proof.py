"""Verification: a sound ledger has no problems, and any altered byte or row leads to the frame, file or position."""

import dataclasses
import hashlib
import json
import re
from itertools import accumulate, pairwise
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
import rfc8785
from hypothesis import given
from hypothesis import strategies as st
from sqlalchemy import text

from lapledger.consumers.ingest.sink import drain
from lapledger.consumers.storage.sealer import seal
from lapledger.ledger.codec.canonical import rows_digest
from lapledger.ledger.codec.packing import packed
from lapledger.ledger.codec.slice_digests import slice_digests
from lapledger.ledger.errors import UserError
from lapledger.ledger.events import EVENTS
from lapledger.ledger.proof import Proof, RecordedHead, current_head, verify
from lapledger.ledger.proof.chains import is_written_head
from lapledger.ledger.store.cuts import Cut
from lapledger.ledger.store.heads import ledger_head
from lapledger.ledger.store.open_ledger import Ledger
from lapledger.ledger.store.sql.engine import reading
from lapledger.ledger.streams.local import LocalStream
from lapledger.ledger.streams.producer import Producer
from tests.ledger.facts import attempt, decision, sample_fact
from tests.ledger.tampering import change, flip, proven, relink, rewrite, segment_of


@pytest.fixture
def filled(ledger: Ledger, stream: LocalStream) -> Ledger:
    """Attempts and decisions, half of them sealed, and a blob that an event names."""
    producer = Producer(stream, "epoch", "test", "0")
    producer.append([decision(n, f"p{n % 3}") for n in range(9)] + attempt(0, 3))
    drain(ledger, stream)
    seal(ledger)
    digest = ledger.blobs.put(b"print(1)\n")
    program = sample_fact("program.added")
    producer.append([_named(program, digest), decision(9, "p0"), *attempt(1, 2)])
    drain(ledger, stream)
    return ledger


def _named(program: object, digest: str) -> object:
    return dataclasses.replace(program, source_blob=digest)  # type: ignore[type-var]


def test_a_sound_ledger_has_no_problem(filled: Ledger) -> None:
    """Its numbers are what was appended, its recomputed head is the stored one, and progress is told to the end."""
    calls: list[tuple[str, int, int]] = []
    proof = verify(filled, lambda *arguments: calls.append(arguments))
    assert proof.problems == ()
    assert proof.notes == ()
    assert (proof.cut, proof.head) == (str(filled.cut()), filled.head())
    # 1 epoch, 9 + 1 decisions, 3 + 1 and 2 + 1 events of attempts, 1 program
    assert (proof.events, proof.segments, proof.blobs) == (19, 4, 1)
    parts = {part: total for part, done, total in calls if done == total}
    assert parts == {"blobs": 1, "segments": 4, "tail": proof.frames - _sealed_frames(filled), "chains": 13}


def _sealed_frames(ledger: Ledger) -> int:
    with reading(ledger.engine) as connection:
        return int(connection.execute(text("SELECT sum(frames) FROM segment")).scalar_one())


@pytest.mark.parametrize("at", [0.1, 0.3, 0.5, 0.7, 0.95])
def test_an_altered_segment_is_found(filled: Ledger, at: float) -> None:
    """Wherever the byte lies, in data or footer."""
    path = segment_of(filled, "filter.decided", ".parquet")
    flip(path, at)
    assert any(path.name in problem for problem in verify(filled).problems)


def test_a_rewritten_segment_leads_to_the_frame(filled: Ledger) -> None:
    """A value changed with all care (valid Parquet) breaks the digest of its own frame and of no other."""
    path = segment_of(filled, "filter.decided", ".parquet")
    table = pq.read_table(path)
    row = table.slice(4, 1).to_pylist()[0]
    hit = pc.equal(table["subject_id"], row["subject_id"])
    index = table.schema.get_field_index("kept")
    changed = table.set_column(
        index, table.schema.field("kept"), pa.chunked_array([pc.xor(table["kept"], hit).combine_chunks()])
    )
    path.chmod(0o644)
    rows = [pq.ParquetFile(path).metadata.row_group(n).num_rows for n in range(pq.ParquetFile(path).num_row_groups)]
    with pq.ParquetWriter(path, table.schema) as writer:
        for number, count in enumerate(rows):
            writer.write_table(changed.slice(sum(rows[:number]), count))
    altered = [problem for problem in verify(filled).problems if "its digest differs" in problem]
    where = f"frame facts/{row['_partition']} admission {row['_admission']} (filter.decided"
    assert len(altered) == 1
    assert where in altered[0]


@pytest.mark.parametrize(("groups", "rows", "frames"), [(None, 0, 0), (0, 0, 0), (1, 6, 6)])
def test_rows_taken_from_a_segment_with_all_care_are_missed(
    filled: Ledger, groups: int | None, rows: int, frames: int
) -> None:
    """Name, bytes, manifest, chain and database all say the new file: without a row group, with an empty one, or
    with the first of two only. What is gone is told and not counted as proven. The runs of one problem in one
    partition give six frames of one row there and one of three rows in another."""
    before, path = verify(filled), segment_of(filled, "filter.decided", ".parquet")
    file = pq.ParquetFile(path)
    assert [file.metadata.row_group(n).num_rows for n in range(file.num_row_groups)] == [6, 3]
    shorter = path.with_name("shorter")
    with pq.ParquetWriter(shorter, file.schema_arrow) as writer:
        if groups is not None:
            writer.write_table(file.read_row_group(0).slice(0, 6 * groups))
    relink(filled, path, shorter)
    proof = verify(filled)
    assert (before.frames - proof.frames, before.events - proof.events) == (7 - frames, 9 - rows)
    message = f"holds {rows} rows of {frames} frames, 9 rows of 7 frames were due"
    assert any(message in problem for problem in proof.problems)
    assert any("is in no readable segment and not in the tail" in problem for problem in proof.problems)


def test_an_altered_manifest_is_found(filled: Ledger) -> None:
    """By its name, and by what it says of a frame."""
    path = segment_of(filled, "filter.decided", ".json")
    altered = path.read_text().replace('"p0","epoch"', '"p0","epoxh"', 1)
    path.chmod(0o644)
    path.write_text(altered)
    problems = verify(filled).problems
    assert any(f"manifest {path} was altered" in problem for problem in problems)
    assert any("differs between its manifest" in problem for problem in problems)


@pytest.mark.parametrize(
    ("statement", "message"),
    [
        (
            "UPDATE tail SET payload = substr(payload, 1, length(payload) - 9) WHERE type = 'filter.decided'",
            "tail: frame",
        ),
        ("UPDATE frame SET digest = replace(digest, 'a', 'b') WHERE type = 'program.added'", "its digest differs"),
        (
            "UPDATE frame SET source_offset = source_offset + 1 WHERE type = 'filter.decided'",
            "differs between its manifest",
        ),
        ("UPDATE frame SET sequence = sequence + 1 WHERE type = 'program.added'", "open gaps|does not link"),
        ("DELETE FROM tail WHERE type = 'program.added'", "is in no readable segment and not in the tail"),
        ("DELETE FROM segment WHERE ordinal = 2", "has ordinal 3 in the chain, expected 2"),
        ("DELETE FROM frame WHERE type = 'program.added'", "belong to no frame|missing from the SQL"),
        ("UPDATE segment SET rows = rows + 1 WHERE ordinal = 1", "does not match its position"),
        ("UPDATE stream_position SET admissions = admissions + 1 WHERE stream = 'control'", "position control/0"),
        ("UPDATE stream_position SET next_position = 1 WHERE stream = 'control'", "position control/0 is 1"),
        ("UPDATE stream_position SET next_position = 99 WHERE stream = 'control'", "position control/0 is 99"),
        ("UPDATE stream_position SET head = replace(head, '1', '2') WHERE stream = 'facts'", "position facts/"),
        ("INSERT INTO gap VALUES ('facts', 0, 'epoch', 1, 1)", "open gaps recorded"),
    ],
)
def test_an_altered_database_is_found(filled: Ledger, statement: str, message: str) -> None:
    """One changed row of any table that facts hang on; the problem is one line that says where."""
    change(filled, statement)
    problems = verify(filled).problems
    assert any(re.search(message, problem) for problem in problems), problems
    assert all("\n" not in problem for problem in problems)


def test_altered_and_missing_blobs_are_found(filled: Ledger) -> None:
    """The first against its name, the second through the event that names it."""
    (digest,) = filled.blobs.digests()
    flip(Path(filled.blobs.where(digest)))
    assert [problem.split(":")[0] for problem in verify(filled).problems] == [
        f"blob {filled.blobs.where(digest)} was altered"
    ]
    Path(filled.blobs.where(digest)).unlink()
    (problem,) = verify(filled).problems
    assert problem.startswith(f"blob {digest} is missing: program.added names it in source_blob (frame facts/")


def test_timings_must_be_those_that_their_execution_names(ledger: Ledger, stream: LocalStream) -> None:
    """Too few, too many and other values each give a problem; timings without an execution are only unfinished."""
    few, extra, altered, open_ended = (attempt(n, 3) for n in range(4))
    swapped = [altered[0], attempt(9, 3)[1], altered[2]]
    swapped[1] = _renamed(swapped[1], "attempt-2")
    producer = Producer(stream, "epoch", "test", "0")
    producer.append([*few[1:], *extra[:3], *extra[:1], extra[3], *swapped, altered[3], *open_ended[:2]])
    drain(ledger, stream)
    assert sorted(verify(ledger).problems) == [
        "execution.finished attempt-0 counts 3 timings, the ledger has 2",
        "execution.finished attempt-1 has 4 timings, it counts 3",
        "execution.finished attempt-2: its timings do not give the digest that it recorded",
    ]


def _renamed(event: object, name: str) -> object:
    return dataclasses.replace(event, attempt_id=name)  # type: ignore[type-var]


def test_timings_of_one_attempt_may_come_apart(ledger: Ledger, stream: LocalStream) -> None:
    """Sealed in two segments and out of order, they still give the digest in order of repetition."""
    first, second, third, finished = attempt(0, 3)
    producer = Producer(stream, "epoch", "test", "0")
    for events in ([third, decision(0), first], [second, finished]):
        producer.append(events)
        drain(ledger, stream)
        seal(ledger)
    assert verify(ledger).problems == ()


def test_a_head_written_down_proves_what_it_covered(filled: Ledger, stream: LocalStream) -> None:
    """It holds through later admissions and sealings, and no longer once a covered frame is another."""
    written = RecordedHead(filled.cut(), filled.head())
    Producer(stream, "later", "test", "0").append([decision(n, "p1") for n in range(5)])
    drain(filled, stream)
    seal(filled)
    assert filled.head() != written.head
    assert verify(filled, written=written).problems == ()
    (problem,) = verify(filled, written=RecordedHead(written.cut, "0" * 64)).problems
    assert "what it proved was changed" in problem
    ahead = RecordedHead(Cut.parse("control=999,facts=0.0.0.0,requests=0"), written.head)
    (problem,) = verify(filled, written=ahead).problems
    assert "covers control=999,facts=0,requests=0, this ledger ends at control=2,facts=" in problem
    assert "it was cut off" in problem


def test_a_head_is_one_text_to_write_down(filled: Ledger) -> None:
    """64 hex digits, `@` and the cut; what is none of that is the user's mistake."""
    written = current_head(filled)
    assert str(written) == f"{filled.head()}@{filled.cut()}"
    assert RecordedHead.parse(f" {written} ") == written
    for wrong in ("", filled.head(), f"@{filled.cut()}", f"{filled.head()}@", f"{filled.head()[1:]}@{filled.cut()}"):
        with pytest.raises(UserError, match=r"is not a head|is not a cut"):
            RecordedHead.parse(wrong)


def test_what_happens_meanwhile_is_not_mistaken(filled: Ledger, stream: LocalStream) -> None:
    """Frames admitted and sealed while the proof is under way: cut and head are of before, and no file is a stray."""
    before = (str(filled.cut()), filled.head())
    Producer(stream, "later", "test", "0").append([decision(n, "p1") for n in range(5)])

    def meanwhile(part: str, *_: int) -> None:
        if part == "chains" and str(filled.cut()) == before[0]:
            drain(filled, stream)
            seal(filled)

    proof = verify(filled, meanwhile)
    assert (proof.cut, proof.head) == before
    assert (proof.problems, proof.notes) == ((), ())
    assert (str(filled.cut()), filled.head()) != before


def test_leftovers_are_notes_and_no_problems(filled: Ledger) -> None:
    """Files of a sealing or a put that was cut short, and an open gap in what a producer sent."""
    stray = filled.root / "segments" / "filter.decided.v1" / ".x.part"
    stray.write_bytes(b"")
    (filled.root / "blobs" / "notes.txt").write_text("mine")
    proof = verify(filled)
    assert proof.problems == ()
    assert sorted(note.split(" ")[0] for note in proof.notes) == sorted(
        [str(stray), str(filled.root / "blobs" / "notes.txt")]
    )


def test_a_broken_database_page_is_a_problem_and_no_exception(filled: Ledger) -> None:
    """What SQLite itself refuses to read is reported as one line."""
    change(filled, "UPDATE frame SET digest = CAST(x'ff00ff' AS TEXT) WHERE type = 'program.added'")
    proof: Proof = verify(filled)
    assert any("failed" in problem for problem in proof.problems)


def test_manifests_are_canonical_and_linked(filled: Ledger) -> None:
    """Each is named by the SHA-256 of its own bytes (RFC 8785) and names the one before it."""
    chain = {}
    for path in (filled.root / "segments").rglob("*.json"):
        manifest = json.loads(path.read_text())
        assert path.read_bytes() == rfc8785.dumps(manifest)
        assert path.stem == hashlib.sha256(path.read_bytes()).hexdigest()
        chain[manifest["ordinal"]] = (manifest["previous"], path.stem)
    assert [chain[n][0] for n in range(1, 5)] == ["", *(chain[n][1] for n in range(1, 4))]


def rewritten(ledger: Ledger, name: str, column: str, row: int, value: object) -> None:
    """Changes one value of a sealed type with all care: a valid file under its old name."""
    path = segment_of(ledger, name, ".parquet")
    table = pq.read_table(path)
    values = table[column].to_pylist()
    values[row] = value
    index = table.schema.get_field_index(column)
    changed = table.set_column(index, table.schema.field(column), pa.array(values, table.schema.field(column).type))
    sizes = [pq.ParquetFile(path).metadata.row_group(n).num_rows for n in range(pq.ParquetFile(path).num_row_groups)]
    path.chmod(0o644)
    with pq.ParquetWriter(path, table.schema) as writer:
        for number, count in enumerate(sizes):
            writer.write_table(changed.slice(sum(sizes[:number]), count))


@pytest.fixture
def timed(ledger: Ledger, stream: LocalStream) -> Ledger:
    """Three attempts of two timings each, in one frame, sealed."""
    runs = [attempt(n, 2) for n in range(3)]
    Producer(stream, "epoch", "test", "0").append(
        [*(event for run in runs for event in run[:-1]), *(r[-1] for r in runs)]
    )
    drain(ledger, stream)
    seal(ledger)
    return ledger


def test_an_altered_value_leads_to_its_cell_while_the_stream_has_it(timed: Ledger) -> None:
    """The problem names frame, event type, key, ids, row, column, and both values."""
    rewritten(timed, "timing.measured", "wall_ns", 3, 77)
    differing = [problem for problem in proven(timed).problems if "its digest differs" in problem]
    assert len(differing) == 1
    where, what = differing[0].split(": ", 1)
    assert where.startswith("segment ")
    assert what == (
        "frame facts/1 admission 1 (timing.measured of 'p', 6 events, attempt_id attempt-0 .. attempt-2) was altered:"
        " its digest differs; hit: wall_ns in row 3, 1001 became 77"
    )


def test_an_altered_timing_leads_to_its_attempt(timed: Ledger) -> None:
    """Without the stream, the end of the execution says which of the timings in a frame are not those that it saw."""
    rewritten(timed, "timing.measured", "wall_ns", 3, 77)
    problems = verify(timed).problems
    assert any(problem.endswith("its digest differs; hit: attempt attempt-1") for problem in problems)
    assert any("attempt-1: its timings do not give the digest" in problem for problem in problems)
    assert not any("attempt-2:" in problem or "attempt-0:" in problem for problem in problems)


def test_a_broken_column_is_named(timed: Ledger) -> None:
    """Bytes that are no Parquet any more lead to the row group, the column and the frames that it holds."""
    path = segment_of(timed, "timing.measured", ".parquet")
    names = pq.ParquetFile(path).schema_arrow.names
    column = pq.ParquetFile(path).metadata.row_group(0).column(names.index("wall_ns"))
    data = bytearray(path.read_bytes())
    start = column.dictionary_page_offset or column.data_page_offset
    data[start : start + 12] = bytes(12)
    rewrite(path, bytes(data))
    message = "row group 0, column wall_ns cannot be read (timing.measured of 'p', frame facts/1 admission 1)"
    problems = verify(timed).problems
    assert any(message in problem for problem in problems), problems


@given(data=st.data())
def test_digests_of_many_slices_are_those_of_each(data: st.DataObject) -> None:
    """Whatever the sizes, the lengths of words and the places of nulls: only the time differs."""
    declared = EVENTS["timing.measured", 1]
    sizes = data.draw(st.lists(st.integers(1, 70), min_size=1, max_size=8))
    rows = sum(sizes)
    columns = []
    for column in declared.columns:
        kind = st.text(max_size=4) if column.arrow == pa.string() else st.integers(-(2**63), 2**63 - 1)
        values = data.draw(st.lists(st.booleans() if column.arrow == pa.bool_() else kind, min_size=1, max_size=5))
        some = [None, *values] if column.nullable else values
        columns.append(pa.array([some[(n * n) % len(some)] for n in range(rows)], column.arrow))
    batch = pa.RecordBatch.from_arrays(columns, schema=declared.schema)
    bounds = [0, *accumulate(sizes)]
    digests = [bytes.fromhex(rows_digest(batch.slice(a, b - a))) for a, b in pairwise(bounds)]
    assert slice_digests(batch.columns, bounds) == digests
    packed_ = packed(batch)
    assert slice_digests(packed_.columns, bounds) == digests


def test_a_head_from_when_requests_had_one_partition_still_holds() -> None:
    """Lanes came later: a head written before covers none of them, and holds as long as they were empty at its cut."""
    lanes = {("requests", lane): (0, f"head of lane {lane}") for lane in range(8)}
    then = {("control", 0): (3, "head"), ("facts", 0): (7, "another head"), **lanes}
    before = {partition: reached for partition, reached in then.items() if partition[1] == 0}
    assert is_written_head(then, ["a", "b"], ledger_head(before, ["a"]))
    assert is_written_head(then, ["a", "b"], ledger_head(then, []))
    filled = {**then, ("requests", 5): (1, "later head")}
    assert not is_written_head(filled, ["a", "b"], ledger_head(before, ["a"]))
