"""Every named replay of a bundle again, with what it flipped.

A named replay is a fact of the ledger, proven with its frame. It is asked again at its own cut, from the frames that
were admitted up to there.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from lapledger.consumers.exports.replayer.judging import WORDS, Judged
from lapledger.consumers.exports.replayer.known import KERNEL
from lapledger.consumers.exports.replayer.replay import Replayer, UnknownQuestionError, WrongFitError
from lapledger.consumers.exports.replayer.report import Report
from lapledger.consumers.exports.replayer.tables import wrong_estimates

_REPLAY = (
    *("replay_id", "name", "campaign_id", "criterion_hash", "calibration_id", "result", "kernel", "cut"),
    *("verdicts_blob", "against", "flipped", "flips_blob"),
)
Said = dict[tuple[str, str], int]
"""(problem, program) -> verdict."""


def check_replays(replayer: Replayer, report: Report) -> None:
    """Every named replay of the campaign comes out again: its estimates at its k, its verdicts, and what it flipped."""
    bundle = replayer.bundle
    rows = bundle.first("replay.completed", _REPLAY, "replay_id")
    declared = bundle.first("criterion.declared", ("criterion_hash", "canonical"), "criterion_hash")
    for row in rows.values():
        if row["campaign_id"] != bundle.about["campaign"]:
            continue  # it came along in a frame
        name, stated = f"replay {row['name']}", declared.get(row["criterion_hash"])
        if row["kernel"] != KERNEL:
            words = f"stored by kernel {row['kernel']}, this is {KERNEL}: verdicts may rightly differ"
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
    except WrongFitError as why:
        report.table(name, row["replay_id"], [str(why)])
        return
    except UnknownQuestionError as why:
        report.not_replayed(name, why)
        return
    wrong = list(wrong_estimates(table, judged))
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
