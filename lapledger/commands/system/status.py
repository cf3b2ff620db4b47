"""`lap status`: how well the ledger and what it stands on are, in one look and for probes."""

from dataclasses import asdict

import click

from lapledger.render.output import json_option, ledger_option, print_json, print_table
from lapledger.settings import read_settings
from lapledger.workflows.session import now_ms


@click.command()
@ledger_option
@json_option
def command(ledger: str | None, as_json: bool) -> None:
    """Show whether the ledger is ok, degraded or failing, and why; it answers within seconds whatever is down.

    Exit code 0 when it is ok or degraded, 1 when it is failing, 2 for a mistake in what was asked.

    \b
    Example:
      lap status
      lap status --json | jq -r .state
    """
    from lapledger.ledger.ops.health import FAILING, health

    found = health(read_settings(ledger=ledger).location, now_ms=now_ms())
    if as_json:
        print_json(asdict(found))
    else:
        rows = [(check.name, check.state, check.words) for check in found.checks]
        print_table(("part", "state", "what"), rows, title=f"the ledger is {found.state}")
    if found.state == FAILING:
        raise click.exceptions.Exit(1)
