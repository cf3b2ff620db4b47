"""`lap tui`: the terminal screens over a ledger at a cut."""

import sys

import click

from lapledger.cli.options import at_option, ledger_option
from lapledger.ledger.errors import UserError
from lapledger.settings import read_settings
from lapledger.workflows.analysis.criterion_arguments import read_criterion


@click.command()
@click.option(
    "--criterion",
    "source_name",
    default=None,
    metavar="NAME|FILE",
    help="Preset or TOML file; `lap criteria` lists presets.",
)
@ledger_option
@at_option
def command(source_name: str | None, ledger: str | None, at: str | None) -> None:
    """Browse campaigns, problems and programs; change tau and every verdict is re-evaluated. Nothing is executed.

    Arrows move, enter opens, escape goes back, q quits. 1 2 3 4 select p_100 p_50 p_30 p_10, c the other metric;
    / filters, s sorts by the next column, o reverses the order, r reads the newest cut, a lists all programs.

    \b
    Example:
      lap tui --criterion top-30
    """
    from lapledger.tui.question import Question

    location, question = read_settings(ledger=ledger).location, Question(*read_criterion(source_name, {}))
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        raise UserError("lap tui needs a terminal; in a script use `lap replay --json`")
    from lapledger.tui.app import LedgerApp

    app = LedgerApp(location, at, question)
    failure = app.run()
    if failure is not None:
        raise failure
    raise click.exceptions.Exit(app.return_code or 0)
