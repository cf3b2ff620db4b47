"""A campaign read row by row through SQL and dictionaries: what the replay's shell reads in columns must be equal."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lapledger.ledger.codec.canonical import sha256_fields
from lapledger.ledger.questions.queries import Questions
from lapledger.replay.loading import find_campaign
from lapledger.replay.measurements import ABSENT, Outcome, ProblemMeasurements, Tests

CELLS = """
WITH p AS (SELECT program_id, (row_number() OVER (PARTITION BY problem_id ORDER BY program_id) - 1)::INT AS p
           FROM program WHERE list_contains($programs, program_id)),
     t AS (SELECT test_id,
             (row_number() OVER (PARTITION BY problem_id ORDER BY ordinal, test_id) - 1)::INT AS t FROM test)
SELECT e.problem_id, p.p, t.t, e.outcome, e.attempt_id, e.timings_digest
FROM execution e JOIN p USING (program_id) JOIN t USING (test_id)
WHERE e.accepted AND e.campaign_id = $campaign ORDER BY e.problem_id, p.p, t.t
"""
REPETITIONS = """
SELECT attempt_id, coalesce(wall_ns, -1) AS wall_ns, coalesce(user_ns + system_ns, -1) AS cpu_ns,
  coalesce(peak_memory_bytes, -1) AS peak_memory_bytes, coalesce(startup_ns, -1) AS startup_ns,
  coalesce(hard_limit_ns, 0) AS hard_limit_ns,
  (row_number() OVER (PARTITION BY attempt_id ORDER BY repetition) - 1)::INT AS r
