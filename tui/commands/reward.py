"""`lap reward`: assign rewards under a criterion, as events."""

from typing import Any

import click

from tui.criteria import criterion_options, read_criterion
from tui.output import campaign_option, json_option, ledger_option, print_json, print_table, say
from tui.session import writing
from tui.settings import read_settings


@click.command()
@criterion_options
@click.option("--tau", default=None, metavar="PERCENT", help="p_tau.  [default: the criterion's]")
@click.option("--from", "source", default=None, metavar="ID", help="Campaign that the calibration comes from.")
@campaign_option
@ledger_option
@json_option
def command(
    word: str | None,
    tau: str | None,
    source: str | None,
    campaign: str | None,
    ledger: str | None,
    as_json: bool,
    **flags: Any,
) -> None:
    """Assign a reward to every program whose problem is closed: each is an event that names all it rests on.

    \b
    Example:
      lap reward --criterion top-30
    """
    from consumers.calibrator import find_calibration
    from consumers.rewarder import assign
    from ledger.questions import Questions
    from replay.shell import find_campaign

    name, criterion = read_criterion(word, {**flags, "tau": tau})
    with writing(read_settings(ledger=ledger).ledger, "lap reward") as open_:
        questions = Questions(open_.ledger)
        try:
            chosen = str(find_campaign(questions, campaign)["campaign_id"])
            calibration = find_calibration(questions, chosen, criterion, source=source)
        finally:
            questions.close()
        done = assign(open_.ledger, open_.producer, criterion, name=name, campaign=chosen, calibration=calibration)
    rows = [(r.reward_id[:16], r.program_id, r.value, r.pool_size) for r in done.new]
    say(
        f"{len(done.new)} rewards assigned under {name} ({criterion.hash[:12]}), {done.held} were held already, "
        f"{done.waiting} candidates are open or undecided"
    )
    columns = ("reward", "program", "value", "references")
    if as_json:
        print_json(
            {
                "cut": done.cut,
                "criterion": criterion.hash,
                "held": done.held,
                "waiting": done.waiting,
                "rewards": [
                    dict(zip(("reward_id", *columns[1:]), (r.reward_id, *row[1:]), strict=True))
                    for r, row in zip(done.new, rows, strict=True)
                ],
            }
        )
    else:
        print_table(columns, rows, cut=done.cut)
