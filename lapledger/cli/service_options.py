"""The options of every service, and how a service ends a command."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from lapledger.ledger.store.location import Location
    from lapledger.workflows.logs import Form
    from lapledger.workflows.service_runtime import Service

lease_option = click.option(
    "--lease",
    "lease_seconds",
    type=click.FloatRange(min=1, max=600),
    default=30.0,
    metavar="SECONDS",
    help="Lease timeout: others take over the work this long after the process dies.  [default: 30]",
)
log_option = click.option(
    "--log",
    "log",
    type=click.Choice(["auto", "text", "json"]),
    default="auto",
    help="Log format on stderr; auto is text at a terminal.  [default: auto]",
)


@contextmanager
def serving(location: "Location", name: str, log: "Form", lease_seconds: float) -> "Iterator[Service]":
    """The service until a signal stops it. A failure that its log holds already ends the command without a message."""
    from lapledger.workflows import service_runtime

    try:
        with service_runtime.serving(location, name, log, lease_seconds) as service:
            yield service
    except service_runtime.ServiceFailed as error:
        raise click.exceptions.Exit(error.exit_code) from error
