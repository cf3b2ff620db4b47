"""`lap completion`: the script that completes commands, options and presets in a shell."""

import click
from click.shell_completion import BashComplete, FishComplete, ZshComplete

SHELLS = {"bash": BashComplete, "zsh": ZshComplete, "fish": FishComplete}


@click.command()
@click.argument("shell", type=click.Choice(tuple(SHELLS)))
@click.pass_context
def command(context: click.Context, shell: str) -> None:
    """Print the completion script for a shell.

    To install it, add the line for your shell to its start-up file.

    \b
    Example:
      eval "$(lap completion bash)"                                   # in ~/.bashrc
      eval "$(lap completion zsh)"                                    # in ~/.zshrc
      lap completion fish > ~/.config/fish/completions/lap.fish       # once
    """
    click.echo(SHELLS[shell](context.find_root().command, {}, "lap", "_LAP_COMPLETE").source())
