"""How the columns of a segment are encoded: chosen from a look at its first rows, the same for the same rows.

DuckDB and Arrow read them all; integers split into bytes are in the Parquet format since 2.11.
"""

from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

_LOOK = 4096
"""Rows looked at."""

_REPEATED = 2
"""How often a value must come back, on average, for a dictionary to be worth its building."""

_FILTERED = frozenset({"_partition", "_admission", "problem_id", "campaign_id"})
"""Columns that readers filter by."""


def writer_options(group: pa.Table) -> dict[str, Any]:
    """Arguments of `pyarrow.parquet.ParquetWriter` for tables like this row group.

    Words that come back get a dictionary; numbers are stored byte by byte. Statistics are kept of what readers filter
    by: on every column they would cost as much as the column.
    """
    look = group.slice(0, _LOOK)
    numbers = [field.name for field in look.schema if pa.types.is_integer(field.type)]
    non_integers = [field for field in look.schema if not pa.types.is_integer(field.type)]
    return {
        "compression": "zstd",
        "compression_level": 1,
        "use_dictionary": [_path(field) for field in non_integers if _comes_back(look[field.name])],
        "column_encoding": dict.fromkeys(numbers, "BYTE_STREAM_SPLIT"),
        "write_statistics": sorted(_FILTERED & {field.name for field in look.schema}),
        "write_batch_size": 1 << 16,
    }


def _comes_back(column: pa.ChunkedArray) -> bool:
    kind = column.type
    if pa.types.is_nested(kind) or pa.types.is_boolean(kind) or pa.types.is_dictionary(kind):
        return True
    distinct: int = pc.count_distinct(column).as_py()
    return distinct * _REPEATED <= len(column)


def _path(field: pa.Field) -> str:
    """How Parquet calls the leaf column of a field."""
    return f"{field.name}.list.item" if pa.types.is_list(field.type) else str(field.name)
