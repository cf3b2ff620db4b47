"""What the Python API returns: small objects over one Arrow table, with the cut that they were computed at.

They hold no open file, print nothing, and show themselves in a notebook. pandas is imported by `to_pandas()` alone.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from html import escape
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from lapledger.ledger.errors import UserError

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa

    from lapledger.consumers.derive.reward_audit import Trace

SHOWN = 20
"""Rows of a table that `repr` and a notebook show."""
WIDEST = 40
"""Characters of a cell that are shown."""


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Table:
    """Rows and columns, with the cut they were read at: the same query at the same cut gives the same rows."""

    data: "pa.Table"
    cut: str
    title: str = field(default="", kw_only=True)
    visible: tuple[str, ...] = field(default=(), kw_only=True)
    """The columns that `repr` and a notebook show; by default all."""

    @property
    def columns(self) -> list[str]:
        """Names of the columns, in their order."""
        names: list[str] = self.data.column_names
        return names

    def to_arrow(self) -> "pa.Table":
        """The rows as a pyarrow table."""
        return self.data

    def to_pandas(self) -> "pd.DataFrame":
        """The rows as a pandas frame; UserError where pandas is not installed."""
        if find_spec("pandas") is None:
            raise UserError("to_pandas() needs the package pandas: pip install pandas, or use to_arrow()")
        return self.data.to_pandas()

    def __len__(self) -> int:
        """Number of rows."""
        return int(self.data.num_rows)

    def __iter__(self) -> Iterator[dict[str, Any]]:
        """The rows, each as a mapping of column to value."""
        rows: list[dict[str, Any]] = self.data.to_pylist()
        return iter(rows)

    def lines(self) -> list[str]:
        """What stands above the rows: the title and what a subclass adds."""
        return [self.title] if self.title else []

    def __repr__(self) -> str:
        """The first rows as text, numbers flush right, and the cut."""
        columns, rows = self._cells()
        table = [columns, *rows]
        widths = [max(len(row[i]) for row in table) for i in range(len(columns))]
        text = [
            "  ".join(_padded(cell, width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in table
        ]
        return "\n".join([*self.lines(), *text, self._end()])

    def _repr_html_(self) -> str:
        """The same for a notebook."""
        columns, rows = self._cells()
        head = "".join(f"<th>{escape(name)}</th>" for name in columns)
        body = "".join(f"<tr>{''.join(f'<td>{escape(cell)}</td>' for cell in row)}</tr>" for row in rows)
        above = "".join(f"<p>{escape(line)}</p>" for line in self.lines())
        table = f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
        return f"<div>{above}{table}<p><small>{escape(self._end())}</small></p></div>"

    def _cells(self) -> tuple[list[str], list[list[str]]]:
        part = (self.data.select(self.visible) if self.visible else self.data).slice(0, SHOWN)
        cells = [[_cell(value) for value in column.to_pylist()] for column in part.columns]
        return part.column_names, [list(row) for row in zip(*cells, strict=True)]

    def _end(self) -> str:
        hidden = len(self) - SHOWN
        return f"{f'{hidden} more rows; ' if hidden > 0 else ''}cut {self.cut}"


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class RewardTrace(Table):
    """A reward followed down to its raw timings, one row a timing, and recomputed from them."""

    trace: "Trace"

    @property
    def reward(self) -> dict[str, Any]:
        """The stored reward: id, value, gates, quality, evidence digest, cut."""
        return dict(self.trace.reward)

    @property
    def differences(self) -> tuple[str, ...]:
        """What differs between the stored and the recomputed reward; empty when they match."""
        return self.trace.differences

    @property
    def matches(self) -> bool | None:
        """Whether the recomputed reward matches; None for one of another scoring engine version."""
        return None if self.trace.note else not self.trace.differences

    def lines(self) -> list[str]:
        """The reward, its program, and whether recomputing it gave the same."""
        reward, criterion = self.trace.reward, self.trace.criterion
        state = self.trace.note or "; ".join(self.differences) or "reward matches"
        return [
            f"reward {reward['value']:+g} {reward['reward_id'][:16]} of {reward['program_id']}",
            f"criterion {criterion['name']} {reward['criterion_hash'][:12]}, {reward['pool_size']} references",
            f"recomputed: {state}",
        ]


def _padded(cell: str, width: int) -> str:
    number = cell.lstrip("-+")[:1].isdigit() and not any(c.isalpha() for c in cell)
    return cell.rjust(width) if number else cell.ljust(width)


def _cell(value: object) -> str:
    if value is None:
        return "-"
    text = f"{value:.4g}" if isinstance(value, float) else str(value)
    text = "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in text)
    half = WIDEST // 2 - 2
    return text if len(text) <= WIDEST else f"{text[:half]}...{text[-half:]}"
