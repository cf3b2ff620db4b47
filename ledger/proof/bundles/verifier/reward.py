"""`python REWARD.zip`: proves the bundle of one reward that `lap trace REWARD --bundle FILE` wrote.

    python REWARD.zip [--head HEAD]

HEAD is what `lap verify --print-head` printed and you kept: with it, the reward and its timings are proven to be what
the ledger held then. Every value of trace.json is that of an event in the bundle. Exit code 1 when anything differs.
"""

import argparse
import json
import sys
from collections.abc import Iterator, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from lapledger.ledger.proof.bundles.verifier import proof
from lapledger.ledger.proof.bundles.verifier.bundle_file import BROKEN, BundleFile, collect, unreadable
from lapledger.ledger.proof.bundles.verifier.canonical import sha

KEYS = ("reward", "evidence")
"""What bundle.json of a reward says beside what every bundle says."""
PARTS = (r"trace\.json",)
_ROLES = ("test_id", "original", "correctness", "optimization")
_SHARED = ("program_id", "executed_program_id", "source_blob")
_ENDED = ("program_id", "outcome", "attempt_id", "timings_digest", "timings")
_BLOBS = ("input_blob", "answer_blob")
_TRACED = {
    "reward": ("reward.assigned", "reward_id"),
    "criterion": ("criterion.declared", "criterion_hash"),
    "calibration": ("calibration.fitted", "calibration_id"),
    "program": ("program.added", "program_id"),
}
"""The parts of trace.json: the event of each, and its key."""


def _is_part(traced: dict[str, Any], row: dict[str, Any]) -> bool:
    """Whether every value, of its very type, is that of an event."""
    return all(name in row and row[name] == value and type(row[name]) is type(value) for name, value in traced.items())


