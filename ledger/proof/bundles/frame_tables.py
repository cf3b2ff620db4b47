"""The frames of a bundle as Parquet: `frames.parquet`, and each event type as one file.

Complete frames are taken, as digests cover them; each is verified when it is read. Rows are written as they come: no
more than a row group of each type is in memory.
"""

import io
import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import IO, Any

import pyarrow as pa
import pyarrow.parquet as pq
from sqlalchemy import Connection

from lapledger.ledger.events import EVENTS
from lapledger.ledger.frames.frame import Frame
from lapledger.ledger.proof.bundles.frame_reader import FrameAdmissions, frames_at
from lapledger.ledger.store.open_ledger import Ledger

ROWS = 1 << 16
"""Rows of an event type from which on a row group of them is written."""
_FRAME = (
    *("stream", "partition", "admission", "type", "version", "key"),
    *("epoch", "sequence", "previous", "digest", "rows"),
)
_NUMBERS = ("partition", "admission", "version", "sequence", "rows")
_FRAMES = pa.schema([(name, pa.int64() if name in _NUMBERS else pa.string()) for name in _FRAME])


class FrameTables:
    """The events of a bundle on their way into it: each type in a nameless file beside the bundle, gone at the end."""

    def __init__(self, folder: Path) -> None:
        """Nothing is written yet."""
        self.frames: list[dict[str, Any]] = []
        self._folder = folder
        self._files: dict[tuple[str, int], _EventFile] = {}
        self._open = ExitStack()

    @property
    def events(self) -> int:
        """How many rows there are."""
        return sum(frame["rows"] for frame in self.frames)

    def parts(
        self, ledger: Ledger, connection: Connection, admissions: FrameAdmissions, on_frame: Callable[[int], None]
    ) -> Iterator[tuple[str, IO[bytes]]]:
        """The Parquet files of frames and event types by their names, to be read from their beginnings.

        `on_frame` is called with the number of frames read. Fault when one is missing or altered.
        """
        with self._open:
            for admission, frame in frames_at(ledger, connection, admissions):
                self._file_of(frame.declared.name, frame.declared.version).add(_with_numbers(frame, len(self.frames)))
                self.frames.append(_meta(frame, admission))
                on_frame(len(self.frames))
            yield "frames.parquet", io.BytesIO(parquet(pa.Table.from_pylist(self.frames, schema=_FRAMES)))
            for (name, version), file in sorted(self._files.items()):
                yield f"events/{name}.v{version}.parquet", file.close()

    def _file_of(self, name: str, version: int) -> "_EventFile":
        if (name, version) not in self._files:
            file = tempfile.TemporaryFile(dir=self._folder)  # noqa: SIM115  (closed by the stack, when all is copied)
            self._open.enter_context(file)
            self._files[name, version] = _EventFile(file, EVENTS[name, version].schema)
            self._open.callback(self._files[name, version].close)  # before its file, after a failure too
        return self._files[name, version]


class _EventFile:
    """The rows of one event type in a Parquet file, a row group at a time."""

    def __init__(self, file: IO[bytes], schema: pa.Schema) -> None:
        self.schema = _with_position(schema)
        self._file = file
        self._writer = pq.ParquetWriter(file, self.schema, compression="zstd")
        self._waiting: list[pa.RecordBatch] = []

    def add(self, batch: pa.RecordBatch) -> None:
        self._waiting.append(batch)
        if sum(map(len, self._waiting)) >= ROWS:
            self._write()

    def _write(self) -> None:
        self._writer.write_table(pa.Table.from_batches(self._waiting, schema=self.schema))
        self._waiting = []

    def close(self) -> IO[bytes]:
        if self._waiting:
            self._write()
        self._writer.close()
        self._file.seek(0)
        return self._file


def _meta(frame: Frame, admission: int) -> dict[str, Any]:
    link, declared = frame.link, frame.declared
    values = (link.stream, link.partition, admission, declared.name, declared.version, frame.key, link.epoch)
    return dict(zip(_FRAME, (*values, link.sequence, link.previous, frame.digest, frame.rows), strict=True))


def _with_numbers(frame: Frame, number: int) -> pa.RecordBatch:
    """The rows of a frame with its number and theirs."""
    numbers = [pa.array([number] * frame.rows, pa.int64()), pa.array(range(frame.rows), pa.int64())]
    schema = _with_position(EVENTS[frame.declared.name, frame.declared.version].schema)
    return pa.RecordBatch.from_arrays([*frame.batch.columns, *numbers], schema=schema)


def _with_position(schema: pa.Schema) -> pa.Schema:
    return schema.append(pa.field("_frame", pa.int64())).append(pa.field("_row", pa.int64()))


def parquet(table: pa.Table) -> bytes:
    """A table as a Parquet file."""
    held = io.BytesIO()
    pq.write_table(table, held, compression="zstd")
    return held.getvalue()
