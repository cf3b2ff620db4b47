"""`lap ledger`: make, inspect, seal and verify a ledger."""

from dataclasses import asdict

import click

from tui.output import json_option, ledger_option, print_json, print_table, say
from tui.session import asking, make_ledger, writing
from tui.settings import read_settings


@click.group()
def command() -> None:
    """Make, inspect, seal and verify a ledger.

    \b
    Example:
      lap ledger init --ledger results
      lap ledger status --ledger results
    """


@command.command()
@ledger_option
def init(ledger: str | None) -> None:
    """Make a ledger, or bring an older one up to date; nothing in it is lost."""
    root = read_settings(ledger=ledger).ledger
    made = make_ledger(root)
    try:
        say(f"ledger {made.identity} is ready in {root}")
    finally:
        made.close()


@command.command()
@ledger_option
@json_option
def status(ledger: str | None, as_json: bool) -> None:
    """Show what was admitted, what waits, and what was quarantined."""
    from ledger.status import ledger_status

    with asking(read_settings(ledger=ledger).ledger) as questions:
        found = ledger_status(questions.ledger)
        if as_json:
            print_json({"cut": str(questions.cut), **asdict(found)})
            return
        columns = ("stream", "partition", "admitted", "in tail", "waiting", "duplicates", "open gaps", "quarantined")
        rows = [tuple(asdict(partition).values()) for partition in found.partitions]
        print_table(columns, rows, title=f"ledger {found.identity}", cut=str(questions.cut))
        print_table(("segments", "head"), [(found.segments, found.head)])


@command.command()
@ledger_option
def seal(ledger: str | None) -> None:
    """Seal the tail into immutable Parquet segments."""
    from consumers.sealer import seal as seal_tail

    with writing(read_settings(ledger=ledger).ledger, "lap ledger seal") as open_:
        open_.admit()
        sealed = seal_tail(open_.ledger)
        say(
            f"sealed {sealed.frames} frames, {sealed.rows} events, into {sealed.segments} segments; "
            f"cut {open_.ledger.cut()}"
        )


@command.command()
@ledger_option
@json_option
def verify(ledger: str | None, as_json: bool) -> None:
    """Prove what was admitted: digests, chains, running heads, segments, blobs. Rewards too: `lap verify`."""
    from tui.commands.verify import prove

    prove(read_settings(ledger=ledger).ledger, None, as_json=as_json, with_rewards=False)


@command.command()
@ledger_option
@json_option
def du(ledger: str | None, as_json: bool) -> None:
    """Show bytes by part and rows by event type."""
    from ledger.usage import usage

    with asking(read_settings(ledger=ledger).ledger) as questions:
        used = usage(questions.ledger)
        if as_json:
            print_json({"cut": str(questions.cut), **asdict(used)})
            return
        parts = [(name.removesuffix("_bytes"), value) for name, value in asdict(used).items() if name != "types"]
        print_table(("part", "bytes"), parts)
        rows = [tuple(asdict(kind).values()) for kind in used.types]
        print_table(("event", "version", "frames", "rows", "segment bytes"), rows, cut=str(questions.cut))
