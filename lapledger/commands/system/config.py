"""`lap config`: every setting and where its value comes from."""

from typing import Any

import click

from lapledger.cli.groups import HelpGroup
from lapledger.cli.options import json_option
from lapledger.ledger.redaction import redacted
from lapledger.render.output import print_json, print_table
from lapledger.settings import Settings, read_settings, source_of


@click.group(cls=HelpGroup)
def command() -> None:
    """Show each setting and where it comes from.

    \b
    Example:
      LAP_SLOTS=4 lap config show
    """


@command.command()
@json_option
def show(as_json: bool) -> None:
    """Print each setting, its value, its source and its meaning. Passwords are hidden; their source is shown.

    \b
    Example:
      lap config show --json
    """
    settings = read_settings()
    rows = [
        (name, shown(getattr(settings, name)), source_of(name), field.description)
        for name, field in Settings.model_fields.items()
    ]
    if as_json:
        print_json({name: {"value": value, "source": source, "meaning": text} for name, value, source, text in rows})
    else:
        print_table(("setting", "value", "source", "meaning"), [(n, str(v), s, t) for n, v, s, t in rows])


def shown(value: Any) -> Any:
    """A setting's value without what is secret in it: the user and password of an address, and its secret options."""
    return redacted(value) if isinstance(value, str) else value
