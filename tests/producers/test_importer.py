"""The importer: a package's events, its blobs, and what a second import adds. Real blob store and real local stream."""

import dataclasses
import hashlib
from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lapledger.ledger.disk import LocalFiles
from lapledger.ledger.events import Event, ProblemAdded, ProgramAdded, TestAdded, from_batch, key_of, to_batch, type_of
from lapledger.ledger.frames.frame import decode
from lapledger.ledger.store.objects.blobs import Blobs
from lapledger.ledger.streams.local import LocalStream
from lapledger.ledger.streams.producer import Producer, partition_of
from lapledger.producers.corpus.folders import find_packages
from lapledger.producers.corpus.importer import import_package
from lapledger.producers.corpus.package import Excluded, Package, PackageProgram, PackageTest, read_package

REAL = Path(__file__).parents[2].parent / "shared" / "data" / "icpc"

TESTS = (
    PackageTest("sample/1", "sample", True, True, False, "1 ü\n".encode(), b"\xff\n"),
    PackageTest("secret/optimization/1", "secret/optimization", False, False, True, b"2\n", b"2\n"),
)
PROGRAMS = (
    PackageProgram("a.py", "accepted", b"print(input())\n"),
    PackageProgram("b.py", "wrong_answer", b"print(0)\n"),
)


def package(programs: tuple[PackageProgram, ...] = PROGRAMS, tests: tuple[PackageTest, ...] = TESTS) -> Package:
    """A small package as the reader would give it."""
    return Package(
        slug="echo",
        name="Echo",
        source="A contest",
        license="cc by-sa",
        validator_flags="",
        grading="",
        time_limit_ns=None,
        tier=None,
        statement=b"Say it again.",
        tests=tests,
        programs=programs,
        excluded=(Excluded("submissions/a.cpp", "not a Python program"),),
        digest="ab" * 32,
    )


def appended(stream: LocalStream, problem_id: str) -> list[Event]:
    """The facts of a problem as they lie on the stream, in order."""
    stored = stream.read("facts", partition_of("facts", problem_id), 0, 1000)
    frames = [decode(item.record) for item in stored]
    return [event for frame in frames for event in from_batch(frame.declared, frame.batch)]


def sha(data: bytes) -> str:
    """What `sha256sum` prints."""
    return hashlib.sha256(data).hexdigest()


def test_events_report_what_the_package_holds(tmp_path: Path) -> None:
    """Problem first, then tests, then programs; ids, lengths and digests follow from the bytes alone."""
    plan = import_package(package(), Blobs(LocalFiles(tmp_path)), set())
    problem, first, second, program, twin = plan.events
    assert isinstance(problem, ProblemAdded)
    assert isinstance(first, TestAdded)
    assert isinstance(second, TestAdded)
    assert isinstance(program, ProgramAdded)
    assert isinstance(twin, ProgramAdded)
    assert problem.problem_id == plan.problem_id == "echo.abababababab"
    assert (problem.name, problem.statement_blob, problem.importer) == ("Echo", sha(b"Say it again."), "icpc-package 1")
    assert first.test_id == "echo.abababababab/sample/1"
    assert (first.ordinal, second.ordinal) == (0, 1)
    assert (first.original, first.correctness, first.optimization) == (True, True, False)
    assert (second.original, second.correctness, second.optimization) == (False, False, True)
    # "1 ü\n" has 4 characters in 5 bytes; the malformed byte of the answer counts as one character
    assert (first.input_bytes, first.input_chars, first.output_bytes, first.output_chars) == (5, 4, 2, 2)
    assert program.program_id == f"echo.abababababab/a.{sha(PROGRAMS[0].source)[:12]}"
    assert (program.model, program.label, program.language) == ("human", "accepted", "python3")
    assert (program.source_bytes, twin.label, twin.rollout_id) == (15, "wrong_answer", None)
    assert (plan.problems, plan.tests, plan.programs, plan.excluded) == (1, 2, 2, package().excluded)
    assert plan.ids == {problem.problem_id, first.test_id, second.test_id, program.program_id, twin.program_id}


