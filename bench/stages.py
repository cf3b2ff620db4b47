"""Where the time of ingest goes: each stage alone on a few frames, in microseconds of processor time an event.

Stages that wait for the disk take longer than they compute: the second figure is by the clock.
"""

import time
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from timings import TIMING, timings

from lapledger.consumers.ingest.admission import decoded, positions, take
from lapledger.ledger.codec.canonical import canonical
from lapledger.ledger.codec.packing import joined, packed_slices
from lapledger.ledger.frames.frame import Link, decode, frame_digests, genesis, make_record, payload_digest
from lapledger.ledger.store.chain_rules import check_route
from lapledger.ledger.store.open_ledger import create_ledger
from lapledger.ledger.store.values import check_values
from lapledger.ledger.streams.producer import partition_of


@dataclass(frozen=True, slots=True)
class Stage:
    """What one stage costs: microseconds an event, computing and by the clock, and bytes an event that it makes."""

    name: str
    computing_us: float
    clock_us: float
    bytes: float | None = None


def stages(frame_rows: int, frames: int, folder: Path) -> list[Stage]:
    """The stages from rows to a sealed segment and its verification, in their order."""
    key, events = "p-0", frame_rows * frames
    partition = "facts", partition_of("facts", key)
    costs: list[Stage] = []

    def stage(name: str, call: Callable[[], Any], size: Callable[[Any], int] | None = None) -> Any:
        call()  # what is made once is not of interest
        cpu, clock = time.process_time(), time.perf_counter()
        result = call()
        cpu, clock = time.process_time() - cpu, time.perf_counter() - clock
        made = None if size is None else size(result) / events
        costs.append(Stage(name, 1e6 * cpu / events, 1e6 * clock / events, made))
        return result

    rows = stage("make rows (no part of ingest)", lambda: timings(events, 0, problem=key).rows, _size)
    bounds = [*range(0, events + 1, frame_rows)]
    batches = stage("pack", lambda: list(packed_slices(rows, bounds)), lambda made: sum(map(_size, made)))

    def records() -> list[Any]:
        made, previous = [], genesis("epoch", *partition)
        for sequence, batch in enumerate(batches):
            record, previous = make_record(TIMING, key, Link("epoch", *partition, sequence, previous), batch)
            made.append(record)
        return made

    made = stage("encode and digest", records, lambda costs: sum(len(record.payload) for record in costs))
    ledger = create_ledger(folder, "identity", "now")
    with closing(ledger.stream()) as stream:
        append = Once(lambda: stream.append(*partition, made))
        stage("append to the local stream", append)
        stored = stage("read from it", lambda: stream.read(*partition, 0, frames))
    frames_made = stage("decode and digest", lambda: [decode(entry.record) for entry in stored])
    stage("check place", lambda: [check_route(frame, *partition) for frame in frames_made])
    stage("check values", lambda: [check_values(frame) for frame in frames_made])
    ready = [(entry, decoded(entry, *partition)) for entry in stored]
    old = positions(ledger)[partition]
    stage("into the tail, with a commit", Once(lambda: take(ledger, old, ready, identity="identity", seen="")))
    ledger.close()
    links = [frame.link for frame in frames_made]
    stage(
        "digest of the tail",
        lambda: [
            payload_digest(TIMING, key, link, entry.record.payload) for link, entry in zip(links, stored, strict=True)
        ],
    )
    stage("read the tail's rows", lambda: [_rows(entry.record.payload) for entry in stored])
    frame_rows_read = [_rows(entry.record.payload) for entry in stored]
    table = stage("join frames", lambda: joined(TIMING.schema, frame_rows_read), _size)
    path = folder / "stage.parquet"
    stage("write Parquet, plain settings", lambda: _write(table, path), lambda _: path.stat().st_size)
    read = stage("read Parquet", lambda: pq.read_table(path).combine_chunks().to_batches()[0])
    links_by_key = [(key, link) for link in links]
    stage("canonical form of read rows", lambda: sum(1 for _ in canonical(read.columns, bounds)))
    stage("that with digests, as verify does", lambda: list(frame_digests(TIMING, read.columns, bounds, links_by_key)))
    return costs


class Once:
    """A call that must not be made twice: the warming one does nothing."""

    def __init__(self, call: Callable[[], Any]) -> None:
        self._call, self._warm = call, False

    def __call__(self) -> Any:
        """The call's result, from the second time on."""
        if self._warm:
            return self._call()
        self._warm = True
        return None


def _size(rows: Any) -> int:
    return int(rows.nbytes)


def _rows(payload: bytes) -> pa.RecordBatch:
    return pa.ipc.open_stream(payload).read_next_batch()


def _write(table: pa.Table, path: Path) -> None:
    dictionary_columns = [field.name for field in table.schema if pa.types.is_dictionary(field.type)]
    numbers = {field.name: "BYTE_STREAM_SPLIT" for field in table.schema if pa.types.is_int64(field.type)}
    pq.write_table(
        table,
        path,
        compression="zstd",
        compression_level=1,
        use_dictionary=dictionary_columns,
        column_encoding=numbers,
        write_statistics=False,
        write_batch_size=1 << 16,
        store_schema=False,
    )


def lines(title: str, costs: list[Stage]) -> list[str]:
    """The stages as a table in text."""
    head = f"{title:44} {'computing':>10} {'by the clock':>13} {'bytes':>8}   (us and bytes an event)"
    return [head] + [
        f"  {s.name:42} {s.computing_us:10.3f} {s.clock_us:13.3f} {'' if s.bytes is None else f'{s.bytes:8.1f}'}"
        for s in costs
    ]
