"""The one module of this room that reads the ledger: stored facts in, dense measurements and derived facts out.

The online rewarder and every offline replay call these same functions. Nothing is appended here, and nothing depends on
a clock: the same ledger at the same cut gives the same snapshot for ever.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from ledger.digests import sha256_words
from ledger.errors import UserError
from ledger.events import RewardAssigned
from ledger.questions import CELLS, REPETITIONS, Questions
from replay.calibration import AffineFit, with_stored
from replay.criteria import Criterion
from replay.gates import Status, Verdicts, judge
from replay.measurements import ABSENT, Outcome, ProblemMeasurements, Tests
from replay.rewards import reward

KERNEL = "1.1.0"
"""Semantic version of the replay kernel; part of every derived id, raised when a verdict could change."""

MAIN = "main"
"""The campaign that is meant when several are stored and none is named."""

_OUTCOMES = {
    "accepted": Outcome.OK,
    "wrong_answer": Outcome.WRONG_ANSWER,
    "run_time_error": Outcome.RUN_TIME_ERROR,
    "memory_limit": Outcome.MEMORY_LIMIT,
    "output_limit": Outcome.OUTPUT_LIMIT,
    "time_limit": Outcome.TIME_LIMIT,
}


@dataclass(frozen=True, slots=True, eq=False)
class Snapshot:
    """One campaign at one cut: its problems' measurements and the digest of what each program's row stands on."""

    campaign: Mapping[str, Any]
    cut: str
    problems: tuple[ProblemMeasurements, ...]
    rows: Mapping[str, str]
    """Program id -> digest of its accepted attempts, their outcomes and their timings' digests, test by test."""

    @property
    def name(self) -> str:
        """The campaign's id."""
        return str(self.campaign["campaign_id"])


@dataclass(frozen=True, slots=True, eq=False)
class Calibration:
    """A fit with the id of its event and the snapshot that its stored durations come from."""

    calibration_id: str
    fit: AffineFit
    stored: Snapshot


def find_campaign(questions: Questions, name: str | None) -> Mapping[str, Any]:
    """The campaign of that id; without a name the only one, or the one called `main`. UserError otherwise."""
    found = questions.rows("SELECT * FROM campaign ORDER BY campaign_id")
    known = ", ".join(row["campaign_id"] for row in found) or "none"
    if name is None and len(found) == 1:
        return found[0]
    for row in found:
        if row["campaign_id"] == (name or MAIN):
            return row
    if not found:
        raise UserError("the ledger holds no campaign at this cut; run the programs with `lap run`")
    asked = "several campaigns are stored" if name is None else f"no campaign {name!r} at this cut"
    raise UserError(f"{asked}; choose one with --campaign: {known}")


def load(questions: Questions, campaign: str | None = None) -> Snapshot:
    """The measurements of a campaign at the questions' cut, problems in order of their ids."""
    chosen = find_campaign(questions, campaign)
    name = chosen["campaign_id"]
    members = set(chosen["programs"])
    programs = [p for p in questions.rows("SELECT * FROM program ORDER BY program_id") if p["program_id"] in members]
    tests = questions.rows("SELECT * FROM test ORDER BY problem_id, ordinal, test_id")
    cells = questions.ask(CELLS, campaign=name, programs=sorted(members))
    repetitions = _by_attempt(questions.ask(REPETITIONS, campaign=name))
    problems, rows = [], {}
    for problem in chosen["problems"]:
        own = _Stored(
            programs=[p for p in programs if p["problem_id"] == problem],
            tests=[t for t in tests if t["problem_id"] == problem],
            cells=cells.filter(pa.compute.equal(cells["problem_id"], problem)).to_pylist(),
        )
        problems.append(_measurements(problem, chosen, own, repetitions))
        rows.update(_row_digests(own))
    return Snapshot(chosen, str(questions.cut), tuple(problems), rows)


@dataclass(frozen=True, slots=True)
class _Stored:
    """The stored rows of one problem in one campaign."""

    programs: Sequence[Mapping[str, Any]]
    tests: Sequence[Mapping[str, Any]]
    cells: Sequence[Mapping[str, Any]]  # accepted attempts, `p` and `t` their program's and test's places


