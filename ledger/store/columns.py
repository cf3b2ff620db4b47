"""Facts of many problems, a few columns of them, problem by problem: how the replay reads millions of timings.

Sealed row groups are read once, repeating strings as dictionary codes, and only row groups that hold a wanted problem.
The same cut gives the same rows before and after sealing. Reads only; nothing is joined, counted or decided here.
"""

from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from lapledger.ledger.events import EventType, latest, versions_of
from lapledger.ledger.store.cuts import Cut
from lapledger.ledger.store.open_ledger import Ledger
from lapledger.ledger.store.reader import check_cut, live_segments, tail_rows, within
from lapledger.ledger.store.segments import Segment
from lapledger.ledger.store.sql.engine import reading

KEY = "problem_id"
"""The column that identifies the problem of a row."""

Slices = Mapping[str, list[pa.RecordBatch]]
"""Problem -> its rows in the order of admission, as record batches; requested columns are dictionaries."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """Columns of an event type that are keyed by problem; those of `dictionary_columns` come as dictionaries."""

    name: str
    columns: tuple[str, ...]
    dictionary_columns: tuple[str, ...] = ()

    @property
    def read(self) -> list[str]:
        """All columns that are read: those requested, the problem, and the origin."""
        return list(dict.fromkeys((*self.columns, KEY, "_partition", "_admission")))

    @property
    def dictionaries(self) -> list[str]:
        """All columns that come as dictionaries."""
        return [KEY, *self.dictionary_columns]


@dataclass(frozen=True, slots=True, eq=False)
class _Group:
    """One row group of an open segment, with the first and last problem in it; "" and None without statistics."""

    file: pq.ParquetFile
    number: int
    first: str
    last: str | None


class Columns:
    """Columns of one event type at a cut. Segments stay open until `close`; each row group is read on demand."""

    def __init__(self, ledger: Ledger, wanted: Wanted, cut: Cut) -> None:
        """Opens the segments and reads the tail. UserError when the cut is ahead of this ledger."""
        self._wanted, self._cut, self._segments = wanted, cut, ledger.segments
        self._files: list[tuple[Segment, pq.ParquetFile]] = []
        self._tail: dict[str, list[pa.RecordBatch]] = {}
        with reading(ledger.engine) as connection:
            check_cut(connection, cut)
            for declared in versions_of(latest(wanted.name)):
                segments = live_segments(connection, declared.name, declared.version)
                self._open([segment for segment in segments if segment.starts_within(cut)])
                self._add_tail(tail_rows(connection, declared, cut), declared)
        self._groups = {id(file): list(_groups(file)) for _, file in self._files}

    def of(self, problems: Sequence[str]) -> Slices:
        """The rows of some problems; Fault when a segment is missing or broken."""
        slices: dict[str, list[pa.RecordBatch]] = {problem: list(self._tail.get(problem, ())) for problem in problems}
        ordered = sorted(problems)
        for segment, file in self._files:
            numbers = [group.number for group in self._groups[id(file)] if _holds(group, ordered)]
            if numbers:
                for problem, rows in _by_problem(self._read(segment, file, numbers)):
                    if problem in slices:
                        slices[problem].append(rows)
        for pieces in slices.values():
            pieces.sort(key=_admission)
        return slices

    def close(self) -> None:
        """Closes the segments."""
        for _, file in self._files:
            file.close()

    def _open(self, segments: Sequence[Segment]) -> None:
        for segment in segments:
            self._files.append(
                (segment, self._segments.open(segment, dictionaries=self._wanted.dictionaries, hold=False))
            )

    def _read(self, segment: Segment, file: pq.ParquetFile, numbers: list[int]) -> pa.Table:
        with self._segments.scanning([segment]):
            table = file.read_row_groups(numbers, columns=self._wanted.read)
        return table if segment.ends_within(self._cut) else table.filter(within(table, self._cut, segment))

    def _add_tail(self, rows: pa.Table, declared: EventType) -> None:
        names = [name for name in self._wanted.read if name in rows.column_names]
        rows = rows.select(names)
        for name in self._wanted.dictionaries:
            index = rows.schema.get_field_index(name)
            strings = rows[name].combine_chunks()
            encoded = strings if pa.types.is_dictionary(strings.type) else strings.dictionary_encode()
            rows = rows.set_column(index, pa.field(name, encoded.type), encoded)
        for problem, batch in _by_problem(rows):
            self._tail.setdefault(problem, []).append(batch)


def _groups(file: pq.ParquetFile) -> Iterator[_Group]:
    metadata = file.metadata
    column = next(n for n in range(metadata.num_columns) if metadata.schema.column(n).name == KEY)
    for number in range(metadata.num_row_groups):
        statistics = metadata.row_group(number).column(column).statistics
        known = statistics is not None and statistics.has_min_max
        yield _Group(file, number, statistics.min if known else "", statistics.max if known else None)


def _holds(group: _Group, ordered: Sequence[str]) -> bool:
    """Whether one of some problems in order may have rows in a row group."""
    index = bisect_left(ordered, group.first)
    return index < len(ordered) and (group.last is None or ordered[index] <= group.last)


def _admission(batch: pa.RecordBatch) -> int:
    first: int = batch["_admission"][0].as_py()
    return first


def _by_problem(table: pa.Table) -> Iterator[tuple[str, pa.RecordBatch]]:
    """Runs of rows of one problem, problems that alternate put together first, order kept."""
    for batch in table.to_batches():
        yield from _runs(batch)


def _runs(batch: pa.RecordBatch) -> Iterator[tuple[str, pa.RecordBatch]]:
    numbers = batch[KEY].indices.to_numpy()
    names = batch[KEY].dictionary
    edges = np.flatnonzero(np.diff(numbers)) + 1
    if len(edges) >= len(names):  # problems alternate, as they do in the tail
        order = np.argsort(numbers, kind="stable")
        batch, numbers = batch.take(pa.array(order)), numbers[order]
        edges = np.flatnonzero(np.diff(numbers)) + 1
    starts = [0, *edges.tolist(), len(numbers)]
    for start, end in pairwise(starts):
        if end > start:
            yield names[numbers[start]].as_py(), batch.slice(start, end - start)
