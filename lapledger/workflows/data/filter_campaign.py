"""Filter decisions after a run: labels that re-execution contradicts, and problems whose tests can be timed."""

from collections.abc import Sequence
from dataclasses import dataclass

from lapledger.ledger.events import FilterDecided
from lapledger.ledger.questions.queries import Questions
from lapledger.producers.corpus.filters import Execution, duration, relabel
from lapledger.replay.loading import Snapshot, is_closed, load
from lapledger.replay.measurements import Outcome, ProblemMeasurements, robust_cv
from lapledger.replay.package_limits import NO_LIMITS, enforce
from lapledger.workflows.session import LedgerWriter


@dataclass(frozen=True, slots=True)
class FilterResult:
    """Every decision of a campaign, and how many of them were not stored before."""

    decisions: tuple[FilterDecided, ...]
    new: int


def filter_campaign(session: LedgerWriter, campaign: str | None, *, own_limits: bool = True) -> FilterResult:
    """Decides every closed problem of the campaign and appends the decisions that are not stored yet.

    With `own_limits` a run that took longer than its problem's own limit, or more memory, counts as stopped there.
    """
    questions = Questions(session.ledger)
    try:
        decisions = decide(load(questions, campaign), own_limits=own_limits)
        stored = {tuple(row.values()) for row in questions.rows("SELECT campaign_id, subject_id, rule FROM filter")}
    finally:
        questions.close()
    new = [d for d in decisions if (d.campaign_id, d.subject_id, d.rule) not in stored]
    session.producer.append(new)
    session.admit()
    return FilterResult(tuple(decisions), len(new))


def decide(snapshot: Snapshot, *, own_limits: bool) -> list[FilterDecided]:
    """A decision for every label, and the duration filter of every problem, from a campaign's outcomes.

    Only problems whose every execution has an outcome are decided: a decision is a fact and does not change.
    """
    decisions: list[FilterDecided] = []
    for m in filter(is_closed, snapshot.problems):
        limits = snapshot.lookups.limits(m.problem) if own_limits and snapshot.lookups else NO_LIMITS
        outcomes = enforce(m, limits).outcome
        relabelled = [relabel(_execution(m, row, outcomes[row].tolist())) for row in range(len(m.programs))]
        decisions += [decision for decision in relabelled if decision is not None]
        passed = ((m.outcome == Outcome.OK) & m.reference[:, None]).any(axis=0)
        timed = int((m.tests.optimization & passed).sum())  # on the others no reference has a duration that counts
        decisions.append(duration(m.campaign, m.problem, robust_cv(m), tests=timed))
    return decisions


def _execution(m: ProblemMeasurements, row: int, codes: Sequence[int]) -> Execution:
    outcomes = {test: _NAMES[Outcome(code)] for test, code in zip(m.tests.ids, codes, strict=True)}
    correctness = {test for test, counts in zip(m.tests.ids, m.tests.correctness, strict=True) if counts}
    return Execution(
        campaign_id=m.campaign,
        problem_id=m.problem,
        program_id=m.programs[row],
        label=m.labels[row],
        correctness={test: outcome for test, outcome in outcomes.items() if test in correctness},
        other_tests={test: outcome for test, outcome in outcomes.items() if test not in correctness},
    )


_NAMES = {outcome: outcome.name.lower() for outcome in Outcome} | {
    Outcome.OK: "accepted",
    Outcome.MISSING: "sandbox_fault",  # no outcome: no evidence for or against the program
}
