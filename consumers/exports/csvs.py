"""A folder of CSV files, one a table, for spreadsheets and for tools that read nothing else."""

import json
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv

from lapledger.consumers.exports.datasets import ABOUT, as_bytes
from lapledger.consumers.exports.folders import Writer
from lapledger.consumers.exports.formulas import escaped


def csv_files(
    tables: Mapping[str, pa.Table], about: Mapping[str, Any], *, escape_formulas: bool = True
) -> dict[str, Writer]:
    """What writes each file of the folder: `TABLE.csv`, null as an empty cell, and what it was computed from.

    With `escape_formulas` a text that a spreadsheet would run begins with an apostrophe; numbers stay as they are.
    """
    text = (json.dumps(about, indent=1, ensure_ascii=False) + "\n").encode()
    files: dict[str, Writer] = {
        f"{name}.csv": partial(_write, _escaped(table) if escape_formulas else table) for name, table in tables.items()
    }
    return {**files, ABOUT: as_bytes(text)}


def _escaped(table: pa.Table) -> pa.Table:
    for position, field in enumerate(table.schema):
        if pa.types.is_string(field.type):
            texts = [text if text is None else escaped(text) for text in table[position].to_pylist()]
            table = table.set_column(position, field, pa.array(texts, pa.string()))
    return table


def _write(table: pa.Table, path: Path) -> None:
    pa.csv.write_csv(table, path)
