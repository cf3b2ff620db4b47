"""Checks that every `execution.finished` names exactly the timings that it made visible, by count and digest."""

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import pyarrow as pa

from lapledger.ledger.codec.canonical import rows_digest
from lapledger.ledger.codec.encodings import strings
from lapledger.ledger.codec.octets import to_octets
from lapledger.ledger.codec.packing import plain
from lapledger.ledger.codec.slice_digests import slice_digests
from lapledger.ledger.errors import DiskFull, LapError, Unavailable
from lapledger.ledger.events import EventType, latest
from lapledger.ledger.proof.findings import NONSENSE, Findings
from lapledger.ledger.store.open_ledger import cut_now
from lapledger.ledger.store.reader import events

TIMING, FINISHED = "timing.measured", "execution.finished"

_LISTED = 100

Due = Mapping[str, tuple[int, bytes]]
"""Attempt -> how many timings its end counts, and their digest."""


@dataclass(frozen=True, slots=True)
class Runs:
    """The timings of some rows: attempts that are complete and give their digest, and the remaining rows.

    An attempt may be split over several frames or segments; `rest` holds the parts to be joined.
    """

    complete: list[str]
    rest: list[tuple[str, pa.RecordBatch]]


def runs_of(due: Due, declared: EventType, rows: pa.RecordBatch) -> Runs | None:
    """The timings among some events; None when these are no timings, or no execution waits for any."""
    if declared.name != TIMING or not due:
        return None
    codes = _encoded(rows["attempt_id"])
    bounds = np.flatnonzero(np.diff(codes.indices.to_numpy(), prepend=-1, append=-1)).tolist()
    attempts = codes.take(pa.array(bounds[:-1])).to_pylist()
    runs = Runs([], [])
    for attempt, (start, end), digest in zip(
        attempts, pairwise(bounds), slice_digests(rows.columns, bounds), strict=True
    ):
        if attempt in due:
            if due[attempt] == (end - start, digest):
                runs.complete.append(attempt)
            else:  # taken, as a slice would keep all rows alive
                runs.rest.append((attempt, plain(rows.slice(start, end - start).take(pa.array(range(end - start))))))
    return runs


def _encoded(column: pa.Array) -> pa.DictionaryArray:
    return column if pa.types.is_dictionary(column.type) else strings(column).dictionary_encode()


class TimingCheck:
    """Collects the timings of all rows, in any order, and compares each attempt as soon as its rows are complete."""

    def __init__(self, findings: Findings) -> None:
        self._findings = findings
        self.due: Due = _finished(findings)
        self._done: set[str] = set()
        self._pending: dict[str, list[pa.RecordBatch]] = {}

    def take(self, runs: Runs | None) -> None:
        """Notes the timings of one table; problems for attempts that are complete and do not give their digest."""
        if runs is None:
            return
        for attempt in runs.complete:
            if attempt in self._done or attempt in self._pending:
                self._too_many(attempt)
            self._done.add(attempt)
            self._pending.pop(attempt, None)
        for attempt, run in runs.rest:
            self._take_part(attempt, run)

    def finish(self) -> None:
        """Problems for attempts whose timings never became complete, the first ones each, the others counted."""
        lacking = [attempt for attempt, (count, _) in self.due.items() if count > 0 and attempt not in self._done]
        for attempt in lacking[:_LISTED]:
            have = sum(part.num_rows for part in self._pending.get(attempt, []))
            self._findings.problem(f"{FINISHED} {attempt} counts {self.due[attempt][0]} timings, the ledger has {have}")
        if len(lacking) > _LISTED:
            self._findings.problem(f"{len(lacking) - _LISTED} more executions lack timings")

    def _take_part(self, attempt: str, run: pa.RecordBatch) -> None:
        count, digest = self.due[attempt]
        if attempt in self._done:
            self._too_many(attempt)
            return
        parts = [*self._pending.pop(attempt, []), run]
        have = sum(part.num_rows for part in parts)
        if have < count:
            self._pending[attempt] = parts
            return
        self._done.add(attempt)
        if have > count:
            self._findings.problem(f"{FINISHED} {attempt} has {have} timings, it counts {count}")
        elif _digest_of_parts(parts) != digest:
            self._findings.problem(f"{FINISHED} {attempt}: its timings do not give the digest that it recorded")

    def _too_many(self, attempt: str) -> None:
        self._findings.problem(f"{FINISHED} {attempt} has more timings than it counts")


def _digest_of_parts(parts: list[pa.RecordBatch]) -> bytes:
    rows = pa.Table.from_batches(parts).sort_by("repetition").combine_chunks().to_batches()[0]
    return bytes.fromhex(rows_digest(rows))


def _finished(findings: Findings) -> Due:
    columns = ["attempt_id", "timings", "timings_digest"]
    version, cut = latest(FINISHED).version, cut_now(findings.connection)
    try:
        table = events(findings.ledger, FINISHED, version, cut, columns=columns, in_order=False)
    except (Unavailable, DiskFull):
        raise
    except (LapError, *NONSENSE) as error:
        findings.problem(f"the timings of executions cannot be checked: {error}")
        return {}
    due: dict[str, tuple[int, bytes]] = {}
    for batch in table.to_batches(max_chunksize=10_000):
        attempts, counts = batch["attempt_id"].to_pylist(), batch["timings"].to_pylist()
        due.update(zip(attempts, zip(counts, _raw(batch["timings_digest"]), strict=True), strict=True))
    return due


def _raw(digests: pa.StringArray) -> list[bytes]:
    """The bytes of each digest; of what is none, its text."""
    octets = to_octets(digests) if len(digests) and not digests.null_count else None
    return (
        [str(digest).encode() for digest in digests.to_pylist()]
        if octets is None
        else [row.tobytes() for row in octets]
    )
