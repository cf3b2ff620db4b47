"""`lap up`: start a real broker and a real database on this machine."""

import shlex
from pathlib import Path

import click

from lapledger.cli.options import json_option, servers_option
from lapledger.render.output import print_json
from lapledger.render.terminal import TERMINAL
from lapledger.workflows.local_servers import SERVERS, start_servers


@click.command()
@servers_option
@click.option("--only", type=click.Choice(SERVERS), default=None, help="Start only this server.")
@click.option("--password", is_flag=True, help="Make servers that ask for a password; it is printed, and kept in DIR.")
@json_option
def command(folder: str, *, only: str | None, password: bool, as_json: bool) -> None:
    """Start Apache Kafka and PostgreSQL on this machine, and print the settings that use them.

    They run until `lap down`; their data stay in the folder. They listen on this machine only, and ask for a password
    where they were made with one. Needs the extra `servers`; the first start downloads Kafka from Maven Central.

    \b
    Example:
      eval "$(lap up)"
      lap ledger init
    """
    settings = start_servers(Path(folder), SERVERS if only is None else (only,), TERMINAL, password=password)
    if as_json:
        print_json(settings)
        return
    for name, value in settings.items():
        click.echo(f"export LAP_{name.upper()}={shlex.quote(value)}")
