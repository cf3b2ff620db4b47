"""Why a program got its verdicts: under the criteria of its stored rewards, or under another one.

The explanations themselves are made in `replay.explanations.why`.
"""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from lapledger.ledger.errors import UserError
from lapledger.replay.criteria import Criterion
from lapledger.replay.explanations.why import Explanation, explain
from lapledger.replay.loading import (
    Calibration,
    Snapshot,
    executed_by,
    find_calibration,
    load,
    prepare_problem,
    stored_calibration,
)
from lapledger.replay.measurements import ProblemMeasurements, durations, unit_of
from lapledger.replay.studies.warnings import warnings_of

if TYPE_CHECKING:
    from lapledger.ledger.questions.queries import Questions


@dataclass(frozen=True, slots=True)
class NamedCriterion:
    """A criterion to explain a verdict under, and the reward that was assigned under it, where there is one."""

    campaign: str | None
    name: str
    criterion: Criterion
    reward: dict[str, Any] | None = None
    source: str | None = None  # the campaign that the calibration comes from


def reward_criteria(questions: "Questions", program: str, campaign: str | None) -> list[NamedCriterion]:
    """The criteria that a program, given by its id, has rewards under, in the order of campaigns and names."""
    from lapledger.consumers.derive.reward_audit import criterion_of

    rows = questions.rows(
        "SELECT r.*, c.name FROM reward r JOIN criterion c USING (criterion_hash) "
        "WHERE program_id = $program AND coalesce($campaign, campaign_id) = campaign_id ORDER BY campaign_id, c.name",
        program=program,
        campaign=campaign,
    )
    return [
        NamedCriterion(row["campaign_id"], row["name"], criterion_of(questions, row["criterion_hash"]), row)
        for row in rows
    ]


def explain_verdicts(questions: "Questions", program: str, criteria: Sequence[NamedCriterion]) -> list[dict[str, Any]]:
    """One plain explanation a criterion of the program with this id; UserError where a campaign has no such problem.

    Each has the verdict, its reason, the deciding test with its duration, q with its distance to the threshold, the
    smallest change that flips the verdict, and warnings.
    """
    return [_explain(questions, program, criterion) for criterion in criteria]


def _explain(questions: "Questions", program: str, named: NamedCriterion) -> dict[str, Any]:
    criterion, reward = named.criterion, named.reward
    snapshot = load(questions, named.campaign)
    calibration = (
        stored_calibration(questions, reward["calibration_id"])
        if reward and reward["calibration_id"]
        else find_calibration(questions, snapshot.name, criterion, source=named.source)
    )
    m = prepare_problem(snapshot, _problem_of(snapshot, program), criterion, calibration)
    explanation = explain(m, criterion, program)
    test = explanation.deciding_test
    measured = int(durations(m, criterion)[m.row(program), m.tests.ids.index(test)]) if test else None
    unit = unit_of(criterion.clock)
    return {
        "campaign": snapshot.name,
        "criterion": named.name,
        "tau": criterion.tau,
        "clock": criterion.clock,
        "reward": reward and {"id": reward["reward_id"], "value": reward["value"]},
        f"deciding_test_{unit}": measured if measured is not None and measured >= 0 else None,
        "warnings": _warnings(m, program, named, calibration),
        "detail": _detail(questions, snapshot.name, program, test),
        **_plain(explanation, unit),
    }


def _warnings(
    m: ProblemMeasurements, program: str, named: NamedCriterion, calibration: Calibration | None
) -> tuple[str, ...]:
    """What to be wary of in this one program's verdict."""
    alone = replace(m, candidate=np.arange(len(m.programs)) == m.row(program))
    return warnings_of([alone], {named.name: named.criterion}, None if calibration is None else calibration.fit)


def _detail(questions: "Questions", campaign: str, program: str, test: str | None) -> str:
    """What was seen on the deciding test, such as the first difference from the answer; "" for an accepted run."""
    rows = questions.rows(
        "SELECT detail FROM execution WHERE accepted AND outcome <> 'accepted' "
        "AND campaign_id = $campaign AND program_id = $program AND test_id = $test",
        campaign=campaign,
        program=executed_by(questions, campaign, program),
        test=test,
    )
    return str(rows[0]["detail"]) if rows else ""


def _problem_of(snapshot: Snapshot, program: str) -> ProblemMeasurements:
    problem = program.rsplit("/", 1)[0]
    for m in snapshot.problems:
        if m.problem == problem:
            return m
    raise UserError(
        f"campaign {snapshot.name!r} has no results of problem {problem!r}; choose another with --campaign, "
        "or run its programs with `lap run`"
    )


def _plain(explanation: Explanation, unit: str) -> dict[str, Any]:
    """The explanation as JSON; on the clock `memory` the change is `change_bytes`."""
    plain = {key: value for key, value in asdict(explanation).items() if key not in ("problem", "program")}
    for key in ("q_lo", "q_hi", "distance_q", "factor"):
        plain[key] = None if plain[key] is None else float(plain[key])
    plain[f"change_{unit}"] = plain.pop("change_ns")
    plain["status"] = explanation.status.name.lower()
    return plain
