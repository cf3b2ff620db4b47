"""Assigns rewards: derives them from the ledger at a closed cut and appends what the ledger does not hold yet.

Streams only wake a rewarder; it never reads a number from them. Problems that are not closed are waited for.
"""

from collections.abc import Collection
from dataclasses import dataclass, replace

from lapledger.ledger.events import FACTS, CriterionDeclared, Event, RewardAssigned
from lapledger.ledger.failpoint import failpoint
from lapledger.ledger.questions.queries import Questions
from lapledger.ledger.store.open_ledger import Ledger
from lapledger.ledger.streams.producer import Producer, partition_of
from lapledger.replay.criteria import Criterion
from lapledger.replay.loading import (
    Calibration,
    Snapshot,
    find_calibration,
    is_closed,
    judge_snapshot,
    load,
    prepare,
    rewards,
)
from lapledger.replay.studies.warnings import has_limits, warnings_of


@dataclass(frozen=True, slots=True)
class Assigned:
    """What one pass did: rewards appended, rewards held already, candidates still open or undecided, and its cut."""

    new: tuple[RewardAssigned, ...]
    held: int
    waiting: int
    cut: str
    warnings: tuple[str, ...] = ()  # what to be wary of in these rewards, each a sentence


def assign(
    ledger: Ledger,
    producer: Producer,
    criterion: Criterion,
    *,
    name: str,
    campaign: str | None = None,
    source: str | None = None,
    partitions: Collection[int] | None = None,
    already_appended: Collection[str] = (),
) -> Assigned:
    """Rewards of every closed problem of a campaign, each appended at most once; the criterion is declared first.

    Everything is read at one cut, the calibration that the criterion asks for too; `source` names the campaign that it
    comes from (UserError when there is none, or more than one and no source). Deriving twice is harmless: an id that
    the ledger holds is excluded, and a second event of one changes nothing. `partitions` keeps it to the problems
    whose facts lie there; ids in `already_appended` count as held.
    """
    questions = Questions(ledger)
    try:
        snapshot = load(questions, campaign)
        calibration = find_calibration(questions, snapshot.name, criterion, source=source)
        mine = _within(snapshot, partitions)
        closed = replace(mine, problems=tuple(filter(is_closed, mine.problems)))
        derived, undecided = rewards(judge_snapshot(closed, criterion, calibration, name=name))
        warnings = _warnings(snapshot, name, criterion, calibration)
        held = {row["reward_id"] for row in questions.rows("SELECT reward_id FROM reward")} | set(already_appended)
        declared = {row["criterion_hash"] for row in questions.rows("SELECT criterion_hash FROM criterion")}
    finally:
        questions.close()
    new = tuple(reward for reward in derived if reward.reward_id not in held)
    events: list[Event] = list(new)
    if new and criterion.hash not in declared:
        producer.append([declaration(criterion, name)])
        failpoint("reward.declared")
    producer.append(events)
    waiting = undecided + sum(int(m.candidate.sum()) for m in mine.problems if not is_closed(m))
    return Assigned(new, len(derived) - len(new), waiting, snapshot.cut, warnings)


def _warnings(snapshot: Snapshot, name: str, criterion: Criterion, calibration: Calibration | None) -> tuple[str, ...]:
    problems = prepare(snapshot, criterion, calibration) if has_limits(criterion) else []
    return warnings_of(problems, {name: criterion}, None if calibration is None else calibration.fit)


def _within(snapshot: Snapshot, partitions: Collection[int] | None) -> Snapshot:
    if partitions is None:
        return snapshot
    mine = tuple(m for m in snapshot.problems if partition_of(FACTS, m.problem) in partitions)
    return replace(snapshot, problems=mine)


def declaration(criterion: Criterion, name: str) -> CriterionDeclared:
    """The fact that states a criterion in its canonical form."""
    return CriterionDeclared(criterion_hash=criterion.hash, name=name, canonical=criterion.canonical().decode())
