"""How files of other tools come into the ledger: read whole or row by row, then only what the ledger lacks is appended.

The same file twice adds nothing: ids follow from its content, and what the ledger holds is looked up first.
"""

from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Protocol

from lapledger.ledger.errors import UserError
from lapledger.ledger.questions.queries import Questions
from lapledger.producers.campaigns.plan import check_name
from lapledger.producers.corpus.importer import import_package
from lapledger.producers.importers import code_contests
from lapledger.producers.importers.events import (
    Imported,
    Provenance,
    campaign_name,
    closing_events,
    imported,
    problem_events,
    shortened,
)
from lapledger.producers.importers.files import SourceFile, digest_of, shown
from lapledger.producers.importers.model import Results, line
from lapledger.producers.importers.runs import Known
from lapledger.workflows.reporter import Reporter
from lapledger.workflows.session import LedgerWriter

PROBLEMS_AT_ONCE = 64
"""Problems whose facts travel in one append."""


class Reader(Protocol):
    """Reads a whole file of one format; `model` names the model of its candidates."""

    def __call__(self, path: Path, model: str | None = None) -> Results:
        """The file's results; UserError when it is not what the format says."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportOptions:
    """What the user states about the files; flags of the answer check concern problems that are to be run."""

    campaign: str | None = None
    model: str | None = None
    provenance: Provenance
    validator_flags: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportSummary:
    """What one file brought: counts of new facts, what was excluded, and what the file lets one compute at once."""

    file: str
    campaign: str | None
    held: bool
    problems: int
    programs: int
    executions: int
    timings: int
    excluded: tuple[str, ...]
    unknown: tuple[str, ...]
    figures: dict[str, float | str | None]


def read_all(read: Reader, paths: Sequence[Path], options: ImportOptions, *, reporter: Reporter) -> list[Results]:
    """Every file read before anything is written, so that a bad one leaves nothing. UserError as the reader's."""
    if options.campaign is not None:
        if len(paths) > 1:
            raise UserError("--campaign names one campaign, and every file is one; import the files one by one")
        check_name(options.campaign)
    results = []
    with reporter.progress("reading", len(paths)) as bar:
        for path in paths:
            results.append(read(path, options.model))
            bar.advance()
    return results


def import_results(writer: LedgerWriter, results: Results, options: ImportOptions) -> ImportSummary:
    """Appends what the ledger lacks of a file, problem by problem, then the campaign that it makes."""
    campaign = options.campaign or campaign_name(results)
    with closing(Questions(writer.ledger)) as questions:
        earlier = _earlier(questions, results.format, results.file)
        known = None if earlier else _known(questions, campaign)
    if earlier:
        _check_same(earlier, results, options)
        return _summary(results, earlier["campaign_id"], held=True)
    assert known is not None  # noqa: S101  (asked for above)
    total, license_ = _summary(results, campaign, held=False), options.provenance.license
    with writer.reporter.progress(line(results.file.name, 40), len(results.problems)) as bar:
        for start in range(0, len(results.problems), PROBLEMS_AT_ONCE):
            batch = results.problems[start : start + PROBLEMS_AT_ONCE]
            imported_problems = [
                problem_events(results, problem, campaign, known=known, license_=license_) for problem in batch
            ]
            writer.ledger.blobs.put_many(text for problem in imported_problems for text in problem.texts)
            writer.producer.append(event for problem in imported_problems for event in problem.events)
            total = _with_counts(total, imported_problems)
            bar.advance(len(batch))
    writer.producer.append(closing_events(results, campaign, options.provenance))
    writer.admit()
    return total


