"""`lap sink`: continuously ingest the stream into the ledger."""

import click

from lapledger.cli.options import json_option, ledger_option
from lapledger.cli.service_options import lease_option, log_option, serving
from lapledger.ledger.store.location import Location
from lapledger.render.output import print_json, print_message
from lapledger.settings import read_settings
from lapledger.workflows.logs import Form


@click.command()
@ledger_option
@lease_option
@log_option
@click.option("--once", is_flag=True, help="Admit what is on the stream now, and exit.")
@json_option
def command(ledger: str | None, lease_seconds: float, log: Form, once: bool, as_json: bool) -> None:
    """Admit frames as they arrive. Any number of sinks may run: they share the partitions, by lease.

    SIGTERM and Ctrl-C shut down gracefully: the current batch is finished and leases are released. Exit code 0.

    \b
    Example:
      lap sink
      lap sink --once --json
    """
    from lapledger.consumers.services.sink import SinkFollower
    from lapledger.ledger.events import PARTITIONS

    location = read_settings(ledger=ledger).location
    if once:
        _once(location, as_json=as_json)
        return
    with serving(location, "sink", log, lease_seconds) as service:
        group = service.group("sinks", tuple(PARTITIONS))
        by_broker, show = location.kafka is not None, getattr(group, "show", None)
        follower = SinkFollower(
            service.ledger, service.stream, service.context, assigned_by_broker=by_broker, show=show
        )
        service.run(group, follower)


def _once(location: Location, *, as_json: bool) -> None:
    from contextlib import closing
    from dataclasses import asdict

    from lapledger.consumers.ingest.sink import drain
    from lapledger.ledger.store.open_ledger import open_ledger
    from lapledger.workflows.session import utc_now

    with closing(open_ledger(location)) as ledger_open, closing(ledger_open.stream()) as stream:
        drained = drain(ledger_open, stream, seen=utc_now())
        cut = str(ledger_open.cut())
    if as_json:
        print_json({"cut": cut, **asdict(drained)})
    else:
        counts = (
            f"{drained.admitted} frames admitted, {drained.duplicates} duplicates, {drained.quarantined} quarantined"
        )
        print_message(f"{counts}; cut {cut}")
