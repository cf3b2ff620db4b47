"""Named replays read back: found by name, their stored verdicts, and the same question asked again at its own cut.

A stored verdict is never taken for the truth: it is held against what the facts say now. Whoever asks hands in the
function that judges. They are made in `replays`.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from lapledger.consumers.derive.calibrator import stored_calibration
from lapledger.consumers.derive.reward_audit import criterion_of
from lapledger.ledger.codec.canonical import sha256_words
from lapledger.ledger.errors import Fault, UserError
from lapledger.ledger.questions.queries import Questions
from lapledger.ledger.store.cuts import Cut
from lapledger.ledger.store.open_ledger import Ledger
from lapledger.replay.criteria import Criterion
from lapledger.replay.errors import ReplayError
from lapledger.replay.judging.gates import Status, Verdicts
from lapledger.replay.loading import KERNEL, Calibration, Snapshot, load, references_digest
from lapledger.replay.measurements import ProblemMeasurements

Judge: TypeAlias = Callable[
    [Snapshot, Criterion, Calibration | None], tuple[Sequence[ProblemMeasurements], Sequence[Verdicts]]
]
"""What judges: every problem of a snapshot under a criterion, the calibrated pool in it."""
Said: TypeAlias = Mapping[tuple[str, str], tuple[Status, str]]
"""(problem, program) -> (verdict, reason) of every candidate."""
Row: TypeAlias = Mapping[str, Any]
"""A stored replay: the columns of `replay.completed`."""


def named(questions: Questions) -> list[dict[str, Any]]:
    """Every named replay in the order of admission, the first telling of each."""
    return questions.rows(_NAMED)


_NAMED = """
SELECT * EXCLUDE (_stream, _partition, _admission, _row) FROM replay_completed
QUALIFY row_number() OVER (PARTITION BY replay_id ORDER BY _admission, _row) = 1 ORDER BY _admission, _row
"""
"""They lie on the one partition of their stream."""


def find_replay(questions: Questions, word: str) -> dict[str, Any]:
    """The named replay of that name, or whose id starts so; UserError when there is none or more than one."""
    rows = named(questions)
    found = [row for row in rows if row["name"] == word] or [row for row in rows if row["replay_id"].startswith(word)]
    if len(found) == 1:
        return found[0]
    if found:
        ids = ", ".join(row["replay_id"][:12] for row in found)
        raise UserError(f"{word!r} names {len(found)} replays: {ids}; give the start of one id")
    known = ", ".join(row["name"] for row in rows[-8:]) or "none"
    raise UserError(f"no replay {word!r} is stored at this cut; `lap replay --list` shows them (the latest: {known})")


def stored_verdicts(ledger: Ledger, row: Row) -> Said | None:
    """The verdicts that a replay holds; None for one that holds none. Fault when what it holds cannot be read."""
    if row["verdicts_blob"] is None:
        return None
    data = ledger.blobs.get(row["verdicts_blob"])
    try:
        return {
            (one["problem"], program): (Status(status), str(reason))
            for one in json.loads(data)["problems"]
            for program, status, reason in zip(one["programs"], one["status"], one["reason"], strict=True)
        }
    except (ValueError, KeyError, TypeError) as error:
        where = ledger.blobs.where(row["verdicts_blob"])
        raise Fault(f"the verdicts of replay {row['name']!r} in {where} cannot be read ({error})") from None


def said(verdicts: Sequence[Verdicts]) -> Said:
    """The verdict and the reason of every candidate."""
    return {
        (v.problem, v.programs[row]): (Status(int(v.status[row])), v.reason[row])
        for v in verdicts
        for row in np.flatnonzero(v.candidate).tolist()
    }


def evidence_of(snapshot: Snapshot, calibration: Calibration | None) -> str:
    """Digest of all that the verdicts rest on: tests, the frozen pool, every program's row, the mapped campaign's."""
    rows = [word for program in sorted(snapshot.rows) for word in (program, snapshot.rows[program])]
    mapped = references_digest(calibration.stored) if calibration else ""
    return sha256_words("replay-evidence", references_digest(snapshot), mapped, *rows)


@dataclass(frozen=True, slots=True, eq=False)
class Again:
    """A named replay asked again at its own cut, and what the facts there say differently from what was stored."""

    row: Row
    criterion: Criterion
    measured: Sequence[ProblemMeasurements]
    verdicts: Sequence[Verdicts]
    differences: Sequence[str]  # one line each; empty where every verdict agrees
    note: str  # what could not be compared, or why verdicts may rightly differ; empty otherwise


def replay_id(campaign: str, k: int, row: Mapping[str, Any]) -> str:
    """The id of a replay: what it is about and what it rests on, never a name, a cut, a clock or a release.

    `row` holds criterion_hash, calibration_id, evidence_digest and kernel.
    """
    rests_on = (row["criterion_hash"], row["calibration_id"] or "", row["evidence_digest"], row["kernel"])
    return sha256_words("replay", campaign, k, *rests_on)


def ask_again(ledger: Ledger, questions: Questions, row: Row, *, judge: Judge) -> Again:
    """The replay judged anew at its recorded cut, criterion and calibration; UserError when these are not stored."""
    then = Questions(ledger, Cut.parse(row["cut"]))
    try:
        snapshot = load(then, row["campaign_id"])
        calibration = stored_calibration(then, row["calibration_id"]) if row["calibration_id"] else None
        proof = evidence_of(snapshot, calibration)  # reads more of the ledger
    finally:
        then.close()
    criterion = criterion_of(questions, row["criterion_hash"])
    measured, verdicts = judge(snapshot, criterion, calibration)
    held, note = stored_verdicts(ledger, row), ""
    if row["kernel"] != KERNEL:
        note = f"stored by kernel {row['kernel']}, asked again by {KERNEL}: verdicts may rightly differ"
    elif held is None:
        note = "it holds no verdicts: nothing to compare with"
    lines = [] if held is None else _differences(held, said(verdicts))
    if not note:
        lines += _misnamed(row, proof)
    return Again(row, criterion, measured, verdicts, lines, note)


def _misnamed(row: Row, proof: str) -> list[str]:
    """What is wrong with the digest of a replay's evidence, and with its id."""
    lines = [] if row["evidence_digest"] == proof else ["the digest of its evidence is another"]
    try:
        k = int(json.loads(row["result"])["k"])
    except (ValueError, KeyError, TypeError):
        return [*lines, "its table cannot be read"]
    same = row["replay_id"] == replay_id(row["campaign_id"], k, row)
    return lines if same else [*lines, "its id is not that of its question and evidence"]


