"""What the values of an event must satisfy before it is admitted, beyond their types. Pure.

A fact that no reader could use, or that contradicts its own ids, is quarantined: once admitted, it would stand for
ever. Columns whose name ends in `_blob` or `_digest` hold a SHA-256, and floats are finite.
"""

import json
import math
from collections.abc import Callable, Iterator, Mapping

import pyarrow as pa
import pyarrow.compute as pc

from ledger.digests import blob_digest, work_id
from ledger.errors import UserError
from ledger.events.executions import OUTCOMES
from ledger.frames import Frame, FrameError
from ledger.store.cuts import Cut

LONGEST_NS = 2**60
"""Durations stay below this (36 years), so that arithmetic on ranks never overflows."""

_DIGEST = r"\A[0-9a-f]{64}\z"
_UNBOUNDED = ("loss", "a", "b_ns")  # a loss may diverge, and a fit that found no line says so: `_calibration` looks


def check_values(frame: Frame) -> None:
    """Returns when the frame's values can be used; FrameError `bad-value` says which cannot."""
    own = _CHECKS.get(frame.declared.name)
    for check in (_digests, _finite) if own is None else (_digests, _finite, own):
        for complaint in check(frame.batch):
            raise FrameError("bad-value", complaint)


def _digests(batch: pa.RecordBatch) -> Iterator[str]:
    for name in batch.schema.names:
        if name.endswith(("_blob", "_digest")):
            good = pc.fill_null(pc.match_substring_regex(batch[name], _DIGEST), True)
            for word in batch[name].filter(pc.invert(good)).to_pylist():
                yield f"{name} {word[:80]!r} is not a SHA-256 of 64 hex digits"


def _finite(batch: pa.RecordBatch) -> Iterator[str]:
    for field in batch.schema:
        if pa.types.is_floating(field.type) and field.name not in _UNBOUNDED:
            good = pc.fill_null(pc.is_finite(batch[field.name]), True)
            for value in batch[field.name].filter(pc.invert(good)).to_pylist():
                yield f"{field.name} {value!r} is not finite"


def _within(batch: pa.RecordBatch, low: int, high: int, *names: str) -> Iterator[str]:
    for name in names:
        bounds = pc.min_max(batch[name]).as_py()
        if bounds["min"] is not None and not (low <= bounds["min"] and bounds["max"] < high):
            yield f"{name} must lie in [{low}, {high}), found {bounds['min']} .. {bounds['max']}"


def _of_problem(batch: pa.RecordBatch, *names: str) -> Iterator[str]:
    """Programs and tests carry their problem's id, so that all facts of a work share its partition."""
    for name in names:
        for problem, value in zip(batch["problem_id"].to_pylist(), batch[name].to_pylist(), strict=True):
            if not value.startswith(f"{problem}/"):
                yield f"{name} {value!r} is not of problem {problem!r}"


def _timing(batch: pa.RecordBatch) -> Iterator[str]:
    durations = ("wall_ns", "user_ns", "system_ns", "judged_limit_ns", "hard_limit_ns", "startup_ns", "offset_ns")
    yield from _within(batch, 0, LONGEST_NS, *durations)
    yield from _within(batch, 0, 2**31, "repetition", "block")
    yield from _of_problem(batch, "program_id", "test_id")


def _finished(batch: pa.RecordBatch) -> Iterator[str]:
    for outcome in batch["outcome"].to_pylist():
        if outcome not in OUTCOMES:
            yield f"outcome {outcome!r} is none of {', '.join(OUTCOMES)}"
    yield from _within(batch, 0, 2**31, "timings", "block")
    yield from _of_problem(batch, "program_id", "test_id")
    columns = (batch[name].to_pylist() for name in ("work_id", "campaign_id", "program_id", "test_id", "block"))
    for work, *parts in zip(*columns, strict=True):
        if work != work_id(*parts):
            yield f"work {work!r} is not the work of its campaign, program, test and block"


def _reward(batch: pa.RecordBatch) -> Iterator[str]:
    yield from _of_problem(batch, "program_id")
    yield from _within(batch, 0, 2**62, "q_denominator", "pool_size")
    for value, cut in zip(batch["value"].to_pylist(), batch["cut"].to_pylist(), strict=True):
        if not -1 <= value <= 1:
            yield f"value {value!r} is not in [-1, 1]"
        try:
            Cut.parse(cut)
        except UserError as error:
            yield str(error)


def _criterion(batch: pa.RecordBatch) -> Iterator[str]:
    for named, canonical in zip(batch["criterion_hash"].to_pylist(), batch["canonical"].to_pylist(), strict=True):
        if blob_digest(canonical.encode()) != named:
            yield f"criterion {named[:12]!r}: its text gives another hash"
        try:
            known = isinstance(json.loads(canonical), dict)
        except (ValueError, RecursionError):
            known = False
        if not known:
            yield f"criterion {named[:12]!r}: its text is no JSON object"


def _calibration(batch: pa.RecordBatch) -> Iterator[str]:
    for refused, *line in zip(*(batch[name].to_pylist() for name in ("refused", "a", "b_ns")), strict=True):
        if not refused and not all(map(math.isfinite, line)):
            yield f"a and b_ns of a usable calibration must be finite, found {line[0]!r} and {line[1]!r}"


_CHECKS: Mapping[str, Callable[[pa.RecordBatch], Iterator[str]]] = {
    "timing.measured": _timing,
    "execution.finished": _finished,
    "reward.assigned": _reward,
    "criterion.declared": _criterion,
    "calibration.fitted": _calibration,
}
