"""`lap seal`: seal the tail and merge small segments, once or until stopped."""

import click

from lapledger.cli.options import ledger_option
from lapledger.cli.service_options import lease_option, log_option, serving
from lapledger.ledger.store.location import Location
from lapledger.render.output import count, print_message
from lapledger.render.terminal import TERMINAL
from lapledger.settings import read_settings
from lapledger.workflows.logs import Form
from lapledger.workflows.malloc import keep_freed_memory
from lapledger.workflows.session import now_ms, open_writer


@click.command()
@click.option("--follow", is_flag=True, help="Continue until stopped.")
@click.option(
    "--max-tail-age",
    "max_age",
    type=click.FloatRange(min=0),
    default=60.0,
    metavar="SECONDS",
    help="With --follow: seal when the oldest unsealed frame is older.  [default: 60]",
)
@click.option(
    "--max-tail-mb",
    "megabytes",
    type=click.FloatRange(min=0),
    default=256.0,
    metavar="MB",
    help="With --follow: seal when the tail is larger.  [default: 256]",
)
@click.option("--compact", "merge", is_flag=True, help="Also merge small segments; --follow always does.")
@ledger_option
@lease_option
@log_option
def command(
    follow: bool, max_age: float, megabytes: float, merge: bool, ledger: str | None, lease_seconds: float, log: Form
) -> None:
    """Seal the tail into immutable Parquet segments. With --follow, whenever it is old or large enough, and merge them.

    Several processes may run: one seals, by lease, and another takes over when it dies.

    \b
    Example:
      lap seal --compact
      lap seal --follow --max-tail-age 300 --max-tail-mb 512
    """
    location = read_settings(ledger=ledger).location
    if not follow:
        seal_now(location, merge=merge)
        return
    from lapledger.consumers.services.seal import SealFollower, SealWhen

    with serving(location, "seal", log, lease_seconds) as service:
        when = SealWhen(round(megabytes * 1_000_000), max_age)
        service.run(service.alone(), SealFollower(service.ledger, service.context, when))


def seal_now(location: Location, *, merge: bool) -> None:
    """Seals what was admitted and reports the counts; with `merge` small segments are merged."""
    from lapledger.consumers.storage.compactor import Compacted, compact
    from lapledger.consumers.storage.sealer import seal

    keep_freed_memory()
    with open_writer(location, "lap seal", TERMINAL) as session:
        sealed = seal(session.ledger)
        merged = compact(session.ledger, now_ms()) if merge else Compacted()
        cut = session.ledger.cut()
    merged_text = f", {count(merged.superseded, 'segment')} merged into {merged.segments}" if merge else ""
    print_message(
        f"sealed {count(sealed.frames, 'frame')} ({count(sealed.rows, 'event')}) into "
        f"{count(sealed.segments, 'segment')}{merged_text}; cut {cut}"
    )
