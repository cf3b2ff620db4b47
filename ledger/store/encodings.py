"""How the columns of a segment are encoded: chosen from a look at its first rows, the same for the same rows.

Only encodings that every Parquet reader knows.
"""

from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

_LOOK = 4096
"""Rows looked at."""

_REPEATED_NUMBERS, _REPEATED_WORDS = 8, 2
"""How often a value must come back, on average, for a dictionary to be worth its building."""

_PLACES = frozenset({"_partition", "_admission", "problem_id"})
"""Columns that readers filter by, however varied they are."""


def writer_options(group: pa.Table) -> dict[str, Any]:
    """Arguments of `pyarrow.parquet.ParquetWriter` for tables like this row group.

    Columns whose values come back get a dictionary and statistics; varied numbers are stored as packed differences,
    varied words as they are, both without statistics, which would rule no row group out.
    """
    look = group.slice(0, _LOOK)
    varied = {field.name for field in look.schema if _is_varied(look[field.name])}
    repeated = [_path(field) for field in look.schema if field.name not in varied]
    numbers = [field.name for field in look.schema if field.name in varied and pa.types.is_integer(field.type)]
    return {
        "compression": "zstd",
        "compression_level": 1,
        "use_dictionary": repeated,
        "column_encoding": dict.fromkeys(numbers, "DELTA_BINARY_PACKED"),
        "write_statistics": repeated + sorted(varied & _PLACES),
    }


def _is_varied(column: pa.ChunkedArray) -> bool:
    if pa.types.is_nested(column.type) or pa.types.is_boolean(column.type):
        return False
    words = pa.types.is_string(column.type) or pa.types.is_binary(column.type)
    distinct: int = pc.count_distinct(column).as_py()
    return distinct * (_REPEATED_WORDS if words else _REPEATED_NUMBERS) > len(column)


def _path(field: pa.Field) -> str:
    """How Parquet calls the leaf column of a field."""
    return f"{field.name}.list.item" if pa.types.is_list(field.type) else str(field.name)
