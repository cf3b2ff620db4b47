"""Segments: the same rows give the same file, locally and on S3; readers take only the row groups that they need."""

import hashlib
import json
import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from lapledger.ledger.disk import LocalFiles
from lapledger.ledger.errors import Fault
from lapledger.ledger.events import EVENTS, EventType, to_batch
from lapledger.ledger.store.objects.objects import Files, stored_errors
from lapledger.ledger.store.objects.s3 import S3Files
from lapledger.ledger.store.parquet_encodings import writer_options
from lapledger.ledger.store.segments import Segment, Segments, schema_with_origin, with_origin
from tests.ledger.facts import attempt, decision, sample_batch
from tests.support.s3_servers import S3Server

DECISION = EVENTS["filter.decided", 1]
TIMING = EVENTS["timing.measured", 1]


@pytest.fixture(params=["local", "s3"])
def files(request: pytest.FixtureRequest, tmp_path: Path) -> Files:
    """An empty store of either kind."""
    if request.param == "local":
        return LocalFiles(tmp_path / "store")
    server: S3Server = request.getfixturevalue("s3")
    return S3Files(server.url(tmp_path.name), "segments", scratch=tmp_path / "scratch")


@pytest.fixture
def segments(files: Files) -> Segments:
    """Segments of either kind."""
    return Segments(files)


def groups(count: int = 4, rows: int = 25) -> list[pa.Table]:
    """Decisions, a row group for each partition; the admissions of group n are 100 n + 1 and so on."""
    return [
        with_origin(DECISION, n, [100 * n + row + 1 for row in range(rows)], [_decided(n, row) for row in range(rows)])
        for n in range(count)
    ]


def _decided(group: int, row: int) -> pa.RecordBatch:
    return to_batch([decision(row, f"p{group}")])


def store(segments: Segments, declared: EventType, tables: Sequence[pa.Table]) -> Segment:
    """The tables as a settled segment with a manifest."""
    name, size = segments.write(declared, iter(tables))
    manifest = segments.write_manifest(declared.name, declared.version, {"segment": name, "ordinal": 1})
    segments.settle(declared.name, declared.version)
    rows = sum(table.num_rows for table in tables)
    return Segment(1, name, manifest, declared.name, declared.version, 1, rows, size, ())


def test_rows_come_back_in_their_order(segments: Segments) -> None:
    """Whole, by row group, as a dataset, and cut down to columns and a condition."""
    tables = groups()
    segment, complete = store(segments, DECISION, tables), pa.concat_tables(tables)
    with segments.open(segment) as file:
        assert [file.read_row_group(n) for n in range(file.num_row_groups)] == tables
    assert segments.dataset(DECISION, [segment]).to_table().equals(complete)
    late, columns = pc.field("_admission") > 220, ["subject_id", "_admission"]
    rows = segments.dataset(DECISION, [segment]).to_table(columns=columns, filter=late)
    assert rows.equals(complete.filter(late).select(columns))


def test_names_are_the_digests_of_the_bytes(segments: Segments, files: Files) -> None:
    """Of segment and canonical manifest; the listing has both with their sizes, and nothing else."""
    segment = store(segments, DECISION, groups())
    data = segments.manifest(segment)
    assert (data, hashlib.sha256(data).hexdigest()) == (
        f'{{"ordinal":1,"segment":"{segment.name}"}}'.encode(),
        segment.manifest,
    )
    assert segments.digest(segments.name(segment)) == segment.name
    assert segments.is_intact(segment)
    assert {stored.name: stored.bytes for stored in segments.listing()} == {
        f"filter.decided.v1/{segment.name}.parquet": segment.bytes,
        f"filter.decided.v1/{segment.manifest}.json": len(data),
    }
    assert segments.where(segments.name(segment)) == f"{files.where}/filter.decided.v1/{segment.name}.parquet"


def test_the_same_rows_give_the_same_file(segments: Segments) -> None:
    """So that a sealing that was cut short is repeated without a trace."""
    assert store(segments, DECISION, groups()) == store(segments, DECISION, groups())
    assert len(segments.listing()) == 2
    assert store(segments, DECISION, groups(3)) != store(segments, DECISION, groups())


