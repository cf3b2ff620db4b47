"""Ways to change a bundle: a word of a JSON part, a value or the rows of a Parquet part, a whole part."""

import hashlib
import io
import json
import zipfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

ALONE = """
import sys
sys.path.append(sys.argv.pop(1))
class Blocked:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in ("lapledger", "scipy", "duckdb",
                                  "sqlalchemy", "rfc8785", "click", "pandas", "numba"):
            raise ImportError(f"{name} is not here")
sys.meta_path.insert(0, Blocked())
sys.argv = sys.argv[1:]
import runpy
runpy.run_path(sys.argv[0], run_name="__main__")
"""
"""Runs a bundle in an interpreter that has only the standard library, numpy and pyarrow."""
Files = dict[str, bytes]
Alter = Callable[[Files], object]


def files_of(bundle: Path) -> Files:
    """The files in a bundle."""
    with zipfile.ZipFile(bundle) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def written(path: Path, files: Mapping[str, bytes]) -> Path:
    """These files as a bundle."""
    with zipfile.ZipFile(path, "w") as archive:
        for name, data in files.items():
            archive.writestr(name, data)
    return path


def resealed(files: Files) -> Files:
    """The same files with digests in bundle.json that match, as one who cheats would."""
    about = json.loads(files["bundle.json"])
    about["parts"] = {n: hashlib.sha256(data).hexdigest() for n, data in files.items() if n != "bundle.json"}
    return files | {"bundle.json": json.dumps(about).encode()}


def edited(name: str, change: Callable[[Any], object]) -> Alter:
    """Changes a JSON file in place."""

    def alter(files: Files) -> None:
        value = json.loads(files[name])
        change(value)
        files[name] = json.dumps(value).encode()

    return alter


def about(**changes: Any) -> Alter:
    """Changes words of bundle.json; None takes one away."""

    def change(value: dict[str, Any]) -> None:
        for name, text in changes.items():
            value[name] = text
            if text is None:
                del value[name]

    return edited("bundle.json", change)


def later_cut(value: dict[str, Any]) -> None:
    value["cut"] = value["cut"].replace("control=", "control=1")


def table(hash_of: str, **changes: Any) -> Alter:
    """Changes words of the table of that name."""
    return edited("tables.json", lambda tables: next(t for t in tables if t["name"] == hash_of).update(changes))


def without_table(name: str, *, verdicts: bool = False) -> Alter:
    """Drops the table of that name, and on demand its verdicts too."""

    def alter(files: Files) -> None:
        tables = json.loads(files["tables.json"])
        gone = next(item["hash"] for item in tables if item["name"] == name)
        files["tables.json"] = json.dumps([item for item in tables if item["hash"] != gone]).encode()
        if verdicts:
            rows = read(files, "verdicts.parquet")
            put(files, "verdicts.parquet", rows.filter(pc.not_equal(rows["criterion_hash"], gone)))

    return alter


def read(files: Files, name: str) -> pa.Table:
    """The rows of a Parquet file."""
    return pq.read_table(io.BytesIO(files[name]))


def put(files: Files, name: str, rows: pa.Table) -> None:
    """Writes rows as a Parquet file."""
    held = io.BytesIO()
    pq.write_table(rows, held)
    files[name] = held.getvalue()


def value_of(name: str, column: str, change: Callable[[Any], Any], row: int = 0) -> Alter:
    """Changes one value of a Parquet file."""

    def alter(files: Files) -> None:
        rows = read(files, name)
        values = rows[column].to_pylist()
        values[row] = change(values[row])
        location = rows.schema.get_field_index(column)
        put(
            files,
            name,
            rows.set_column(location, rows.schema.field(location), pa.array(values, rows.schema.types[location])),
        )

    return alter


def verdict(column: str, change: Callable[[Any], Any]) -> Alter:
    """Changes a value of verdicts.parquet."""
    return value_of("verdicts.parquet", column, change)


def rows_of(name: str, change: Callable[[pa.Table], pa.Table]) -> Alter:
    """Changes the rows of a Parquet file."""
    return lambda files: put(files, name, change(read(files, name)))


def swapped(item: str, second: str) -> Callable[[pa.Table], pa.Table]:
    """Two columns under each other's names."""
    names = {item: second, second: item}
    return lambda rows: rows.rename_columns([names.get(name, name) for name in rows.column_names])


def no_tables(files: Files) -> None:
    files["tables.json"] = b"[]"


def extra_part(name: str) -> Alter:
    """Puts a file in that is named as a part."""
    return lambda files: files.update({name: b"{}"})


def manifest(value: dict[str, Any]) -> None:
    value["manifests"].append("0" * 64)


def other_text(text: str) -> str:
    return "b" * 64 if text != "b" * 64 else "c" * 64
