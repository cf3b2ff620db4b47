"""From a result file to events, with ids that follow from the file alone: the same file always gives the same facts.

Pure. What the ledger knows is passed in, and not made again.
"""

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from lapledger.ledger.codec.canonical import blob_digest, sha256_fields
from lapledger.ledger.events import (
    CampaignClosed,
    CampaignOpenedV2,
    Event,
    ProblemAdded,
    ProgramAddedV2,
    ResultsImported,
    TestAdded,
)
from lapledger.producers.importers.files import SourceFile
from lapledger.producers.importers.model import ResultProblem, ResultProgram, Results, ResultTest, identifier_part
from lapledger.producers.importers.runs import Known, RunContext, executions

FAULT = "sandbox_fault"
CLOSED = "imported"
"""Why an imported campaign is closed: no more of it will come."""
MOST_LEFT_OUT = 1000
LONGEST_NAME = 64


@dataclass(frozen=True, slots=True, kw_only=True)
class Provenance:
    """What the user says of a file that the file does not say."""

    original_id: str = ""
    license: str = ""


@dataclass(frozen=True, slots=True)
class Imported:
    """What one problem brings: texts for the blob store, to be put before the events are appended in their order."""

    texts: tuple[bytes, ...]
    events: tuple[Event, ...]
    programs: int
    executions: int
    timings: int


def campaign_name(results: Results) -> str:
    """What a file's campaign is called unless the user names it: format, model or host, 8 digits of its SHA-256."""
    short = f"{results.format}-{identifier_part(results.called or 'file')}"[: LONGEST_NAME - 9]
    return f"{short}-{results.file.digest[:8]}"


def problem_events(results: Results, problem: ResultProblem, campaign: str, *, known: Known, license_: str) -> Imported:
    """What to append of one problem: the facts that the ledger lacks, problem first, each finish behind its timings."""
    name = results.problem_id(problem)
    is_new = name not in known.ids
    tests = [test for test in problem.tests if f"{name}/{test.name}" not in known.ids]
    programs = {program.id_in(name): program for program in problem.programs}
    new = {key: program for key, program in programs.items() if key not in known.ids}
    texts = [problem.statement] if is_new else []
    texts += [program.source for program in new.values()]
    timings, finished = executions(RunContext(campaign, name, results.host), programs, known)
    facts: list[Event] = [_problem(results, problem, license_)] if is_new else []
    facts += [_test(name, test, problem.tests.index(test)) for test in tests]
    facts += [_program(name, key, program) for key, program in new.items()]
    return Imported(
        texts=tuple(text.encode() for text in texts if text is not None),
        events=(*facts, *timings, *finished),
        programs=len(new),
        executions=len(finished),
        timings=len(timings),
    )


def closing_events(results: Results, campaign: str, provenance: Provenance) -> list[Event]:
    """What makes a file a campaign: it was opened, is closed, and comes from this file. To be appended at once."""
    members = [
        (results.problem_id(problem), program.id_in(results.problem_id(problem)), program)
        for problem in results.problems
        for program in problem.programs
    ]
    runs = [run for *_, program in members for run in program.runs]
    faults = sum(run.outcome == FAULT for run in runs)
    opening = _opening_event(results, campaign, members, works=len(runs) - faults)
    closed = CampaignClosed(campaign_id=campaign, accepted=len(runs) - faults, surplus=0, faults=faults, reason=CLOSED)
    return [opening, closed, _results_imported(results, campaign, provenance)]


