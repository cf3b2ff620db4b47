"""`lap quarantine`: what could not be admitted, kept whole with its reason; shown, and tried again after a fix."""

import base64
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import click

from lapledger.cli.groups import HelpGroup
from lapledger.cli.options import json_option, ledger_option
from lapledger.render.output import plain, print_json, print_table, say
from lapledger.settings import read_settings
from lapledger.workflows.session import utc_now

if TYPE_CHECKING:
    from lapledger.ledger.store.open_ledger import Ledger
    from lapledger.ledger.store.quarantine import Quarantined

HEAD_BYTES = 256

reason_option = click.option("--reason", default=None, metavar="WORD", help="Only records with this reason.")


@click.group(cls=HelpGroup)
def command() -> None:
    """Show what could not be admitted, and try it again after a fix. Nothing is ever dropped.

    \b
    Example:
      lap quarantine list
      lap quarantine show 7
      lap quarantine retry --reason unknown-type
    """


@contextmanager
def _opened(ledger: str | None) -> Iterator["Ledger"]:
    from lapledger.ledger.store.open_ledger import open_ledger

    found = open_ledger(read_settings(ledger=ledger).location)
    try:
        yield found
    finally:
        found.close()


@command.command("list")
@reason_option
@click.option("--after", type=click.IntRange(min=0), default=0, metavar="ID", help="Only records after this one.")
@click.option("--rows", "most", type=click.IntRange(min=1), default=100, metavar="N", help="Most rows.  [default: 100]")
@ledger_option
@json_option
def list_(reason: str | None, after: int, most: int, ledger: str | None, as_json: bool) -> None:
    """List records with their reasons, and how many there are of each.

    \b
    Example:
      lap quarantine list --reason fork
    """
    from lapledger.ledger.store.open_ledger import cut_now
    from lapledger.ledger.store.quarantine import reason_counts, summaries
    from lapledger.ledger.store.sql.engine import reading

    with _opened(ledger) as found, reading(found.engine) as connection:
        cut = str(cut_now(connection))
        counts = reason_counts(connection)
        lines = summaries(connection, reason=reason, after=after, limit=most)
    if as_json:
        print_json({"cut": cut, "reasons": _plain(counts), "records": _plain(lines)})
        return
    print_table(
        ("reason", "records", "admitted since"), [(one.reason, one.records, one.admitted) for one in counts], cut=cut
    )
    if lines:
        rows = [(*list(asdict(line).values())[:-1], line.admission or "-") for line in lines]
        click.echo()
        print_table(("id", "stream", "partition", "offset", "reason", "message", "bytes", "seen", "admitted as"), rows)
    if len(lines) == most:
        say(f"there may be more: lap quarantine list --after {lines[-1].id}")


@command.command()
@click.argument("number", metavar="ID", type=int)
@click.option("--raw", is_flag=True, help="Write the payload's bytes to standard output, and nothing else.")
@ledger_option
@json_option
def show(number: int, raw: bool, ledger: str | None, as_json: bool) -> None:
    """Show one record: why it was put aside, its headers, and the head of its payload.

    \b
    Example:
      lap quarantine show 7
      lap quarantine show 7 --raw > frame.arrow
    """
    from lapledger.ledger.store.quarantine import quarantined_record
    from lapledger.ledger.store.sql.engine import reading

    with _opened(ledger) as found, reading(found.engine) as connection:
        record = quarantined_record(connection, number)
    if raw:
        sys.stdout.flush()
        sys.stdout.buffer.write(record.payload)
        return
    fields = _fields(record)
    if as_json:
        payload = base64.b64encode(record.payload).decode()
        print_json({**fields, "headers": dict(record.record.headers), "payload_base64": payload})
        return
    print_table(("field", "value"), [(name, plain(str(value))) for name, value in fields.items() if value is not None])
    print_table(("header", "value"), sorted(record.record.headers.items()) or [("-", "-")])
    click.echo("\n".join(_hex_lines(record.payload[:HEAD_BYTES])))
    if len(record.payload) > HEAD_BYTES:
        say(f"{len(record.payload) - HEAD_BYTES} more bytes; --raw writes them all")


def _fields(record: "Quarantined") -> dict[str, Any]:
    return {
        "id": record.id,
        "stream": record.stream,
        "partition": record.partition,
        "source_offset": record.source_offset,
        "reason": record.reason,
        "message": record.message,
        "seen": record.seen,
        "admission": record.admission,
        "payload_bytes": len(record.payload),
    }


def _hex_lines(data: bytes) -> Iterator[str]:
    """The bytes as lines of sixteen: place, hexadecimal, and those that print."""
    for start in range(0, len(data), 16):
        row = data[start : start + 16]
        words = "".join(chr(byte) if 32 <= byte < 127 else "." for byte in row)
        yield f"{start:08x}  {row.hex(' '):<47}  {words}"


@command.command()
@click.argument("number", metavar="[ID]", type=int, required=False)
@reason_option
@ledger_option
@json_option
def retry(number: int | None, reason: str | None, ledger: str | None, as_json: bool) -> None:
    """Try records again: one, all of a reason, or all. What can be admitted now gets new admission numbers.

    No old cut changes. What was admitted is sealed at once: a rebuild knows a retry only from segments. Exit code 1
    when a record stays where it is.

    \b
    Example:
      lap quarantine retry 7
      lap quarantine retry --reason unknown-type
    """
    from lapledger.consumers.ingest.quarantine_retry import retry as retry_records
    from lapledger.consumers.storage.sealer import seal

    if number is not None and reason is not None:
        raise click.UsageError("give an ID or --reason, not both")
    with _opened(ledger) as found:
        tried = retry_records(found, seen=utc_now(), id=number, reason=reason)
        if any(one.admission is not None and not one.reason for one in tried):
            seal(found)
        cut = str(found.cut())
    kept = [one for one in tried if one.admission is None]
    if as_json:
        print_json({"cut": cut, "admitted": len(tried) - len(kept), "kept": len(kept), "records": _plain(tried)})
    elif tried:
        rows = [(one.id, "-" if one.admission is None else one.admission, one.reason) for one in tried]
        print_table(("id", "admitted as", "why"), rows, cut=cut)
    say(f"{len(tried) - len(kept)} records admitted, {len(kept)} stay in quarantine" if tried else "nothing to retry")
    if kept:
        raise click.exceptions.Exit(1)


def _plain(values: Sequence[Any]) -> list[dict[str, Any]]:
    return [asdict(value) for value in values]
