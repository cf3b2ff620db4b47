"""The options that name a replay, and the decision to store it."""

import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

import click

from lapledger.ledger.store.location import Location
from lapledger.render.terminal import TERMINAL
from lapledger.workflows.session import open_writer

if TYPE_CHECKING:
    from lapledger.workflows.analysis.named_replays import Preview

F = TypeVar("F", bound=Callable[..., Any])


def naming_options(function: F) -> F:
    """Adds --name, --reason, --previous, --store and --preview, and --list."""
    options = (
        click.option("--name", default=None, metavar="NAME", help="Store the result under this name, as an event."),
        click.option("--reason", default=None, metavar="TEXT", help="Reason, stored too; required with --name."),
        click.option(
            "--previous",
            default=None,
            metavar="NAME",
            help="With --name: the earlier replay whose verdicts are compared.  [default: the latest]",
        ),
        click.option(
            "--store/--preview",
            default=None,
            help="Store it at once, or only show what would be stored.  [default: prompt]",
        ),
        click.option("--list", "listing", is_flag=True, help="List the named replays instead."),
    )
    for option in reversed(options):
        function = option(function)
    return function


def store_if_wanted(location: Location, preview: "Preview", *, quiet: bool) -> bool:
    """Whether the replay was stored: as --store or --preview decide, else as the user answers at a terminal."""
    from lapledger.workflows.analysis.named_replays import store_preview

    wanted = preview.naming.store
    if wanted is None:
        wanted = not quiet and sys.stdin.isatty() and click.confirm("Store it?", default=False, err=True)
    if wanted:
        with open_writer(location, "lap replay", TERMINAL) as writer:
            store_preview(writer, preview)
        TERMINAL.message(f"replay {preview.naming.name!r} is stored as {preview.draft.event.replay_id[:12]}")
    else:
        TERMINAL.message("preview: nothing was stored; the same command with --store stores it")
    return wanted
