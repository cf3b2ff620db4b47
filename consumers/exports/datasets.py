"""A folder that Hugging Face `datasets` loads: one Parquet file a table, and a card that names each as a configuration.

    load_dataset(DIR, "verdicts")

A table without rows is left away: `datasets` cannot load one. The folder holds no path and no time: the same cut gives
the same bytes.
"""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from lapledger.consumers.exports.folders import Writer

ABOUT = "about.json"
_MEANING = {
    "problems": "one row a problem, with its source and licence",
    "tests": "one row a test, with its kinds and sizes",
    "programs": "one row a program, with its source text",
    "outcomes": "how the accepted attempt of each program on each test ended",
    "timings": "every repetition of the accepted attempts, unaveraged, in nanoseconds",
    "verdicts": "one row a candidate under the criterion: gates, quality q, why",
    "estimates": "pass@1 of each model with its denominators",
}


def dataset_files(tables: Mapping[str, pa.Table], about: Mapping[str, Any]) -> dict[str, Writer]:
    """What writes each file of the folder: `data/TABLE/train.parquet`, the card, and what it was computed from."""
    tables = {name: table for name, table in tables.items() if len(table)}
    card = _card(tables, about).encode()
    files: dict[str, Writer] = {f"data/{name}/train.parquet": _parquet(table) for name, table in tables.items()}
    text = (json.dumps(about, indent=1, ensure_ascii=False) + "\n").encode()
    return {**files, ABOUT: as_bytes(text), "README.md": as_bytes(card)}


def _parquet(table: pa.Table) -> Writer:
    return lambda path: pq.write_table(table, path, compression="zstd")


def as_bytes(data: bytes) -> Writer:
    """What writes these bytes."""

    def write(path: Path) -> None:
        path.write_bytes(data)

    return write


def _card(tables: Mapping[str, pa.Table], about: Mapping[str, Any]) -> str:
    """The dataset card: YAML that names each table, then the same for a person."""
    configs = "".join(
        f"- config_name: {name}\n  data_files:\n  - split: train\n    path: data/{name}/train.parquet\n"
        f"{'  default: true' + chr(10) if name == 'verdicts' else ''}"
        for name in tables
    )
    rows = "".join(f"| `{name}` | {len(table)} | {_MEANING[name]} |\n" for name, table in tables.items())
    title = f"Campaign {about['campaign']}, judged under {about['criterion']}"
    origin = f"Cut `{about['cut']}`, criterion `{about['criterion_hash']}`."
    return f"---\nconfigs:\n{configs}---\n\n# {title}\n\n| table | rows | what |\n|---|---|---|\n{rows}\n{origin}\n"
