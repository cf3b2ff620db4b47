"""What a bundle holds, read back as plain values: one problem with its tests, programs and runs.

Facts only: which attempt counts is decided here as the ledger decides it, and nothing is judged.
"""

import copy
import hashlib
import json
import zipfile
from collections.abc import Container, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

FAULT = "sandbox_fault"
UNKNOWN = -1
"""What stands for a number that nobody recorded."""


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


def counts_of(cut: str) -> dict[tuple[str, int], int]:
    """Stream and partition -> how many frames a cut has of it; a partition that it does not name has none."""
    parts = (part.partition("=") for part in cut.split(","))
    return {(stream, place): int(n) for stream, _, numbers in parts for place, n in enumerate(numbers.split("."))}


class Bundle:
    """An opened bundle, at its own cut or at an earlier one."""

    def __init__(self, path: str) -> None:
        self.zip = zipfile.ZipFile(path)
        self.about: dict[str, Any] = self.json("bundle.json")
        self.frames = self.table("frames.parquet")
        self._until: np.ndarray[Any, np.dtype[np.bool_]] | None = None  # which frames are seen; None: all

    def at(self, cut: str) -> "Bundle":
        """The same bundle as the ledger was at an earlier cut."""
        earlier, counts = copy.copy(self), counts_of(cut)
        places = zip(*(self.frames[name].to_pylist() for name in ("stream", "partition", "admission")), strict=True)
        seen = [admission <= counts.get((stream, partition), 0) for stream, partition, admission in places]
        earlier._until = np.array(seen, dtype=np.bool_)
        return earlier

    def blob(self, digest: str) -> bytes | None:
        """A text by its SHA-256; None where the bundle does not hold it. ValueError when it is another."""
        try:
            data = self.zip.read(f"blobs/{digest}")
        except KeyError:
            return None
        if hashlib.sha256(data).hexdigest() != digest:
            raise ValueError(f"blobs/{digest}: its bytes are not those that its name says")
        return data

    def table(self, name: str) -> pa.Table:
        """A Parquet file of the bundle; KeyError when it is not there, ValueError when it is none."""
        try:
            return pq.read_table(pa.BufferReader(self.zip.read(name)))
        except pa.ArrowException as error:
            raise ValueError(f"{name}: {error}") from None

    def json(self, name: str) -> Any:
        """A JSON file of the bundle; KeyError when it is not there, ValueError when it is none."""
        try:
            return json.loads(self.zip.read(name))
        except ValueError as error:
            raise ValueError(f"{name}: {error}") from None

    def kinds(self) -> list[str]:
        """The event types in it, each with its version."""
        return sorted(name for name in self.zip.namelist() if name.startswith("events/"))

    def events(self, kind: str, columns: Sequence[str]) -> pa.Table:
        """All events of a type in the order of admission, of whatever version; null in columns that a version lacks."""
        names = [name for name in self.kinds() if name.split("/")[1].rsplit(".v", 1)[0] == kind]
        tables = [_of_columns(self.table(name), [*columns, "_frame", "_row"]) for name in names]
        if not tables:
            return pa.table({name: pa.array([], pa.string()) for name in columns})
        table, frames = pa.concat_tables(tables, promote_options="default"), self.frames
        if self._until is not None:
            table = table.filter(pa.array(self._until[table["_frame"].to_numpy()]))
        keys = [
            frames[name].to_numpy(zero_copy_only=False)[table["_frame"].to_numpy()]
            for name in ("partition", "admission")
        ]
        return table.take(np.lexsort((table["_row"].to_numpy(), keys[1], keys[0])))

    def first(self, kind: str, columns: Sequence[str], key: str) -> dict[str, dict[str, Any]]:
        """The first event for each key: facts do not change, a second telling adds nothing."""
        found: dict[str, dict[str, Any]] = {}
        for row in self.events(kind, columns).to_pylist():
            found.setdefault(row[key], row)
        return found


def _of_columns(table: pa.Table, columns: Sequence[str]) -> pa.Table:
    missing = [name for name in columns if name not in table.column_names]
    for name in missing:
        table = table.append_column(name, pa.nulls(len(table)))
    return table.select(columns)


TESTS = ("problem_id", "test_id", "ordinal", "original", "correctness", "optimization", "input_chars", "output_chars")
PROGRAMS = ("problem_id", "program_id", "model", "source_blob")
CAMPAIGN = ("campaign_id", "problems", "programs", "references", "hard_limit_ns")
SHARED = ("campaign_id", "program_id", "executed_program_id", "source_blob")
FINISHED = ("campaign_id", "work_id", "attempt_id", "program_id", "test_id", "outcome")
TIMED = ("campaign_id", "attempt_id", "repetition", "warmup", "wall_ns", "user_ns", "system_ns")
MORE = ("peak_memory_bytes", "startup_ns", "hard_limit_ns")


