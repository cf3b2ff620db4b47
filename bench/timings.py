"""Synthetic timings in columns: the whole schema, an id of its own for every work and attempt, one problem a batch.

Random ids are the hard case: they do not compress. Nothing here is measured.
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from lapledger.ledger.codec.canonical import rows_digest, work_id
from lapledger.ledger.codec.octets import to_strings
from lapledger.ledger.events import EVENTS

TIMING, FINISHED = EVENTS["timing.measured", 1], EVENTS["execution.finished", 1]
"""As our own workers write them; later versions leave open what other tools do not tell."""

PROGRAMS, TESTS, REPETITIONS = 20, 60, 5
CAMPAIGN, INTERPRETER, HOST = "c-0123456789ab", "ab" * 32, "cd" * 32


@dataclass(frozen=True, slots=True)
class Batch:
    """Rows of one problem [rows], whose id is their key."""

    key: str
    rows: pa.RecordBatch


def timings(rows: int, seed: int, *, problem: str | None = None) -> Batch:
    """Repetitions of many works on one problem, as a worker measures them one after another."""
    random = np.random.default_rng(seed)
    key = problem or f"p-{seed % 64}"
    wall = (1e8 * random.lognormal(sigma=0.7, size=rows)).astype(np.int64)
    position = seed * rows + np.arange(rows)
    numbers = {
        "repetition": position % REPETITIONS,
        "wall_ns": wall,
        "user_ns": wall * 9 // 10 // 1000 * 1000,
        "system_ns": wall // 20 // 1000 * 1000,
        "peak_memory_bytes": random.integers(9_000_000, 60_000_000, rows) // 4096 * 4096,
        "voluntary_switches": random.integers(0, 20, rows),
        "forced_switches": random.integers(0, 200, rows),
        "position": position // REPETITIONS,
        "offset_ns": np.cumsum(wall) + seed * 10**12,
        "core": random.integers(0, 2, rows),
        "slot": random.integers(0, 2, rows),
        "neighbours": random.integers(0, 2, rows),
    }
    fixed = {"block": 0, "judged_limit_ns": 10**10, "hard_limit_ns": 10**10, "startup_ns": 9_876_543}
    texts = {"campaign_id": CAMPAIGN, "problem_id": key, "cut": "", "interpreter": INTERPRETER}
    texts |= {"isolation": "bubblewrap", "host": HOST}
    columns = {name: pa.array(values) for name, values in numbers.items()}
    columns |= {name: pa.repeat(pa.scalar(value, pa.int64()), rows) for name, value in fixed.items()}
    columns |= {name: pa.repeat(value, rows) for name, value in texts.items()}
    columns |= {
        "work_id": to_strings(_octets(random, rows, 32)),
        "attempt_id": to_strings(_octets(random, rows, 16)),
        "program_id": _names(random, rows, [f"{key}/program-{n:04d}" for n in range(PROGRAMS)]),
        "test_id": _names(random, rows, [f"{key}/secret/{n:02d}-random" for n in range(TESTS)]),
        "warmup": pa.array(position % REPETITIONS == 0),
    }
    return Batch(key, pa.RecordBatch.from_arrays([columns[c.name] for c in TIMING.columns], schema=TIMING.schema))


def _octets(random: np.random.Generator, rows: int, width: int) -> npt.NDArray[np.uint8]:
    return random.integers(0, 256, (rows, width), dtype=np.uint8)


def _names(random: np.random.Generator, rows: int, names: list[str]) -> pa.StringArray:
    return pa.array(names).take(pa.array(random.integers(0, len(names), rows)))


@dataclass(frozen=True, slots=True)
class Attempts:
    """Whole attempts on one problem: their timings [attempts * REPETITIONS] and what finished each [attempts]."""

    key: str
    timings: pa.RecordBatch
    finished: pa.RecordBatch


def attempts(count: int, seed: int) -> Attempts:
    """Attempts of five repetitions with the events that make them visible."""
    made = timings(count * REPETITIONS, seed)
    rows = made.rows
    first = pa.array(np.repeat(np.arange(count) * REPETITIONS, REPETITIONS))
    for name in ("attempt_id", "program_id"):
        rows = _with(rows, name, rows[name].take(first))
    tests = [f"{made.key}/secret/{n:05d}-random" for n in range(count)]
    programs = rows["program_id"].to_pylist()[::REPETITIONS]
    works = [work_id(CAMPAIGN, program, test, 0) for program, test in zip(programs, tests, strict=True)]
    for name, texts in (("test_id", tests), ("work_id", works)):
        rows = _with(rows, name, pa.array(texts).take(pc.divide(first, REPETITIONS)))
    return Attempts(made.key, rows, _finished(rows, count))


def _with(rows: pa.RecordBatch, name: str, column: pa.Array) -> pa.RecordBatch:
    position = rows.schema.get_field_index(name)
    return rows.set_column(position, rows.schema.field(position), column)


def _finished(rows: pa.RecordBatch, count: int) -> pa.RecordBatch:
    timed = rows.take(pa.array(range(0, len(rows), REPETITIONS)))
    digests = [rows_digest(rows.slice(n * REPETITIONS, REPETITIONS)) for n in range(count)]
    values = {"outcome": "accepted", "detail": "", "exit_code": 0, "signal": None, "output_digest": None}
    values |= {"output_bytes": 10, "timings": REPETITIONS, "worker_id": "w", "finished_at": "2026-01-01T00:00:00Z"}
    known = {name: timed[name] for name in timed.schema.names} | {"timings_digest": pa.array(digests)}
    columns = [
        known[c.name] if c.name in known else pa.repeat(pa.scalar(values[c.name], c.arrow), count)
        for c in FINISHED.columns
    ]
    return pa.RecordBatch.from_arrays(columns, schema=FINISHED.schema)
