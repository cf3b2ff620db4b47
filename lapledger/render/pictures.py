"""Results as files: CSV and Parquet of the rows, PNG and SVG of the picture, each whole or not there.

Every file names the criterion and the cut that it was computed at. What is drawn is made in `replay.plots`.
"""

import csv
import io
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from lapledger.ledger.atomic_write import finite, write_atomically
from lapledger.ledger.errors import UserError
from lapledger.render.output import print_message

if TYPE_CHECKING:
    from lapledger.replay.plots.figure import Kind

Rows = Sequence[Mapping[str, Any]]
TABLES = ("csv", "parquet")
PICTURES = ("png", "svg")


@dataclass(frozen=True, slots=True)
class Outputs:
    """The files that a study writes beside its table; false where there are none."""

    paths: tuple[Path, ...]
    escape_formulas: bool = True  # texts of CSV that a spreadsheet would run begin with an apostrophe

    @classmethod
    def of(cls, outs: Sequence[str], *, escape_formulas: bool) -> Self:
        """The files by name; UserError for an unknown ending, a file named twice or a folder that is not there.

        Checked before anything is computed, so that a mistake costs no time.
        """
        paths = [Path(out) for out in outs]
        for path in paths:
            if path.suffix.lower().lstrip(".") not in (*TABLES, *PICTURES):
                raise UserError(f"--out {path}: unknown format; end the name in .csv, .parquet, .png or .svg")
            if path.is_dir() or not path.parent.is_dir():
                raise UserError(f"--out {path}: no such folder, or a folder itself; create it, or choose another path")
        if len(set(paths)) != len(paths):
            raise UserError("--out: a file is given twice; give each once")
        return cls(tuple(paths), escape_formulas)

    def __bool__(self) -> bool:
        return bool(self.paths)

    def save(self, rows: Rows, draw: "Callable[[Kind], bytes]", about: Mapping[str, str]) -> None:
        """Writes each file in the format of its ending, and says so; `about` goes into each row and Parquet's metadata.

        A number that is not known (nan) is an empty cell. UserError or DiskFull in one line.
        """
        complete = [{**row, **about} for row in rows]
        # what cannot be drawn leaves no file behind
        made = [(path, self._bytes(path, complete, draw, about)) for path in self.paths]
        for path, data in made:
            write_atomically(path, data)
            print_message(f"wrote {path}")

    def _bytes(self, path: Path, rows: Rows, draw: "Callable[[Kind], bytes]", about: Mapping[str, str]) -> bytes:
        kind = path.suffix.lower().lstrip(".")
        if kind == "csv":
            return _csv(rows, escape_formulas=self.escape_formulas)
        return _parquet(rows, about) if kind == "parquet" else draw("svg" if kind == "svg" else "png")


def flat(row: Mapping[str, Any], **pairs: tuple[str, str]) -> dict[str, Any]:
    """The row with each of these columns, a pair of numbers or None, in two columns; nan for none."""
    columns: dict[str, Any] = {}
    for name, value in row.items():
        if name in pairs:
            low, high = (math.nan, math.nan) if value is None else value
            columns |= dict(zip(pairs[name], (low, high), strict=True))
        else:
            columns[name] = value
    return columns


def _names(rows: Rows) -> list[str]:
    """The columns of all rows, in the order in which they come; a row leaves those empty that it lacks."""
    return list(dict.fromkeys(name for row in rows for name in row))


def _csv(rows: Rows, *, escape_formulas: bool) -> bytes:
    from lapledger.consumers.exports.formulas import escaped

    out = io.StringIO()
    if escape_formulas:
        rows = [{name: escaped(cell) if isinstance(cell, str) else cell for name, cell in row.items()} for row in rows]
    writer = csv.DictWriter(out, _names(rows), lineterminator="\n")
    writer.writeheader()
    writer.writerows({name: finite(value) for name, value in row.items()} for row in rows)
    return out.getvalue().encode()


def _parquet(rows: Rows, about: Mapping[str, str]) -> bytes:
    import pyarrow as pa
    import pyarrow.parquet as pq

    columns = {name: [row.get(name) for row in rows] for name in _names(rows)}
    table = pa.table({name: _column(values) for name, values in columns.items()})
    stated = {f"lap.{name}": value for name, value in about.items()}
    out = io.BytesIO()
    pq.write_table(table.replace_schema_metadata(stated), out)
    return out.getvalue()


def _column(values: Sequence[Any]) -> Any:
    """An arrow array; a column of numbers stays one where none of them is known."""
    import pyarrow as pa

    kind = pa.float64() if any(isinstance(value, float) for value in values) else None
    return pa.array([finite(value) for value in values], kind)
