"""`lap quarantine`: records that could not be admitted, stored with the reason; show and retry them."""

import base64
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import click

from lapledger.cli.groups import HelpGroup
from lapledger.cli.options import json_option, ledger_option
from lapledger.render.output import count, plain, print_json, print_line, print_message, print_table
from lapledger.settings import read_settings
from lapledger.workflows.session import utc_now

if TYPE_CHECKING:
    from lapledger.ledger.store.open_ledger import Ledger
    from lapledger.ledger.store.quarantine import Quarantined

HEAD_BYTES = 256

reason_option = click.option("--reason", default=None, metavar="REASON", help="Only records with this reason.")


@click.group(cls=HelpGroup)
def command() -> None:
    """Show records that could not be admitted, and retry them after a fix. Nothing is ever dropped.

    \b
    Example:
      lap quarantine list
      lap quarantine show 7
      lap quarantine retry --reason unknown-type
    """


@contextmanager
def _ledger(ledger: str | None) -> Iterator["Ledger"]:
    from lapledger.ledger.store.open_ledger import open_ledger

    ledger_open = open_ledger(read_settings(ledger=ledger).location)
    try:
        yield ledger_open
    finally:
        ledger_open.close()


@command.command("list")
@reason_option
@click.option("--after", type=click.IntRange(min=0), default=0, metavar="ID", help="Only records after this one.")
@click.option(
    "--limit-rows", "most", type=click.IntRange(min=1), default=100, metavar="N", help="Most rows.  [default: 100]"
)
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

    with _ledger(ledger) as ledger_open, reading(ledger_open.engine) as connection:
        cut = str(cut_now(connection))
        counts = reason_counts(connection)
        lines = summaries(connection, reason=reason, after=after, limit=most)
    if as_json:
        print_json({"cut": cut, "reasons": _plain(counts), "records": _plain(lines)})
        return
    print_table(
        ("reason", "records", "admitted since"),
        [(result.reason, result.records, result.admitted) for result in counts],
        cut=cut,
    )
    if lines:
        rows = [(*list(asdict(line).values())[:-1], line.admission or "-") for line in lines]
        print_line()
        print_table(("id", "stream", "partition", "offset", "reason", "message", "bytes", "seen", "admitted as"), rows)
    if len(lines) == most:
        print_message(f"there may be more: `lap quarantine list --after {lines[-1].id}`")


@command.command()
@click.argument("number", metavar="ID", type=int)
@click.option("--raw", is_flag=True, help="Write only the payload's bytes to standard output.")
@ledger_option
@json_option
def show(number: int, raw: bool, ledger: str | None, as_json: bool) -> None:
    """Show one record: why it was quarantined, its headers, and the start of its payload.

    \b
    Example:
      lap quarantine show 7
      lap quarantine show 7 --raw > frame.arrow
    """
    from lapledger.ledger.store.quarantine import quarantined_record
    from lapledger.ledger.store.sql.engine import reading

    with _ledger(ledger) as ledger_open, reading(ledger_open.engine) as connection:
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
    print_line("\n".join(_hex_lines(record.payload[:HEAD_BYTES])))
    if len(record.payload) > HEAD_BYTES:
        print_message(f"{len(record.payload) - HEAD_BYTES} more bytes; --raw writes all")


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
    """The bytes as lines of sixteen: offset, hexadecimal, and printable characters."""
    for start in range(0, len(data), 16):
        row = data[start : start + 16]
        characters = "".join(chr(byte) if 32 <= byte < 127 else "." for byte in row)
        yield f"{start:08x}  {row.hex(' '):<47}  {characters}"


@command.command()
@click.argument("number", metavar="[ID]", type=int, required=False)
@reason_option
@ledger_option
@json_option
def retry(number: int | None, reason: str | None, ledger: str | None, as_json: bool) -> None:
    """Retry records: one, all of a reason, or all. Records that are admitted get new admission numbers.

    No old cut changes. Admitted records are sealed at once: a rebuild knows a retry only from segments. Exit code 1
    when a record stays quarantined.

    \b
    Example:
      lap quarantine retry 7
      lap quarantine retry --reason unknown-type
    """
    from lapledger.consumers.ingest.quarantine_retry import retry as retry_records
    from lapledger.consumers.storage.sealer import seal

    if number is not None and reason is not None:
        raise click.UsageError("give an ID or --reason, not both")
    with _ledger(ledger) as ledger_open:
        retried = retry_records(ledger_open, seen=utc_now(), id=number, reason=reason)
        if any(result.admission is not None and not result.reason for result in retried):
            seal(ledger_open)
        cut = str(ledger_open.cut())
    kept = [result for result in retried if result.admission is None]
    if as_json:
        print_json({"cut": cut, "admitted": len(retried) - len(kept), "kept": len(kept), "records": _plain(retried)})
    elif retried:
        rows = [(result.id, "-" if result.admission is None else result.admission, result.reason) for result in retried]
        print_table(("id", "admitted as", "reason"), rows, cut=cut)
    print_message(
        f"{count(len(retried) - len(kept), 'record')} admitted, {len(kept)} still quarantined"
        if retried
        else "nothing to retry"
    )
    if kept:
        raise click.exceptions.Exit(1)


def _plain(values: Sequence[Any]) -> list[dict[str, Any]]:
    return [asdict(value) for value in values]
