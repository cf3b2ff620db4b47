"""LiveCodeBench's graded generations (`*_eval_all.json`): a verdict a sample, and of those that pass their run time.

One file is one grading. There are no references; a sample stands on all tests of its question together. What identifies
a question elsewhere (platform, contest, date) is kept in what the file says of itself, one entry a problem.
"""

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from lapledger.ledger.errors import UserError
from lapledger.producers.importers.files import parse_json, read_file, shown
from lapledger.producers.importers.model import (
    Repetition,
    ResultProblem,
    ResultProgram,
    Results,
    Run,
    identifier_part,
    line,
    model_of,
)
from lapledger.producers.importers.records import Record
from lapledger.replay.conventions import livecodebench_outcome, livecodebench_pass_at_1
from lapledger.replay.errors import ReplayError

FORMAT = "livecodebench"
UNKNOWN = (
    "the tests, and how many there are; which of them a failing sample passed",
    "references: there are none",
    "limits, machine, interpreter, processor time, memory",
    "the duration of a sample that did not pass",
    "how a sample failed that has no error code: it is recorded as failed",
)
_TIME = "execution time"
_CONTEST = ("question_id", "platform", "contest_id", "contest_date", "starter_code")
MAX_METADATA_BYTES = 512 * 1024
"""Facts about questions are kept apart up to this length in JSON; a file has about 200 bytes a question."""


def read(path: Path, model: str | None = None) -> Results:
    """The grading in a file; `model` names the model of its samples, else the file's name does. UserError otherwise."""
    file, data = read_file(path)
    where = shown(file.name)
    value = parse_json(data, where)
    if not isinstance(value, list) or not value:
        raise UserError(f"{where}: no list of questions; give LiveCodeBench's `*_eval_all.json`")
    model = model or model_of(file.name)
    questions = [_question(item, f"{where}, question {number}") for number, item in enumerate(value, 1)]
    problems: dict[str, ResultProblem] = {}
    for question in questions:
        problem = _problem(question, model)
        if problems.setdefault(problem.original, problem) is not problem:
            raise UserError(f"{question.where}: the question appears twice; keep one of them")
    results = Results(
        format=FORMAT,
        tool="LiveCodeBench",
        file=file,
        model=model,
        called=model,
        service=FORMAT,
        reference_rule="none: the file has no references",
        problems=tuple(problems.values()),
        unknown=UNKNOWN,
        reading=2,
        source_metadata={"platforms": sorted({question.text("platform") for question in questions})},
        figures=_figures(questions),
    )
    contests = _contests(results, questions)
    return replace(results, source_metadata=results.source_metadata | {"questions": contests}) if contests else results


def _contests(results: Results, questions: list[Record]) -> Mapping[str, Mapping[str, str]]:
    """Problem id -> what the file says of the question beside its text, by the file's own keys; nothing of very many.

    What it does not say is absent.
    """
    metadata = {
        results.problem_id(problem): {key: question.text(key) for key in _CONTEST if question.value.get(key)}
        for problem, question in zip(results.problems, questions, strict=True)
    }
    return metadata if len(json.dumps(metadata)) <= MAX_METADATA_BYTES else {}


def _question(value: Any, where: str) -> Record:
    """The question, named by its id in what is said of it."""
    record = Record.of(value, where)
    return Record(record.value, f"{where} ({shown(record.text('question_id'))})")


def _problem(question: Record, model: str) -> ResultProblem:
    graded, codes = question.open_flags("graded_list"), question.texts("code_list")
    notes = question.items("metadata") if question.value.get("metadata") else [None] * len(codes)  # {} says nothing
    if not len(graded) == len(codes) == len(notes) or not codes:
        sizes = f"{len(codes)} programs, {len(graded)} grades and {len(notes)} notes"
        raise UserError(f"{question.where}: {sizes}; there must be one of each a sample, and at least one")
    programs = tuple(
        _sample(
            f"{identifier_part(model)}-{number}",
            model,
            code,
            _runs(grade, _note(note, f"{question.where}, sample {number}")),
        )
        for number, (code, grade, note) in enumerate(zip(codes, graded, notes, strict=True))
    )
    return ResultProblem(
        original=question.text("question_id"),
        name=line(question.text("question_title")),
        origin=_origin(question),
        tier=question.text("difficulty"),
        statement=question.text("question_content"),
        programs=programs,
    )


def _note(value: Any, where: str) -> Record:
    """What the grader noted of a sample: an object, or its JSON in a text; empty where there is none."""
    if isinstance(value, str):
        value = parse_json(value.encode(errors="replace"), f"{where}, 'metadata'")
    return Record.of({} if value is None else value, f"{where}, 'metadata'")


def _origin(question: Record) -> str:
    """Platform, contest and date in words, as far as the file tells them."""
    contest, date = (question.text(key) if question.has(key) else "" for key in ("contest_id", "contest_date"))
    platform = f"{question.text('platform')} contest {contest}" if contest else question.text("platform")
    return line(", ".join(part for part in (platform, date) if part))


def _runs(graded: bool | None, note: Record) -> tuple[Run, ...]:
    """The run on all tests; none where it was not graded."""
    return () if graded is None else (_run(graded, note),)


def _run(graded: bool, note: Record) -> Run:
    code = note.value.get("error_code")
    if code is not None and (isinstance(code, bool) or not isinstance(code, int)):
        note.refuse("error_code", "a whole number")
    try:
        outcome = livecodebench_outcome(graded, code)
    except ReplayError as error:
        raise UserError(f"{note.where}: {error}; is this a newer release of the tool?") from None
    messages = [str(note.value[key]) for key in ("error_message", "error") if note.has(key)]
    timed = (Repetition(note.seconds_ns(_TIME)),) if graded and note.has(_TIME) else ()
    return Run("all", outcome, "" if graded else line("; ".join(messages)), timed)


def _sample(name: str, model: str, code: str, runs: tuple[Run, ...]) -> ResultProgram:
    return ResultProgram(name=name, model=model, label="", source=code, language="python3", reference=False, runs=runs)


def _figures(questions: list[Record]) -> dict[str, float | str | None]:
    """pass@1 as the tool counts it; none of our own where a sample was not graded."""
    stored = [question.number("pass@1") for question in questions if question.has("pass@1")]
    graded = [question.open_flags("graded_list") for question in questions]
    known = [[grade for grade in grades if grade is not None] for grades in graded]
    return {
        "samples": sum(map(len, graded)),
        "pass@1, %": livecodebench_pass_at_1(known) if known == graded else None,
        "pass@1 as stored, %": 100 * sum(stored) / len(stored) if stored else None,
    }
