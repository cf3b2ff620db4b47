"""`lap ledger`: create a ledger, show its size, and compact, rebuild, back up or migrate it."""

from dataclasses import asdict

import click

from lapledger.cli.groups import HelpGroup
from lapledger.cli.options import json_option, ledger_option
from lapledger.ledger.questions.open_questions import open_questions
from lapledger.render.output import print_json, print_message, print_table
from lapledger.settings import read_settings
from lapledger.workflows.session import make_ledger

_LAZY = {
    "backup": "lapledger.commands.storage.moving:backup",
    "compact": "lapledger.commands.storage.upkeep:compact",
    "copy": "lapledger.commands.storage.moving:copy",
    "gc": "lapledger.commands.storage.upkeep:gc",
    "rebuild": "lapledger.commands.storage.rebuild:command",
    "restore": "lapledger.commands.storage.moving:restore",
}


@click.group(cls=HelpGroup, lazy=_LAZY)
def command() -> None:
    """Create a ledger; compact, repair, back up or migrate it.

    \b
    Example:
      lap ledger init --ledger results
      lap ledger du --ledger results
    """


@command.command()
@ledger_option
def init(ledger: str | None) -> None:
    """Create a ledger, or upgrade an older one without loss.

    \b
    Example:
      lap ledger init --ledger results
    """
    location = read_settings(ledger=ledger).location
    created = make_ledger(location)
    try:
        print_message(f"ledger {created.identity} is ready in {location}")
    finally:
        created.close()


@command.command()
@ledger_option
@json_option
def du(ledger: str | None, as_json: bool) -> None:
    """Show disk usage by part, rows by event type, and growth; `unknown` is null with --json.

    \b
    Example:
      lap ledger du --json | jq .days_to_full
    """
    from lapledger.ledger.ops.usage import usage

    with open_questions(read_settings(ledger=ledger).location) as questions:
        used = usage(questions.ledger)
        if as_json:
            print_json({"cut": str(questions.cut), **asdict(used)})
            return
        figures = {name: "unknown" if figure is None else figure for name, figure in asdict(used).items()}
        parts = [(name.removesuffix("_bytes"), size) for name, size in figures.items() if name.endswith("_bytes")]
        print_table(("part", "bytes"), parts)
        print_table(("bytes a day", "days to full"), [(figures["bytes_a_day"], figures["days_to_full"])])
        rows = [tuple(asdict(kind).values()) for kind in used.types]
        print_table(("event", "version", "frames", "rows", "segment bytes"), rows, cut=str(questions.cut))
