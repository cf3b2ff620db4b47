"""Importing problem packages in the ICPC format; a package that is already stored adds nothing."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from lapledger.ledger.questions.queries import Questions
from lapledger.producers.corpus.importer import import_package
from lapledger.producers.corpus.package import Package, read_package
from lapledger.workflows.reporter import Reporter
from lapledger.workflows.session import LedgerWriter

_STORED = """
SELECT problem_id AS id FROM problem UNION ALL SELECT test_id FROM test UNION ALL SELECT program_id FROM program
"""


@dataclass(frozen=True, slots=True)
class ImportedPackage:
    """What one package added, the excluded files as (path, reason), and the keys of its files that are not known."""

    problem: str
    new_problems: int
    new_tests: int
    new_programs: int
    excluded: tuple[tuple[str, str], ...]
    unknown_keys: tuple[str, ...]


def read_packages(folders: Sequence[Path], reporter: Reporter) -> list[Package]:
    """Every package, read before anything is written, so that a bad one leaves nothing behind."""
    packages = []
    with reporter.progress("reading", len(folders)) as progress:
        for folder in folders:
            packages.append(read_package(folder))
            progress.advance()
    return packages


def import_packages(session: LedgerWriter, packages: Sequence[Package]) -> list[ImportedPackage]:
    """What each package added, in the order given."""
    questions = Questions(session.ledger)
    try:
        stored = {row["id"] for row in questions.rows(_STORED)}
    finally:
        questions.close()
    imported = []
    for package in packages:
        plan = import_package(package, session.ledger.blobs, stored)
        session.producer.append(plan.events)
        stored |= plan.ids
        excluded = tuple((str(file.path), file.reason) for file in plan.excluded)
        counts = plan.problems, plan.tests, plan.programs
        imported.append(ImportedPackage(plan.problem_id, *counts, excluded, plan.unknown_keys))
    session.admit()
    return imported