def test_a_damaged_leftover_is_written_again(segments: Segments, files: Files) -> None:
    """Of the same size, so that only its digest tells."""
    segment = store(segments, DECISION, groups())
    segments.remove(segments.name(segment))
    files.put([(segments.name(segment), bytes(segment.bytes))])
    assert not segments.is_intact(segment)
    assert store(segments, DECISION, groups()) == segment
    assert segments.is_intact(segment)


def test_an_altered_manifest_is_not_intact(segments: Segments, files: Files) -> None:
    """Its bytes are handed out as they are, for whoever looks for the damage."""
    segment = store(segments, DECISION, groups())
    segments.remove(segments.manifest_name(segment))
    files.put([(segments.manifest_name(segment), b"{}")])
    assert json.loads(segments.manifest(segment)) == {}
    assert not segments.is_intact(segment)


def test_a_missing_or_broken_segment_is_a_fault(segments: Segments, files: Files) -> None:
    """One line that says which and what to do; also when a dataset is scanned."""
    segment = store(segments, DECISION, groups())
    name = segments.name(segment)
    segments.remove(name)
    for fault in ("is missing", "cannot be read"):
        message = f"segment {segments.where(name)} {fault}.*run `lap verify`, restore it"
        with pytest.raises(Fault, match=message), segments.scanning([segment]):
            segments.dataset(DECISION, [segment]).to_table(columns=["kept"])
        with pytest.raises(Fault, match=f"segment {segments.where(name)} {fault}"):
            segments.open(segment)
        with pytest.raises(Fault, match=f"the decisions {fault}"), stored_errors("the decisions"):
            segments.dataset(DECISION, [segment]).to_table()
        files.put([(name, bytes(segment.bytes))])
    segments.remove(segments.manifest_name(segment))
    with pytest.raises(Fault, match=f"manifest {segments.where(segments.manifest_name(segment))} is missing"):
        segments.manifest(segment)


def test_a_dataset_spans_segments_and_reads_what_a_condition_needs(segments: Segments) -> None:
    """Row groups outside of it are ruled out by their statistics: of admissions, partitions and problems alike."""
    first, second = store(segments, DECISION, groups(3)), store(segments, DECISION, groups(4)[3:])
    dataset = segments.dataset(DECISION, [first, second])
    complete = pa.concat_tables(groups(4))
    assert dataset.schema == schema_with_origin(DECISION)
    assert dataset.to_table().equals(complete)
    for condition in (pc.field("_admission") > 310, pc.field("_partition") == 3, pc.field("problem_id") == "p3"):
        needed = [len(part.split_by_row_group(condition)) for part in dataset.get_fragments()]
        assert needed == [0, 1]
        assert dataset.to_table(columns=["kept"], filter=condition).equals(complete.filter(condition).select(["kept"]))


def test_no_segments_are_an_empty_dataset(segments: Segments) -> None:
    """With the schema of its type."""
    assert segments.dataset(DECISION, []).to_table().equals(schema_with_origin(DECISION).empty_table())


def test_every_event_type_comes_back(tmp_path: Path) -> None:
    """With lists, nulls and empty words; the encodings change nothing."""
    segments = Segments(LocalFiles(tmp_path))
    for declared in EVENTS.values():
        table = with_origin(declared, 0, [1], [sample_batch(declared)])
        segment = store(segments, declared, [table, table])
        assert segments.dataset(declared, [segment]).to_table().equals(pa.concat_tables([table, table]))


def test_no_rows_are_a_segment_without_row_groups(tmp_path: Path) -> None:
    """A row group is never empty."""
    segments = Segments(LocalFiles(tmp_path))
    with segments.open(store(segments, DECISION, [])) as file:
        assert (file.num_row_groups, file.schema_arrow) == (0, schema_with_origin(DECISION))


