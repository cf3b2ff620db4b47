"""The tables of an export: problems, tests, programs, verdicts, timings and estimates, as Arrow tables.

Datasets and CSV files are these tables written out; column names are those of the documented views. Texts that a
program printed stay in the ledger: they may hold anything.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa

from lapledger.consumers.exports.judged_export import STATUS_NAMES, JudgedExport, source_of
from lapledger.ledger.questions.queries import Questions
from lapledger.replay.judging.gates import Status, Verdicts
from lapledger.replay.loading import shared_executions

GATES = {1: True, 0: False, -1: None}

_TIMINGS = """
SELECT problem_id, program_id, test_id, attempt_id, repetition, warmup, outcome, wall_ns, user_ns, system_ns,
  peak_memory_bytes, startup_ns, hard_limit_ns, cut, position, slot, neighbours, interpreter, isolation, host
FROM timing WHERE accepted AND campaign_id = $campaign ORDER BY problem_id, program_id, test_id, attempt_id, repetition
"""
_OUTCOMES = """
SELECT problem_id, program_id, test_id, outcome, attempt_id, timings
FROM execution WHERE accepted AND campaign_id = $campaign ORDER BY problem_id, program_id, test_id
"""
_TESTS = """
SELECT problem_id, test_id, ordinal, "group", original, correctness, optimization, input_bytes, input_chars,
  output_bytes, output_chars FROM test WHERE list_contains($problems, problem_id) ORDER BY problem_id, ordinal, test_id
"""
_PROBLEMS = """
SELECT problem_id, slug, name, source, license, package_digest, time_limit_ns, tier
FROM problem WHERE list_contains($problems, problem_id) ORDER BY problem_id
"""
_PROGRAMS = """
SELECT problem_id, program_id, name, model, label, language, source_blob, source_bytes, rollout_id,
  list_contains($references, program_id) AS reference
FROM program WHERE list_contains($programs, program_id) ORDER BY problem_id, program_id
"""


def tables(export: JudgedExport, questions: Questions) -> dict[str, pa.Table]:
    """Every table of one campaign at the questions' cut, by name; Fault when a program's source is missing."""
    campaign = export.judged.snapshot.campaign
    problems = list(campaign["problems"])
    members = {"programs": list(campaign["programs"]), "references": list(campaign["references"])}
    programs = questions.query(_PROGRAMS, **members)
    executed = shared_executions(questions, export.judged.campaign)
    whose = [executed.get(program, program) for program in programs["program_id"].to_pylist()]
    programs = programs.append_column("executed_program_id", pa.array(whose, pa.string()))
    sources = [source_of(questions, blob) for blob in programs["source_blob"].to_pylist()]
    return {
        "problems": questions.query(_PROBLEMS, problems=problems),
        "tests": questions.query(_TESTS, problems=problems),
        "programs": programs.append_column("source", pa.array(sources, pa.string())),
        "outcomes": questions.query(_OUTCOMES, campaign=export.judged.campaign),
        "timings": questions.query(_TIMINGS, campaign=export.judged.campaign),
        "verdicts": verdict_table(export),
        "estimates": estimate_table(export),
    }


_VERDICT = pa.schema(
    [
        pa.field("problem_id", pa.string(), nullable=False),
        pa.field("program_id", pa.string(), nullable=False),
        pa.field("model", pa.string(), nullable=False),
        pa.field("verdict", pa.string(), nullable=False),
        pa.field("c", pa.bool_()),
        pa.field("g", pa.bool_()),
        pa.field("q_lo", pa.int64(), nullable=False),
        pa.field("q_hi", pa.int64(), nullable=False),
        pa.field("q_den", pa.int64(), nullable=False),
        pa.field("references", pa.int64(), nullable=False),
        pa.field("reason", pa.string(), nullable=False),
    ]
)


def verdict_table(export: JudgedExport) -> pa.Table:
    """One row a candidate: the gates (null where undecided), the quality q = [q_lo, q_hi] / q_den, and why."""
    return pa.Table.from_pylist([row for v in export.judged.verdicts for row in _verdicts(export, v)], schema=_VERDICT)


def _verdicts(export: JudgedExport, v: Verdicts) -> Sequence[Mapping[str, Any]]:
    return [
        {
            "problem_id": v.problem,
            "program_id": program,
            "model": export.programs[program]["model"],
            "verdict": STATUS_NAMES[Status(int(v.status[row]))],
            "c": GATES[int(v.c[row])],
            "g": GATES[int(v.g[row])],
            "q_lo": int(v.q_lo[row]),
            "q_hi": int(v.q_hi[row]),
            "q_den": int(v.q_den[row]),
            "references": int(v.pool_size[row]),
            "reason": v.reason[row],
        }
        for row, program in enumerate(v.programs)
        if v.candidate[row]
    ]


def estimate_table(export: JudgedExport) -> pa.Table:
    """One row a model: pass@1 with its counts, its bound from undecided verdicts and its sampling interval."""
    rows = []
    for estimate in export.judged.estimate_rows:
        low, high = estimate.pop("interval") or (None, None)
        rows.append({"criterion": export.judged.name, **estimate, "interval_low": low, "interval_high": high})
    return pa.Table.from_pylist(rows)
