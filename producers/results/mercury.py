"""Mercury's grading sessions: verdict, run time and code of samples, and the session's own human reference times.

One file is one session. Which human a reference time belongs to is not said: they are known by their order alone.
"""

import math
from pathlib import Path
from typing import get_args

from ledger.errors import UserError
from producers.results.files import parse_json, read_whole, shown
from producers.results.model import (
    ACCEPTED,
    HUMAN,
    Repetition,
    ResultProblem,
    ResultProgram,
    Results,
    Run,
    model_of,
    word,
)
from producers.results.records import Record
from replay.conventions import Beyond, mercury_beyond
from replay.errors import ReplayError

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
    """The session in a file; `model` names the maker of its samples, else the file's name does. UserError otherwise."""
    file, data = read_whole(path)
    where = shown(file.name)
    session = Record.of(parse_json(data, where), where)
    maker = model or model_of(file.name)
    scores = _Scores()
    problems = tuple(_problem(session, slug, maker, scores) for slug in session.names())
    if not problems:
        raise UserError(f"{where}: holds no problem; give a file like `MODEL_eval.json`")
    return Results(
        format=FORMAT,
        tool="Mercury",
        file=file,
        model=maker,
        called=maker,
        service=FORMAT,
        reference_rule="every human run time of the session",
        problems=problems,
        unknown=UNKNOWN,
        said={},
        figures=scores.figures(),
    )


def _problem(session: Record, slug: str, maker: str, scores: "_Scores") -> ResultProblem:
    samples = session.records(slug, "sample")
    if not samples:
        session.refuse(slug, "at least one sample")
    times = samples[0].all_seconds_ns("runtimes")
    programs: dict[str, ResultProgram] = {}
    for sample in samples:
        if sample.all_seconds_ns("runtimes") != times:
            raise UserError(f"{sample.where}: its 'runtimes' differ from those of sample 1; a session has one set")
        program = _sample(sample, maker)
        if programs.setdefault(program.name, program) is not program:
            raise UserError(f"{sample.where}: its 'index' was used before; give every sample of a problem one index")
        scores.add(sample)
    references = [_reference(k, len(times), ns) for k, ns in enumerate(sorted(times), 1)]
    return ResultProblem(original=slug, programs=(*programs.values(), *references))


def _status(sample: Record) -> Record:
    """The verdict; the field is called `status` in some files and `result` in others."""
    return sample.record("status" if sample.has("status") else "result")


def _sample(sample: Record, maker: str) -> ResultProgram:
    status = _status(sample)
    told = status.text("result")
    outcome = "run_time_error" if told.startswith("failed@error") else _OUTCOMES.get(told)
    if outcome is None:
        status.refuse("result", f"one of {', '.join(_OUTCOMES)}")
    measured = told in _MEASURED and status.number("runtime") > 0
    timed = (Repetition(status.seconds_ns("runtime")),) if measured else ()
    return ResultProgram(
        name=f"{word(maker)}-{status.whole('index')}",
        maker=maker,
        label="",
        source=sample.text("solution"),
        language="python3",
        reference=False,
        runs=(Run("all", outcome, "" if told == "passed" else told, timed),),
    )


def _reference(place: int, of: int, wall_ns: int) -> ResultProgram:
    return ResultProgram(
        name=f"reference-{place:03d}-of-{of:03d}",
        maker=HUMAN,
        label=ACCEPTED,
        source=None,
        language="python3",
        reference=True,
        runs=(Run("all", ACCEPTED, "", (Repetition(wall_ns),)),),
    )


class _Scores:
    """The file's stored scores beside Mercury's formulas, over all samples."""

    def __init__(self) -> None:
        self.passed: list[bool] = []
        self.stored: list[float] = []
        self.ours: dict[Beyond, list[float]] = {version: [] for version in get_args(Beyond)}

    def add(self, sample: Record) -> None:
        """Takes one sample in; UserError where its score cannot be: its references have no spread."""
        status = _status(sample)
        passed = status.text("result") == "passed"
        self.passed.append(passed)
        self.stored.append(sample.number("beyond_p"))
        for version, values in self.ours.items():
            try:
                values.append(
                    mercury_beyond(status.number("runtime"), sample.numbers("runtimes"), version, passed=passed)
                )
            except ReplayError as error:
                raise UserError(f"{sample.where}: {error}") from None

    def figures(self) -> dict[str, float | str | None]:
        """Percentages over all samples, and which formula gives every stored score to the last bit."""
        exact = [version for version, values in self.ours.items() if values == self.stored]
        mean = {name: 100 * math.fsum(values) / max(len(values), 1) for name, values in self.ours.items()}
        return {
            "samples": len(self.passed),
            "pass, %": 100 * sum(self.passed) / max(len(self.passed), 1),
            "Beyond as stored, %": 100 * math.fsum(self.stored) / max(len(self.stored), 1),
            "formula of the stored": exact[0] if exact else "none",
            "Beyond A, %": mean["A"],
            "Beyond B, %": mean["B"],
            "Beyond C, %": mean["C"],
        }