def test_a_segment_of_many_parts_travels_intact(s3: S3Server, tmp_path: Path) -> None:
    """64 MiB that do not compress, uploaded in several parts and read back by row group."""
    segments = Segments(S3Files(s3.url(tmp_path.name), scratch=tmp_path))
    numbers = np.random.default_rng(0)
    tables, rows = [], 1 << 16
    for group in range(9):
        batch = sample_batch(TIMING, 1)
        columns = [
            pa.array(numbers.integers(0, 1 << 62, rows)) if f.type == pa.int64() else pa.repeat(batch[f.name][0], rows)
            for f in TIMING.schema
        ]
        wide = pa.RecordBatch.from_arrays(columns, schema=TIMING.schema)
        tables.append(with_origin(TIMING, 0, [group + 1], [wide]))
    segment = store(segments, TIMING, tables)
    assert segment.bytes > 64 << 20
    assert segments.is_intact(segment)
    with segments.open(segment) as file:
        assert all(file.read_row_group(number).equals(table) for number, table in enumerate(tables))
    assert list(tmp_path.iterdir()) == []


def test_encodings_suit_the_values() -> None:
    """A dictionary where words come back, integers byte by byte, statistics only of what readers filter by."""
    batches = [to_batch(attempt(number, 11)[:-1]) for number in range(20)]
    table = with_origin(TIMING, 0, list(range(1, 21)), batches)
    options = writer_options(table)
    integers = {field.name for field in table.schema if pa.types.is_integer(field.type)}
    assert set(options["column_encoding"]) == integers
    assert {"work_id", "problem_id", "host"} <= set(options["use_dictionary"])
    assert not integers & set(options["use_dictionary"])
    sink = pa.BufferOutputStream()
    pq.write_table(table, sink, **options)
    columns = pq.ParquetFile(pa.BufferReader(sink.getvalue())).metadata.row_group(0)
    by_name = {columns.column(n).path_in_schema: columns.column(n) for n in range(columns.num_columns)}
    assert "BYTE_STREAM_SPLIT" in by_name["wall_ns"].encodings
    assert "RLE_DICTIONARY" in by_name["work_id"].encodings
    assert {name for name, column in by_name.items() if column.statistics is not None} == {
        "_admission", "_partition", "campaign_id", "problem_id"
    }  # fmt: skip
    assert (by_name["_admission"].statistics.min, by_name["_admission"].statistics.max) == (1, 20)
    assert {column.compression for column in by_name.values()} == {"ZSTD"}
    assert "work_id" not in writer_options(with_origin(TIMING, 0, [1], [_one_each(batches)]))["use_dictionary"]


def _one_each(batches: list[pa.RecordBatch]) -> pa.RecordBatch:
    """The first row of every batch: no work id comes back in it."""
    return pa.Table.from_batches([batch.slice(0, 1) for batch in batches]).combine_chunks().to_batches()[0]


KILLED = """
import sys
from pathlib import Path
from lapledger.ledger.failpoint import arm
from tests.ledger.test_segments import DECISION, groups, store
from lapledger.ledger.disk import LocalFiles
from lapledger.ledger.store.segments import Segments
arm(sys.argv[2])
store(Segments(LocalFiles(Path(sys.argv[1]))), DECISION, groups())
"""


@pytest.mark.parametrize(("point", "left"), [("segment.written", ".part"), ("segment.placed", ".parquet")])
def test_a_writer_that_is_killed_leaves_no_half_segment(tmp_path: Path, point: str, left: str) -> None:
    """Before it has its name it is a leftover, afterwards it is whole; writing it again ends well."""
    command = [sys.executable, "-c", KILLED, tmp_path, point]
    paths = str(Path(__file__).parents[2])
    done = subprocess.run(command, env={**os.environ, "PYTHONPATH": paths}, check=False)
    assert done.returncode == -signal.SIGKILL
    segments = Segments(LocalFiles(tmp_path))
    (stored,) = segments.listing()
    assert Path(stored.name).suffix == left
    segment = store(segments, DECISION, groups())
    assert segments.is_intact(segment)
    assert len(segments.listing()) == 2 + (left == ".part")