def import_problems(writer: LedgerWriter, path: Path, options: ImportOptions) -> ImportSummary:
    """Appends what the ledger lacks of a Code Contests file, one problem after another, then its provenance.

    A broken row ends it with UserError; the problems before it are held whole, and another call goes on behind them.
    """
    file = digest_of(path)
    with closing(Questions(writer.ledger)) as questions:
        held = bool(_earlier(questions, code_contests.FORMAT, file))
        ids = _ids(questions)
    counts, excluded, records, tolerant = [0, 0, 0], list[str](), 0, 0
    if not held:
        rows = code_contests.rows(path, license=options.provenance.license, flags=options.validator_flags)
        with writer.reporter.progress(line(file.name, 40), code_contests.count_rows(path)) as bar:
            for row in rows:
                records += 1
                bar.advance()
                if row.package is None:
                    excluded.append(row.reason)
                    continue
                tolerant += "tolerance" in row.package.validator_flags
                plan = import_package(row.package, writer.ledger.blobs, ids, importer=code_contests.IMPORTER)
                writer.producer.append(plan.events)
                ids |= plan.ids
                excluded += [f"{item.path}: {item.reason}" for item in plan.excluded]
                counts = [a + b for a, b in zip(counts, (plan.problems, plan.tests, plan.programs), strict=True)]
        event = imported(code_contests.FORMAT, code_contests.TOOL, file, options.provenance)
        event = replace(event, records=records, excluded=shortened(excluded), unknown=code_contests.UNKNOWN)
        writer.producer.append([event])
        writer.admit()
    return ImportSummary(
        file=file.name,
        campaign=None,
        held=held,
        problems=counts[0],
        programs=counts[2],
        executions=0,
        timings=0,
        excluded=tuple(excluded),
        unknown=code_contests.UNKNOWN,
        figures={} if held else {"records": records, "new tests": counts[1], "with float tolerance": tolerant},
    )


def _summary(results: Results, campaign: str, *, held: bool) -> ImportSummary:
    return ImportSummary(
        file=results.file.name,
        campaign=campaign,
        held=held,
        problems=0 if held else len(results.problems),
        programs=0,
        executions=0,
        timings=0,
        excluded=results.excluded,
        unknown=results.unknown,
        figures=results.figures,
    )


def _with_counts(total: ImportSummary, imported_problems: Sequence[Imported]) -> ImportSummary:
    return replace(
        total,
        programs=total.programs + sum(problem.programs for problem in imported_problems),
        executions=total.executions + sum(problem.executions for problem in imported_problems),
        timings=total.timings + sum(problem.timings for problem in imported_problems),
    )


def _earlier(questions: Questions, form: str, file: SourceFile) -> dict[str, Any] | None:
    """The import of the same file, where there was one."""
    rows = questions.rows(
        "SELECT * FROM imported WHERE format = $form AND file_digest = $digest", form=form, digest=file.digest
    )
    return rows[0] if rows else None


def _check_same(earlier: dict[str, Any], results: Results, options: ImportOptions) -> None:
    """Raise UserError if the file was imported before with another campaign or model."""
    stated = {"campaign_id": options.campaign, "model": options.model if results.model else None}
    for name, value in stated.items():
        if value is not None and value != earlier[name]:
            raise UserError(
                f"{shown(results.file.name)} was imported before, as campaign {earlier['campaign_id']!r} of "
                f"{earlier['model'] or 'no model'}; stored facts do not change: use that campaign"
            )


def _known(questions: Questions, campaign: str) -> Known:
    """What the ledger holds already of an import that did not come to its end. UserError for another's campaign."""
    if questions.rows("SELECT campaign_id FROM campaign WHERE campaign_id = $id", id=campaign):
        raise UserError(f"a campaign {campaign!r} is stored already, and it is not of this file; choose another name")
    works = questions.rows("SELECT work_id FROM execution WHERE campaign_id = $id", id=campaign)
    attempts = questions.rows("SELECT DISTINCT attempt_id FROM timing_measured WHERE campaign_id = $id", id=campaign)
    return Known(_ids(questions), {row["work_id"] for row in works}, {row["attempt_id"] for row in attempts})


def _ids(questions: Questions) -> set[str]:
    return {row["id"] for row in questions.rows(_HELD)}


_HELD = """
SELECT problem_id AS id FROM problem UNION ALL SELECT test_id FROM test UNION ALL SELECT program_id FROM program
"""
