"""What the values of an event must satisfy before it is admitted, beyond their types. Pure.

A fact that no reader could use, or that contradicts its own ids, is quarantined: once admitted, it stays permanently.
Columns whose name ends in `_blob` or `_digest` hold a SHA-256, and floats are finite.
"""

import json
import math
from collections.abc import Callable, Iterator, Mapping
from functools import cache

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lapledger.ledger.codec.canonical import blob_digest, fixed, work_id
from lapledger.ledger.codec.encodings import occurring, strings
from lapledger.ledger.codec.octets import HEX
from lapledger.ledger.errors import UserError
from lapledger.ledger.events import EVENTS
from lapledger.ledger.events.executions import OUTCOMES, UNSPECIFIED_FAILURE
from lapledger.ledger.frames.frame import Frame, FrameError
from lapledger.ledger.store.cuts import Cut

LONGEST_NS = 2**60
"""Durations stay below this (36 years), so that arithmetic on ranks never overflows."""

_ARROW_FASTER = 100  # from this many strings on Arrow is faster
_UNSIGNED = {np.dtype(f"i{size}"): np.dtype(f"u{size}") for size in (1, 2, 4, 8)}
_DIGEST = r"\A[0-9a-f]{64}\z"
_UNBOUNDED = ("loss", "a", "b_ns")  # a loss may diverge, and a rejected fit has no line: see `_calibration`


def check_values(frame: Frame) -> None:
    """Raise FrameError `bad-value` if a value of the frame cannot be used."""
    type_check = _CHECKS.get(frame.declared.name)
    for check in (_digests, _finite) if type_check is None else (_digests, _finite, type_check):
        for complaint in check(frame):
            raise FrameError("bad-value", complaint)


@cache
def _digest_columns(name: str, version: int) -> tuple[str, ...]:
    return tuple(column for column in EVENTS[name, version].schema.names if column.endswith(("_blob", "_digest")))


@cache
def _finite_columns(name: str, version: int) -> tuple[str, ...]:
    schema = EVENTS[name, version].schema
    return tuple(f.name for f in schema if pa.types.is_floating(f.type) and f.name not in _UNBOUNDED)


def _digests(frame: Frame) -> Iterator[str]:
    for name in _digest_columns(frame.declared.name, frame.declared.version):
        column = frame.packed[name]
        if column.type == pa.binary(HEX // 2):
            continue  # encoded as octets: each is a digest
        values = occurring(column).drop_null()
        good = pc.match_substring_regex(values, _DIGEST)
        for value in values.filter(pc.invert(good)).to_pylist():
            yield f"{name} {value[:80]!r} is not a SHA-256 of 64 hex digits"


def _finite(frame: Frame) -> Iterator[str]:
    for name in _finite_columns(frame.declared.name, frame.declared.version):
        values = fixed(frame.packed[name])
        for value in values[~np.isfinite(values)].tolist():
            yield f"{name} {value!r} is not finite"


def _within(frame: Frame, high: int, *names: str) -> Iterator[str]:
    """All values are in [0, high); a negative one is huge when its bits are read without a sign."""
    for name in names:
        values = fixed(frame.packed[name])
        if int(values.view(_UNSIGNED[values.dtype]).max()) >= min(high, 1 << (8 * values.itemsize - 1)):
            yield f"{name} must lie in [0, {high}), found {values.min()} .. {values.max()}"


def _of_problem(frame: Frame, *names: str) -> Iterator[str]:
    """Programs and tests carry their problem's id, the frame's key, so that all facts of a work share its partition."""
    prefix = f"{frame.key}/"
    for name in names:
        for value in _not_beginning(occurring(frame.packed[name]), prefix):
            yield f"{name} {value!r} is not of problem {frame.key!r}"


def _not_beginning(values: pa.StringArray, prefix: str) -> list[str]:
    if len(values) > _ARROW_FASTER:
        values = values.filter(pc.invert(pc.starts_with(values, prefix)))
    return [value for value in values.to_pylist() if not value.startswith(prefix)]


def _timing(frame: Frame) -> Iterator[str]:
    durations = ("wall_ns", "user_ns", "system_ns", "judged_limit_ns", "hard_limit_ns", "startup_ns", "offset_ns")
    yield from _within(frame, LONGEST_NS, *durations)
    yield from _within(frame, 2**31, "repetition", "block")
    yield from _of_problem(frame, "program_id", "test_id")


def _finished(frame: Frame) -> Iterator[str]:
    known = OUTCOMES if frame.declared.version == 1 else (*OUTCOMES, UNSPECIFIED_FAILURE)
    for outcome in occurring(frame.packed["outcome"]).to_pylist():
        if outcome not in known:
            yield f"outcome {outcome!r} is none of {', '.join(known)}"
    yield from _within(frame, 2**31, "timings", "block")
    yield from _of_problem(frame, "program_id", "test_id")
    columns = (strings(frame.packed[name]).to_pylist() for name in ("work_id", "campaign_id", "program_id", "test_id"))
    for work, campaign, program, test, block in zip(*columns, fixed(frame.packed["block"]).tolist(), strict=True):
        if work != work_id(campaign, program, test, block):
            yield f"work {work!r} is not the work of its campaign, program, test and block"


def _test(frame: Frame) -> Iterator[str]:
    yield from _of_problem(frame, "test_id")


def _program(frame: Frame) -> Iterator[str]:
    yield from _of_problem(frame, "program_id")


def _shared(frame: Frame) -> Iterator[str]:
    yield from _of_problem(frame, "program_id", "executed_program_id")
    pairs = (strings(frame.packed[name]).to_pylist() for name in ("program_id", "executed_program_id"))
    for program, executed in zip(*pairs, strict=True):
        if program == executed:
            yield f"program {program!r} shares its executions with itself"


def _reward(frame: Frame) -> Iterator[str]:
    yield from _of_problem(frame, "program_id")
    yield from _within(frame, 2**62, "q_denominator", "pool_size")
    values = fixed(frame.packed["value"])
    for value in values[~((values >= -1) & (values <= 1))].tolist():
        yield f"value {value!r} is not in [-1, 1]"
    for cut in occurring(frame.packed["cut"]).to_pylist():
        try:
            Cut.parse(cut)
        except UserError as error:
            yield str(error)


def _criterion(frame: Frame) -> Iterator[str]:
    batch = frame.batch
    for named, canonical in zip(batch["criterion_hash"].to_pylist(), batch["canonical"].to_pylist(), strict=True):
        if blob_digest(canonical.encode()) != named:
            yield f"criterion {named[:12]!r}: its text gives another hash"
        try:
            known = isinstance(json.loads(canonical), dict)
        except (ValueError, RecursionError):
            known = False
        if not known:
            yield f"criterion {named[:12]!r}: its text is no JSON object"


def _calibration(frame: Frame) -> Iterator[str]:
    batch = frame.batch
    for refused, *line in zip(*(batch[name].to_pylist() for name in ("refused", "a", "b_ns")), strict=True):
        if not refused and not all(map(math.isfinite, line)):
            yield f"a and b_ns of a usable calibration must be finite, found {line[0]!r} and {line[1]!r}"


_CHECKS: Mapping[str, Callable[[Frame], Iterator[str]]] = {
    "test.added": _test,
    "program.added": _program,
    "timing.measured": _timing,
    "execution.finished": _finished,
    "execution.shared": _shared,
    "reward.assigned": _reward,
    "criterion.declared": _criterion,
    "calibration.fitted": _calibration,
}
