"""Every stored answer again: the tables of a bundle, and the named replays with what they flipped.

A named replay is a fact of the ledger, proven with its frame. It is asked again at its own cut, from the frames that
were admitted up to there.
"""

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from consumers.exports.portable.judging import WORDS, Judged, Verdict, differs, estimates
from consumers.exports.portable.replayer import Replayer, UnknownQuestionError
from consumers.exports.portable.report import Report

_REPLAY = (
    *("replay_id", "name", "campaign_id", "criterion_hash", "calibration_id", "result", "kernel", "cut"),
    *("verdicts_blob", "against", "flipped", "flips_blob"),
)
Said = dict[tuple[str, str], int]
"""(problem, program) -> verdict."""


def check_tables(replayer: Replayer, report: Report) -> None:
    """Every stored table comes out again: each criterion's hash, counts, estimates and verdicts."""
    verdicts: dict[str, dict[str, dict[str, Any]]] = {}
    for row in replayer.bundle.table("verdicts.parquet").to_pylist():
        verdicts.setdefault(row["criterion_hash"], {})[row["program_id"]] = row
    for table in replayer.bundle.json("tables.json"):
        name, canonical = table["name"], table["canonical"]
        if hashlib.sha256(canonical.encode()).hexdigest() != table["hash"]:
            report.wrong.append(f"{name}: its criterion does not give its hash")
        try:
            judged = replayer.answer(json.loads(canonical), table["calibration"])
        except UnknownQuestionError as why:
            report.not_replayed(name, why)
            continue
        wrong = [*_wrong_estimates(table, judged), *_wrong_verdicts(verdicts.get(table["hash"], {}), judged)]
        report.table(name, table["hash"], wrong)


def check_replays(replayer: Replayer, report: Report) -> None:
    """Every named replay of the campaign comes out again: its estimates at its k, its verdicts, and what it flipped."""
    bundle = replayer.bundle
    rows = bundle.first("replay.completed", _REPLAY, "replay_id")
    declared = bundle.first("criterion.declared", ("criterion_hash", "canonical"), "criterion_hash")
    for row in rows.values():
        if row["campaign_id"] != bundle.about["campaign"]:
            continue  # it came along in a frame
        name, stated = f"replay {row['name']}", declared.get(row["criterion_hash"])
        if row["kernel"] != bundle.about["kernel"]:
            words = f"stored by kernel {row['kernel']}, this is {bundle.about['kernel']}: verdicts may rightly differ"
            report.not_replayed(name, words)
        elif stated is None:
            report.wrong.append(f"{name}: its criterion is not in the bundle")
        else:
            _check_replay(replayer, report, row, canonical=stated["canonical"], against=rows.get(row["against"] or ""))


def _check_replay(
    replayer: Replayer, report: Report, row: Mapping[str, Any], *, canonical: str, against: Mapping[str, Any] | None
) -> None:
    name, table = f"replay {row['name']}", json.loads(row["result"])
    try:
        judged = replayer.answer(json.loads(canonical), row["calibration_id"], cut=row["cut"])
    except UnknownQuestionError as why:
        report.not_replayed(name, why)
        return
    wrong = list(_wrong_estimates(table, judged))
    if row["verdicts_blob"] is not None:
        wrong += _wrong_said(_held(replayer, row), _now(judged))
    if row["flips_blob"] is not None:
        before = None if against is None else _held(replayer, against)
        wrong += _wrong_flips(row, json.loads(_blob(replayer, row["flips_blob"])), before=before, now=_now(judged))
    report.table(f"{name}, k = {table['k']}", row["replay_id"], wrong)


def _blob(replayer: Replayer, digest: str) -> bytes:
    data = replayer.bundle.blob(digest)
    if data is None:
        raise ValueError(f"blobs/{digest}: a named replay names it, and it is not in the bundle")
    return data


def _held(replayer: Replayer, row: Mapping[str, Any]) -> Said:
    """The verdicts that a named replay holds."""
    problems = json.loads(_blob(replayer, row["verdicts_blob"]))["problems"]
    return {
        (one["problem"], program): status
        for one in problems
        for program, status in zip(one["programs"], one["status"], strict=True)
    }


def _now(judged: Sequence[Judged]) -> Said:
    return {(one.problem, v.program): v.status for one in judged for v in one.verdicts}


def _wrong_said(held: Said, now: Said) -> Iterator[str]:
    for problem, program in sorted({*held} | {*now}):
        was, is_ = (WORDS.get(side.get((problem, program), 2), "absent") for side in (held, now))
        if was != is_:
            yield f"{program}: stored as {was}, the facts at its cut say {is_}"


def _wrong_flips(
    row: Mapping[str, Any], told: Sequence[Mapping[str, Any]], *, before: Said | None, now: Said
) -> Iterator[str]:
    """What differs in the flips of a named replay against an earlier one."""
    if before is None:
        yield "the replay that it was held against is not in the bundle"
        return
    found = {
        (key[0], key[1], WORDS[was], WORDS[now[key]]) for key, was in before.items() if key in now and now[key] != was
    }
    listed = {(one["problem"], one["program"], one["before"], one["after"]) for one in told}
    if listed != found or row["flipped"] != len(found):
        yield f"it flipped {len(found)} verdicts, says that it flipped {row['flipped']}, and lists {len(listed)}"


def _wrong_estimates(table: Mapping[str, Any], judged: Sequence[Judged]) -> Iterator[str]:
    found = estimates(judged, table["k"])
    if [row["maker"] for row in table["estimates"]] != [row["maker"] for row in found]:
        yield "other makers than in its table"
        return
    for told, row in zip(table["estimates"], found, strict=True):
        for name in differs(told, row):
            yield f"{name} of {row['maker']} is {row[name]}, and its table says {told.get(name)}"


def _wrong_verdicts(told: dict[str, dict[str, Any]], judged: Sequence[Judged]) -> Iterator[str]:
    found = {v.program: v for one in judged for v in one.verdicts}
    for program in sorted({*told} ^ {*found}):
        yield f"{program}: not in both"
    for program in sorted({*told} & {*found}):
        row, v = told[program], found[program]
        if row["verdict"] != WORDS[v.status] or row["references"] != v.references or not _same_q(row, v):
            yield f"{program}: the verdict is {WORDS[v.status]}, q {q_words(v)}, against {v.references} references"


def _same_q(row: dict[str, Any], v: Verdict) -> bool:
    if v.q is None or not row["q_den"]:
        return v.q is None and not row["q_den"]
    return (v.q[0] * row["q_den"], v.q[1] * row["q_den"]) == (row["q_lo"], row["q_hi"])


def q_words(v: Verdict) -> str:
    """The quality of a program: a fraction, or from one to another."""
    return "unknown" if v.q is None else str(v.q[0]) if v.q[0] == v.q[1] else f"{v.q[0]} to {v.q[1]}"
