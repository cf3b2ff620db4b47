"""What the Python API returns: small objects over one Arrow table, with the cut that they were computed at.

They hold no open file, print nothing, and show themselves in a notebook. pandas is imported by `to_pandas()` alone.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from html import escape
from importlib.util import find_spec
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from lapledger.ledger.errors import UserError

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa

    from lapledger.consumers.derive.reward_audit import Trace
    from lapledger.replay.loading import JudgedCampaign
    from lapledger.workflows.analysis.compare import Comparison as CompareTables
    from lapledger.workflows.analysis.comparison_arms import Arms

SHOWN = 20
"""Rows of a table that `repr` and a notebook show."""
WIDEST = 40
"""Characters of a cell that are shown."""


def table_of(rows: Sequence[Mapping[str, Any]], names: Sequence[str]) -> "pa.Table":
    """Rows as an Arrow table; where there is none, it has the columns of these names all the same."""
    import pyarrow as pa

    return pa.Table.from_pylist(list(rows)) if rows else pa.table({name: pa.array([], pa.null()) for name in names})


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
            raise UserError(
                "to_pandas() needs the package pandas: pip install 'lapledger[notebook]', or use to_arrow()"
            )
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


@dataclass(frozen=True, slots=True, repr=False)
class Picture:
    """A picture as bytes; a notebook shows it."""

    data: bytes
    kind: Literal["png", "svg"] = "png"

    def save(self, path: str | PathLike[str]) -> None:
        """Write the picture to a file, whole or not at all; UserError where the path cannot be written."""
        from lapledger.ledger.atomic_write import write_atomically

        write_atomically(Path(path), self.data)

    def __repr__(self) -> str:
        """Its format and size."""
        return f"<lapledger picture, {self.kind}, {len(self.data)} bytes>"

    def _repr_png_(self) -> bytes | None:
        return self.data if self.kind == "png" else None

    def _repr_svg_(self) -> str | None:
        return self.data.decode() if self.kind == "svg" else None


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Replay(Table):
    """Stored results scored under one criterion or several: one row a criterion and model, shares in [0, 1]."""

    judged: "Sequence[JudgedCampaign]"

    @property
    def warnings(self) -> tuple[str, ...]:
        """What to be wary of: few references, limits above what was executed, values outside a calibration."""
        return tuple(dict.fromkeys(warning for judged_campaign in self.judged for warning in judged_campaign.warnings))

    @property
    def verdicts(self) -> Table:
        """The verdict of every candidate: `pass`, `fail` or `undecided`, q as an interval, and the reason."""
        from lapledger.render.replay_table import verdict_rows

        rows = [
            {"criterion": judged_campaign.name, **row}
            for judged_campaign in self.judged
            for row in verdict_rows(judged_campaign)
        ]
        return Table(table_of(rows, ("criterion", "program", "status", "q", "references", "reason")), self.cut)

    @property
    def flips(self) -> Table:
        """The candidates whose verdict differs between each criterion and the next, with both verdicts and reasons."""
        import pyarrow as pa

        from lapledger.workflows.analysis.replay_campaign import flips_between

        rows = [
            {
                "from": before,
                "to": after,
                "program": change.program,
                "model": change.model,
                "before": change.before.name.lower(),
                "after": change.after.name.lower(),
                "reason_before": change.reason_before,
                "reason_after": change.reason_after,
            }
            for before, after, changes in flips_between(self.judged)
            for change in changes
        ]
        names = ("from", "to", "program", "model", "before", "after", "reason_before", "reason_after")
        return Table(pa.Table.from_pylist(rows, schema=pa.schema([(name, pa.string()) for name in names])), self.cut)

    def plot(self, kind: Literal["png", "svg"] = "png") -> Picture:
        """pass@1 against tau with its 95% interval, one curve a model, under the first criterion."""
        from lapledger.workflows.analysis.replay_campaign import tau_picture

        return Picture(tau_picture(self.judged[0], kind), kind)

    def lines(self) -> list[str]:
        """The campaign, and the warnings."""
        return [f"campaign {self.judged[0].campaign}", *(f"warning: {warning}" for warning in self.warnings)]


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Comparison(Table):
    """Two models or sets of training runs, A minus B: one row a tau and difficulty tier, shares in [0, 1]."""

    arms: "Arms"
    tables: "CompareTables"
    """Every table of `lap compare`: pass@k, differences, win rates, best of N, slow programs, the noise baseline."""

    @property
    def warnings(self) -> tuple[str, ...]:
        """What to be wary of, such as the number of comparisons."""
        return self.tables.warnings

    def plot(self, kind: Literal["png", "svg"] = "png") -> Picture:
        """pass@1 of the models of both arms against tau, with 95% intervals; of two campaigns that of A alone."""
        from lapledger.workflows.analysis.replay_campaign import tau_picture

        return Picture(tau_picture(self.arms.a.judged, kind, models={*self.arms.a.runs, *self.arms.b.runs}), kind)

    def lines(self) -> list[str]:
        """The arms, and the warnings."""
        head = f"A = {self.arms.a.pattern}, B = {self.arms.b.pattern}: campaign {self.arms.a.campaign}"
        return [head, *(f"warning: {warning}" for warning in self.warnings)]


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Explanations(Table):
    """Why a program got its verdicts: one row a criterion, with what would flip each."""

    program: dict[str, Any]

    def lines(self) -> list[str]:
        """The program, and for each criterion its verdict, the reason and what would flip it."""
        text = [f"{self.program['program_id']} ({self.program['model']}, label {self.program['label'] or 'none'})"]
        for row in self:
            text.append(
                f"{row['criterion']} in campaign {row['campaign']}: {row['status']}, {row['reason'] or 'correct'}"
            )
            text += [f"  {row['note']}", *(f"  warning: {warning}" for warning in row["warnings"])]
        return text


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
