"""`lap ledger`: make, inspect, seal and verify a ledger."""

import importlib
from dataclasses import asdict

import click

from lapledger.render.output import json_option, ledger_option, print_json, print_table, say
from lapledger.settings import read_settings
from lapledger.workflows.session import asking, make_ledger, now_ms

ELSEWHERE = {
    "backup": ("lapledger.commands.storage.moving", "backup"),
    "compact": ("lapledger.commands.storage.upkeep", "compact"),
    "copy": ("lapledger.commands.storage.moving", "copy"),
    "gc": ("lapledger.commands.storage.upkeep", "gc"),
    "rebuild": ("lapledger.commands.storage.rebuild", "command"),
    "restore": ("lapledger.commands.storage.moving", "restore"),
}
"""Subcommands that live in modules of their own, which are loaded when they are called or listed."""


class _Group(click.Group):
    def list_commands(self, ctx: click.Context) -> list[str]:
        return sorted({*super().list_commands(ctx), *ELSEWHERE})

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in ELSEWHERE:
            return super().get_command(ctx, cmd_name)
        module, name = ELSEWHERE[cmd_name]
        found: click.Command = getattr(importlib.import_module(module), name)
        return found


@click.group(cls=_Group)
def command() -> None:
    """Make, inspect, seal and verify a ledger; keep it small, mend it, move it.

    \b
    Example:
      lap ledger init --ledger results
      lap ledger status --ledger results
    """


@command.command()
@ledger_option
def init(ledger: str | None) -> None:
    """Make a ledger, or bring an older one up to date; nothing in it is lost."""
    place = read_settings(ledger=ledger).location
    made = make_ledger(place)
    try:
        say(f"ledger {made.identity} is ready in {place}")
    finally:
        made.close()


@command.command()
@ledger_option
@json_option
def status(ledger: str | None, as_json: bool) -> None:
    """Show what was admitted, what waits, and what was quarantined."""
    from lapledger.ledger.ops.status import ledger_status

    with asking(read_settings(ledger=ledger).location) as questions:
        found = ledger_status(questions.ledger, now_ms=now_ms())
        if as_json:
            print_json({"cut": str(questions.cut), **asdict(found)})
            return
        counts = ("admitted", "in tail", "waiting", "duplicates", "open gaps", "quarantined", "retried")
        columns = ("stream", "partition", *counts, "held by")
        rows = [tuple(asdict(partition).values())[: len(columns)] for partition in found.partitions]
        print_table(columns, rows, title=f"ledger {found.identity}", cut=str(questions.cut))
        print_table(("segments", "head"), [(found.segments, found.head)])


@command.command()
@ledger_option
def seal(ledger: str | None) -> None:
    """Seal the tail into immutable Parquet segments, once; `lap seal` can also merge and follow."""
    from lapledger.commands.storage.seal import seal_now

    seal_now(read_settings(ledger=ledger).location, merge=False)


@command.command()
@ledger_option
@json_option
def verify(ledger: str | None, as_json: bool) -> None:
    """Prove what was admitted: digests, chains, running heads, segments, blobs. Rewards too: `lap verify`."""
    from lapledger.commands.audit.verify import prove

    prove(read_settings(ledger=ledger).location, None, as_json=as_json, with_rewards=False)


@command.command()
@ledger_option
@json_option
def du(ledger: str | None, as_json: bool) -> None:
    """Show bytes by part, rows by event type, and how fast the ledger grows; `unknown` is null with --json.

    \b
    Example:
      lap ledger du --json | jq .days_to_full
    """
    from lapledger.ledger.ops.usage import usage

    with asking(read_settings(ledger=ledger).location) as questions:
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
