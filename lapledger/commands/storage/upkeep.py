"""`lap ledger compact` and `lap ledger gc`: merge small segments, and delete unreferenced files."""

import sys
from collections import Counter
from collections.abc import Sequence
from contextlib import closing
from dataclasses import asdict
from typing import TYPE_CHECKING

import click

from lapledger.cli.options import json_option, ledger_option
from lapledger.ledger.errors import UserError
from lapledger.render.output import print_json, print_line, print_message, print_table
from lapledger.settings import read_settings
from lapledger.workflows.session import now_ms

if TYPE_CHECKING:
    from lapledger.consumers.storage.garbage_collector import Garbage
    from lapledger.consumers.storage.stream_trim import Trim
    from lapledger.ledger.store.open_ledger import Ledger
    from lapledger.ledger.streams.base import Stream

DAY_MS = 24 * 3600 * 1000
LEAST_DAYS = 1 / 24
"""A shorter grace period could delete files that a process is about to reference."""
LEAST_DAYS_REMOTE = 2.0
"""On an object store: there a put makes an object young again only when it is a day old."""


@click.command()
@click.option(
    "--target-mb",
    type=click.IntRange(min=1),
    default=128,
    metavar="MB",
    help="Size of merged segments.  [default: 128]",
)
@ledger_option
@json_option
def compact(target_mb: int, ledger: str | None, as_json: bool) -> None:
    """Merge small segments into larger ones. No result and no old head changes; the old files stay until `gc`.

    \b
    Example:
      lap ledger compact
    """
    from lapledger.consumers.storage.compactor import compact as merge
    from lapledger.ledger.store.open_ledger import open_ledger

    with closing(open_ledger(read_settings(ledger=ledger).location)) as ledger_open:
        done = merge(ledger_open, now_ms(), target_bytes=target_mb << 20)
        cut = str(ledger_open.cut())
    if as_json:
        print_json({"cut": cut, **asdict(done)})
    else:
        print_message(
            f"merged {done.superseded} segments ({done.bytes_before} bytes) into {done.segments}"
            f" ({done.bytes_after} bytes); cut {cut}"
        )


@click.command()
@click.option(
    "--grace",
    type=click.FloatRange(min=LEAST_DAYS),
    default=7.0,
    metavar="DAYS",
    help="Keep younger files.  [default: 7]",
)
@click.option("--truncate-stream", is_flag=True, help="Delete sealed records of the stream, after verification.")
@click.option("--dry-run", is_flag=True, help="Only show what would be deleted.")
@click.option("--yes", is_flag=True, help="Do not ask for confirmation.")
@ledger_option
@json_option
def gc(grace: float, truncate_stream: bool, dry_run: bool, yes: bool, ledger: str | None, as_json: bool) -> None:
    """Delete unreferenced files, and segments whose frames are verified to be in a merged one.

    The grace period protects files that a producer has stored and not referenced yet: keep it longer than a producer
    may be disconnected from the ledger. Nothing is deleted from a damaged ledger.

    \b
    Example:
      lap ledger gc --dry-run
      lap ledger gc --grace 30 --yes
    """
    from lapledger.consumers.storage.garbage_collector import GracePeriod, collect, find_garbage
    from lapledger.consumers.storage.stream_trim import trim, trimmable
    from lapledger.ledger.store.open_ledger import open_ledger

    location = read_settings(ledger=ledger).location
    if location.store and grace < LEAST_DAYS_REMOTE:
        raise UserError(f"--grace {grace:g}: on an object store the minimum is {LEAST_DAYS_REMOTE:g} days")
    with closing(open_ledger(location)) as ledger_open, closing(ledger_open.stream()) as stream:
        behind = _is_behind(ledger_open, stream)
        if behind:
            print_message("blobs are kept: the stream holds records that are not admitted yet and may reference some")
        garbage = find_garbage(ledger_open, GracePeriod(now_ms(), round(grace * DAY_MS)), with_blobs=not behind)
        trims = trimmable(ledger_open, stream) if truncate_stream else []
        if not as_json:
            _show(garbage, trims)
        removed: list[Garbage] = []
        if not dry_run and (garbage or trims) and _agreed(yes):
            removed = collect(ledger_open, garbage)
            trim(ledger_open, stream, trims)
        cut = str(ledger_open.cut())
    if as_json:
        items = [asdict(item) for item in garbage]
        print_json({"cut": cut, "found": items, "trims": [asdict(item) for item in trims], "removed": len(removed)})
    print_message(
        f"{len(removed)} of {len(garbage)} files removed, {sum(item.bytes for item in removed)} bytes; cut {cut}"
    )


def _is_behind(ledger: "Ledger", stream: "Stream") -> bool:
    """True when the stream holds records that the ledger has not read."""
    from lapledger.consumers.ingest.admission import positions

    ends = stream.ends()
    return any(ends.get(partition, 0) > position.next_position for partition, position in positions(ledger).items())


def _show(garbage: "Sequence[Garbage]", trims: "Sequence[Trim]") -> None:
    files, sizes = Counter[tuple[str, str]](), Counter[tuple[str, str]]()
    for item in garbage:
        files[item.store, item.reason] += 1
        sizes[item.store, item.reason] += item.bytes
    rows = [(*kind, count, sizes[kind]) for kind, count in sorted(files.items())]
    print_table(("store", "reason", "files", "bytes"), rows)
    if trims:
        print_line()
        print_table(("stream", "partition", "truncate before"), [(t.stream, t.partition, t.position) for t in trims])


def _agreed(yes: bool) -> bool:
    if yes:
        return True
    if not sys.stdin.isatty():
        raise UserError("gc deletes files; add --yes, or preview with --dry-run")
    return click.confirm("Delete them?", err=True)
