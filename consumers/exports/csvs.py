"""A folder of CSV files, one a table, for spreadsheets and for tools that read nothing else."""

import json
from collections.abc import Mapping
from typing import Any

import pyarrow as pa
import pyarrow.csv

from lapledger.consumers.exports.datasets import ABOUT, as_bytes
from lapledger.consumers.exports.folders import Writer


def csv_files(tables: Mapping[str, pa.Table], about: Mapping[str, Any]) -> dict[str, Writer]:
    """What writes each file of the folder: `TABLE.csv`, null as an empty cell, and what it was computed from."""
    text = (json.dumps(about, indent=1, ensure_ascii=False) + "\n").encode()
    files: dict[str, Writer] = {f"{name}.csv": _csv(table) for name, table in tables.items()}
    return {**files, ABOUT: as_bytes(text)}


def _csv(table: pa.Table) -> Writer:
    return lambda path: pa.csv.write_csv(table, path)
