"""`lap filter`: decide which labels and problems to exclude, after a run."""

import click

from lapledger.cli.options import campaign_option, json_option, ledger_option
from lapledger.render.output import count, print_json, print_message, print_table
from lapledger.render.terminal import TERMINAL
from lapledger.settings import read_settings
from lapledger.workflows.session import open_writer


@click.command()
@campaign_option
@click.option(
    "--limit",
    type=click.Choice(["own", "executed"]),
    default="own",
    help="Limits that labels are checked under: each problem's own, or those of the run.  [default: own]",
)
@ledger_option
@json_option
def command(campaign: str | None, limit: str, ledger: str | None, as_json: bool) -> None:
    """Exclude labels that the run contradicts, and problems whose tests are too short to time.

    Decisions are stored as events and do not change; only problems whose every execution has an outcome are decided.

    \b
    Example:
      lap filter --campaign main
    """
    from lapledger.workflows.data.filter_campaign import filter_campaign

    with open_writer(read_settings(ledger=ledger).location, "lap filter", TERMINAL) as session:
        result = filter_campaign(session, campaign, own_limits=limit == "own")
        cut = str(session.ledger.cut())
    columns = ("rule", "subject", "id", "figure", "reason")
    rows = [(d.rule, d.subject, d.subject_id, d.figure, d.reason) for d in result.decisions if not d.kept]
    if as_json:
        excluded = [dict(zip(columns, row, strict=True)) for row in rows]
        print_json({"cut": cut, "decided": len(result.decisions), "new": result.new, "excluded": excluded})
        return
    print_message(f"{count(len(result.decisions), 'decision')} ({result.new} new); {count(len(rows), 'exclusion')}")
    print_table(columns, rows, cut=cut)
