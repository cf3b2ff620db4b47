"""The reference page of the command line, docs/cli.md: the help of every command, as `lap COMMAND --help` prints it."""

from collections.abc import Iterator

import click

from lapledger.cli.main import SECTIONS, lap

WIDTH = 100
"""Columns of the help texts on the page."""


def cli_page(note: str) -> Iterator[str]:
    """The lines of docs/cli.md; `note` is its first."""
    root = click.Context(lap, info_name="lap", terminal_width=WIDTH, **lap.context_settings)
    yield from (note, "", "# Commands", "")
    yield "Every command with its options. Settings are read from flags, then `LAP_*` variables, then `lap.toml`."
    for title, commands in SECTIONS.items():
        yield from ("", f"## {title}")
        for name in commands:
            yield from _help(root, lap, name)


def _help(parent: click.Context, group: click.Group, name: str) -> Iterator[str]:
    command = group.get_command(parent, name)
    if command is None:
        raise KeyError(name)
    context = click.Context(command, parent=parent, info_name=name, **command.context_settings)
    yield from ("", f"### `{context.command_path}`", "", "```")
    yield from (line.rstrip() for line in command.get_help(context).split("\n"))
    yield "```"
    if isinstance(command, click.Group):
        for subcommand in command.list_commands(context):
            yield from _help(context, command, subcommand)
