"""The tables of a bundle again: names against the declared criteria, and every figure and verdict against the facts."""

import hashlib
import json
import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from lapledger.consumers.exports.replayer.judging import WORDS, Judged, Verdict, differs, estimates
from lapledger.consumers.exports.replayer.replay import Replayer, UnknownQuestionError, WrongFitError
from lapledger.consumers.exports.replayer.report import Report

_ANSWERED = {"name", "hash", "canonical", "calibration", "k", "estimates"}
_LEFT_OUT = {"name", "hash", "canonical", "left_out"}
_GATES = {1: True, 0: False, -1: None}
_VERDICT = {
    **dict.fromkeys(("criterion_hash", "problem_id", "program_id", "model", "verdict"), "string"),
    **dict.fromkeys(("c", "g"), "bool"),
    **dict.fromkeys(("q_lo", "q_hi", "q_den", "references"), "int64"),
}
"""The columns of verdicts.parquet and their types."""
Rows = Mapping[str, Sequence[Mapping[str, Any]]]
"""The told verdicts of each criterion, by its hash."""


def check_tables(replayer: Replayer, report: Report) -> None:
    """Every stored table comes out again; tables, verdicts and declared criteria are of the same criteria."""
    bundle = replayer.bundle
    tables, told = bundle.json("tables.json"), _told(replayer, report)
    declared = bundle.first("criterion.declared", ("criterion_hash", "name"), "criterion_hash")
    report.empty = not any("estimates" in table for table in tables)
    named = [table["hash"] for table in tables]
    report.wrong += [f"tables.json: two tables of criterion {one}" for one in sorted({*named}) if named.count(one) > 1]
    for one in sorted({*declared} - {*named}):
        report.wrong.append(f"tables.json: no table of the declared criterion {declared[one]['name']} ({one[:12]})")
    for one in sorted({*told} - {table["hash"] for table in tables if "estimates" in table}):
        report.wrong.append(f"verdicts.parquet: verdicts of {one}, a criterion without a table")
    for table in tables:
        report.wrong += [f"tables.json: {table['name']}: {line}" for line in _misnamed(table, declared)]
        if "left_out" in table:
            _check_left_out(replayer, report, table=table)
        else:
            _check_table(replayer, report, table=table, told=told)


def _told(replayer: Replayer, report: Report) -> Rows:
    """verdicts.parquet by criterion; says where its columns are other ones."""
    table = replayer.bundle.table("verdicts.parquet")
    if {field.name: str(field.type) for field in table.schema} != _VERDICT:
        report.wrong.append("verdicts.parquet: its columns are not those of verdicts")
    found: dict[str, list[Mapping[str, Any]]] = {}
    for row in table.to_pylist():
        found.setdefault(row["criterion_hash"], []).append(row)
    return found


def _misnamed(table: Mapping[str, Any], declared: Mapping[str, Mapping[str, Any]]) -> Iterator[str]:
    """What is wrong with the words of a table: its keys, its criterion's hash and form, its name."""
    if {*table} not in (_ANSWERED, _LEFT_OUT):
        yield f"it says {', '.join(sorted(table))}, which is not what a table says"
    canonical = table["canonical"]
    if hashlib.sha256(canonical.encode()).hexdigest() != table["hash"]:
        yield "its criterion does not give its hash"
    if json.dumps(json.loads(canonical), ensure_ascii=False, separators=(",", ":"), sort_keys=True) != canonical:
        yield "its criterion is not in canonical form"
    name = declared[table["hash"]]["name"] if table["hash"] in declared else canonical
    if table["name"] != name:
        yield f"its name is not that of its criterion, {name}"


def _check_left_out(replayer: Replayer, report: Report, *, table: Mapping[str, Any]) -> None:
    """A declared criterion without a table: rightly where nothing in the bundle answers it, else not replayed."""
    try:
        replayer.answer(json.loads(table["canonical"]), None)
    except UnknownQuestionError as why:
        report.said.append(f"no table: {table['name']}: {why}")
    else:
        report.not_replayed(table["name"], f"left out when the bundle was made: {table['left_out']}")


def _check_table(replayer: Replayer, report: Report, *, table: Mapping[str, Any], told: Rows) -> None:
    try:
        judged = replayer.answer(json.loads(table["canonical"]), table["calibration"])
    except WrongFitError as why:
        report.table(table["name"], table["hash"], [str(why)])
        return
    except UnknownQuestionError as why:
        report.not_replayed(table["name"], why)
        return
    wrong = [*wrong_estimates(table, judged, whole=True), *_wrong_verdicts(told.get(table["hash"], ()), judged)]
    report.table(table["name"], table["hash"], wrong)


def wrong_estimates(table: Mapping[str, Any], judged: Sequence[Judged], *, whole: bool = False) -> Iterator[str]:
    """What differs in the estimates of a table, a line each; `whole`: what is told beyond them differs too."""
    found = estimates(judged, table["k"])
    if [row["model"] for row in table["estimates"]] != [row["model"] for row in found]:
        yield "other models than in its table"
        return
    for told, row in zip(table["estimates"], found, strict=True):
        for name in differs(told, row):
            yield f"{name} of {row['model']} is {row[name]}, and its table says {told.get(name)}"
        for name in sorted({*told} - {*row}) if whole else ():
            yield f"{name} of {row['model']} is told, and nothing gives it"


def _wrong_verdicts(told: Sequence[Mapping[str, Any]], judged: Sequence[Judged]) -> Iterator[str]:
    """What differs in the verdicts of a table, a line for each column of each program."""
    found = {v.program: _row(one.problem, v) for one in judged for v in one.verdicts}
    by_program = {row["program_id"]: row for row in told}
    if len(by_program) != len(told):
        yield f"{len(told)} verdicts on {len(by_program)} programs: one is told twice"
    for program in sorted({*by_program} ^ {*found}):
        yield f"{program}: {'no verdict is told' if program in found else 'a verdict on no candidate of the campaign'}"
    for program in sorted({*by_program} & {*found}):
        for name, value in found[program].items():
            if by_program[program].get(name) != value:
                yield f"{program}: its {name} is {value}, and verdicts.parquet says {by_program[program].get(name)}"


def _row(problem: str, v: Verdict) -> dict[str, Any]:
    """A verdict as verdicts.parquet tells it: the gates are null where open, q in lowest terms, 0 / 0 where unknown."""
    low, high = v.q or (None, None)
    den = math.lcm(low.denominator, high.denominator) if low is not None and high is not None else 0
    return {
        "problem_id": problem,
        "model": v.model,
        "verdict": WORDS[v.status],
        "c": _GATES[v.c],
        "g": _GATES[v.g],
        "q_lo": int((low or 0) * den),
        "q_hi": int((high or 0) * den),
        "q_den": den,
        "references": v.references,
    }


def q_words(v: Verdict) -> str:
    """The quality of a program: a fraction, or from one to another."""
    return "unknown" if v.q is None else str(v.q[0]) if v.q[0] == v.q[1] else f"{v.q[0]} to {v.q[1]}"
