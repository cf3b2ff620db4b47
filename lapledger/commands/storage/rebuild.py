"""`lap ledger rebuild`: restore the SQL database from segments and manifests alone."""

from dataclasses import asdict

import click

from lapledger.cli.options import json_option, ledger_option
from lapledger.ledger.proof import RecordedHead
from lapledger.render.output import print_json, print_line, print_message
from lapledger.settings import read_settings
from lapledger.workflows.session import new_id, now_ms, utc_now


@click.command("rebuild")
@click.option("--head", default=None, metavar="HEAD", help="Stored head hash: selects the chain.")
@ledger_option
@json_option
def command(head: str | None, ledger: str | None, as_json: bool) -> None:
    """Rebuild a lost database from the sealed segments; the rest is read from the stream.

    The database must be empty or missing. Sealed data are restored at once; the tail is read from the stream again by
    the next command that writes, or by `lap sink`, and gets the same numbers.

    \b
    Example:
      mv results/ledger.sqlite /tmp/
      lap ledger rebuild --ledger results
      lap verify --ledger results
    """
    from lapledger.consumers.storage.rebuild import Now, rebuild

    written = None if head is None else RecordedHead.parse(head)
    location = read_settings(ledger=ledger).location
    done = rebuild(location, Now(utc_now(), now_ms()), written, stream_identity=new_id())
    for chain in done.rejected_chains:
        print_message(f"excluded, as it covers no more: {chain}")
    if done.other_stream:
        print_message(
            "the stream is not the one that was sealed: of that one, nothing that was not sealed is restored; this one"
            " is read from its beginning"
        )
    if done.proven is None:
        print_message(
            f"the head covers more than the sealed data: ingest the stream, then run `lap verify --head {written}`"
        )
    if as_json:
        print_json(asdict(done))
        return
    print_line(f"rebuilt: {done.segments} segments, {done.frames} frames, {done.quarantined} quarantined records")
    print_line(f"head {done.head}")
    print_line(f"cut {done.cut}")
