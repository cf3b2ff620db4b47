"""Checks that every `execution.finished` names exactly the timings that it made visible, by count and digest."""

from itertools import pairwise

import numpy as np
import pyarrow as pa

from ledger.digests import rows_digest
from ledger.errors import LapError
from ledger.events import EVENTS, EventType
from ledger.proof.findings import Findings
from ledger.store.opened import cut_now
from ledger.store.reader import events

_TIMING = EVENTS["timing.measured", 1]
_DONE = (-1, b"")


class TimingCheck:
    """Meets timing rows in any order of arrival and compares each attempt as soon as its rows are complete."""

    def __init__(self, found: Findings) -> None:
        self._found = found
        self._due = _finished(found)
        self._pending: dict[str, list[pa.RecordBatch]] = {}

    def take(self, declared: EventType, table: pa.Table) -> None:
        """Looks at a table of events; only timings matter here."""
        if declared is not _TIMING or not self._due:
            return
        batch = table.select(declared.schema.names).combine_chunks().to_batches()[0]
        codes = batch["attempt_id"].dictionary_encode().indices.to_numpy()
        edges = np.flatnonzero(np.diff(codes, prepend=-1, append=-1))
        for start, end in pairwise(edges):
            self._take_run(batch.slice(start, end - start))

    def finish(self) -> None:
        """Problems for attempts whose timings never became complete."""
        for attempt, (count, _) in self._due.items():
            if count > 0:
                have = sum(part.num_rows for part in self._pending.get(attempt, []))
                self._found.problem(f"execution.finished {attempt} counts {count} timings, the ledger has {have}")

    def _take_run(self, run: pa.RecordBatch) -> None:
        attempt = run["attempt_id"][0].as_py()
        if attempt not in self._due:
            return
        count, digest = self._due[attempt]
        parts = [*self._pending.pop(attempt, []), run]
        have = sum(part.num_rows for part in parts)
        if have < count:
            self._pending[attempt] = parts
            return
        self._due[attempt] = _DONE
        if have > count:
            words = "more timings than it counts" if count == _DONE[0] else f"{have} timings, it counts {count}"
            self._found.problem(f"execution.finished {attempt} has {words}")
        elif _attempt_digest(parts) != digest:
            self._found.problem(f"execution.finished {attempt}: its timings do not give the digest that it recorded")


def _attempt_digest(parts: list[pa.RecordBatch]) -> bytes:
    rows = pa.Table.from_batches(parts).sort_by("repetition").combine_chunks().to_batches()[0]
    return bytes.fromhex(rows_digest(rows))


def _finished(found: Findings) -> dict[str, tuple[int, bytes]]:
    columns = ["attempt_id", "timings", "timings_digest"]
    try:
        table = events(found.ledger, "execution.finished", 1, cut_now(found.connection), columns=columns)
    except LapError as error:
        found.problem(f"the timings of executions cannot be checked: {error}")
        return {}
    due: dict[str, tuple[int, bytes]] = {}
    for batch in table.to_batches(max_chunksize=10_000):
        for attempt, count, digest in zip(*(batch[name].to_pylist() for name in columns), strict=True):
            due[attempt] = (count, _bytes(digest))
    return due


def _bytes(digest: str) -> bytes:
    try:
        return bytes.fromhex(digest)
    except ValueError:
        return b"no digest"
