"""`lap worker`: execute queued jobs until stopped."""

from typing import Any

import click

from lapledger.cli.options import isolation_option, ledger_option, slots_option
from lapledger.cli.service_options import lease_option, log_option, serving
from lapledger.render.terminal import TERMINAL
from lapledger.settings import read_settings
from lapledger.workflows.logs import Form
from lapledger.workflows.service_runtime import group_name


@click.command()
@ledger_option
@slots_option
@click.option("--service", default=None, metavar="NAME", help="Worker class to execute campaigns of.  [default: local]")
@isolation_option
@lease_option
@log_option
def command(ledger: str | None, lease_seconds: float, log: Form, **flags: Any) -> None:
    """Execute queued jobs of all campaigns, in order. Up to eight worker processes share them.

    A campaign is executed on machines of one kind: that of the first worker. SIGTERM and Ctrl-C shut down gracefully:
    running programs are finished.

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
