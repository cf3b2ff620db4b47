"""Verification: a sound ledger has no problems, and any altered byte or row leads to the frame, file or position."""

import dataclasses
import hashlib
import json
import re
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
import rfc8785
from ledger_facts import attempt, decision, sample_events
from sqlalchemy import text

from consumers.sealer import seal
from consumers.sink import drain
from ledger.errors import UserError
from ledger.events import EVENTS
from ledger.proof import Proof, Written, verify
from ledger.store.cuts import Cut
from ledger.store.engine import reading, writing
from ledger.store.opened import Ledger
from ledger.streams.local import LocalStream
from ledger.streams.producer import Producer


@pytest.fixture
def filled(ledger: Ledger, stream: LocalStream) -> Ledger:
    """Attempts and decisions, half of them sealed, and a blob that an event names."""
    producer = Producer(stream, "epoch", "test", "0")
    producer.append([decision(n, f"p{n % 3}") for n in range(9)] + attempt(0, 3))
    drain(ledger, stream)
    seal(ledger)
    digest = ledger.blobs.put(b"print(1)\n")
    program = sample_events(EVENTS["program.added", 1], 1)[0]
    producer.append([_named(program, digest), decision(9, "p0"), *attempt(1, 2)])
    drain(ledger, stream)
    return ledger


def _named(program: object, digest: str) -> object:
    return dataclasses.replace(program, source_blob=digest)  # type: ignore[type-var]


def change(ledger: Ledger, statement: str, **values: object) -> None:
    """Alters the database behind the ledger's back."""
    with writing(ledger.engine) as connection:
        assert connection.execute(text(statement), values).rowcount > 0


def flip(path: Path, at: float = 0.5) -> None:
    """Alters one byte of a file, `at` a share of its length."""
    data = bytearray(path.read_bytes())
    data[int(len(data) * at)] ^= 0x10
    path.chmod(0o644)
    path.write_bytes(bytes(data))


def segment_of(ledger: Ledger, name: str, suffix: str) -> Path:
    """The only segment or manifest of a type."""
    (path,) = (ledger.segments.folder / f"{name}.v1").glob(f"*{suffix}")
    return path


def test_a_sound_ledger_has_no_problem(filled: Ledger) -> None:
    """Its numbers are what was appended, its recomputed head is the stored one, and progress is told to the end."""
    told: list[tuple[str, int, int]] = []
    proof = verify(filled, lambda *words: told.append(words))
    assert proof.problems == ()
    assert proof.notes == ()
    assert (proof.cut, proof.head) == (str(filled.cut()), filled.head())
    # 1 epoch, 9 + 1 decisions, 3 + 1 and 2 + 1 events of attempts, 1 program
    assert (proof.events, proof.segments, proof.blobs) == (19, 4, 1)
    parts = {part: total for part, done, total in told if done == total}
    assert parts == {"blobs": 1, "segments": 4, "tail": proof.frames - _sealed_frames(filled), "chains": 6}


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


@pytest.mark.parametrize("kept", [None, 0, 6])
def test_rows_taken_from_a_segment_with_all_care_are_missed(filled: Ledger, kept: int | None) -> None:
    """Name, bytes, manifest, chain and database all say the new file: without a row group, with an empty one, or
    with the first of two only. What is gone is told and not counted as proven. The runs of one problem in one
    partition give six frames of one row there and one of three rows in another."""
    whole, path = verify(filled), segment_of(filled, "filter.decided", ".parquet")
    table = pq.read_table(path)
    shorter = path.with_name("shorter")
    with pq.ParquetWriter(shorter, table.schema) as writer:
        if kept is not None:
            writer.write_table(table.slice(0, kept))
    _relink(filled, "filter.decided", shorter)
    proof, rows = verify(filled), kept or 0
    assert (whole.frames - proof.frames, whole.events - proof.events) == (7 - rows, 9 - rows)
    told = f"holds {rows} rows of {rows} frames, 9 rows of 7 frames were due"
    assert any(told in problem for problem in proof.problems)
    assert any("lies in no segment and not in the tail" in problem for problem in proof.problems)


