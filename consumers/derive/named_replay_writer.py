"""Named replays: a judged campaign with its name, its reason and what it flipped, stored as a fact.

Nothing here judges. What was stored is read back in `named_replay_reader`.
"""

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from lapledger.consumers.derive.named_replay_reader import (
    Row,
    StoredVerdicts,
    as_stored,
    evidence_of,
    named,
    replay_id,
    stored_verdicts,
)
from lapledger.consumers.derive.rewarder import declaration
from lapledger.ledger.atomic_write import finite
from lapledger.ledger.codec.canonical import blob_digest
from lapledger.ledger.errors import UserError
from lapledger.ledger.events import Event, ReplayCompleted
from lapledger.ledger.questions.queries import Questions
from lapledger.ledger.store.open_ledger import Ledger
from lapledger.ledger.streams.producer import Producer
from lapledger.replay.criteria import Criterion
from lapledger.replay.explanations.flips import flipped
from lapledger.replay.judging.gates import Verdicts
from lapledger.replay.loading import KERNEL, JudgedCampaign


@dataclass(frozen=True, slots=True)
class Label:
    """What a person and a release add to a judged campaign; no id depends on it."""

    name: str
    reason: str
    release: str


@dataclass(frozen=True, slots=True)
class Flipped:
    """A candidate whose verdict differs from an earlier replay's."""

    problem: str
    program: str
    before: str
    after: str
    reason: str


@dataclass(frozen=True, slots=True, eq=False)
class Draft:
    """A named replay as it would be stored: the event, the blobs that it names, and its flips."""

    event: ReplayCompleted
    blobs: Sequence[bytes]
    flips: Sequence[Flipped] | None  # None where nothing earlier is compared with
    against: Row | None


def draft(ledger: Ledger, judged: JudgedCampaign, label: Label, *, against: Row | None) -> Draft:
    """The named replay of a judged campaign, with its flips against an earlier one whose verdicts were stored."""
    before = None if against is None else stored_verdicts(ledger, against)
    flips = None if before is None else _flips(before, as_stored(judged.verdicts))
    blobs = [_verdicts_blob(judged.verdicts)]
    if flips is not None:
        blobs.append(_dump([asdict(flip) for flip in flips]))
    digest = evidence_of(judged.snapshot, judged.calibration)
    depends_on = {"criterion_hash": judged.criterion.hash, "calibration_id": judged.calibration_id}
    depends_on |= {"evidence_digest": digest, "kernel": KERNEL}
    table = {"k": judged.k, "estimates": finite(judged.estimate_rows), "warnings": list(judged.warnings)}
    event = ReplayCompleted(
        replay_id=replay_id(judged.campaign, judged.k, depends_on),
        name=label.name,
        reason=label.reason,
        campaign_id=judged.campaign,
        criterion_hash=judged.criterion.hash,
        calibration_id=judged.calibration_id,
        result=_dump(table).decode(),
        evidence_digest=digest,
        kernel=KERNEL,
        cut=judged.cut,
        release=label.release,
        verdicts_blob=blob_digest(blobs[0]),
        against=against["replay_id"] if against is not None and flips is not None else None,
        flipped=None if flips is None else len(flips),
        flips_blob=None if flips is None else blob_digest(blobs[1]),
    )
    return Draft(event, blobs, flips, against if flips is not None else None)


def _verdicts_blob(verdicts: Sequence[Verdicts]) -> bytes:
    """JSON of every candidate's verdict, problem by problem: ids, statuses (1, 0, -1) and reasons in columns."""
    problems = []
    for v in verdicts:
        rows = np.flatnonzero(v.candidate).tolist()
        columns = {
            "programs": [v.programs[row] for row in rows],
            "status": [int(v.status[row]) for row in rows],
            "reason": [v.reason[row] for row in rows],
        }
        problems.append({"problem": v.problem, **columns})
    return _dump({"problems": problems})


def _dump(value: Any) -> bytes:
    return json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"), sort_keys=True).encode()


def store(ledger: Ledger, producer: Producer, made: Draft, *, criterion: Criterion, name: str) -> None:
    """Appends a named replay, its blobs first and its criterion where it was not declared (as `name`).

    UserError when the name is taken, or the same question with the same evidence is stored already.
    """
    questions = Questions(ledger)
    try:
        check_free(questions, made.event)
        declared = questions.rows("SELECT name FROM criterion WHERE criterion_hash = $hash", hash=criterion.hash)
    finally:
        questions.close()
    ledger.blobs.put_many(made.blobs)
    events: list[Event] = [] if declared else [declaration(criterion, name)]
    producer.append([*events, made.event])


def check_free(questions: Questions, event: ReplayCompleted) -> None:
    """Nothing; UserError when the name is taken, or the same question with the same evidence is stored already."""
    for row in named(questions):
        if row["replay_id"] == event.replay_id:
            raise UserError(
                f"this question is stored already as {row['name']!r} ({row['replay_id'][:12]}), with the same evidence;"
                " nothing is stored twice"
            )
        if row["name"] == event.name:
            raise UserError(f"a replay {event.name!r} is stored already ({row['replay_id'][:12]}); choose another name")


def _flips(before: StoredVerdicts, after: StoredVerdicts) -> list[Flipped]:
    was, now = ({key: status for key, (status, _) in verdicts.items()} for verdicts in (before, after))
    return [
        Flipped(*key, before=was[key].name.lower(), after=now[key].name.lower(), reason=after[key][1])
        for key in flipped(was, now)
    ]
