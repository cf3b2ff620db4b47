"""Named replays read back: found by name, their stored verdicts, and the same criterion judged again at its own cut.

A stored verdict is never trusted: it is compared with what the facts at its cut give now. The writer is
`named_replay_writer`.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from lapledger.consumers.derive.reward_audit import criterion_of
from lapledger.ledger.codec.canonical import sha256_fields
from lapledger.ledger.errors import Fault, UserError
from lapledger.ledger.questions.queries import Questions
from lapledger.ledger.store.cuts import Cut
from lapledger.ledger.store.open_ledger import Ledger
from lapledger.replay.engines import AUTO, Engine, nothing
from lapledger.replay.judging.gates import Status, Verdicts
from lapledger.replay.loading import (
    KERNEL,
    Calibration,
    JudgedCampaign,
    Snapshot,
    judge_snapshot,
    load,
    references_digest,
    stored_calibration,
)

StoredVerdicts: TypeAlias = Mapping[tuple[str, str], tuple[Status, str]]
"""(problem, program) -> (verdict, reason) of every candidate."""
Row: TypeAlias = Mapping[str, Any]
"""A stored replay: the columns of `replay.completed`."""


def named(questions: Questions) -> list[dict[str, Any]]:
    """Every named replay in the order of admission, each as it was admitted first."""
    return questions.rows(_NAMED)


_NAMED = """
SELECT * EXCLUDE (_stream, _partition, _admission, _row) FROM replay_completed
QUALIFY row_number() OVER (PARTITION BY replay_id ORDER BY _admission, _row) = 1 ORDER BY _admission, _row
"""
"""They lie on the one partition of their stream."""


def find_replay(questions: Questions, name: str) -> dict[str, Any]:
    """The named replay of that name, or whose id starts so; UserError when there is none or more than one."""
    rows = named(questions)
    matches = [row for row in rows if row["name"] == name] or [row for row in rows if row["replay_id"].startswith(name)]
    if len(matches) == 1:
        return matches[0]
    if matches:
        ids = ", ".join(row["replay_id"][:12] for row in matches)
        raise UserError(f"{name!r} names {len(matches)} replays: {ids}; give the start of one id")
    known = ", ".join(row["name"] for row in rows[-8:]) or "none"
    raise UserError(f"no replay {name!r} is stored at this cut; `lap replay --list` shows them (the latest: {known})")


def stored_verdicts(ledger: Ledger, row: Row) -> StoredVerdicts | None:
    """The verdicts that a replay holds; None for one that holds none. Fault when what it holds cannot be read."""
    if row["verdicts_blob"] is None:
        return None
    data = ledger.blobs.get(row["verdicts_blob"])
    try:
        return {
            (problem["problem"], program): (Status(status), str(reason))
            for problem in json.loads(data)["problems"]
            for program, status, reason in zip(problem["programs"], problem["status"], problem["reason"], strict=True)
        }
    except (ValueError, KeyError, TypeError) as error:
        where = ledger.blobs.where(row["verdicts_blob"])
        raise Fault(f"the verdicts of replay {row['name']!r} in {where} cannot be read ({error})") from None


def as_stored(verdicts: Sequence[Verdicts]) -> StoredVerdicts:
    """The verdict and the reason of every candidate, as a replay stores them."""
    return {
        (v.problem, v.programs[row]): (Status(int(v.status[row])), v.reason[row])
        for v in verdicts
        for row in np.flatnonzero(v.candidate).tolist()
    }


def evidence_of(snapshot: Snapshot, calibration: Calibration | None) -> str:
    """Digest of all that the verdicts depend on: tests, the frozen pool, every program's row, the mapped campaign's."""
    rows = [part for program in sorted(snapshot.rows) for part in (program, snapshot.rows[program])]
    mapped = references_digest(calibration.stored) if calibration else ""
    return sha256_fields("replay-evidence", references_digest(snapshot), mapped, *rows)


@dataclass(frozen=True, slots=True, eq=False)
class CheckedReplay:
    """A named replay judged again at its own cut, and how that differs from what was stored."""

    row: Row
    judged: JudgedCampaign
    differences: Sequence[str]  # one line each; empty where every verdict agrees
    note: str  # what could not be compared, or why verdicts may rightly differ; empty otherwise


def replay_id(campaign: str, k: int, row: Mapping[str, Any]) -> str:
    """The id of a replay: what it is about and what it depends on, never a name, a cut, a clock or a release.

    `row` holds criterion_hash, calibration_id, evidence_digest and kernel.
    """
    depends_on = (row["criterion_hash"], row["calibration_id"] or "", row["evidence_digest"], row["kernel"])
    return sha256_fields("replay", campaign, k, *depends_on)


def check_replay(
    ledger: Ledger,
    questions: Questions,
    row: Row,
    *,
    engine: Engine = AUTO,
    on_progress: Callable[[int], object] = nothing,
) -> CheckedReplay:
    """The replay judged anew at its recorded cut, criterion and calibration; UserError when these are not stored."""
    then = Questions(ledger, Cut.parse(row["cut"]))
    try:
        snapshot = load(then, row["campaign_id"])
        calibration = stored_calibration(then, row["calibration_id"]) if row["calibration_id"] else None
        digest = evidence_of(snapshot, calibration)  # reads more of the ledger
    finally:
        then.close()
    criterion = criterion_of(questions, row["criterion_hash"])
    judged = judge_snapshot(snapshot, criterion, calibration, name=row["name"], engine=engine, on_progress=on_progress)
    stored, note = stored_verdicts(ledger, row), ""
    if row["kernel"] != KERNEL:
        note = f"stored by kernel {row['kernel']}, judged again by {KERNEL}: verdicts may rightly differ"
    elif stored is None:
        note = "it holds no verdicts: nothing to compare with"
    lines = [] if stored is None else _differences(stored, as_stored(judged.verdicts))
    if not note:
        lines += _misnamed(row, digest)
    return CheckedReplay(row, judged, lines, note)


def _misnamed(row: Row, digest: str) -> list[str]:
    """What is wrong with the digest of a replay's evidence, and with its id."""
    lines = [] if row["evidence_digest"] == digest else ["the digest of its evidence is another"]
    try:
        k = int(json.loads(row["result"])["k"])
    except (ValueError, KeyError, TypeError):
        return [*lines, "its table cannot be read"]
    same = row["replay_id"] == replay_id(row["campaign_id"], k, row)
    return lines if same else [*lines, "its id is not that of its question and evidence"]


