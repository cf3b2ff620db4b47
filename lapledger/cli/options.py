"""Options that several commands share, each with one meaning everywhere."""

from collections.abc import Callable
from typing import Any

import click

from lapledger.ledger.errors import UserError

Command = Callable[..., Any]

ledger_option = click.option(
    "--ledger", "ledger", type=click.Path(), default=None, metavar="DIR", help="Folder of the ledger.  [default: .lap]"
)
at_option = click.option(
    "--at", "at", default=None, metavar="CUT", help="Read the ledger at this cut; every output prints its own."
)
json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON instead of a table.")


def _named(_context: click.Context, option: click.Parameter, value: str | None) -> str | None:
    """The id as given; UserError for an empty one, which would count as absent."""
    if value is not None and not value.strip():
        raise UserError(f"{option.opts[0]}: give the id of a campaign, or omit the option")
    return value


def seed_option(random: str, *, default: int | None = 0) -> Callable[[Command], Command]:
    """Adds --seed: the number that fixes what is random in a command. None as a default leaves it to the settings."""
    kind = click.IntRange(0, 2**63 - 1)
    text = f"Random seed of {random}: the same seed, the same result.  [default: 0]"
    return click.option("--seed", type=kind, default=default, metavar="N", help=text)


from_option = click.option(
    "--calibration-from",
    "source",
    default=None,
    metavar="ID",
    callback=_named,
    help="Campaign whose calibration is used, where several are stored.",
)
campaign_option = click.option(
    "--campaign", default=None, metavar="ID", callback=_named, help="Campaign.  [default: the only one, else `main`]"
)
out_option = click.option(
    "--out",
    "outs",
    multiple=True,
    metavar="FILE",
    type=click.Path(),
    help="Write rows (.csv, .parquet) or the picture (.png, .svg); repeat for several.",
)
escape_option = click.option(
    "--escape-formulas/--exact",
    default=True,
    help="In CSV, begin texts that a spreadsheet would run (= + - @) with an apostrophe.  [default: --escape-formulas]",
)
slots_option = click.option(
    "--slots", type=int, default=None, metavar="N", help="Programs run concurrently.  [default: half the cores]"
)
isolation_option = click.option(
    "--isolation", type=click.Choice(["auto", "bubblewrap", "plain"]), default=None, help="Sandbox.  [default: auto]"
)
servers_option = click.option(
    "--folder",
    "folder",
    type=click.Path(),
    default=".lap-servers",
    show_default=True,
    metavar="DIR",
    help="Folder of the servers' data.",
)
