"""Every named replay of a bundle, recomputed, with the verdicts that it flipped.

A named replay is a fact of the ledger, proven with its frame. It is recomputed at its own cut, from the frames that
were admitted up to there.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from lapledger.consumers.exports.replayer.judging import STATUS, Judged
from lapledger.consumers.exports.replayer.known import KERNEL
from lapledger.consumers.exports.replayer.replay import Replayer, UnknownQuestionError, WrongFitError
from lapledger.consumers.exports.replayer.report import Report
from lapledger.consumers.exports.replayer.tables import wrong_estimates

_REPLAY = (
    *("replay_id", "name", "campaign_id", "criterion_hash", "calibration_id", "result", "kernel", "cut"),
    *("verdicts_blob", "against", "flipped", "flips_blob"),
)
Statuses = dict[tuple[str, str], int]
"""(problem, program) -> verdict."""


def check_replays(replayer: Replayer, report: Report) -> None:
    """Every named replay of the campaign is recomputed: its estimates at its k, its verdicts, and what it flipped."""
    bundle = replayer.bundle
    rows = bundle.first("replay.completed", _REPLAY, "replay_id")
    declared = bundle.first("criterion.declared", ("criterion_hash", "canonical"), "criterion_hash")
    for row in rows.values():
        if row["campaign_id"] != bundle.about["campaign"]:
            continue  # it came along in a frame
        name, stated = f"replay {row['name']}", declared.get(row["criterion_hash"])
        if row["kernel"] != KERNEL:
            reason = f"stored by kernel {row['kernel']}, this is {KERNEL}: verdicts may rightly differ"
            report.not_replayed(name, reason)
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
    except WrongFitError as error:
        report.table(name, row["replay_id"], [str(error)])
        return
    except UnknownQuestionError as error:
        report.not_replayed(name, error)
        return
    wrong = list(wrong_estimates(table, judged))
    if row["verdicts_blob"] is not None:
        wrong += _wrong_verdicts(_stored(replayer, row), _recomputed(judged))
    if row["flips_blob"] is not None:
        before = None if against is None else _stored(replayer, against)
        flips = json.loads(_blob(replayer, row["flips_blob"]))
        wrong += _wrong_flips(row, flips, before=before, after=_recomputed(judged))
    report.table(f"{name}, k = {table['k']}", row["replay_id"], wrong)


def _blob(replayer: Replayer, digest: str) -> bytes:
    data = replayer.bundle.blob(digest)
    if data is None:
        raise ValueError(f"blobs/{digest}: a named replay names it, and it is not in the bundle")
    return data


def _stored(replayer: Replayer, row: Mapping[str, Any]) -> Statuses:
    """The verdicts that a named replay holds."""
    problems = json.loads(_blob(replayer, row["verdicts_blob"]))["problems"]
    return {
        (problem["problem"], program): status
        for problem in problems
        for program, status in zip(problem["programs"], problem["status"], strict=True)
    }


def _recomputed(judged: Sequence[Judged]) -> Statuses:
    return {(problem.problem, v.program): v.status for problem in judged for v in problem.verdicts}


def _wrong_verdicts(stored: Statuses, recomputed: Statuses) -> Iterator[str]:
    for key in sorted({*stored} | {*recomputed}):
        before, after = (STATUS.get(statuses.get(key, 2), "absent") for statuses in (stored, recomputed))
        if before != after:
            yield f"{key[1]}: stored as {before}; the facts at its cut give {after}"


def _wrong_flips(
    row: Mapping[str, Any], flips: Sequence[Mapping[str, Any]], *, before: Statuses | None, after: Statuses
) -> Iterator[str]:
    """What differs in the flips of a named replay against an earlier one."""
    if before is None:
        yield "the replay that it was compared with is not in the bundle"
        return
    flipped = {
        (*key, STATUS[status], STATUS[after[key]])
        for key, status in before.items()
        if key in after and after[key] != status
    }
    listed = {(flip["problem"], flip["program"], flip["before"], flip["after"]) for flip in flips}
    if listed != flipped or row["flipped"] != len(flipped):
        yield f"verdicts flipped: {len(flipped)}; its event says {row['flipped']} and lists {len(listed)}"