def _differences(stored: StoredVerdicts, now: StoredVerdicts) -> list[str]:
    lines = []
    for key in sorted({*stored, *now}):
        before, after = (verdicts[key][0].name.lower() if key in verdicts else "absent" for verdicts in (stored, now))
        if before != after:
            lines.append(f"{key[1]}: stored as {before}, the facts at its cut say {after}")
    return lines


def shared_calibration(questions: Questions, a: Row, b: Row) -> str | None:
    """The id of the calibration that the programs of two replays meet through; None within one campaign.

    UserError where their campaigns differ and neither replay was judged through a calibration between them.
    """
    campaigns = {a["campaign_id"], b["campaign_id"]}
    if len(campaigns) == 1:
        return None
    for row in (a, b):
        for fit in questions.rows(
            "SELECT * FROM calibration WHERE calibration_id = $id", id=row["calibration_id"] or ""
        ):
            if {fit["source_campaign"], fit["target_campaign"]} == campaigns:
                return str(fit["calibration_id"])
    names = " and ".join(f"{row['name']!r} (campaign {row['campaign_id']})" for row in (a, b))
    raise UserError(
        f"{names}: programs of different campaigns meet only through a named calibration; run them in one campaign, or "
        "store a replay whose criterion has a calibration, such as 'affine', between the two"
    )


def verify_replays(
    ledger: Ledger, questions: Questions, tick: Callable[[int], object] = nothing
) -> tuple[int, list[str], list[str]]:
    """(replays judged again, one line for each that differs, one note for each that could not be compared).

    `tick` hears how many replays each step has done.
    """
    problems = [_CONTRADICTION.format(**row) for row in questions.rows(_STORED_TWICE)]
    notes: list[str] = []
    rows = named(questions)
    for row in rows:
        label = f"replay {row['name']!r} ({row['replay_id'][:12]})"
        try:
            checked = check_replay(ledger, questions, row)
        except (UserError, Fault) as error:
            problems.append(f"{label}: {error}")
        else:
            problems += [f"{label}: {line}" for line in ([] if checked.note else checked.differences)]
            notes += [f"{label}: {checked.note}"] if checked.note else []
        tick(1)
    return len(rows), problems, notes


_STORED_TWICE = """
SELECT left(replay_id, 12) AS id, min(name) AS name FROM replay_completed
GROUP BY replay_id HAVING count(DISTINCT verdicts_blob) > 1 ORDER BY replay_id
"""
_CONTRADICTION = "replay {name!r} ({id}): stored with two sets of verdicts, which no two derivations give"
