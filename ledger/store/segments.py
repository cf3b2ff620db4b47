"""Sealed segments: immutable Parquet objects of one event type, each with a canonical JSON manifest beside it.

Objects only: which segments count is decided by the SQL rows, and the sealer writes those.
"""

import hashlib
import json
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import rfc8785

from lapledger.ledger.codec.packing import joined
from lapledger.ledger.disk import translated
from lapledger.ledger.errors import Fault
from lapledger.ledger.events import EventType
from lapledger.ledger.failpoint import failpoint
from lapledger.ledger.store.cuts import Cut
from lapledger.ledger.store.objects.objects import (
    Files,
    Stored,
    copy_object,
    digest_of,
    listing,
    read_object,
    remove,
    remove_old,
    size_of,
    stored_errors,
    stored_fault,
)
from lapledger.ledger.store.parquet_encodings import writer_options

if TYPE_CHECKING:
    import pyarrow.dataset as ds

ORIGIN_COLUMNS = ("_stream", "_partition", "_admission", "_row")
"""Origin of an event: stream, partition and admission of its frame, and its row in the frame."""

_ORIGIN_FIELDS = [
    pa.field("_stream", pa.string(), nullable=False),
    pa.field("_partition", pa.int64(), nullable=False),
    pa.field("_admission", pa.int64(), nullable=False),
    pa.field("_row", pa.int64(), nullable=False),
]


def schema_with_origin(declared: EventType) -> pa.Schema:
    """The schema of an event type followed by `ORIGIN_COLUMNS`."""
    return pa.schema([*declared.schema, *_ORIGIN_FIELDS])


