"""Click groups as `lap` wants them: a bare group prints its help, and an unknown command names the nearest one."""

import importlib
from collections.abc import Mapping
from typing import Any

import click

from lapledger.ledger.errors import nearest


class HelpGroup(click.Group):
    """A group that prints its help and exits with 0 when no command is given.

    `lazy` maps the names of further commands to `module:attribute`; a module is imported when its command is called
    or listed.
    """

    def __init__(self, *args: Any, lazy: Mapping[str, str] | None = None, **attributes: Any) -> None:
        super().__init__(*args, **attributes)
        self.lazy = dict(lazy or {})

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Every name, in alphabetical order."""
        return sorted({*super().list_commands(ctx), *self.lazy})

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The command of a name, imported now if it is a lazy one; None for an unknown name."""
        if cmd_name not in self.lazy:
            return super().get_command(ctx, cmd_name)
        module, _, attribute = self.lazy[cmd_name].partition(":")
        command: click.Command = getattr(importlib.import_module(module), attribute)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Writes each command with the first sentence of its help, whole: a line that is cut short explains nothing."""
        commands = {name: self.get_command(ctx, name) for name in self.list_commands(ctx)}
        with formatter.section("Commands"):
            formatter.write_dl(
                [(name, command.get_short_help_str(500)) for name, command in commands.items() if command]
            )

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """The arguments that are left for the command; without any, help."""
        if not args and not ctx.resilient_parsing:
            click.echo(ctx.get_help())
            ctx.exit()
        return super().parse_args(ctx, args)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """The command that the first argument names; UsageError suggests the nearest for an unknown one."""
        name, known = args[0], self.list_commands(ctx)
        if name not in known and not ctx.resilient_parsing and not name.startswith("-"):
            raise click.UsageError(f"no such command {name!r}{nearest(name, known)}", ctx)
        return super().resolve_command(ctx, args)
