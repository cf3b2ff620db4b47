"""`lap down`: ends the servers that `lap up` started, by their own pids."""

from pathlib import Path

import click

from lapledger.commands.system.up import held, into_option
from lapledger.render.output import json_option, print_json, say


@click.command()
@into_option
@json_option
def command(into: str, as_json: bool) -> None:
    """Stop the servers that `lap up` started in a folder; their data stay, and `lap up` goes on with them.

    \b
    Example:
      lap down
    """
    folder = Path(into)
    stopped = _stopped(folder) if folder.is_dir() else {}
    if as_json:
        print_json({"stopped": stopped})
        return
    for name, pids in stopped.items():
        say(f"{name}: stopped (process {', '.join(map(str, pids))})")
    if not stopped:
        say(f"no server runs in {folder}")


def _stopped(folder: Path) -> dict[str, tuple[int, ...]]:
    """The processes that were ended, by server."""
    from lapledger.stack.kafka import KafkaServer
    from lapledger.stack.postgres import PostgresServer

    with held(folder):
        pids = {"kafka": KafkaServer(folder / "kafka").stop(), "postgres": PostgresServer(folder / "postgres").stop()}
    return {name: ended for name, ended in pids.items() if ended}