def test_every_blob_an_event_names_is_stored(tmp_path: Path) -> None:
    """Texts come before the events: each named digest gives back the package's bytes."""
    blobs = Blobs(LocalFiles(tmp_path))
    plan = import_package(package(), blobs, set())
    columns = [(event, field.name) for event in plan.events for field in dataclasses.fields(event)]
    values = [getattr(event, name) for event, name in columns if name.endswith("_blob")]
    texts = [b"Say it again.", *(text for test in TESTS for text in (test.input, test.answer))]
    assert [blobs.get(digest) for digest in values] == [*texts, *(program.source for program in PROGRAMS)]


def test_importing_twice_adds_nothing_and_one_more_program_adds_one_event(tmp_path: Path) -> None:
    """Ids decide what is new: neither a problem nor a test is added again for the sake of a program."""
    blobs = Blobs(LocalFiles(tmp_path))
    first = import_package(package(), blobs, set())
    stored = list(blobs.digests())
    second = import_package(package(), blobs, first.ids)
    assert (second.events, second.problems, second.tests, second.programs) == ((), 0, 0, 0)
    assert list(blobs.digests()) == stored
    more = package((*PROGRAMS, PackageProgram("c.py", "accepted", b"print(input())\n")))
    (event,) = import_package(more, blobs, first.ids, model="a model").events
    assert isinstance(event, ProgramAdded)
    assert (event.name, event.model, event.source_blob) == ("c.py", "a model", sha(b"print(input())\n"))


@settings(max_examples=20, deadline=None)
@given(st.sets(st.integers(0, 4)))
def test_an_interrupted_import_is_completed_by_the_next(
    tmp_path_factory: pytest.TempPathFactory, kept: set[int]
) -> None:
    """Whatever part of the events was stored, the next import adds exactly the others, in the same order."""
    blobs = Blobs(LocalFiles(tmp_path_factory.mktemp("blobs")))
    complete = import_package(package(), blobs, set()).events
    known = {_id(event) for location, event in enumerate(complete) if location in kept}
    rest = import_package(package(), blobs, known).events
    assert rest == tuple(event for location, event in enumerate(complete) if location not in kept)


def test_the_events_travel_on_a_stream_unchanged(tmp_path: Path) -> None:
    """All facts of a problem share one partition and come back as they were, null columns and all."""
    stream = LocalStream.create(tmp_path / "stream", "identity")
    plan = import_package(package(), Blobs(LocalFiles(tmp_path / "blobs")), set())
    Producer(stream, "epoch", "test", "0").append(plan.events)
    assert appended(stream, plan.problem_id) == list(plan.events)


def _id(event: Event) -> str:
    """The id under which a problem, test or program is known."""
    field = {ProblemAdded: "problem_id", TestAdded: "test_id", ProgramAdded: "program_id"}[type(event)]
    return str(getattr(event, field))


@pytest.mark.realdata
@pytest.mark.skipif(not REAL.is_dir(), reason="the real packages are not beside the checkout (../shared/data/icpc)")
class TestRealPackages:
    """The six packages beside the checkout, into a real stream and blob store."""

    def test_six_packages_are_imported_once(self, tmp_path: Path) -> None:
        """As many events as the folders hold things; all encode without loss; a second import adds none."""
        blobs = Blobs(LocalFiles(tmp_path))
        packages = [read_package(folder) for folder in find_packages([REAL])]
        known: set[str] = set()
        events: list[Event] = []
        for item in packages:
            plan = import_package(item, blobs, known)
            known |= plan.ids
            events.extend(plan.events)
            assert {key_of(event) for event in plan.events} == {item.problem_id}
        answers = len(list(REAL.glob("*/data/**/*.ans")))
        programs = len(list(REAL.glob("*/submissions/*/*.py")))
        assert _counts(events) == (6, answers, programs)
        assert [import_package(item, blobs, known).events for item in packages] == [()] * 6
        assert all(blobs.has(event.input_blob) for event in events if isinstance(event, TestAdded))
        for kind in (ProblemAdded, TestAdded, ProgramAdded):
            same = [event for event in events if isinstance(event, kind)]
            assert from_batch(type_of(same[0]), to_batch(same)) == same


def _counts(events: Sequence[Event]) -> tuple[int, ...]:
    """Numbers of problem, test and program events."""
    return tuple(sum(isinstance(event, kind) for event in events) for kind in (ProblemAdded, TestAdded, ProgramAdded))
