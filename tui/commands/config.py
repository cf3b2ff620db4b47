"""`lap config`: what is set, and where it comes from."""

import click

from tui.output import json_option, print_json, print_table
from tui.settings import Settings, read_settings, source_of


@click.group()
def command() -> None:
    """Show each setting and where it comes from.

    \b
    Example:
      LAP_SLOTS=4 lap config show
    """


@command.command()
@json_option
def show(as_json: bool) -> None:
    """Print each setting, its value, its source and its meaning."""
    settings = read_settings()
    rows = [
        (name, getattr(settings, name), source_of(name), field.description)
        for name, field in Settings.model_fields.items()
    ]
    if as_json:
        print_json({name: {"value": value, "source": source, "meaning": text} for name, value, source, text in rows})
    else:
        print_table(("setting", "value", "source", "meaning"), [(n, str(v), s, t) for n, v, s, t in rows])