def problems(bundle: Bundle, campaign: str) -> Iterator[Problem]:
    """The problems of a campaign in the order in which it names them."""
    opened = bundle.first("campaign.opened", CAMPAIGN, "campaign_id")[campaign]
    members, references = set(opened["programs"]), set(opened["references"])
    tests = sorted(bundle.first("test.added", TESTS, "test_id").values(), key=lambda t: (t["ordinal"], t["test_id"]))
    programs = sorted(bundle.first("program.added", PROGRAMS, "program_id").values(), key=lambda p: p["program_id"])
    runs = _runs(bundle, campaign, opened["hard_limit_ns"] or 0)
    executed = _executed(bundle, campaign, members, {name for name, _ in runs})
    for name in opened["problems"]:
        own = [t for t in tests if t["problem_id"] == name]
        judged = [
            {**p, "reference": p["program_id"] in references, "candidate": True}
            for p in programs
            if p["problem_id"] == name and p["program_id"] in members
        ]
        cells = [
            [runs.get((executed.get(p["program_id"], p["program_id"]), t["test_id"])) for t in own] for p in judged
        ]
        yield Problem(name, own, judged, cells)


def _executed(bundle: Bundle, campaign: str, members: Container[str], ran: Container[str]) -> dict[str, str]:
    """A program that was not run -> the member of the same source whose executions it is told to share."""
    sources = {row["program_id"]: row["source_blob"] for row in bundle.events("program.added", PROGRAMS).to_pylist()}
    found: dict[str, str] = {}
    for row in bundle.events("execution.shared", SHARED).to_pylist():
        program, other = row["program_id"], row["executed_program_id"]
        if row["campaign_id"] == campaign and program not in ran:
            same = other in members and sources.get(program) == sources.get(other) == row["source_blob"]
            found.setdefault(program, other if same else program)
    return found


def _runs(bundle: Bundle, campaign: str, limit_ns: int) -> dict[tuple[str, str], Run]:
    """(program, test) -> its counted attempt: the first admitted that is no fault of the sandbox."""
    seen: set[str] = set()
    ends = []
    for row in bundle.events("execution.finished", FINISHED).to_pylist():
        if row["campaign_id"] == campaign and row["outcome"] != FAULT and row["work_id"] not in seen:
            seen.add(row["work_id"])
            ends.append(row)
    timings, edges = _timings(bundle, campaign, [end["attempt_id"] for end in ends])
    found = {}
    for place, end in enumerate(ends):
        mine = slice(edges[place], edges[place + 1])
        columns = {name: values[mine].tolist() for name, values in timings.items()}
        processor = zip(columns["user_ns"], columns["system_ns"], strict=True)
        clocks = {
            "wall": [ns for ns in columns["wall_ns"] if ns >= 0],
            "cpu": [user + system for user, system in processor if user >= 0 and system >= 0],
            "memory": [size for size in columns["peak_memory_bytes"] if size >= 0],
        }
        startup = columns["startup_ns"][-1] if columns["startup_ns"] else 0
        limit = columns["hard_limit_ns"][-1] if columns["hard_limit_ns"] else limit_ns
        found[end["program_id"], end["test_id"]] = Run(end["outcome"], clocks, startup, max(limit, 0))
    return found


def _timings(bundle: Bundle, campaign: str, attempts: Sequence[str]) -> tuple[dict[str, Any], Any]:
    """The timings of some attempts but for warm-ups, by attempt and repetition; where those of each attempt begin."""
    table = bundle.events("timing.measured", (*TIMED, *MORE))
    table = table.filter(pc.and_(pc.equal(table["campaign_id"], campaign), pc.invert(table["warmup"])))
    place = pc.fill_null(pc.index_in(table["attempt_id"], value_set=pa.array(attempts, pa.string())), -1).to_numpy()
    order = np.lexsort((table["repetition"].to_numpy(), place))
    order = order[np.searchsorted(place[order], 0) :]
    edges = np.searchsorted(place[order], np.arange(len(attempts) + 1))
    names = ("wall_ns", "user_ns", "system_ns", *MORE)
    return {name: pc.fill_null(table[name], UNKNOWN).to_numpy()[order] for name in names}, edges
