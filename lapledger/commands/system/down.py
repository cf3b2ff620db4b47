"""`lap down`: stop the servers that `lap up` started, by their process ids."""

from pathlib import Path

import click

from lapledger.cli.options import json_option, servers_option
from lapledger.render.output import print_json, print_message
from lapledger.workflows.local_servers import stop_servers


@click.command()
@servers_option
@json_option
def command(folder: str, as_json: bool) -> None:
    """Stop the servers that `lap up` started; their data stay, and `lap up` starts them again.

    \b
    Example:
      lap down
    """
    stopped = stop_servers(Path(folder))
    if as_json:
        print_json({"stopped": stopped})
        return
    for name, pids in stopped.items():
        print_message(f"{name}: stopped (process {', '.join(map(str, pids))})")
    if not stopped:
        print_message(f"no server is running in {folder}")