def _relink(ledger: Ledger, name: str, file: Path) -> None:
    """Puts `file` in the place of the only segment of a type, and rewrites all manifests and rows that name it."""
    fresh = hashlib.sha256(file.read_bytes()).hexdigest()
    old, size = segment_of(ledger, name, ".parquet").stem, file.stat().st_size
    file.rename(file.with_name(f"{fresh}.parquet"))
    with writing(ledger.engine) as connection:
        rows = connection.execute(text("SELECT ordinal, type, version, name, manifest FROM segment ORDER BY 1")).all()
        previous = ""
        for row in rows:
            manifest = json.loads(ledger.segments.manifest_path(row.type, row.version, row.manifest).read_text())
            if row.name == old:
                manifest |= {"segment": fresh, "bytes": size}
            linked = ledger.segments.write_manifest(row.type, row.version, manifest | {"previous": previous})
            values = {"name": manifest["segment"], "bytes": manifest["bytes"], "manifest": linked}
            update = "UPDATE segment SET name = :name, bytes = :bytes, manifest = :manifest WHERE ordinal = :ordinal"
            connection.execute(text(update), values | {"ordinal": row.ordinal})
            previous = linked


def test_an_altered_manifest_is_found(filled: Ledger) -> None:
    """By its name, and by what it says of a frame."""
    path = segment_of(filled, "filter.decided", ".json")
    said = path.read_text().replace('"p0","epoch"', '"p0","epoxh"', 1)
    path.chmod(0o644)
    path.write_text(said)
    problems = verify(filled).problems
    assert any(f"manifest {path} was altered" in problem for problem in problems)
    assert any("differs between the manifest" in problem for problem in problems)


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
            "differs between the manif",
        ),
        ("UPDATE frame SET sequence = sequence + 1 WHERE type = 'program.added'", "open gaps|does not link"),
        ("DELETE FROM tail WHERE type = 'program.added'", "lies in no segment and not in the tail"),
        ("DELETE FROM segment WHERE ordinal = 2", "has place 3 in the chain, 2 was due"),
        ("DELETE FROM frame WHERE type = 'program.added'", "belong to no frame|missing from the SQL"),
        ("UPDATE segment SET rows = rows + 1 WHERE ordinal = 1", "does not match its place"),
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
    flip(filled.blobs.path(digest))
    assert [problem.split(":")[0] for problem in verify(filled).problems] == [
        f"blob {filled.blobs.path(digest)} was altered"
    ]
    filled.blobs.path(digest).unlink()
    (problem,) = verify(filled).problems
    assert problem.startswith(f"blob {digest} is missing: program.added names it in source_blob (frame facts/")


def test_timings_must_be_those_that_their_execution_names(ledger: Ledger, stream: LocalStream) -> None:
    """Too few, too many and other values each give a problem; timings without an execution are only unfinished."""
    few, many, other, open_ended = (attempt(n, 3) for n in range(4))
    swapped = [other[0], attempt(9, 3)[1], other[2]]
    swapped[1] = _renamed(swapped[1], "attempt-2")
    producer = Producer(stream, "epoch", "test", "0")
    producer.append([*few[1:], *many[:3], *many[:1], many[3], *swapped, other[3], *open_ended[:2]])
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
    written = Written(filled.cut(), filled.head())
    Producer(stream, "later", "test", "0").append([decision(n, "p1") for n in range(5)])
    drain(filled, stream)
    seal(filled)
    assert filled.head() != written.head
    assert verify(filled, written=written).problems == ()
    (problem,) = verify(filled, written=Written(written.cut, "0" * 64)).problems
    assert "what it proved was changed" in problem
    with pytest.raises(UserError, match="lies beyond"):
        verify(filled, written=Written(Cut.parse("control=999,facts=0.0.0.0,requests=0"), written.head))


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
    stray = filled.segments.folder / "filter.decided.v1" / ".x.part"
    stray.write_bytes(b"")
    (filled.blobs.folder / "notes.txt").write_text("mine")
    proof = verify(filled)
    assert proof.problems == ()
    assert sorted(note.split(" ")[0] for note in proof.notes) == sorted(
        [str(stray), str(filled.blobs.folder / "notes.txt")]
    )


def test_a_broken_database_page_is_a_problem_and_no_exception(filled: Ledger) -> None:
    """What SQLite itself refuses to read is reported as one line."""
    change(filled, "UPDATE frame SET digest = CAST(x'ff00ff' AS TEXT) WHERE type = 'program.added'")
    proof: Proof = verify(filled)
    assert any("failed" in problem for problem in proof.problems)


def test_manifests_are_canonical_and_linked(filled: Ledger) -> None:
    """Each is named by the SHA-256 of its own bytes (RFC 8785) and names the one before it."""
    chain = {}
    for path in filled.segments.folder.rglob("*.json"):
        manifest = json.loads(path.read_text())
        assert path.read_bytes() == rfc8785.dumps(manifest)
        assert path.stem == hashlib.sha256(path.read_bytes()).hexdigest()
        chain[manifest["ordinal"]] = (manifest["previous"], path.stem)
    assert [chain[n][0] for n in range(1, 5)] == ["", *(chain[n][1] for n in range(1, 4))]
