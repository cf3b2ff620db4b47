"""What a command prints: tables or JSON on stdout, messages and progress on stderr.

Every output names the cut it was computed at. Text from programs and packages is printed as text, never as markup, and
what would command a terminal is replaced: here, for every command.
"""

import json
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import click
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from rich.table import Table
from rich.text import Text

from lapledger.ledger.atomic_write import finite
from lapledger.ledger.redaction import redacted

LONGEST_CELL = 10_000
"""Characters of a cell that a table shows; JSON has all of them."""


def print_json(value: Mapping[str, Any]) -> None:
    """One JSON object on stdout, keys in the given order."""
    clean = finite(value)
    text = json.dumps(clean, indent=2, ensure_ascii=False, allow_nan=False, default=str)
    try:
        text.encode(sys.stdout.encoding or "utf-8")
    except UnicodeEncodeError:  # a lone surrogate, or a character that the terminal lacks: JSON's escape
        text = json.dumps(clean, indent=2, allow_nan=False, default=str)
    click.echo(text)


def print_table(columns: Sequence[str], rows: Sequence[Sequence[object]], *, title: str = "", cut: str = "") -> None:
    """A table on stdout, numbers flush right, with the cut below it."""
    table = Table(
        title=Text(plain(title)) if title else None, title_justify="left", box=None, pad_edge=False, header_style="bold"
    )
    for column, name in enumerate(columns):
        numeric = all(isinstance(row[column], int | float) or row[column] in ("", "-") for row in rows)
        table.add_column(Text(plain(name)), justify="right" if numeric and rows else "left", overflow="fold")
    for row in rows:
        table.add_row(*(Text(_cell(value)) for value in row))
    console = stdout()
    console.print(table)
    if cut:
        console.print(Text(f"cut {cut}", style="dim"), soft_wrap=True)


def print_rows(columns: Sequence[str], rows: Sequence[Sequence[object]], *, cut: str) -> None:
    """A table where it fits the width, else one block of `name value` lines a row."""
    columns = [plain(name) for name in columns]
    cells = [[_cell(value) for value in row] for row in rows]
    widths = [max(map(len, column)) for column in zip(columns, *cells, strict=True)]
    if sum(widths) + 2 * len(widths) <= stdout().width:
        print_table(columns, rows, cut=cut)
        return
    longest = max(map(len, columns))
    for row in cells:
        print_line("\n".join(f"{name:<{longest}}  {value}" for name, value in zip(columns, row, strict=True)) + "\n")
    print_line(f"cut {cut}")


def count(number: int, noun: str, plural: str = "") -> str:
    """A number with its noun in agreement: `1 verdict`, `2 verdicts`."""
    return f"{number} {noun if number == 1 else plural or noun + 's'}"


def print_message(message: str) -> None:
    """A message on stderr."""
    click.echo(redacted(_safe(message)), err=True)


def print_line(text: str = "") -> None:
    """A line of data on stdout."""
    click.echo(_safe(text))


def _safe(text: str) -> str:
    """A text whose lines cannot command a terminal, whatever names they hold."""
    return "\n".join(map(plain, text.split("\n")))


def print_warnings(warnings: Iterable[str]) -> None:
    """One line on stderr for each warning."""
    for warning in warnings:
        print_message(f"warning: {warning}")


def _cell(value: object) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:.1f}" if abs(value) >= 10 else f"{value:.3g}"
    if value is None:
        return "-"
    text = str(value)
    return plain(text if len(text) <= LONGEST_CELL else f"{text[:LONGEST_CELL]}... ({len(text)} characters)")


def plain(text: str) -> str:
    """A text on one line that cannot command a terminal: what does not print becomes a replacement character."""
    return "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in text)


class _Stdout(Console):
    """Stdout that leaves a closed pager to `main`."""

    def on_broken_pipe(self) -> None:
        """Instead of an exit with 1."""
        raise BrokenPipeError


def stdout(width: int = 160) -> Console:
    """Where rich writes data: as wide as the terminal, or as wide as given where there is none."""
    console = _Stdout(highlight=False)
    return console if console.is_terminal else _Stdout(highlight=False, width=width)


@contextmanager
def progress(label: str, total: int) -> Iterator[Progress]:
    """A progress bar on stderr with one task; nothing is drawn when stderr is no terminal."""
    bar = Progress(
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
        TextColumn("{task.fields[note]}", markup=False),
        console=Console(stderr=True),
        disable=not Console(stderr=True).is_terminal,
    )
    bar.add_task(plain(label), total=total, note="")
    with bar:
        yield bar
