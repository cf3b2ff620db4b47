"""A bundle as a file: its parts as JSON, tables of events and blobs, at its cut or at an earlier one."""

import copy
import hashlib
import json
import struct
import zipfile
import zlib
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

UNREADABLE = (LookupError, ValueError, TypeError, AttributeError, StopIteration, RuntimeError, struct.error, OSError)
BROKEN = (*UNREADABLE, EOFError, zipfile.BadZipFile, zlib.error, pa.ArrowException)
"""What reading a damaged bundle may raise."""
Partition = tuple[str, int]
"""A stream and the number of one of its partitions."""


class BundleFile:
    """The parts of a bundle."""

    def __init__(self, path: str) -> None:
        self.zip = zipfile.ZipFile(path)
        self.about: dict[str, Any] = self.json("bundle.json")
        self.frames = self.table("frames.parquet")
        self._visible: np.ndarray[Any, np.dtype[np.bool_]] | None = None  # frames up to the cut; None: all

    def at(self, cut: str) -> "BundleFile":
        """The same bundle as the ledger was at an earlier cut."""
        earlier, counts = copy.copy(self), counts_of(cut)
        rows = zip(*(self.frames[name].to_pylist() for name in ("stream", "partition", "admission")), strict=True)
        visible = [admission <= counts.get((stream, partition), 0) for stream, partition, admission in rows]
        earlier._visible = np.array(visible, dtype=np.bool_)
        return earlier

    def names(self, folder: str) -> list[str]:
        """The parts in a folder, sorted."""
        return sorted(name for name in self.zip.namelist() if name.startswith(f"{folder}/"))

    def blob(self, digest: str) -> bytes | None:
        """A blob by its SHA-256; None where the bundle does not hold it. ValueError when its bytes are others."""
        try:
            data = self.zip.read(f"blobs/{digest}")
        except KeyError:
            return None
        if hashlib.sha256(data).hexdigest() != digest:
            raise ValueError(f"blobs/{digest}: its bytes do not match its name")
        return data

    def table(self, name: str) -> pa.Table:
        """A Parquet part; KeyError when it is not there, ValueError when it is not Parquet."""
        try:
            return pq.read_table(pa.BufferReader(self.zip.read(name)))
        except pa.ArrowException as error:
            raise ValueError(f"{name}: {error}") from None

    def json(self, name: str) -> Any:
        """A JSON part; KeyError when it is not there, ValueError when it is not JSON."""
        try:
            return json.loads(self.zip.read(name))
        except ValueError as error:
            raise ValueError(f"{name}: {error}") from None

    def tables(self, kind: str) -> list[pa.Table]:
        """The events of a type as one table a version, with `_frame` and `_row`."""
        names = self.names("events")
        return [self.table(name) for name in names if name.split("/")[1].rsplit(".v", 1)[0] == kind]

    def events(self, kind: str, columns: Sequence[str]) -> pa.Table:
        """All events of a type in the order of admission, of any version; null in columns that a version lacks."""
        tables = [_select(table, [*columns, "_frame", "_row"]) for table in self.tables(kind)]
        if not tables:
            return pa.table({name: pa.array([], pa.string()) for name in columns})
        table, frames = pa.concat_tables(tables, promote_options="default"), self.frames
        if self._visible is not None:
            table = table.filter(pa.array(self._visible[table["_frame"].to_numpy()]))
        keys = [
            frames[name].to_numpy(zero_copy_only=False)[table["_frame"].to_numpy()]
            for name in ("partition", "admission")
        ]
        return table.take(np.lexsort((table["_row"].to_numpy(), keys[1], keys[0])))

    def first(self, kind: str, columns: Sequence[str], key: str) -> dict[str, dict[str, Any]]:
        """The first event for each key: facts do not change, a repeated one adds nothing."""
        rows: dict[str, dict[str, Any]] = {}
        for row in self.events(kind, columns).to_pylist():
            rows.setdefault(row[key], row)
        return rows


def _select(table: pa.Table, columns: Sequence[str]) -> pa.Table:
    for name in columns:
        if name not in table.column_names:
            table = table.append_column(name, pa.nulls(len(table)))
    return table.select(columns)


def counts_of(cut: str) -> dict[Partition, int]:
    """Stream and partition -> how many frames of it a cut covers; a partition that it does not name has none."""
    streams = (part.partition("=") for part in cut.split(","))
    return {(stream, number): int(n) for stream, _, counts in streams for number, n in enumerate(counts.split("."))}


def collect(problems: list[str], check: Callable[[], object]) -> None:
    """Runs a check; what it cannot read becomes one problem, so that other checks still run."""
    try:
        check()
    except BROKEN as error:
        line = unreadable(error)
        problems += [] if line in problems else [line]


def unreadable(error: BaseException) -> str:
    """The line about a part that cannot be read."""
    return f"the bundle cannot be read: {type(error).__name__}: {error}"
