"""What a bundle holds, read back as plain values: one problem with its tests, programs and runs.

Facts only: which attempt counts is decided here as the ledger decides it, and nothing is judged.
"""

from collections.abc import Container, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lapledger.ledger.proof.bundles.verifier.bundle_file import BundleFile

FAULT = "sandbox_fault"
UNKNOWN = -1
"""What stands for a number that was not recorded."""


@dataclass(frozen=True)
class Run:
    """The counted attempt of a program on a test; repetitions are whole ns, or bytes on the clock `memory`."""

    outcome: str
    clocks: Mapping[str, Sequence[int]]
    startup_ns: int
    limit_ns: int


@dataclass(frozen=True)
class Problem:
    """One problem in one campaign: P programs and T tests, each in a fixed order."""

    name: str
    tests: Sequence[Mapping[str, Any]]
    programs: Sequence[Mapping[str, Any]]  # rows of program.added, with `reference` and `candidate`
    runs: Sequence[Sequence[Run | None]]  # [P][T]
    limits: Mapping[str, Any]  # `time_limit_ns` and `memory_limit_bytes` of its package, None where it states none


LIMITS = ("problem_id", "time_limit_ns", "memory_limit_bytes")
TESTS = ("problem_id", "test_id", "ordinal", "original", "correctness", "optimization", "input_chars", "output_chars")
PROGRAMS = ("problem_id", "program_id", "model", "source_blob")
CAMPAIGN = ("campaign_id", "problems", "programs", "references", "hard_limit_ns")
SHARED = ("campaign_id", "program_id", "executed_program_id", "source_blob")
FINISHED = ("campaign_id", "work_id", "attempt_id", "program_id", "test_id", "outcome")
TIMED = ("campaign_id", "attempt_id", "repetition", "warmup", "wall_ns", "user_ns", "system_ns")
MORE = ("peak_memory_bytes", "startup_ns", "hard_limit_ns")


def problems(bundle: BundleFile, campaign: str) -> Iterator[Problem]:
    """The problems of a campaign in the order in which it names them."""
    campaign_event = bundle.first("campaign.opened", CAMPAIGN, "campaign_id")[campaign]
    members, references = set(campaign_event["programs"]), set(campaign_event["references"])
    tests = sorted(bundle.first("test.added", TESTS, "test_id").values(), key=lambda t: (t["ordinal"], t["test_id"]))
    programs = sorted(bundle.first("program.added", PROGRAMS, "program_id").values(), key=lambda p: p["program_id"])
    runs = _runs(bundle, campaign, campaign_event["hard_limit_ns"] or 0)
    limits = bundle.first("problem.added", LIMITS, "problem_id")
    executed = _executed(bundle, campaign, members, {name for name, _ in runs})
    for name in campaign_event["problems"]:
        tests_here = [t for t in tests if t["problem_id"] == name]
        judged = [
            {**p, "reference": p["program_id"] in references, "candidate": True}
            for p in programs
            if p["problem_id"] == name and p["program_id"] in members
        ]
        cells = [
            [runs.get((executed.get(p["program_id"], p["program_id"]), t["test_id"])) for t in tests_here]
            for p in judged
        ]
        yield Problem(name, tests_here, judged, cells, limits.get(name, dict.fromkeys(LIMITS)))


def _executed(bundle: BundleFile, campaign: str, members: Container[str], ran: Container[str]) -> dict[str, str]:
    """A program that was not run -> the member of the same source whose executions it shares."""
    sources = {row["program_id"]: row["source_blob"] for row in bundle.events("program.added", PROGRAMS).to_pylist()}
    executed: dict[str, str] = {}
    for row in bundle.events("execution.shared", SHARED).to_pylist():
        program, candidate = row["program_id"], row["executed_program_id"]
        if row["campaign_id"] == campaign and program not in ran:
            same = candidate in members and sources.get(program) == sources.get(candidate) == row["source_blob"]
            executed.setdefault(program, candidate if same else program)
    return executed


def _runs(bundle: BundleFile, campaign: str, limit_ns: int) -> dict[tuple[str, str], Run]:
    """(program, test) -> its counted attempt: the first admitted that is no fault of the sandbox."""
    seen: set[str] = set()
    ends = []
    for row in bundle.events("execution.finished", FINISHED).to_pylist():
        if row["campaign_id"] == campaign and row["outcome"] != FAULT and row["work_id"] not in seen:
            seen.add(row["work_id"])
            ends.append(row)
    timings, bounds = _timings(bundle, campaign, [end["attempt_id"] for end in ends])
    runs = {}
    for number, end in enumerate(ends):
        rows = slice(bounds[number], bounds[number + 1])
        columns = {name: values[rows].tolist() for name, values in timings.items()}
        processor = zip(columns["user_ns"], columns["system_ns"], strict=True)
        clocks = {
            "wall": [ns for ns in columns["wall_ns"] if ns >= 0],
            "cpu": [user + system for user, system in processor if user >= 0 and system >= 0],
            "memory": [size for size in columns["peak_memory_bytes"] if size >= 0],
        }
        startup = columns["startup_ns"][-1] if columns["startup_ns"] else 0
        limit = columns["hard_limit_ns"][-1] if columns["hard_limit_ns"] else limit_ns
        runs[end["program_id"], end["test_id"]] = Run(end["outcome"], clocks, startup, max(limit, 0))
    return runs


def _timings(bundle: BundleFile, campaign: str, attempts: Sequence[str]) -> tuple[dict[str, Any], Any]:
    """The timings of some attempts but for warm-ups, by attempt and repetition; where those of each attempt begin."""
    table, names = bundle.events("timing.measured", (*TIMED, *MORE)), ("wall_ns", "user_ns", "system_ns", *MORE)
    if not table.num_rows:  # its columns have no types then
        return {name: np.zeros(0, np.int64) for name in names}, np.zeros(len(attempts) + 1, np.int64)
    table = table.filter(pc.and_(pc.equal(table["campaign_id"], campaign), pc.invert(table["warmup"])))
    attempt = pc.fill_null(pc.index_in(table["attempt_id"], value_set=pa.array(attempts, pa.string())), -1).to_numpy()
    order = np.lexsort((table["repetition"].to_numpy(), attempt))
    order = order[np.searchsorted(attempt[order], 0) :]
    bounds = np.searchsorted(attempt[order], np.arange(len(attempts) + 1))
    return {name: pc.fill_null(table[name], UNKNOWN).to_numpy()[order] for name in names}, bounds
