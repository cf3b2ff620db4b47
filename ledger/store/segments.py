"""Sealed segments: immutable Parquet files of one event type, each with a canonical JSON manifest, in one local folder.

Files only: which segments count is decided by the SQL rows, and the sealer writes those.
"""

import hashlib
import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import rfc8785

from ledger.errors import Fault
from ledger.events import EventType
from ledger.store.cuts import Cut
from ledger.store.files import make_folder, place, sync_folder, temporary, translated, write_once

PLACE = ("_stream", "_partition", "_admission", "_row")
"""Columns that say where an event lies: stream, partition and admission of its frame, and its row in it."""

FRAME_COLUMNS = tuple(
    "stream partition admission key epoch sequence previous digest rows source_offset".split()  # noqa: SIM905  # one line
)
"""What a manifest keeps of each frame, in this order."""

_PLACE_FIELDS = [
    pa.field("_stream", pa.string(), nullable=False),
    pa.field("_partition", pa.int64(), nullable=False),
    pa.field("_admission", pa.int64(), nullable=False),
    pa.field("_row", pa.int64(), nullable=False),
]


def placed_schema(declared: EventType) -> pa.Schema:
    """The schema of an event type with the columns of `PLACE` behind its own."""
    return pa.schema([*declared.schema, *_PLACE_FIELDS])


def placed(
    declared: EventType, partition: int, admissions: Sequence[int], batches: Sequence[pa.RecordBatch]
) -> pa.Table:
    """The rows of several frames of one partition [rows] with the columns of `PLACE`; one batch a frame."""
    counts = np.array([batch.num_rows for batch in batches], dtype=np.int64)
    total = int(counts.sum())
    starts = np.repeat(np.cumsum(counts) - counts, counts)
    extra = [
        pa.repeat(pa.scalar(declared.stream), total),
        pa.repeat(pa.scalar(partition, pa.int64()), total),
        pa.array(np.repeat(np.array(admissions, dtype=np.int64), counts)),
        pa.array(np.arange(total, dtype=np.int64) - starts),
    ]
    columns = pa.Table.from_batches(batches, schema=declared.schema).combine_chunks().columns
    return pa.Table.from_arrays([*columns, *extra], schema=placed_schema(declared))


@dataclass(frozen=True, slots=True)
class Segment:
    """A sealed segment, as its SQL row describes it. `admissions` maps a partition to its (first, last) admission."""

    ordinal: int
    name: str
    manifest: str
    type: str
    version: int
    frames: int
    rows: int
    bytes: int
    admissions: tuple[tuple[str, int, int, int], ...]

    @classmethod
    def from_row(cls, row: Sequence[Any]) -> "Segment":
        """The segment in a row of the table `segment`, its columns in the order of the fields."""
        ordinal, name, manifest, kind, version, frames, rows, size, admissions = row
        covered = tuple((stream, partition, first, last) for stream, partition, first, last in json.loads(admissions))
        return cls(ordinal, name, manifest, kind, version, frames, rows, size, covered)

    def starts_within(self, cut: Cut) -> bool:
        """True when the cut may hold a frame of this segment."""
        return any(first <= cut.at(stream, partition) for stream, partition, first, _ in self.admissions)

    def ends_within(self, cut: Cut) -> bool:
        """True when the cut holds every frame of this segment."""
        return all(last <= cut.at(stream, partition) for stream, partition, _, last in self.admissions)


class Segments:
    """Segment and manifest files below one folder, each named by the SHA-256 of its bytes."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def path(self, name: str, version: int, digest: str) -> Path:
        """Where the segment of an event type with this digest lies."""
        return self.folder / f"{name}.v{version}" / f"{digest}.parquet"

    def manifest_path(self, name: str, version: int, digest: str) -> Path:
        """Where the manifest with this digest lies: beside its segment."""
        return self.folder / f"{name}.v{version}" / f"{digest}.json"

    def write(self, declared: EventType, groups: Iterable[pa.Table]) -> tuple[str, int]:
        """Stores tables as one segment, a row group each; its digest and bytes. Durable once `settle` returns."""
        folder = self.folder / f"{declared.name}.v{declared.version}"
        make_folder(folder)
        with temporary(folder) as part:
            with translated(part), _writer(part, placed_schema(declared)) as writer:
                for group in groups:
                    writer.write_table(group, row_group_size=max(group.num_rows, 1))
            digest, size = file_digest(part), part.stat().st_size
            path = self.path(declared.name, declared.version, digest)
            if not path.exists() or file_digest(path) != digest:  # a leftover may have been damaged since
                place(part, path)
        return digest, size

    def write_manifest(self, name: str, version: int, manifest: dict[str, Any]) -> str:
        """Stores a manifest in canonical form (RFC 8785); its digest. Durable once `settle` returns."""
        data = rfc8785.dumps(manifest)
        digest = hashlib.sha256(data).hexdigest()
        write_once(self.manifest_path(name, version, digest), data)
        return digest

    def settle(self, name: str, version: int) -> None:
        """Returns when the names of an event type's files are durable."""
        sync_folder(self.folder / f"{name}.v{version}")

    def read(self, segment: Segment, columns: Sequence[str], condition: pc.Expression | None) -> pa.Table:
        """The rows of a segment that meet a condition, in their order; Fault when the file is missing or broken."""
        path = self.path(segment.type, segment.version, segment.name)
        try:
            return pq.read_table(path, columns=list(columns), filters=condition, partitioning=None)
        except (pa.ArrowException, OSError) as error:
            raise Fault(f"segment {path} cannot be read; run `lap verify`, restore it from a copy") from error


def file_digest(path: Path) -> str:
    """SHA-256 of a file's bytes as 64 hex digits; Fault when it cannot be read."""
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise Fault(f"cannot read {path}: {error.strerror}; check the disk") from error


def _writer(path: Path, schema: pa.Schema) -> pq.ParquetWriter:
    return pq.ParquetWriter(path, schema, compression="zstd", compression_level=1, use_compliant_nested_type=False)