def with_origin(
    declared: EventType, partition: int, admissions: Sequence[int], batches: Sequence[pa.RecordBatch]
) -> pa.Table:
    """The rows of several frames of one partition [rows] with `ORIGIN_COLUMNS`; one batch per frame.

    Of packed batches, repeating strings are in a dictionary.
    """
    counts = np.array([batch.num_rows for batch in batches], dtype=np.int64)
    total = int(counts.sum())
    starts = np.repeat(np.cumsum(counts) - counts, counts)
    extra = [
        pa.repeat(pa.scalar(declared.stream), total),
        pa.repeat(pa.scalar(partition, pa.int64()), total),
        pa.array(np.repeat(np.array(admissions, dtype=np.int64), counts)),
        pa.array(np.arange(total, dtype=np.int64) - starts),
    ]
    rows = joined(declared.schema, batches)
    return pa.Table.from_arrays([*rows.columns, *extra], schema=pa.schema([*rows.schema, *_ORIGIN_FIELDS]))


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
    """Segments and manifests among the objects of a store, each named by the SHA-256 of its bytes."""

    def __init__(self, files: Files) -> None:
        self._files = files

    def name(self, segment: Segment) -> str:
        """The name of a segment's object."""
        return _name(segment.type, segment.version, f"{segment.name}.parquet")

    def manifest_name(self, segment: Segment) -> str:
        """The name of the object that holds a segment's manifest."""
        return _name(segment.type, segment.version, f"{segment.manifest}.json")

    def where(self, name: str) -> str:
        """The address of an object in messages."""
        return f"{self._files.where}/{name}"

    def write(self, declared: EventType, groups: Iterable[pa.Table]) -> tuple[str, int]:
        """Stores tables as one segment, a row group each; its digest and bytes. Durable once `settle` returns."""
        with self._files.part() as part:
            with translated(part):
                _fill(part, schema_with_origin(declared), groups)
            digest, size = file_digest(part), part.stat().st_size
            failpoint("segment.written")
            name = _name(declared.name, declared.version, f"{digest}.parquet")
            if size_of(self._files, name) == size and self.digest(name) != digest:
                self.remove(name)  # a leftover that was damaged since
            self._files.put([(name, part)])
            failpoint("segment.placed")
        return digest, size

    def write_manifest(self, name: str, version: int, manifest: dict[str, Any]) -> str:
        """Stores a manifest in canonical form (RFC 8785); its digest. Durable once `settle` returns."""
        data = rfc8785.dumps(manifest)
        digest = hashlib.sha256(data).hexdigest()
        self._files.put([(_name(name, version, f"{digest}.json"), data)])
        return digest

    def settle(self, name: str, version: int) -> None:
        """Returns when the names of an event type's objects are durable."""
        self._files.settle([_name(name, version, "")])

    def dataset(self, declared: EventType, segments: Sequence[Segment]) -> "ds.Dataset":
        """All rows of segments of one event type, read on demand: only the columns and row groups needed.

        Scan it within `scanning`, which reports missing and broken segments in one line.
        """
        import pyarrow.dataset as ds  # slow to load, and writers need none

        form = ds.ParquetFileFormat(default_fragment_scan_options=ds.ParquetFragmentScanOptions(pre_buffer=True))
        root = self._files.filesystem
        parts = [form.make_fragment(self.name(segment), root, file_size=segment.bytes) for segment in segments]
        return ds.FileSystemDataset(parts, schema_with_origin(declared), form, root)

    @contextmanager
    def scanning(self, segments: Iterable[Segment]) -> Iterator[None]:
        """Turns a failed scan of these segments into a Fault that names the first one that cannot be opened."""
        try:
            yield
        except (OSError, pa.ArrowException) as error:
            self.check_opens(segments)
            raise stored_fault(error, f"a segment in {self._files.where}") from error

    def check_opens(self, segments: Iterable[Segment]) -> None:
        """Fault when one of these segments is missing or no Parquet."""
        for segment in segments:
            self.open(segment).close()

    def open(self, segment: Segment, *, dictionaries: Sequence[str] = (), hold: bool = True) -> pq.ParquetFile:
        """A segment's file for reading row groups, columns named in `dictionaries` as dictionaries; close it.

        Without `hold` the bytes that were read are not kept while it is open. Fault when it is missing or no Parquet.
        """
        name = self.name(segment)
        with stored_errors(f"segment {self.where(name)}"):
            return pq.ParquetFile(
                name, filesystem=self._files.filesystem, read_dictionary=list(dictionaries), pre_buffer=hold
            )

    def manifest(self, segment: Segment) -> bytes:
        """A segment's manifest as it is stored; Fault when it is missing. Only `is_intact` checks its digest."""
        return read_object(self._files, self.manifest_name(segment), "manifest")

    def has(self, name: str) -> bool:
        """True when an object is stored under this name."""
        return size_of(self._files, name) is not None

    def is_intact(self, segment: Segment) -> bool:
        """True when segment and manifest have the bytes that gave their names; Fault when one cannot be read."""
        manifest = digest_of(self._files, self.manifest_name(segment), "manifest")
        return manifest == segment.manifest and self.digest(self.name(segment)) == segment.name

    def digest(self, name: str) -> str:
        """SHA-256 of an object's bytes as 64 hex digits; Fault when it cannot be read."""
        return digest_of(self._files, name, "segment")

    def copy_from(self, source: "Segments", name: str, digest: str) -> int:
        """Bytes of an object that was copied from another store; Fault when they do not give the digest."""
        return copy_object(source._files, self._files, name, digest)

    def listing(self) -> list[Stored]:
        """All objects of the store, those that no segment names too, sorted by name."""
        return listing(self._files)

    def remove(self, name: str) -> None:
        """Removes an object of the listing."""
        remove(self._files, name)

    def remove_old(self, name: str, modified_ms: int) -> bool:
        """True when an object of the listing was removed; one that was put again since `modified_ms` stays."""
        return remove_old(self._files, name, modified_ms)


def _name(kind: str, version: int, file: str) -> str:
    return f"{kind}.v{version}/{file}"


def file_digest(path: Path) -> str:
    """SHA-256 of a file's bytes as 64 hex digits; Fault when it cannot be read."""
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise Fault(f"cannot read {path}: {error.strerror}; check the disk") from error


def _fill(path: Path, schema: pa.Schema, groups: Iterable[pa.Table]) -> None:
    """Writes a Parquet file, encoded as suits its first row group. What was a dictionary is read as plain strings."""
    rest = iter(groups)
    first = next(rest, schema.empty_table())
    options = {"use_compliant_nested_type": False, "store_schema": False, **writer_options(first)}
    with pq.ParquetWriter(path, first.schema, **options) as writer:
        for group in chain([first], rest):
            if group.num_rows:
                alike = group if group.schema.equals(first.schema) else group.cast(first.schema)
                writer.write_table(alike, row_group_size=group.num_rows)
