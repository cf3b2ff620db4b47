"""Mercury's grading sessions: verdict, run time and code of samples, and the session's own human reference times.

One file is one session. Which human a reference time belongs to is not said: they are known by their order alone.
"""

import math
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import get_args

from lapledger.ledger.errors import UserError
from lapledger.producers.importers.files import parse_json, read_file, shown
from lapledger.producers.importers.model import (
    ACCEPTED,
    HUMAN,
    Repetition,
    ResultProblem,
    ResultProgram,
    Results,
    Run,
    identifier_part,
    model_of,
)
from lapledger.producers.importers.records import Record
from lapledger.replay.conventions import Beyond, mercury_beyond
from lapledger.replay.errors import ReplayError

FORMAT = "mercury"
_OUTCOMES = {
    "passed": "accepted",
    "failed@cases": "wrong_answer",
    "failed@load": "run_time_error",
    "failed@eval": "run_time_error",
    "timeout": "time_limit",
    "failed@timeout": "time_limit",
}
_MEASURED = ("passed", "failed@cases")
"""Only these ran all cases: the run time of the others is 0 or a limit, and no measurement."""
UNKNOWN = (
    "the tests, and how many there are",
    "the references' sources: reference k of n is the k-th fastest of the session, whoever wrote it",
    "limits, machine, interpreter, processor time, memory, repetitions behind a run time",
    "the duration of a sample that did not run all cases",
)


def read(path: Path, model: str | None = None) -> Results:
    """The session in a file; `model` names the model of its samples, else the file's name does. UserError otherwise."""
    file, data = read_file(path)
    where = shown(file.name)
    session = Record.of(parse_json(data, where), where)
    model = model or model_of(file.name)
    scores = _Scores()
    problems = tuple(_problem(session, slug, model, scores) for slug in session.names())
    if not problems:
        raise UserError(f"{where}: holds no problem; give a file like `MODEL_eval.json`")
    return Results(
        format=FORMAT,
        tool="Mercury",
        file=file,
        model=model,
        called=model,
        service=FORMAT,
        reference_rule="every human run time of the session",
        problems=problems,
        unknown=(*UNKNOWN, *scores.unknown()),
        source_metadata={},
        figures=scores.figures(),
    )


def _problem(session: Record, slug: str, model: str, scores: "_Scores") -> ResultProblem:
    samples = session.records(slug, f"{shown(slug)}, sample")
    if not samples:
        session.refuse(slug, "at least one sample")
    times = samples[0].all_seconds_ns("runtimes")
    programs: dict[str, ResultProgram] = {}
    for sample in samples:
        if sample.all_seconds_ns("runtimes") != times:
            raise UserError(f"{sample.where}: its 'runtimes' differ from those of sample 1; a session has one set")
        program = _sample(sample, model)
        if programs.setdefault(program.name, program) is not program:
            raise UserError(f"{sample.where}: its 'index' was used before; give every sample of a problem one index")
        scores.add(slug, sample)
    references = [_reference(k, len(times), ns) for k, ns in enumerate(sorted(times), 1)]
    return ResultProblem(original=slug, programs=(*programs.values(), *references))


def _status(sample: Record) -> Record:
    """The verdict; the field is called `status` in some files and `result` in others."""
    return sample.record("status" if sample.has("status") else "result")


def _sample(sample: Record, model: str) -> ResultProgram:
    status = _status(sample)
    result = status.text("result")
    outcome = "run_time_error" if result.startswith("failed@error") else _OUTCOMES.get(result)
    if outcome is None:
        status.refuse("result", f"one of {', '.join(_OUTCOMES)}")
    measured = result in _MEASURED and status.number("runtime") > 0
    timed = (Repetition(status.seconds_ns("runtime")),) if measured else ()
    return ResultProgram(
        name=f"{identifier_part(model)}-{status.integer('index')}",
        model=model,
        label="",
        source=sample.text("solution"),
        language="python3",
        reference=False,
        runs=(Run("all", outcome, "" if result == "passed" else result, timed),),
    )


def _reference(number: int, of: int, wall_ns: int) -> ResultProgram:
    return ResultProgram(
        name=f"reference-{number:03d}-of-{of:03d}",
        model=HUMAN,
        label=ACCEPTED,
        source=None,
        language="python3",
        reference=True,
        runs=(Run("all", ACCEPTED, "", (Repetition(wall_ns),)),),
    )


class _Scores:
    """The file's stored scores beside Mercury's formulas, over all samples; a score that no formula gives is not known.

    A sample that passed has no score where the references of its problem have no spread. It is a fact all the same.
    """

    def __init__(self) -> None:
        self.passed: list[bool] = []
        self.stored: list[float] = []
        self.scored: list[float] = []  # the stored scores that formulas can be held against
        self.ours: dict[Beyond, list[float]] = {version: [] for version in get_args(Beyond)}
        self.open: Counter[str] = Counter()  # problem -> its samples whose score is not known

    def add(self, slug: str, sample: Record) -> None:
        """Takes one sample of a problem in; UserError where a number is none."""
        status = _status(sample)
        passed = status.text("result") == "passed"
        runtime, references = status.number("runtime"), sample.numbers("runtimes")
        self.passed.append(passed)
        try:
            scores = {version: mercury_beyond(runtime, references, version, passed=passed) for version in self.ours}
        except ReplayError:  # the references have no spread
            self.open[slug] += 1
            self.stored += [sample.number("beyond_p")] if sample.has("beyond_p") else []
            return
        self.stored.append(sample.number("beyond_p"))
        self.scored.append(self.stored[-1])
        for version, value in scores.items():
            self.ours[version].append(value)

    def unknown(self) -> list[str]:
        """What is not known of each problem whose references have no spread, in words."""
        template = "the score of {} samples of {}: its references have no spread"
        return [template.format(count, shown(slug)) for slug, count in self.open.items()]

    def figures(self) -> dict[str, float | str | None]:
        """Percentages over all samples that have a figure, how many have none, and which formula gives the stored."""
        exact = [version for version, values in self.ours.items() if values == self.scored]
        mean = {name: _percent(values) for name, values in self.ours.items()}
        figures: dict[str, float | str | None] = {"samples": len(self.passed), "pass, %": _percent(self.passed)}
        if self.open:
            figures["scores not known"] = f"{self.open.total()}, the first of {shown(next(iter(self.open)))}"
        return figures | {
            "Beyond as stored, %": _percent(self.stored),
            "formula of the stored": None if not self.scored else exact[0] if exact else "none",
            "Beyond A, %": mean["A"],
            "Beyond B, %": mean["B"],
            "Beyond C, %": mean["C"],
        }


def _percent(values: Sequence[float]) -> float | None:
    """100 times the mean; None of no values."""
    return 100 * math.fsum(values) / len(values) if values else None
