"""A grid: rows ready to be shown, filtered and sorted, with no terminal in sight.

Every text is made safe here: what cannot be printed is replaced, and nothing is ever read as markup.
"""

import unicodedata
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Generic, TypeVar

R = TypeVar("R")

WIDEST = 60
"""Most cells of a column; a longer text is cut."""


@dataclass(frozen=True, slots=True)
class Column(Generic[R]):
    """One column: its title, the text of a row, and the value that the row is sorted by (the text without one)."""

    title: str
    text: Callable[[R], str]
    value: Callable[[R], float | str | None] | None = None
    right: bool = False
    tones: Mapping[str, str] = field(default_factory=dict)
    widest: int = WIDEST


@dataclass(frozen=True)
class Grid:
    """Rows of cells with a key each; orders are lists of row numbers, so that nothing is copied."""

    columns: tuple[Column[Any], ...]
    keys: tuple[str, ...]  # [N]
    cells: tuple[tuple[str, ...], ...]  # [N][C]
    values: tuple[tuple[float | str | None, ...], ...]  # [N][C]

    @cached_property
    def widths(self) -> tuple[int, ...]:
        """Terminal cells of each column [C]; a title leaves room for the mark of the sorted column."""
        texts = zip(*self.cells, strict=True) if self.cells else ((),) * len(self.columns)
        longest = (max(map(width, column), default=0) for column in texts)
        return tuple(max(len(c.title) + 2, min(most, c.widest)) for c, most in zip(self.columns, longest, strict=True))

    @cached_property
    def _searched(self) -> tuple[str, ...]:
        return tuple(" ".join(row).casefold() for row in self.cells)

    def order(self, filter_text: str = "", column: int | None = None, *, descending: bool = False) -> list[int]:
        """Numbers of the rows that hold every word of the filter, sorted by a column; rows without a value last."""
        wanted = filter_text.casefold().split()
        rows = [row for row, text in enumerate(self._searched) if all(token in text for token in wanted)]
        if column is None:
            return rows[::-1] if descending else rows
        valued = [row for row in rows if self.values[row][column] is not None]
        valued.sort(key=lambda row: self.values[row][column], reverse=descending)  # type: ignore[arg-type, return-value]
        return valued + [row for row in rows if self.values[row][column] is None]


def make_grid(columns: Sequence[Column[R]], rows: Sequence[R], key: Callable[[R], str]) -> Grid:
    """The grid of some rows, with one key a row."""
    cells = tuple(tuple(plain(column.text(row)) for column in columns) for row in rows)
    values = tuple(
        tuple(text if c.value is None else c.value(row) for c, text in zip(columns, texts, strict=True))
        for row, texts in zip(rows, cells, strict=True)
    )
    return Grid(tuple(columns), tuple(map(key, rows)), cells, values)


def plain(text: str) -> str:
    """The text with every character that cannot be printed replaced: no control, no direction mark, no line break."""
    return text if text.isprintable() else "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in text)


def width(text: str) -> int:
    """Terminal cells that a text takes; wide letters take two and combining marks none."""
    if text.isascii():
        return len(text)
    return sum(0 if unicodedata.combining(c) else 2 if unicodedata.east_asian_width(c) in "WF" else 1 for c in text)
