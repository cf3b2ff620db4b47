"""pyperf's benchmark files: every value of every process, warm-ups marked, and the machine that gave them.

A benchmark is a problem with one program, which is its own reference. Values are seconds of one loop, as stored, in
whole nanoseconds: how many lose more than 1% by that is counted.
"""

import json
from collections.abc import Iterator
from pathlib import Path

from lapledger.ledger.codec.canonical import sha256_fields
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
    line,
)
from lapledger.producers.importers.records import Record

FORMAT = "pyperf"
UNKNOWN = (
    "the benchmarks' sources and inputs",
    "limits, processor time, context switches, start-up",
    "which process gave which repetition: they lie in their order, process after process",
)
ROUNDED = "rounded by more than 1%"
_HOST = ("hostname", "platform", "cpu_model_name")
_MEMORY = ("command_max_rss", "mem_max_rss")
_MAX_METADATA_BYTES = 64 * 1024


def read(path: Path, model: str | None = None) -> Results:
    """The benchmarks in a file; `model` is what its campaign is called by, else the host. UserError otherwise."""
    file, data = read_file(path)
    where = shown(file.name)
    suite = Record.of(parse_json(data, where), where)
    shared = suite.record("metadata") if suite.has("metadata") else Record({}, where)
    problems, excluded = _benchmarks(suite, shared)
    if not problems:
        raise UserError(f"{where}: holds no benchmark in seconds; give a file that `pyperf` wrote with --output")
    host = " ".join(line(str(shared.value[key])) for key in _HOST if shared.has(key))
    return Results(
        format=FORMAT,
        tool="pyperf",
        tool_version=line(str(shared.value.get("perf_version", ""))),
        file=file,
        model="",
        called=model or line(str(shared.value.get("hostname", "")), 40),
        service=FORMAT,
        host=sha256_fields("pyperf host", host) if host else "",
        reference_rule="every benchmark is its own reference",
        problems=tuple(problems.values()),
        excluded=tuple(excluded),
        unknown=UNKNOWN,
        source_metadata=_source_metadata(shared),
        figures={
            "benchmarks": len(problems),
            "repetitions": sum(
                not repetition.warmup
                for problem in problems.values()
                for repetition in problem.programs[0].runs[0].repetitions
            ),
            ROUNDED: sum(map(_rounded, _values(suite))),
        },
    )


def _values(suite: Record) -> Iterator[float]:
    """Every value in seconds of every benchmark, warm-ups excluded; they were checked when the benchmarks were read."""
    for benchmark in suite.records("benchmarks", "benchmark"):
        for run in benchmark.records("runs", "run"):
            yield from run.numbers("values") if run.has("values") else ()


def _rounded(seconds: float) -> bool:
    """Whether whole nanoseconds differ from a duration by more than 1% of it."""
    return abs(round(seconds * 1e9) - seconds * 1e9) > 0.01 * seconds * 1e9


def _benchmarks(suite: Record, shared: Record) -> tuple[dict[str, ResultProblem], list[str]]:
    """The benchmarks in seconds by name, and one line for each in another unit; UserError for a name twice."""
    problems: dict[str, ResultProblem] = {}
    excluded: list[str] = []
    for benchmark in suite.records("benchmarks", "benchmark"):
        overrides = benchmark.record("metadata") if benchmark.has("metadata") else Record({}, benchmark.where)
        both = Record({**shared.value, **overrides.value}, benchmark.where)
        name, unit = both.text("name"), both.text("unit") if both.has("unit") else "second"
        problem = _problem(benchmark, name, both) if unit == "second" else None
        if problem is None:
            excluded.append(f"{line(name)}: measured in {line(unit)}, not in seconds")
        elif problems.setdefault(name, problem) is not problem:
            raise UserError(f"{benchmark.where}: the benchmark {shown(name)} appears twice; keep one of them")
    return problems, excluded


def _source_metadata(shared: Record) -> dict[str, object]:
    """What the file states of machine, settings and dates; empty where that is too long."""
    return dict(shared.value) if len(json.dumps(shared.value)) <= _MAX_METADATA_BYTES else {}


def _problem(benchmark: Record, name: str, metadata: Record) -> ResultProblem:
    repetitions: list[Repetition] = []
    ended = ""
    for run in benchmark.records("runs", "run"):
        details = run.record("metadata") if run.has("metadata") else metadata
        memory = next((details.integer(key) for key in _MEMORY if details.has(key)), None)
        ended = details.text("date") if details.has("date") else ended
        warmups, values = _warmups(run), run.all_seconds_ns("values") if run.has("values") else []
        repetitions += [Repetition(ns, warmup=True, peak_memory_bytes=memory) for ns in warmups]
        repetitions += [Repetition(ns, peak_memory_bytes=memory) for ns in values]
    if all(repetition.warmup for repetition in repetitions):
        raise UserError(f"{benchmark.where}: the benchmark {shown(name)} has no value; leave it out of the file")
    program = ResultProgram(
        name="benchmark",
        model=HUMAN,
        label=ACCEPTED,
        source=None,
        language="",
        reference=True,
        runs=(Run("all", ACCEPTED, "", tuple(repetitions), line(ended)),),
    )
    description = metadata.text("description") if metadata.has("description") else ""
    return ResultProblem(original=name, name=line(description), programs=(program,))


def _warmups(run: Record) -> list[int]:
    """Warm-ups are pairs of a number of loops and seconds of one loop."""
    pairs = run.items("warmups") if run.has("warmups") else []
    if not all(isinstance(pair, list) and len(pair) == 2 for pair in pairs):
        run.refuse("warmups", "pairs of loops and seconds")
    return Record({"warmups": [seconds for _, seconds in pairs]}, run.where).all_seconds_ns("warmups")
