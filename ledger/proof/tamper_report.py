"""Says in one line which event was hit: the frame, its rows, its ids, and the very cells where something still knows.

What can know: the stream that still holds the frame as it came, and the ends of executions that digest their timings.
"""

from collections.abc import Iterator

import pyarrow as pa

from lapledger.ledger.codec.packing import plain
from lapledger.ledger.events import EventType
from lapledger.ledger.proof.recomputed import Altered
from lapledger.ledger.proof.timings import Due, runs_of

_SHOWN = 3


def describe_altered(altered: Altered, due: Due, before: pa.RecordBatch | None) -> str:
    """An altered frame in one line; `before` holds its rows as the stream has them, None where it has them no more."""
    declared, meta, rows = altered.declared, altered.meta, plain(altered.batch)
    ids = _ids(declared, rows)
    frame_text = (
        f"{altered.where}: {meta.location} ({declared.name} of {meta.key!r}, {meta.rows} events{ids}) was altered"
    )
    hit = _cells(before, rows) if before is not None else _attempts(declared, rows, due)
    return f"{frame_text}: its digest differs; hit: {hit}" if hit else f"{frame_text}: its digest differs"


def _ids(declared: EventType, batch: pa.RecordBatch) -> str:
    """The first column of ids that is not the key, with its first and last value."""
    name = _id_column(declared)
    if name is None or batch.num_rows == 0:
        return ""
    first, last = (str(batch[name][row].as_py())[:80] for row in (0, batch.num_rows - 1))
    return f", {name} {first}" if first == last else f", {name} {first} .. {last}"


def _id_column(declared: EventType) -> str | None:
    names = [name for name in declared.schema.names if name.endswith("_id") and name != declared.key]
    return "attempt_id" if "attempt_id" in names else next(iter(names), None)


def _cells(before: pa.RecordBatch, now: pa.RecordBatch) -> str:
    """The cells that differ from what the stream holds."""
    if before.num_rows != now.num_rows:
        return f"{now.num_rows} rows, the stream holds {before.num_rows}"
    hits = [hit for name in now.schema.names for hit in _differing(name, before[name], now[name])]
    return _joined(hits)


def _differing(name: str, before: pa.Array, now: pa.Array) -> Iterator[str]:
    if before.equals(now):
        return
    for row in range(len(now)):
        was, held = before[row], now[row]
        if not was.equals(held):
            yield f"{name} in row {row}, {repr(was.as_py())[:60]} became {repr(held.as_py())[:60]}"


def _attempts(declared: EventType, rows: pa.RecordBatch, due: Due) -> str:
    """The attempts whose end digests other timings than stand here."""
    runs = runs_of(due, declared, rows)
    if runs is None:
        return ""
    rest = list(dict.fromkeys(attempt for attempt, _ in runs.rest))
    unknown = sorted(set(rows["attempt_id"].to_pylist()) - due.keys())
    return _joined([f"attempt {attempt}" for attempt in [*rest, *unknown]])


def _joined(hits: list[str]) -> str:
    more = f" and {len(hits) - _SHOWN} more" if len(hits) > _SHOWN else ""
    return ", ".join(hits[:_SHOWN]) + more
