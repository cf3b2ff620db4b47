"""The tables of a bundle, recomputed: names against the declared criteria, figures and verdicts against the facts."""

import hashlib
import json
import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from lapledger.consumers.exports.replayer.judging import STATUS, Judged, Verdict, differing_columns, estimates
from lapledger.consumers.exports.replayer.replay import Replayer, UnknownQuestionError, WrongFitError
from lapledger.consumers.exports.replayer.report import Report

_ANSWERED = {"name", "hash", "canonical", "calibration", "k", "estimates"}
_EXCLUDED = {"name", "hash", "canonical", "excluded"}
_GATES = {1: True, 0: False, -1: None}
_VERDICT = {
    **dict.fromkeys(("criterion_hash", "problem_id", "program_id", "model", "verdict"), "string"),
    **dict.fromkeys(("c", "g"), "bool"),
    **dict.fromkeys(("q_lo", "q_hi", "q_den", "references"), "int64"),
}
"""The columns of verdicts.parquet and their types."""
Rows = Mapping[str, Sequence[Mapping[str, Any]]]
"""The stored verdicts of each criterion, by its hash."""


def check_tables(replayer: Replayer, report: Report) -> None:
    """Every stored table is recomputed; tables, verdicts and declared criteria are of the same criteria."""
    bundle = replayer.bundle
    tables, stored = bundle.json("tables.json"), _stored(replayer, report)
    declared = bundle.first("criterion.declared", ("criterion_hash", "name"), "criterion_hash")
    report.empty = not any("estimates" in table for table in tables)
    hashes = [table["hash"] for table in tables]
    for digest in sorted({*hashes}):
        if hashes.count(digest) > 1:
            report.wrong.append(f"tables.json: two tables of criterion {digest}")
    for digest in sorted({*declared} - {*hashes}):
        name = declared[digest]["name"]
        report.wrong.append(f"tables.json: no table of the declared criterion {name} ({digest[:12]})")
    for digest in sorted({*stored} - {table["hash"] for table in tables if "estimates" in table}):
        report.wrong.append(f"verdicts.parquet: verdicts of {digest}, a criterion without a table")
    for table in tables:
        report.wrong += [f"tables.json: {table['name']}: {line}" for line in _wrong_keys(table, declared)]
        if "excluded" in table:
            _check_excluded(replayer, report, table=table)
        else:
            _check_table(replayer, report, table=table, stored=stored)


def _stored(replayer: Replayer, report: Report) -> Rows:
    """verdicts.parquet by criterion; reports columns that a bundle does not have."""
    table = replayer.bundle.table("verdicts.parquet")
    if {field.name: str(field.type) for field in table.schema} != _VERDICT:
        report.wrong.append("verdicts.parquet: its columns are not those of verdicts")
    rows: dict[str, list[Mapping[str, Any]]] = {}
    for row in table.to_pylist():
        rows.setdefault(row["criterion_hash"], []).append(row)
    return rows


def _wrong_keys(table: Mapping[str, Any], declared: Mapping[str, Mapping[str, Any]]) -> Iterator[str]:
    """What is wrong with a table's keys, its criterion's hash and form, and its name."""
    if {*table} not in (_ANSWERED, _EXCLUDED):
        yield f"its keys are {', '.join(sorted(table))}, which are not those of a table"
    canonical = table["canonical"]
    if hashlib.sha256(canonical.encode()).hexdigest() != table["hash"]:
        yield "its criterion does not give its hash"
    if json.dumps(json.loads(canonical), ensure_ascii=False, separators=(",", ":"), sort_keys=True) != canonical:
        yield "its criterion is not in canonical form"
    name = declared[table["hash"]]["name"] if table["hash"] in declared else canonical
    if table["name"] != name:
        yield f"its name is not that of its criterion, {name}"


def _check_excluded(replayer: Replayer, report: Report, *, table: Mapping[str, Any]) -> None:
    """A declared criterion without a table: rightly where nothing in the bundle answers it, else not replayed."""
    try:
        replayer.answer(json.loads(table["canonical"]), None)
    except UnknownQuestionError as error:
        report.lines.append(f"no table: {table['name']}: {error}")
    else:
        report.not_replayed(table["name"], f"excluded when the bundle was written: {table['excluded']}")


def _check_table(replayer: Replayer, report: Report, *, table: Mapping[str, Any], stored: Rows) -> None:
    try:
        judged = replayer.answer(json.loads(table["canonical"]), table["calibration"])
    except WrongFitError as error:
        report.table(table["name"], table["hash"], [str(error)])
        return
    except UnknownQuestionError as error:
        report.not_replayed(table["name"], error)
        return
    wrong = [*wrong_estimates(table, judged, exact=True), *_wrong_verdicts(stored.get(table["hash"], ()), judged)]
    report.table(table["name"], table["hash"], wrong)


def wrong_estimates(table: Mapping[str, Any], judged: Sequence[Judged], *, exact: bool = False) -> Iterator[str]:
    """What differs in the estimates of a table, a line each; with `exact` also columns that are not recomputed."""
    recomputed = estimates(judged, table["k"])
    if [row["model"] for row in table["estimates"]] != [row["model"] for row in recomputed]:
        yield "its models are not those of the facts"
        return
    for stored, row in zip(table["estimates"], recomputed, strict=True):
        for name in differing_columns(stored, row):
            yield f"{name} of {row['model']} is {row[name]}, and its table says {stored.get(name)}"
        for name in sorted({*stored} - {*row}) if exact else ():
            yield f"{name} of {row['model']} is in its table, and nothing gives it"


def _wrong_verdicts(stored: Sequence[Mapping[str, Any]], judged: Sequence[Judged]) -> Iterator[str]:
    """What differs in the verdicts of a table, a line for each column of each program."""
    recomputed = {v.program: _row(problem.problem, v) for problem in judged for v in problem.verdicts}
    by_program = {row["program_id"]: row for row in stored}
    if len(by_program) != len(stored):
        yield f"{len(stored)} verdicts on {len(by_program)} programs: a program has more than one"
    for program in sorted({*by_program} ^ {*recomputed}):
        yield f"{program}: {'no verdict' if program in recomputed else 'a verdict on no candidate of the campaign'}"
    for program in sorted({*by_program} & {*recomputed}):
        for name, value in recomputed[program].items():
            if by_program[program].get(name) != value:
                yield f"{program}: its {name} is {value}, and verdicts.parquet says {by_program[program].get(name)}"


def _row(problem: str, v: Verdict) -> dict[str, Any]:
    """A verdict as in verdicts.parquet: the gates are null where open, q in lowest terms, 0 / 0 where unknown."""
    low, high = v.q or (None, None)
    den = math.lcm(low.denominator, high.denominator) if low is not None and high is not None else 0
    return {
        "problem_id": problem,
        "model": v.model,
        "verdict": STATUS[v.status],
        "c": _GATES[v.c],
        "g": _GATES[v.g],
        "q_lo": int((low or 0) * den),
        "q_hi": int((high or 0) * den),
        "q_den": den,
        "references": v.references,
    }


def format_q(v: Verdict) -> str:
    """The quality of a program: a fraction, or from one to another."""
    return "unknown" if v.q is None else str(v.q[0]) if v.q[0] == v.q[1] else f"{v.q[0]} to {v.q[1]}"