def _by_attempt(table: pa.Table) -> dict[str, list[dict[str, Any]]]:
    grouped: dict[str, list[dict[str, Any]]] = {}
    for row in table.to_pylist():
        grouped.setdefault(row["attempt_id"], []).append(row)
    return grouped


def _measurements(
    problem: str, campaign: Mapping[str, Any], own: _Stored, repetitions: Mapping[str, list[dict[str, Any]]]
) -> ProblemMeasurements:
    programs, shape = own.programs, (len(own.programs), len(own.tests))
    depth = max((len(repetitions.get(cell["attempt_id"], ())) for cell in own.cells), default=0)
    outcome = np.zeros(shape, dtype=np.int8)
    wall, cpu, memory = (np.full((*shape, depth), ABSENT, dtype=np.int64) for _ in range(3))
    startup, limit = np.zeros(shape, dtype=np.int64), np.full(shape, ABSENT, dtype=np.int64)
    for cell in own.cells:
        at = cell["p"], cell["t"]
        outcome[at] = _OUTCOMES[cell["outcome"]]
        limit[at] = campaign["hard_limit_ns"]
        for timing in repetitions.get(cell["attempt_id"], ()):
            place = (*at, timing["r"])
            wall[place], cpu[place], memory[place] = timing["wall_ns"], timing["cpu_ns"], timing["peak_memory_bytes"]
            startup[at], limit[at] = timing["startup_ns"], timing["hard_limit_ns"]
    references = set(campaign["references"])
    return ProblemMeasurements(
        problem=problem,
        campaign=campaign["campaign_id"],
        tests=_tests(own.tests),
        programs=tuple(p["program_id"] for p in programs),
        makers=tuple(p["maker"] for p in programs),
        labels=tuple(p["label"] for p in programs),
        candidate=np.ones(len(programs), dtype=np.bool_),
        reference=np.array([p["program_id"] in references for p in programs], dtype=np.bool_),
        duplicate=np.array([int(p["source_blob"][:15], 16) for p in programs], dtype=np.int64),
        outcome=outcome,
        wall_ns=wall,
        cpu_ns=cpu,
        startup_ns=startup,
        limit_ns=limit,
        memory_bytes=memory,
    )


def _tests(tests: Sequence[Mapping[str, Any]]) -> Tests:
    def flags(name: str) -> np.ndarray[Any, np.dtype[np.bool_]]:
        return np.array([t[name] for t in tests], dtype=np.bool_)

    def sizes(name: str) -> np.ndarray[Any, np.dtype[np.int64]]:
        return np.array([t[name] for t in tests], dtype=np.int64)

    return Tests(
        ids=tuple(t["test_id"] for t in tests),
        original=flags("original"),
        correctness=flags("correctness"),
        optimization=flags("optimization"),
        input_bytes=sizes("input_bytes"),
        input_chars=sizes("input_chars"),
        output_bytes=sizes("output_bytes"),
        output_chars=sizes("output_chars"),
    )


def _row_digests(own: _Stored) -> dict[str, str]:
    words: dict[int, list[str]] = {place: [p["program_id"], p["source_blob"]] for place, p in enumerate(own.programs)}
    for cell in own.cells:
        words[cell["p"]] += [str(cell["t"]), cell["outcome"], cell["attempt_id"], cell["timings_digest"]]
    return {words[place][0]: sha256_words(*words[place]) for place in words}


def is_closed(m: ProblemMeasurements) -> bool:
    """Whether every candidate has an accepted outcome on every test, so that a reward may be derived."""
    return bool((m.outcome[m.candidate] != Outcome.MISSING).all())


def pooled(m: ProblemMeasurements, calibration: Calibration | None) -> ProblemMeasurements:
    """The measurements with the stored references that the calibration adds; unchanged without one."""
    if calibration is None:
        return m
    stored = {problem.problem: problem for problem in calibration.stored.problems}
    return with_stored(m, stored[m.problem], calibration.fit) if m.problem in stored else m