def _opening_event(
    results: Results, campaign: str, members: Sequence[tuple[str, str, ResultProgram]], *, works: int
) -> CampaignOpenedV2:
    """The campaign of programs, each with its problem's id and its own."""
    runs = [run for *_, program in members for run in program.runs if run.repetitions]
    return CampaignOpenedV2(
        campaign_id=campaign,
        plan_digest=sha256_fields("imported plan", results.format, results.file.digest),
        service=results.service,
        problems=tuple(sorted({problem for problem, *_ in members})),
        programs=tuple(sorted(program for _, program, _ in members)),
        references=tuple(sorted(key for _, key, program in members if program.reference)),
        reference_rule=results.reference_rule,
        shuffle_seed=None,
        hard_limit_ns=None,
        memory_bytes=None,
        output_bytes=None,
        process_limit=None,
        repetitions=_common(sum(not repetition.warmup for repetition in run.repetitions) for run in runs),
        warmups=_common(sum(repetition.warmup for repetition in run.repetitions) for run in runs),
        works=works,
    )


def _results_imported(results: Results, campaign: str, provenance: Provenance) -> ResultsImported:
    """Where a campaign comes from."""
    return replace(
        imported(results.format, results.tool, results.file, provenance),
        import_id=import_id(results.format, results.file.digest, campaign),
        tool_version=results.tool_version,
        campaign_id=campaign,
        model=results.model,
        records=len(results.problems),
        excluded=shortened(results.excluded),
        unknown=results.unknown,
        source_metadata=json.dumps(results.source_metadata, sort_keys=True, allow_nan=False),
        importer=results.importer,
    )


def imported(form: str, tool: str, file: SourceFile, provenance: Provenance) -> ResultsImported:
    """The provenance of a file that makes no campaign, without a count of its records yet."""
    return ResultsImported(
        import_id=import_id(form, file.digest, None),
        format=form,
        tool=tool,
        tool_version="",
        file_name=file.name,
        file_digest=file.digest,
        file_bytes=file.bytes,
        original_id=provenance.original_id,
        license=provenance.license,
        campaign_id=None,
        model="",
        records=0,
        excluded=(),
        unknown=(),
        source_metadata="{}",
        importer=f"{form} 1",
    )


def import_id(form: str, digest: str, campaign: str | None) -> str:
    """The id of an import: what was read, as what."""
    return sha256_fields("import", form, digest, campaign or "")


def shortened(reasons: Sequence[str]) -> tuple[str, ...]:
    """The reasons, the rest of very many counted."""
    more = len(reasons) - MOST_LEFT_OUT
    return tuple(reasons) if more <= 0 else (*reasons[:MOST_LEFT_OUT], f"and {more} more")


def _common(counts: Iterable[int]) -> int | None:
    """The number that all are; None when they differ."""
    distinct = set(counts)
    return distinct.pop() if len(distinct) == 1 else None


def _problem(results: Results, problem: ResultProblem, license_: str) -> ProblemAdded:
    statement = problem.statement
    return ProblemAdded(
        problem_id=results.problem_id(problem),
        slug=results.slug(problem),
        name=problem.name or problem.original,
        source=problem.origin or results.tool,
        license=license_,
        package_digest=results.problem_digest(problem),
        validator_flags="",
        grading="",
        time_limit_ns=None,
        tier=problem.tier,
        statement_blob=None if statement is None else blob_digest(statement.encode()),
        importer=results.importer,
    )


def _test(problem: str, test: ResultTest, ordinal: int) -> TestAdded:
    return TestAdded(
        problem_id=problem,
        test_id=f"{problem}/{test.name}",
        ordinal=ordinal,
        group=test.name,
        original=True,
        correctness=test.correctness,
        optimization=test.optimization,
        input_blob=None,
        answer_blob=None,
        input_bytes=None,
        input_chars=None,
        output_bytes=None,
        output_chars=None,
    )


def _program(problem: str, key: str, program: ResultProgram) -> ProgramAddedV2:
    source = None if program.source is None else program.source.encode()
    return ProgramAddedV2(
        problem_id=problem,
        program_id=key,
        name=program.name,
        model=program.model,
        label=program.label,
        language=program.language,
        source_blob=None if source is None else blob_digest(source),
        source_bytes=None if source is None else len(source),
        rollout_id=None,
    )
