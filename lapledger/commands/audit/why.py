"""`lap why`: why a program got its verdict and reward, and the smallest change that would flip it."""

import shlex
from dataclasses import asdict, dataclass, replace
from typing import Any

import click
import numpy as np

from lapledger.cli.criterion_options import CriterionFlags, criterion_options
from lapledger.cli.options import at_option, campaign_option, from_option, json_option, ledger_option
from lapledger.ledger.errors import UserError
from lapledger.ledger.questions.queries import Questions
from lapledger.render.amounts import unit_of
from lapledger.render.output import plain, print_json, tell
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
from lapledger.replay.measurements import ProblemMeasurements, durations
from lapledger.replay.studies.warnings import cautions
from lapledger.settings import read_settings
from lapledger.workflows.analysis.find_program import find_program
from lapledger.workflows.session import asking


@dataclass(frozen=True, slots=True)
class _Question:
    """A criterion to explain a verdict under, and the reward that was assigned under it, where there is one."""

    campaign: str | None
    name: str
    criterion: Criterion
    reward: dict[str, Any] | None = None
    source: str | None = None  # the campaign that the calibration comes from


@click.command()
@click.argument("program")
@criterion_options(tau=True)
@from_option
@campaign_option
@ledger_option
@at_option
@json_option
def command(
    program: str,
    criterion_flags: CriterionFlags,
    source: str | None,
    campaign: str | None,
    ledger: str | None,
    at: str | None,
    as_json: bool,
) -> None:
    """Name the deciding test, the distance to the threshold, and the smallest change that flips the verdict.

    PROGRAM is an id, the start of one, or [PROBLEM/]NAME. Without a criterion, those of its rewards are explained.

    \b
    Example:
      lap why stonegame/table_lists --criterion top-30
    """
    with asking(read_settings(ledger=ledger).location, at) as questions:
        found = find_program(questions, program)
        rewards = _rewards(questions, found["program_id"], campaign)
        if not criterion_flags.given and rewards:
            asked = [_Question(r["campaign_id"], r["name"], _criterion(questions, r), r) for r in rewards]
        else:
            asked = [_Question(campaign, *criterion_flags.read(), source=source)]
        told = [_explain(questions, found["program_id"], question) for question in asked]
        cut = str(questions.cut)
    if as_json:
        print_json({"cut": cut, "program": found, "explanations": told})
        return
    click.echo(f"{found['program_id']}  ({found['model']}, labelled {found['label'] or 'nothing'})")
    for one in told:
        _show(one, ledger)
    click.echo(f"cut {cut}")
    tell(dict.fromkeys(warning for one in told for warning in one["warnings"]))


def _rewards(questions: Questions, program: str, campaign: str | None) -> list[dict[str, Any]]:
    return questions.rows(
        "SELECT r.*, c.name FROM reward r JOIN criterion c USING (criterion_hash) "
        "WHERE program_id = $program AND coalesce($campaign, campaign_id) = campaign_id ORDER BY campaign_id, c.name",
        program=program,
        campaign=campaign,
    )


def _criterion(questions: Questions, row: dict[str, Any]) -> Criterion:
    from lapledger.consumers.derive.reward_audit import criterion_of

    return criterion_of(questions, row["criterion_hash"])


def _explain(questions: Questions, program: str, asked: _Question) -> dict[str, Any]:
    criterion, reward = asked.criterion, asked.reward
    snapshot = load(questions, asked.campaign)
    calibration = (
        stored_calibration(questions, reward["calibration_id"])
        if reward and reward["calibration_id"]
        else find_calibration(questions, snapshot.name, criterion, source=asked.source)
    )
    m = prepare_problem(snapshot, _problem_of(snapshot, program), criterion, calibration)
    explanation = explain(m, criterion, program)
    test = explanation.deciding_test
    measured = int(durations(m, criterion)[m.row(program), m.tests.ids.index(test)]) if test else None
    unit = unit_of(criterion.clock)
    return {
        "campaign": snapshot.name,
        "criterion": asked.name,
        "tau": criterion.tau,
        "clock": criterion.clock,
        "reward": reward and {"id": reward["reward_id"], "value": reward["value"]},
        f"deciding_test_{unit}": measured if measured is not None and measured >= 0 else None,
        "warnings": _warnings(m, program, asked, calibration),
        "detail": _detail(questions, snapshot.name, program, test),
        **_plain(explanation, unit),
    }


def _warnings(
    m: ProblemMeasurements, program: str, asked: _Question, calibration: Calibration | None
) -> tuple[str, ...]:
    """What to be wary of in this one program's verdict."""
    alone = replace(m, candidate=np.arange(len(m.programs)) == m.row(program))
    return cautions([alone], {asked.name: asked.criterion}, None if calibration is None else calibration.fit)


def _detail(questions: Questions, campaign: str, program: str, test: str | None) -> str:
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
        f"campaign {snapshot.name!r} holds nothing of problem {problem!r}; name another with --campaign, "
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


def _show(one: dict[str, Any], ledger: str | None) -> None:
    reward = f", reward {one['reward']['value']:+g}" if one["reward"] else ""
    click.echo(f"\n{one['criterion']} in campaign {one['campaign']}: {one['status']}{reward}")
    click.echo(f"  reason         {one['reason'] or 'correct, and within the threshold'}")
    if one["deciding_test"]:
        took = _took(one)
        label = "deciding test" if one["detail"] or one["change_test"] else "worst test   "
        click.echo(f"  {label}  {one['deciding_test']}{took}")
    if one["detail"]:
        click.echo(f"  what was seen  {plain(one['detail'])}")
    elif one["q_lo"] is not None:
        click.echo(f"  quality q      {one['q_lo']:.4f} of {float(one['tau']) / 100:g} allowed" + _distance(one))
    click.echo(f"  what flips it  {one['note']}")
    if one["reward"]:
        place = f" --ledger {shlex.quote(ledger)}" if ledger else ""
        click.echo(f"  every timing   lap trace {one['reward']['id'][:16]}{place}")


def _took(one: dict[str, Any]) -> str:
    value = one[f"deciding_test_{unit_of(one['clock'])}"]
    if value is None:
        return ""
    return f"  ({value} bytes)" if one["clock"] == "memory" else f"  ({value / 1e6:.1f} ms)"


def _distance(one: dict[str, Any]) -> str:
    if one["distance_q"] is None:
        return ""
    points = "" if one["distance_points"] is None else f", {one['distance_points']:+.1f} percentile points"
    return f"  (distance {one['distance_q']:+.4f}{points})"
