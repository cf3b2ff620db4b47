"""`lap tui`: the terminal screens over a ledger at a cut."""

import sys

import click

from lapledger.cli.criterion_options import read_criterion
from lapledger.cli.options import at_option, ledger_option
from lapledger.ledger.errors import UserError
from lapledger.settings import read_settings


@click.command()
@click.option("--criterion", "word", default=None, metavar="NAME|FILE", help="A TOML file or the name of a preset.")
@ledger_option
@at_option
def command(word: str | None, ledger: str | None, at: str | None) -> None:
    """Walk through campaigns, problems and programs; switch tau and every verdict follows, nothing is run.

    Arrows move, enter opens, escape goes back, q quits. 1 2 3 4 ask for p_100 p_50 p_30 p_10, c for the other reading;
    / filters, s sorts by the next column, o turns the order around, r reads the newest cut, a lists all programs.

    \b
    Example:
      lap tui --criterion top-30
    """
    from lapledger.tui.question import Question

    location, question = read_settings(ledger=ledger).location, Question(*read_criterion(word, {}))
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        raise UserError("lap tui needs a terminal; in a script use `lap replay --json`")
    from lapledger.tui.app import LedgerApp

    app = LedgerApp(location, at, question)
    failure = app.run()
    if failure is not None:
        raise failure
    raise click.exceptions.Exit(app.return_code or 0)