class RewardBundle(BundleFile):
    """The bundle of one reward."""

    def __init__(self, path: str) -> None:
        super().__init__(path)
        self.trace: dict[str, Any] = self.json("trace.json")
        self.evidence = self.about.get("evidence") or {"problem": "", "tests": [], "programs": []}
        programs = self.evidence["programs"]
        self.executions = [(program, *cell[1:]) for program, _, *cells in programs for cell in cells]
        self._rows: dict[str, list[dict[str, Any]]] = {}

    def rows(self, kind: str) -> list[dict[str, Any]]:
        """All events of a type, each with the columns of its version."""
        if kind not in self._rows:
            self._rows[kind] = [row for table in self._plain_tables(kind) for row in table.to_pylist()]
        return self._rows[kind]

    def _plain_tables(self, kind: str) -> list[pa.Table]:
        return [table.drop_columns(["_frame", "_row"]) for table in self.tables(kind)]

    def check_trace(self) -> Iterator[str]:
        """The reward, its criterion, calibration and program are in trace.json as in their events, and nothing else."""
        if self.trace.keys() != _TRACED.keys():
            yield f"trace.json: its parts are not {', '.join(_TRACED)}"
        ids = self.trace["reward"] | {"reward_id": self.about["reward"]}
        for part, (kind, key) in _TRACED.items():
            traced, rows = self.trace[part], [row for row in self.rows(kind) if row[key] == ids[key]]
            if (traced or ids[key]) and not (traced and any(_is_part(traced, row) for row in rows)):
                yield f"trace.json: its {part} is not what its event says"

    def check_blobs(self) -> Iterator[str]:
        """The blobs are the sources, inputs and answers that the events of the evidence name."""
        tests = {test[0] for test in self.evidence["tests"]}
        named = {row[name] for row in self.rows("test.added") if row["test_id"] in tests for name in _BLOBS}
        named.update(source for _, source, *_ in self.evidence["programs"])
        return proof.check_blobs(self, named - {None}, set())

    def check_evidence(self) -> Iterator[str]:
        """The reward names the digest of its tests, its pool and its program, all as in their events."""
        problem, tests, programs = (self.evidence[name] for name in ("problem", "tests", "programs"))
        roles = {tuple(row[name] for name in _ROLES) for row in self.rows("test.added")}
        sources = self._sources()
        if not all(tuple(test) in roles for test in tests) or not all(tuple(row[:2]) in sources for row in programs):
            yield "evidence: a test or a program is not what its event says"
        counted = [f"{original:d}{correctness:d}{ranked:d} {test}" for test, original, correctness, ranked in tests]
        rows = [
            sha(program, source or "", *(value for cell in cells for value in cell))
            for program, source, *cells in programs
        ]
        digest = sha("evidence", problem, sha(*counted), len(rows) - 1, *rows)
        if digest != self.trace["reward"]["evidence_digest"]:
            yield "the evidence does not give the digest that the reward names"

    def check_executions(self) -> Iterator[str]:
        """Every execution is its program's or shared by a fact, and ended as its event says, with those timings."""
        ends = {tuple(row[name] for name in _ENDED) for row in self.rows("execution.finished")}
        shared, sources = ([row[n] for n in _SHARED] for row in self.rows("execution.shared")), self._sources()
        executed = {program: ran for program, ran, blob in shared if {(program, blob), (ran, blob)} <= sources}
        tables = self._plain_tables("timing.measured")
        for program, outcome, attempt, digest in self.executions:
            parts = [part for table in tables if (part := table.filter(pc.equal(table["attempt_id"], attempt)))]
            count, recomputed = sum(map(len, parts)), digest
            if parts:
                recomputed = proof.timings_digest(pa.concat_tables(parts).sort_by("repetition"))
            end = (outcome, attempt, digest, count)
            if recomputed != digest or not {(program, *end), (executed.get(program), *end)} & ends:
                yield f"attempt {attempt}: its outcome or its timings are not those of its end"

    def _sources(self) -> set[tuple[Any, Any]]:
        return {(row["program_id"], row["source_blob"]) for row in self.rows("program.added")}

    def problems(self, head: str | None) -> list[str]:
        """All that does not hold, a line each."""
        lines: list[str] = []
        checks = (
            lambda: proof.check_about(self, KEYS),
            lambda: proof.check_parts(self, PARTS),
            lambda: proof.check_frames(self),
            lambda: proof.check_cut(self),
            lambda: proof.check_own_head(self),
            lambda: proof.check_head(self, head) if head else (),
            *(self.check_trace, self.check_blobs, self.check_evidence, self.check_executions),
        )
        for check in checks:
            collect(lines, lambda check=check: lines.extend(check()))  # type: ignore[misc]  # bound per check
        return lines

    @property
    def summary(self) -> str:
        """What was checked, in one line."""
        reward, frames = self.trace["reward"], self.frames
        return (
            f"reward {reward['value']:+g} of {reward['program_id']}; {len(frames)} frames with"
            f" {sum(frames['rows'].to_pylist())} events, {len(self.names('blobs'))} blobs,"
            f" {len(self.executions)} executions"
        )


def main(arguments: Sequence[str], path: str) -> int:
    """Prints what does not hold and what was proven; 0 when all holds, 1 when not, 2 for a wrong option."""
    parser = argparse.ArgumentParser(prog="python REWARD.zip", description=(__doc__ or "").splitlines()[0])
    parser.add_argument(
        "--head", type=proof.head_text, help="a head that you kept: `lap verify --print-head` printed it"
    )
    parser.add_argument("--json", action="store_true", help="print what was checked as JSON")
    options = parser.parse_args(arguments)
    head, summary = options.head, ""
    try:
        bundle = RewardBundle(path)
        wrong = bundle.problems(head)
        summary = f"{bundle.summary}, "
    except BROKEN as error:
        wrong = [unreadable(error)]
    if options.json:
        values = {"wrong": wrong, "proven": not wrong, "checked": summary.removesuffix(", "), "head": head or ""}
        sys.stdout.write(json.dumps(values, indent=1) + "\n")
        return 1 if wrong else 0
    sys.stdout.write("".join(f"WRONG: {line}\n" for line in wrong))
    which = "given head" if head else "head of the bundle"
    sys.stdout.write(f"{'damaged' if wrong else 'proven'}: {summary}{which}\n")
    return 1 if wrong else 0
