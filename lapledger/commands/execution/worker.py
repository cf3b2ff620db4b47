"""`lap worker`: run the works that campaigns ask for, beside other workers, for as long as it runs."""

from typing import Any

import click

from lapledger.cli.options import ledger_option
from lapledger.cli.service_options import lease_option, log_option, serving
from lapledger.render.terminal import TERMINAL
from lapledger.settings import read_settings
from lapledger.workflows.logs import Form
from lapledger.workflows.service_runtime import group_name


@click.command()
@ledger_option
@click.option("--slots", type=int, default=None, metavar="N", help="Programs run side by side.")
@click.option("--service", default=None, metavar="NAME", help="Worker class whose campaigns it runs.  [default: local]")
@click.option("--isolation", type=click.Choice(["auto", "bubblewrap", "plain"]), default=None, help="[default: auto]")
@lease_option
@log_option
def command(ledger: str | None, lease_seconds: float, log: Form, **flags: Any) -> None:
    """Run the open works of all campaigns, in their order. Up to eight worker processes share them, by lanes.

    Only machines of one kind work on one campaign: the first decides. SIGTERM and Ctrl-C finish the programs that run.

    \b
    Example:
      lap run --submit --campaign main
      lap worker --slots 8
    """
    import tempfile
    from pathlib import Path

    from lapledger.ledger.events import REQUESTS
    from lapledger.workflows.execution.worker_service import PoolFollower
    from lapledger.workflows.execution.worker_setup import Site, find_sandbox

    settings = read_settings(ledger=ledger, **flags)
    with serving(settings.location, "worker", log, lease_seconds) as service:
        sandbox = find_sandbox(service.ledger.root, settings, TERMINAL)
        with tempfile.TemporaryDirectory(prefix="lap-worker-") as scratch:
            site = Site(sandbox, settings.slots, Path(scratch))
            group = service.group(group_name("workers", settings.service), (REQUESTS,))
            service.derive(group, PoolFollower(service, site, settings.service))
