"""`lap sql`: a read-only SELECT over the documented views at a cut, without file or network access."""

import resource
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import click

from lapledger.cli.options import at_option, json_option, ledger_option
from lapledger.ledger.questions.open_questions import open_questions
from lapledger.render.output import count, print_json, print_message, print_rows, print_table
from lapledger.settings import read_settings

MEMORY_BYTES = 3 << 30
"""Most that the process takes: the database has a gigabyte of it, and rows are copied on their way to the terminal."""
ANSWER_BYTES = 128 << 20


@contextmanager
def _bounded_memory() -> Iterator[None]:
    """The process gets no more memory than MEMORY_BYTES beside what it has."""
    before, most = resource.getrlimit(resource.RLIMIT_DATA)
    held = int(Path("/proc/self/statm").read_text().split()[5]) * resource.getpagesize()
    bounds = [limit for limit in (held + MEMORY_BYTES, before, most) if limit != resource.RLIM_INFINITY]
    resource.setrlimit(resource.RLIMIT_DATA, (min(bounds), most))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_DATA, (before, most))


@click.command()
@click.argument("query", required=False)
@click.option("--views", is_flag=True, help="List the documented views.")
@click.option(
    "--timeout", type=click.FloatRange(0.1), default=60.0, metavar="SECONDS", help="Longest time.  [default: 60]"
)
@click.option(
    "--limit-rows",
    type=click.IntRange(0),
    default=10_000,
    metavar="N",
    help="Most rows to print; the others are counted.  [default: 10000]",
)
@ledger_option
@at_option
@json_option
def command(
    query: str | None,
    *,
    views: bool,
    timeout: float,
    limit_rows: int,
    ledger: str | None,
    at: str | None,
    as_json: bool,
) -> None:
    """Run one SELECT over the documented views.

    It is read-only and bounded: in time, in memory (1 GB) and in the size of its answer.

    \b
    Example:
      lap sql "SELECT outcome, count(*) AS n FROM execution WHERE accepted GROUP BY outcome"
    """
    from lapledger.ledger.questions.queries import plain_rows
    from lapledger.ledger.questions.views import VIEWS

    if views or query is None:
        print_table(("view", "meaning"), [(view.name, view.doc) for view in VIEWS])
        return
    with _bounded_memory(), open_questions(read_settings(ledger=ledger).location, at) as questions:
        answer = questions.query_user(query, timeout=timeout, limit_rows=limit_rows, max_bytes=ANSWER_BYTES)
        names, rows = answer.table.column_names, plain_rows(answer.table)
        if as_json:
            print_json({"cut": str(questions.cut), "columns": names, "rows": rows, "more_rows": answer.more})
        else:
            print_rows(names, rows, cut=str(questions.cut))
    if answer.more:
        print_message(f"{count(answer.more, 'more row')} not shown; --limit-rows raises the limit")
