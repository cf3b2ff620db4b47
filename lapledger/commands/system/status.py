"""`lap status`: the health of the ledger and its servers, and on request the state of every partition."""

from dataclasses import asdict

import click

from lapledger.cli.options import json_option, ledger_option
from lapledger.ledger.ops.status import LedgerStatus, ledger_status
from lapledger.ledger.questions.open_questions import open_questions
from lapledger.render.output import print_json, print_table
from lapledger.settings import read_settings
from lapledger.workflows.session import now_ms

COLUMNS = (
    "stream",
    "partition",
    "admitted",
    "in tail",
    "lag",
    "duplicates",
    "open gaps",
    "quarantined",
    "retried",
    "lease holder",
)


@click.command()
@click.option("--partitions", is_flag=True, help="Show admitted frames, lag and quarantine of every partition.")
@ledger_option
@json_option
def command(partitions: bool, ledger: str | None, as_json: bool) -> None:
    """Check the ledger and its servers: ok, degraded or failing, and why. Answers within seconds.

    Exit code 0 when it is ok or degraded, 1 when it is failing, 2 for a mistake in the command.

    \b
    Example:
      lap status
      lap status --partitions
      lap status --json | jq -r .state
    """
    from lapledger.ledger.ops.health import FAILING, health

    location = read_settings(ledger=ledger).location
    progress = None
    if partitions:
        with open_questions(location) as questions:
            progress = ledger_status(questions.ledger, now_ms=now_ms())
    checked = health(location, now_ms=now_ms())
    if as_json:
        print_json({**asdict(checked), **(asdict(progress) if progress else {})})
    else:
        rows = [(check.name, check.state, check.message) for check in checked.checks]
        print_table(("part", "state", "details"), rows, title=f"ledger state: {checked.state}")
        if progress:
            _show_partitions(progress)
    if checked.state == FAILING:
        raise click.exceptions.Exit(1)


def _show_partitions(progress: LedgerStatus) -> None:
    rows = [tuple(asdict(partition).values())[: len(COLUMNS)] for partition in progress.partitions]
    print_table(COLUMNS, rows, title=f"ledger {progress.identity}", cut=progress.cut)
    print_table(("segments", "head"), [(progress.segments, progress.head)])
