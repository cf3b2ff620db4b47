"""EvalPerf's results (`*_evalperf_results.json`): a verdict a sample, and processor instructions instead of time.

A task has two tests: all of EvalPlus's for correctness, and one large input on which instructions were counted. Source
of the shape: evalplus 0.3.1, `evalperf.py`.
"""

import math
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from lapledger.ledger.codec.canonical import blob_digest
from lapledger.ledger.errors import UserError
from lapledger.producers.importers.files import parse_json, read_file, shown
from lapledger.producers.importers.model import (
    ACCEPTED,
    FAILED,
    Repetition,
    ResultProblem,
    ResultProgram,
    Results,
    ResultTest,
    Run,
    identifier_part,
    line,
    model_of,
)
from lapledger.producers.importers.records import Record
from lapledger.replay.conventions import DifferentialScore, evalperf_dps, evalperf_task

FORMAT = "evalperf"
REFERENCE = "evalperf-reference"
"""The model of its references: models, and the file does not say which."""
UNKNOWN = (
    "the tests and the large input",
    "how a sample failed: a wrong answer, an error and a time limit look alike and are recorded as failed",
    "how a sample did on the large input whose profile broke: it has no run there, nor has one that was not profiled",
    "wall and processor time, memory, limits, machine",
    "references that were not profiled have no run",
)
_TESTS = (
    ResultTest(name="correctness", optimization=False),
    ResultTest(name="performance", correctness=False),
)
_COST = "_num_cpu_instructions"
_METADATA_KEYS = ("date", "n_samples", "temperature", "min_correct", "max_profile")


def read(path: Path, model: str | None = None) -> Results:
    """The results in a file; `model` names the model of its samples, else the file's name does. UserError otherwise."""
    file, data = read_file(path)
    where = shown(file.name)
    document = Record.of(parse_json(data, where), where)
    tasks = document.record("eval") if document.has("eval") else document
    model = model or model_of(file.name)
    metadata = {key: document.value[key] for key in _METADATA_KEYS if document.has(key)}
    least = document.integer("min_correct") if "min_correct" in metadata else 10
    records = {task: tasks.record(task) for task in tasks.names()}
    problems = tuple(_problem(task, record, model) for task, record in records.items())
    if not problems:
        raise UserError(f"{where}: holds no task; give a file like `MODEL_evalperf_results.json`")
    scores = {task: [r.number("score") for r in record.records("ref", "reference")] for task, record in records.items()}
    return Results(
        format=FORMAT,
        tool="EvalPerf (EvalPlus)",
        file=file,
        model=model,
        called=model,
        service=FORMAT,
        reference_rule="every reference of its task",
        problems=problems,
        excluded=tuple(reason for task, record in records.items() for reason in _excluded(task, record)),
        unknown=UNKNOWN,
        reading=2,
        source_metadata={**metadata, "cumulative shares of the references, slow to fast, %": scores},
        figures=_figures(records, least),
    )


def _problem(task: str, record: Record, model: str) -> ResultProblem:
    seen: Counter[str] = Counter()
    programs = []
    for sample in record.records("results", "sample"):
        source = sample.text("solution")
        digest = blob_digest(source.encode())
        name = f"{identifier_part(model)}-{seen[digest]}"
        programs.append(_sample(sample, source, name, model=model, profiled=_profiled(record, sample)))
        seen[digest] += 1
    references = [_reference(number, ref) for number, ref in enumerate(record.records("ref", "reference"))]
    return ResultProblem(original=task, tests=_TESTS, programs=(*programs, *references))


def _sample(sample: Record, source: str, name: str, *, model: str, profiled: bool) -> ResultProgram:
    passed = sample.flag("pass")
    runs = [Run("correctness", ACCEPTED if passed else FAILED)]
    if profiled and (cost := _cost(sample)) is not None:
        runs.append(_counted((Repetition(instructions=cost),)))
    return ResultProgram(
        name=name,
        model=model,
        label="",
        source=source,
        language="python3",
        reference=False,
        runs=tuple(runs),
    )


def _profiled(task: Record, sample: Record) -> bool:
    """Whether a profile of a sample was tried: of those that passed, where enough did, the first few.

    An earlier shape of the file, which no release writes, does not say so: it tried all of these.
    Releases before 0.3 tried all of these, and do not say so of each.
    """
    ran_correctly = sample.flag("pass") and task.has("dps")
    return ran_correctly and (sample.flag("profiled") if sample.has("profiled") else True)


def _excluded(task: str, record: Record) -> Iterator[str]:
    """What the file does not state of samples that passed, where others of their task were profiled."""
    passed = [sample for sample in record.records("results", "sample") if sample.flag("pass") and record.has("dps")]
    broken = sum(_profiled(record, sample) and not sample.has(_COST) for sample in passed)
    untried = sum(not _profiled(record, sample) for sample in passed)
    if broken:
        yield f"{line(task)}: {broken} runs on the large input whose profile broke, and it is not said how"
    if untried:
        yield f"{line(task)}: {untried} runs on the large input, not profiled"


def _counted(repetitions: tuple[Repetition, ...]) -> Run:
    return Run("performance", ACCEPTED, "", repetitions)


def _reference(number: int, record: Record) -> ResultProgram:
    cost = _cost(record)
    return ResultProgram(
        name=f"reference-{number:03d}",
        model=REFERENCE,
        label=ACCEPTED,
        source=record.text("solution"),
        language="python3",
        reference=True,
        runs=() if cost is None else (_counted((Repetition(instructions=cost),)),),
    )


def _cost(record: Record) -> int | None:
    """Instructions, whole: the file holds their mean over a few profiles."""
    if not record.has(_COST):
        return None
    cost = record.number(_COST)
    if not 0 <= cost < 2**60:
        record.refuse(_COST, "instructions from 0")
    return round(cost)


def _figures(tasks: dict[str, Record], least: int) -> dict[str, float | str | None]:
    """Means over tasks, as the tool's summary prints them: ours from the counts, its own as stored."""
    ours = {task: _task(record, least) for task, record in tasks.items()}
    scored = [score for score in ours.values() if score is not None]
    stored = [record.number("dps") for record in tasks.values() if record.has("dps")]
    return {
        "samples": sum(len(record.items("results")) for record in tasks.values()),
        "pass@1, %": _mean([record.number("pass@1") for record in tasks.values() if record.has("pass@1")]),
        "DPS": _mean([dps for dps, _ in scored]),
        "DPS_norm": _mean([norm for _, norm in scored]),
        "DPS as stored": _mean(stored),
        "tasks scored": len(scored),
    }


def _task(record: Record, least: int) -> tuple[float, float] | None:
    """Mean DPS and DPS_norm of a task's profiled samples, a broken profile 0; None without enough of them."""
    if not record.has("dps"):
        return None
    references = record.records("ref", "reference")
    if not references:
        record.refuse("ref", "at least one reference of a task that has scores")
    shares = [reference.number("score") for reference in references]
    costs = [reference.number(_COST) if reference.has(_COST) else -math.inf for reference in references]
    samples = [sample for sample in record.records("results", "sample") if _profiled(record, sample)]
    return evalperf_task([_score(sample, costs, shares) for sample in samples], least=least)


def _score(sample: Record, costs: list[float], shares: list[float]) -> DifferentialScore:
    """A reference that was not profiled is slower than the match of every sample: it can match none."""
    return evalperf_dps(sample.number(_COST) if sample.has(_COST) else None, costs, shares)


def _mean(values: list[float]) -> float | None:
    return math.fsum(values) / len(values) if values else None