FROM timing WHERE accepted AND NOT warmup AND campaign_id = $campaign
"""

_OUTCOMES = {
    "accepted": Outcome.OK,
    "wrong_answer": Outcome.WRONG_ANSWER,
    "run_time_error": Outcome.RUN_TIME_ERROR,
    "memory_limit": Outcome.MEMORY_LIMIT,
    "output_limit": Outcome.OUTPUT_LIMIT,
    "time_limit": Outcome.TIME_LIMIT,
}


def load_slowly(questions: Questions, campaign: str | None = None) -> tuple[list[ProblemMeasurements], dict[str, str]]:
    """The measurements of a campaign at the questions' cut, and the digest of every program's row."""
    chosen = find_campaign(questions, campaign)
    name = chosen["campaign_id"]
    members = set(chosen["programs"])
    programs = [p for p in questions.rows("SELECT * FROM program ORDER BY program_id") if p["program_id"] in members]
    tests = questions.rows("SELECT * FROM test ORDER BY problem_id, ordinal, test_id")
    cells = questions.query(CELLS, campaign=name, programs=sorted(members))
    repetitions = _by_attempt(questions.query(REPETITIONS, campaign=name))
    shared = questions.rows("SELECT * FROM shared WHERE campaign_id = $campaign", campaign=name)
    problems: list[ProblemMeasurements] = []
    rows: dict[str, str] = {}
    for problem in chosen["problems"]:
        mine = _Stored(
            programs=[p for p in programs if p["problem_id"] == problem],
            tests=[t for t in tests if t["problem_id"] == problem],
            cells=cells.filter(pc.equal(cells["problem_id"], problem)).to_pylist(),
        )
        mine = _lent(mine, shared)
        problems.append(_measurements(problem, chosen, mine, repetitions))
        rows.update(_row_digests(mine))
    return problems, rows


@dataclass(frozen=True, slots=True)
class _Stored:
    """The stored rows of one problem in one campaign."""

    programs: Sequence[Mapping[str, Any]]
    tests: Sequence[Mapping[str, Any]]
    cells: Sequence[Mapping[str, Any]]  # accepted attempts, `p` and `t` their program's and test's places


def _lent(mine: _Stored, shared: Sequence[Mapping[str, Any]]) -> _Stored:
    """With the attempts of the program that is run told of each that shares them too, where both have the source."""
    sources = {p["program_id"]: p["source_blob"] for p in mine.programs}
    location = {p["program_id"]: n for n, p in enumerate(mine.programs)}
    ran = {cell["p"] for cell in mine.cells}
    copies = []
    for fact in shared:
        program, executed = fact["program_id"], fact["executed_program_id"]
        if sources.get(program) == sources.get(executed) == fact["source_blob"] and location[program] not in ran:
            copies += [{**cell, "p": location[program]} for cell in mine.cells if cell["p"] == location[executed]]
    return _Stored(mine.programs, mine.tests, [*mine.cells, *copies])


def _by_attempt(table: pa.Table) -> dict[str, list[dict[str, Any]]]:
    grouped: dict[str, list[dict[str, Any]]] = {}
    for row in table.to_pylist():
        grouped.setdefault(row["attempt_id"], []).append(row)
    return grouped


def _measurements(
    problem: str, campaign: Mapping[str, Any], mine: _Stored, repetitions: Mapping[str, list[dict[str, Any]]]
) -> ProblemMeasurements:
    programs, shape = mine.programs, (len(mine.programs), len(mine.tests))
    depth = max((len(repetitions.get(cell["attempt_id"], ())) for cell in mine.cells), default=0)
    outcome = np.zeros(shape, dtype=np.int8)
    wall, cpu, memory = (np.full((*shape, depth), ABSENT, dtype=np.int64) for _ in range(3))
    startup, limit = np.zeros(shape, dtype=np.int64), np.full(shape, ABSENT, dtype=np.int64)
    for cell in mine.cells:
        at = cell["p"], cell["t"]
        outcome[at] = _OUTCOMES[cell["outcome"]]
        limit[at] = campaign["hard_limit_ns"] or 0  # an unknown limit bounds nothing
        for timing in repetitions.get(cell["attempt_id"], ()):
            location = (*at, timing["r"])
            wall[location], cpu[location], memory[location] = (
                timing["wall_ns"],
                timing["cpu_ns"],
                timing["peak_memory_bytes"],
            )
            startup[at], limit[at] = timing["startup_ns"], timing["hard_limit_ns"]
    references = set(campaign["references"])
    return ProblemMeasurements(
        problem=problem,
        campaign=campaign["campaign_id"],
        tests=_tests(mine.tests),
        programs=tuple(p["program_id"] for p in programs),
        models=tuple(p["model"] for p in programs),
        labels=tuple(p["label"] for p in programs),
        candidate=np.ones(len(programs), dtype=np.bool_),
        reference=np.array([p["program_id"] in references for p in programs], dtype=np.bool_),
        duplicate=np.array([_duplicate(p) for p in programs], dtype=np.int64),
        outcome=outcome,
        wall_ns=wall,
        cpu_ns=cpu,
        startup_ns=startup,
        limit_ns=limit,
        memory_bytes=memory,
    )


def _duplicate(program: Mapping[str, Any]) -> int:
    """Equal for programs of equal source; where the source is unknown, for the same program alone."""
    blob = program["source_blob"] or sha256_fields("unknown source", program["program_id"])
    return int(blob[:15], 16)


def _tests(tests: Sequence[Mapping[str, Any]]) -> Tests:
    def flags(name: str) -> np.ndarray[Any, np.dtype[np.bool_]]:
        return np.array([t[name] for t in tests], dtype=np.bool_)

    def sizes(name: str) -> np.ndarray[Any, np.dtype[np.int64]]:
        return np.array([ABSENT if t[name] is None else t[name] for t in tests], dtype=np.int64)

    return Tests(
        ids=tuple(t["test_id"] for t in tests),
        original=flags("original"),
        correctness=flags("correctness"),
        optimization=flags("optimization"),
        input_bytes=sizes("input_bytes"),
        input_chars=sizes("input_chars"),
        output_bytes=sizes("output_bytes"),
        output_chars=sizes("output_chars"),
    )


def _row_digests(mine: _Stored) -> dict[str, str]:
    args: dict[int, list[str]] = {
        location: [p["program_id"], str(p["source_blob"])] for location, p in enumerate(mine.programs)
    }
    for cell in mine.cells:
        args[cell["p"]] += [str(cell["t"]), cell["outcome"], cell["attempt_id"], cell["timings_digest"]]
    return {args[location][0]: sha256_fields(*args[location]) for location in args}
