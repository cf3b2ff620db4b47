"""`lap sink`: bring what lies on the stream into the ledger, for as long as it runs."""

import click

from lapledger.cli.options import json_option, ledger_option
from lapledger.cli.service_options import lease_option, log_option, serving
from lapledger.ledger.store.location import Location
from lapledger.render.output import print_json, say
from lapledger.settings import read_settings
from lapledger.workflows.logs import Form


@click.command()
@ledger_option
@lease_option
@log_option
@click.option("--once", is_flag=True, help="Admit what is there now and exit.")
@json_option
def command(ledger: str | None, lease_seconds: float, log: Form, once: bool, as_json: bool) -> None:
    """Admit frames as they arrive. Any number of sinks may run: partitions are divided, and taken over by lease.

    SIGTERM and Ctrl-C finish the batch under way, give the leases back and exit with 0.

    \b
    Example:
      lap sink
      lap sink --once --json
    """
    from lapledger.consumers.services.sink import SinkFollower
    from lapledger.ledger.events import PARTITIONS

    place = read_settings(ledger=ledger).location
    if once:
        _once(place, as_json=as_json)
        return
    with serving(place, "sink", log, lease_seconds) as service:
        group = service.group("sinks", tuple(PARTITIONS))
        by_broker, show = place.kafka is not None, getattr(group, "show", None)
        follower = SinkFollower(
            service.ledger, service.stream, service.context, assigned_by_broker=by_broker, show=show
        )
        service.run(group, follower)


def _once(place: Location, *, as_json: bool) -> None:
    from contextlib import closing
    from dataclasses import asdict

    from lapledger.consumers.ingest.sink import drain
    from lapledger.ledger.store.open_ledger import open_ledger
    from lapledger.workflows.session import utc_now

    with closing(open_ledger(place)) as opened, closing(opened.stream()) as stream:
        drained = drain(opened, stream, seen=utc_now())
        cut = str(opened.cut())
    if as_json:
        print_json({"cut": cut, **asdict(drained)})
    else:
        counts = (
            f"{drained.admitted} frames admitted, {drained.duplicates} duplicates, {drained.quarantined} quarantined"
        )
        say(f"{counts}; cut {cut}")
