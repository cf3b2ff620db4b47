"""Named replays: a question with its answer, its reason and what it flipped, stored as a fact.

Nothing here judges: whoever asks hands in what was judged. What was stored is read back in `replayed`.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from lapledger.consumers.derive.named_replay_reader import (
    Row,
    Said,
    evidence_of,
    named,
    replay_id,
    said,
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
from lapledger.replay.judging.gates import Verdicts
from lapledger.replay.loading import KERNEL, Calibration, Snapshot


@dataclass(frozen=True, slots=True, eq=False)
class Answered:
    """A question with its answer, before it has a name."""

    snapshot: Snapshot
    criterion: Criterion
    calibration: Calibration | None
    k: int
    verdicts: Sequence[Verdicts]
    estimates: Sequence[Mapping[str, Any]]  # rows of the table
    warnings: Sequence[str]


@dataclass(frozen=True, slots=True)
class Label:
    """What a person and a release add to an answer; no id depends on it."""

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


def draft(ledger: Ledger, answered: Answered, label: Label, *, against: Row | None) -> Draft:
    """The named replay of an answer, with its flips against an earlier one whose verdicts were stored."""
    now = said(answered.verdicts)
    before = None if against is None else stored_verdicts(ledger, against)
    flips = None if before is None else _flips(before, now)
    blobs = [_verdicts_blob(answered.verdicts)]
    if flips is not None:
        blobs.append(_dump([asdict(flip) for flip in flips]))
    proof = evidence_of(answered.snapshot, answered.calibration)
    calibration_id = answered.calibration.calibration_id if answered.calibration else None
    rests_on = {"criterion_hash": answered.criterion.hash, "calibration_id": calibration_id}
    rests_on |= {"evidence_digest": proof, "kernel": KERNEL}
    event = ReplayCompleted(
        replay_id=replay_id(answered.snapshot.name, answered.k, rests_on),
        name=label.name,
        reason=label.reason,
        campaign_id=answered.snapshot.name,
        criterion_hash=answered.criterion.hash,
        calibration_id=calibration_id,
        result=_dump(_table(answered)).decode(),
        evidence_digest=proof,
        kernel=KERNEL,
        cut=answered.snapshot.cut,
        release=label.release,
        verdicts_blob=blob_digest(blobs[0]),
        against=against["replay_id"] if against is not None and flips is not None else None,
        flipped=None if flips is None else len(flips),
        flips_blob=None if flips is None else blob_digest(blobs[1]),
    )
    return Draft(event, blobs, flips, against if flips is not None else None)


def _table(answered: Answered) -> dict[str, Any]:
    return {"k": answered.k, "estimates": finite(list(answered.estimates)), "warnings": list(answered.warnings)}


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


def _flips(before: Said, after: Said) -> list[Flipped]:
    return [
        Flipped(problem, program, was.name.lower(), after[problem, program][0].name.lower(), after[problem, program][1])
        for (problem, program), (was, _) in before.items()
        if (problem, program) in after and after[problem, program][0] != was
    ]
