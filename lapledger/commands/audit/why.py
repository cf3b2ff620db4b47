"""`lap why`: why a program got its verdict and reward, and the smallest change that would flip it."""

import shlex
from typing import Any

import click

from lapledger.cli.criterion_options import CriterionFlags, criterion_options
from lapledger.cli.options import at_option, campaign_option, from_option, json_option, ledger_option
from lapledger.ledger.questions.open_questions import open_questions
from lapledger.render.output import plain, print_json, tell
from lapledger.replay.measurements import unit_of
from lapledger.settings import read_settings
from lapledger.workflows.analysis.explain_verdict import NamedCriterion, explain_verdicts, reward_criteria
from lapledger.workflows.analysis.find_program import find_program


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
    with open_questions(read_settings(ledger=ledger).location, at) as questions:
        found = find_program(questions, program)
        criteria = reward_criteria(questions, found["program_id"], campaign)
        if criterion_flags.given or not criteria:
            criteria = [NamedCriterion(campaign, *criterion_flags.read(), source=source)]
        explanations = explain_verdicts(questions, found["program_id"], criteria)
        cut = str(questions.cut)
    if as_json:
        print_json({"cut": cut, "program": found, "explanations": explanations})
        return
    click.echo(f"{found['program_id']}  ({found['model']}, labelled {found['label'] or 'nothing'})")
    for one in explanations:
        _show(one, ledger)
    click.echo(f"cut {cut}")
    tell(dict.fromkeys(warning for one in explanations for warning in one["warnings"]))


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