def _differences(held: Said, now: Said) -> list[str]:
    lines = []
    for key in sorted({*held, *now}):
        was, is_ = (side[key][0].name.lower() if key in side else "absent" for side in (held, now))
        if was != is_:
            lines.append(f"{key[1]}: stored as {was}, the facts at its cut say {is_}")
    return lines


def meeting(questions: Questions, one: Row, other: Row) -> str | None:
    """The id of the calibration that the programs of two replays meet through; None within one campaign.

    UserError where their campaigns differ and neither replay was judged through a calibration between them.
    """
    campaigns = {one["campaign_id"], other["campaign_id"]}
    if len(campaigns) == 1:
        return None
    for row in (one, other):
        for fit in questions.rows(
            "SELECT * FROM calibration WHERE calibration_id = $id", id=row["calibration_id"] or ""
        ):
            if {fit["source_campaign"], fit["target_campaign"]} == campaigns:
                return str(fit["calibration_id"])
    names = " and ".join(f"{row['name']!r} (campaign {row['campaign_id']})" for row in (one, other))
    raise UserError(
        f"{names}: programs of different campaigns meet only through a named calibration; run them in one campaign, or "
        "store a replay whose criterion has a calibration, such as 'affine', between the two"
    )


def verify_replays(
    ledger: Ledger, questions: Questions, judge: Judge, tick: Callable[[int], None] = lambda count: None
) -> tuple[int, list[str], list[str]]:
    """(replays asked again, one line for each that differs, one note for each that could not be compared).

    `tick` hears how many replays each step has done.
    """
    problems = [_CONTRADICTION.format(**row) for row in questions.rows(_TOLD_TWICE)]
    notes: list[str] = []
    rows = named(questions)
    for row in rows:
        words = f"replay {row['name']!r} ({row['replay_id'][:12]})"
        try:
            again = ask_again(ledger, questions, row, judge=judge)
        except (UserError, Fault, ReplayError) as error:
            problems.append(f"{words}: {error}")
        else:
            problems += [f"{words}: {line}" for line in ([] if again.note else again.differences)]
            notes += [f"{words}: {again.note}"] if again.note else []
        tick(1)
    return len(rows), problems, notes


_TOLD_TWICE = """
SELECT left(replay_id, 12) AS id, min(name) AS name FROM replay_completed
GROUP BY replay_id HAVING count(DISTINCT verdicts_blob) > 1 ORDER BY replay_id
"""
_CONTRADICTION = "replay {name!r} ({id}): stored with two sets of verdicts, which no two derivations give"
