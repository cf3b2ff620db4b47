"""From a package to events: puts its texts into the blob store and says which facts the ledger lacks.

Appending them is the caller's step. Blobs come before the events that name them; a blob without an event is harmless.
"""

from collections.abc import Iterable
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from itertools import chain
from typing import Protocol

from lapledger.ledger.codec.canonical import blob_digest
from lapledger.ledger.events import Event, ProblemAdded, ProgramAdded, TestAdded
from lapledger.producers.corpus.package import Excluded, Package, PackageProgram, PackageTest

IMPORTER = "icpc-package 1"
HUMAN = "human"


class Blobs(Protocol):
    """Where texts are kept, under the SHA-256 of their bytes."""

    def put_many(self, items: Iterable[bytes]) -> list[str]:
        """The digest of each item, in order; returns once all are durable."""
        ...


@dataclass(frozen=True, slots=True)
class ImportPlan:
    """The events to append for one package, in order: problem, tests, programs; nothing that the ledger knows."""

    problem_id: str
    events: tuple[Event, ...]
    ids: frozenset[str]
    problems: int
    tests: int
    programs: int
    excluded: tuple[Excluded, ...]
    unknown_keys: tuple[str, ...]


def import_package(
    package: Package, blobs: Blobs, known: AbstractSet[str], *, model: str = HUMAN, importer: str = IMPORTER
) -> ImportPlan:
    """What to append so that the ledger holds the package; `known` are the problem, test and program ids it has.

    `importer` says what read it.

    The texts of all new events are durable on return. The plan's `ids` are those of its events: add them to `known`
    before the next package of the same import.
    """
    new_problem = package.problem_id not in known
    tests = [(n, test) for n, test in enumerate(package.tests) if package.test_id(test) not in known]
    programs = [program for program in package.programs if package.program_id(program) not in known]
    events: dict[str, Event] = {package.problem_id: _problem(package, importer)} if new_problem else {}
    events |= {package.test_id(test): _test(package, test, n) for n, test in tests}
    events |= {package.program_id(program): _program(package, program, model) for program in programs}
    statement = [package.statement] if new_problem and package.statement is not None else []
    blobs.put_many(
        chain(
            statement,
            chain.from_iterable((test.input, test.answer) for _, test in tests),
            (program.source for program in programs),
        )
    )
    return ImportPlan(
        problem_id=package.problem_id,
        events=tuple(events.values()),
        ids=frozenset(events),
        problems=int(new_problem),
        tests=len(tests),
        programs=len(programs),
        excluded=package.excluded,
        unknown_keys=package.unknown_keys,
    )


def _problem(package: Package, importer: str) -> ProblemAdded:
    return ProblemAdded(
        problem_id=package.problem_id,
        slug=package.slug,
        name=package.name,
        source=package.source,
        license=package.license,
        package_digest=package.digest,
        validator_flags=package.validator_flags,
        grading=package.grading,
        time_limit_ns=package.time_limit_ns,
        memory_limit_bytes=package.memory_limit_bytes,
        output_limit_bytes=package.output_limit_bytes,
        tier=package.tier,
        statement_blob=None if package.statement is None else blob_digest(package.statement),
        importer=importer,
    )


def _test(package: Package, test: PackageTest, ordinal: int) -> TestAdded:
    return TestAdded(
        problem_id=package.problem_id,
        test_id=package.test_id(test),
        ordinal=ordinal,
        group=test.group,
        original=test.original,
        correctness=test.correctness,
        optimization=test.optimization,
        input_blob=blob_digest(test.input),
        answer_blob=blob_digest(test.answer),
        input_bytes=len(test.input),
        input_chars=_characters(test.input),
        output_bytes=len(test.answer),
        output_chars=_characters(test.answer),
        validator_flags=test.validator_flags,
        arguments=test.arguments,
    )


def _program(package: Package, program: PackageProgram, model: str) -> ProgramAdded:
    return ProgramAdded(
        problem_id=package.problem_id,
        program_id=package.program_id(program),
        name=program.name,
        model=model,
        label=program.label,
        language="python3",
        source_blob=blob_digest(program.source),
        source_bytes=len(program.source),
        rollout_id=None,
    )


def _characters(data: bytes) -> int:
    """Characters of a text in UTF-8; each malformed sequence counts as one."""
    return len(data.decode(errors="replace"))
