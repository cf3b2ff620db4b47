"""`lap why`: why a program got its verdict and reward, and the smallest change that would flip it."""

import shlex
from typing import Any

import click

from lapledger.cli.criterion_options import CriterionFlags, criterion_options
from lapledger.cli.options import at_option, campaign_option, from_option, json_option, ledger_option
from lapledger.ledger.questions.open_questions import open_questions
from lapledger.render.output import plain, print_json, print_line, print_warnings
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
    """Explain a verdict: the deciding test, the distance to the threshold, and the smallest change that would flip it.

    PROGRAM is an id, the start of one, or [PROBLEM/]NAME. Without a criterion, the program's rewards are explained.

    \b
    Example:
      lap why stonegame/table_lists --criterion top-30
    """
    with open_questions(read_settings(ledger=ledger).location, at) as questions:
        program_row = find_program(questions, program)
        criteria = reward_criteria(questions, program_row["program_id"], campaign)
        if criterion_flags.given or not criteria:
            criteria = [NamedCriterion(campaign, *criterion_flags.read(), source=source)]
        explanations = explain_verdicts(questions, program_row["program_id"], criteria)
        cut = str(questions.cut)
    if as_json:
        print_json({"cut": cut, "program": program_row, "explanations": explanations})
        return
    print_line(
        f"{program_row['program_id']}  ({program_row['model']}, expected verdict: {program_row['label'] or 'none'})"
    )
    for shown in explanations:
        _show(shown, ledger)
    print_line(f"cut {cut}")
    print_warnings(dict.fromkeys(warning for shown in explanations for warning in shown["warnings"]))


def _show(shown: dict[str, Any], ledger: str | None) -> None:
    reward = f", reward {shown['reward']['value']:+g}" if shown["reward"] else ""
    print_line(f"\n{shown['criterion']} in campaign {shown['campaign']}: {shown['status']}{reward}")
    print_line(f"  reason         {shown['reason'] or 'correct and within the threshold'}")
    if shown["deciding_test"]:
        took = _took(shown)
        label = "deciding test" if shown["detail"] or shown["change_test"] else "worst test   "
        print_line(f"  {label}  {shown['deciding_test']}{took}")
    if shown["detail"]:
        print_line(f"  observed       {plain(shown['detail'])}")
    elif shown["q_lo"] is not None:
        print_line(
            f"  quality        q = {shown['q_lo']:.2f} (threshold {float(shown['tau']) / 100:.2f})" + _distance(shown)
        )
    print_line(f"  to flip it     {shown['note']}")
    if shown["reward"]:
        ledger_flag = f" --ledger {shlex.quote(ledger)}" if ledger else ""
        print_line(f"  full trace     lap trace {shown['reward']['id'][:16]}{ledger_flag}")


def _took(shown: dict[str, Any]) -> str:
    value = shown[f"deciding_test_{unit_of(shown['clock'])}"]
    if value is None:
        return ""
    return f"  ({value} bytes)" if shown["clock"] == "memory" else f"  ({value / 1e6:.1f} ms)"


def _distance(shown: dict[str, Any]) -> str:
    if shown["distance_q"] is None:
        return ""
    points = "" if shown["distance_points"] is None else f", {shown['distance_points']:+.1f} percentile points"
    return f", distance {shown['distance_q']:+.4f}{points}"
