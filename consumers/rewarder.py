"""Assigns rewards: derives them from the ledger at a closed cut and appends what the ledger does not hold yet.

Streams only wake a rewarder; it never reads a number from them. Problems that are not closed are waited for.
"""

from dataclasses import dataclass

from consumers.calibrator import find_calibration
from ledger.events import CriterionDeclared, Event, RewardAssigned
from ledger.questions import Questions
from ledger.store.opened import Ledger
from ledger.streams.producer import Producer
from replay.criteria import Criterion
from replay.shell import load, rewards


@dataclass(frozen=True, slots=True)
class Assigned:
    """What one pass did: rewards appended, rewards already held, candidates still open or undecided, and its cut."""

    new: tuple[RewardAssigned, ...]
    held: int
    waiting: int
    cut: str


def assign(
    ledger: Ledger,
    producer: Producer,
    criterion: Criterion,
    *,
    name: str,
    campaign: str | None = None,
    source: str | None = None,
) -> Assigned:
    """Rewards of every closed problem of a campaign, each appended at most once; the criterion is declared first.

    Everything is read at one cut, the calibration that the criterion asks for too; `source` names the campaign that it
    comes from (UserError when there is none, or more than one and no source). Deriving twice is harmless: an id that
    the ledger holds is left out, and a second telling of one changes nothing.
    """
    questions = Questions(ledger)
    try:
        snapshot = load(questions, campaign)
        calibration = find_calibration(questions, snapshot.name, criterion, source=source)
        derived, waiting = rewards(snapshot, criterion, calibration)
        held = {row["reward_id"] for row in questions.rows("SELECT reward_id FROM reward")}
        declared = {row["criterion_hash"] for row in questions.rows("SELECT criterion_hash FROM criterion")}
    finally:
        questions.close()
    new = tuple(reward for reward in derived if reward.reward_id not in held)
    events: list[Event] = list(new)
    if new and criterion.hash not in declared:
        producer.append([declaration(criterion, name)])
    producer.append(events)
    return Assigned(new, len(derived) - len(new), waiting, snapshot.cut)


def declaration(criterion: Criterion, name: str) -> CriterionDeclared:
    """The fact that states a criterion in its canonical form."""
    return CriterionDeclared(criterion_hash=criterion.hash, name=name, canonical=criterion.canonical().decode())