def judge_all(
    snapshot: Snapshot, criterion: Criterion, calibration: Calibration | None = None
) -> tuple[list[ProblemMeasurements], list[Verdicts]]:
    """The pooled measurements and the verdicts of every problem of a snapshot."""
    measured = [pooled(m, calibration) for m in snapshot.problems]
    return measured, [judge(m, criterion) for m in measured]


def evidence(snapshot: Snapshot, m: ProblemMeasurements, program: str, calibration: Calibration | None = None) -> str:
    """Digest of all that a verdict on `program` rests on: the tests, the frozen pool's rows and its own row."""
    pool = sorted(p for p, member in zip(m.programs, m.reference, strict=True) if member)
    stored = calibration.stored.rows if calibration else {}
    rows = [snapshot.rows.get(p) or stored[p] for p in pool]
    return sha256_words("evidence", m.problem, _tests_digest(m.tests), len(pool), *rows, snapshot.rows[program])


def references_digest(snapshot: Snapshot) -> str:
    """Digest of what a calibration reads of one campaign: every problem's tests and every reference's row."""
    words: list[str | int] = ["references"]
    for m in snapshot.problems:
        pool = sorted(p for p, member in zip(m.programs, m.reference, strict=True) if member)
        words += [m.problem, _tests_digest(m.tests), len(pool), *(snapshot.rows[p] for p in pool)]
    return sha256_words(*words)


def _tests_digest(tests: Tests) -> str:
    kinds = zip(tests.ids, tests.original, tests.correctness, tests.optimization, strict=True)
    return sha256_words(
        *(f"{int(original)}{int(correct)}{int(ranked)} {name}" for name, original, correct, ranked in kinds)
    )


def rewards(
    snapshot: Snapshot, criterion: Criterion, calibration: Calibration | None = None
) -> tuple[list[RewardAssigned], int]:
    """(rewards of every closed problem's candidates, number of candidates that are open or undecided)."""
    assigned: list[RewardAssigned] = []
    waiting = 0
    for m in snapshot.problems:
        if not is_closed(m):
            waiting += int(m.candidate.sum())
            continue
        full = pooled(m, calibration)
        given = _problem_rewards(_Judged(snapshot, full, judge(full, criterion), calibration), criterion)
        assigned += given
        waiting += int(m.candidate.sum()) - len(given)
    return assigned, waiting


@dataclass(frozen=True, slots=True, eq=False)
class _Judged:
    """One problem with its verdicts and what they rest on."""

    snapshot: Snapshot
    m: ProblemMeasurements
    verdicts: Verdicts
    calibration: Calibration | None


def _problem_rewards(judged: _Judged, criterion: Criterion) -> list[RewardAssigned]:
    values = reward(judged.verdicts, criterion)
    chosen = np.flatnonzero(judged.verdicts.candidate & ~np.isnan(values))
    return [_assigned(judged, int(row), float(values[row])) for row in chosen]


def _assigned(judged: _Judged, row: int, value: float) -> RewardAssigned:
    snapshot, verdicts, calibration = judged.snapshot, judged.verdicts, judged.calibration
    program = verdicts.programs[row]
    proof = evidence(snapshot, judged.m, program, calibration)
    calibration_id = calibration.calibration_id if calibration else None
    return RewardAssigned(
        reward_id=reward_id(snapshot.name, program, verdicts.criterion, calibration_id, proof),
        problem_id=judged.m.problem,
        program_id=program,
        campaign_id=snapshot.name,
        criterion_hash=verdicts.criterion,
        calibration_id=calibration_id,
        value=value,
        c=_known(verdicts.c[row]),
        g=_known(verdicts.g[row]),
        q_numerator=int(verdicts.q_hi[row]),
        q_denominator=int(verdicts.q_den[row]),
        pool_size=int(verdicts.pool_size[row]),
        evidence_digest=proof,
        kernel=KERNEL,
        cut=snapshot.cut,
    )


def _known(gate: int) -> bool | None:
    return None if gate == Status.UNDECIDED else bool(gate == Status.PASS)


def reward_id(campaign: str, program: str, criterion: str, calibration: str | None, proof: str) -> str:
    """The id of a reward: what it is about and what it rests on, never a cut, a clock or a release."""
    return sha256_words("reward", campaign, program, criterion, calibration or "", proof, KERNEL)
