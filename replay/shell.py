"""The one module of this room that reads the ledger: stored facts in, dense measurements and derived facts out.

The online rewarder and every offline replay call these same functions. Nothing is appended here, and nothing depends on
a clock: the same ledger at the same cut gives the same snapshot for ever.
"""

from collections.abc import Iterable, Mapping, Sequence
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

KERNEL = "1.0.0"
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


@dataclass(frozen=True, slots=True)
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
        own = [p for p in programs if p["problem_id"] == problem]
        own_tests = [t for t in tests if t["problem_id"] == problem]
        own_cells = cells.filter(pa.compute.equal(cells["problem_id"], problem)).to_pylist()
        problems.append(_measurements(problem, chosen, own, own_tests, (own_cells, repetitions)))
        rows.update(_row_digests(own, own_cells))
    return Snapshot(chosen, str(questions.cut), tuple(problems), rows)


def _by_attempt(table: pa.Table) -> dict[str, list[dict[str, Any]]]:
    grouped: dict[str, list[dict[str, Any]]] = {}
    for row in table.to_pylist():
        grouped.setdefault(row["attempt_id"], []).append(row)
    return grouped


def _measurements(
    problem: str,
    campaign: Mapping[str, Any],
    programs: Sequence[Mapping[str, Any]],
    tests: Sequence[Mapping[str, Any]],
    found: tuple[Sequence[Mapping[str, Any]], Mapping[str, list[dict[str, Any]]]],
) -> ProblemMeasurements:
    cells, repetitions = found
    shape = (len(programs), len(tests))
    depth = max((len(repetitions.get(cell["attempt_id"], ())) for cell in cells), default=0)
    outcome = np.zeros(shape, dtype=np.int8)
    wall, cpu = (np.full((*shape, depth), ABSENT, dtype=np.int64) for _ in range(2))
    startup, limit = np.zeros(shape, dtype=np.int64), np.full(shape, ABSENT, dtype=np.int64)
    for cell in cells:
        at = cell["p"], cell["t"]
        outcome[at] = _OUTCOMES[cell["outcome"]]
        limit[at] = campaign["hard_limit_ns"]
        for timing in repetitions.get(cell["attempt_id"], ()):
            wall[(*at, timing["r"])], cpu[(*at, timing["r"])] = timing["wall_ns"], timing["cpu_ns"]
            startup[at], limit[at] = timing["startup_ns"], timing["hard_limit_ns"]
    references = set(campaign["references"])
    return ProblemMeasurements(
        problem=problem,
        campaign=campaign["campaign_id"],
        tests=_tests(tests),
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


def _row_digests(programs: Sequence[Mapping[str, Any]], cells: Iterable[Mapping[str, Any]]) -> dict[str, str]:
    words: dict[int, list[str]] = {place: [p["program_id"], p["source_blob"]] for place, p in enumerate(programs)}
    for cell in cells:
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
    tests = sha256_words(*m.tests.ids, *np.flatnonzero(m.tests.correctness), *np.flatnonzero(m.tests.optimization))
    return sha256_words("evidence", m.problem, tests, len(pool), *rows, snapshot.rows[program])


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
        given = _problem_rewards(snapshot, full, judge(full, criterion), criterion, calibration)
        assigned += given
        waiting += int(m.candidate.sum()) - len(given)
    return assigned, waiting


def _problem_rewards(
    snapshot: Snapshot,
    m: ProblemMeasurements,
    verdicts: Verdicts,
    criterion: Criterion,
    calibration: Calibration | None,
) -> list[RewardAssigned]:
    values = reward(verdicts.c, verdicts.g, criterion)
    chosen = np.flatnonzero(verdicts.candidate & ~np.isnan(values))
    return [_assigned(snapshot, m, verdicts, int(row), float(values[row]), calibration) for row in chosen]


def _assigned(
    snapshot: Snapshot,
    m: ProblemMeasurements,
    verdicts: Verdicts,
    row: int,
    value: float,
    calibration: Calibration | None,
) -> RewardAssigned:
    program = verdicts.programs[row]
    proof = evidence(snapshot, m, program, calibration)
    calibration_id = calibration.calibration_id if calibration else None
    return RewardAssigned(
        reward_id=reward_id(snapshot.name, program, verdicts.criterion, calibration_id, proof),
        problem_id=m.problem,
        program_id=program,
        campaign_id=snapshot.name,
        criterion_hash=verdicts.criterion,
        calibration_id=calibration_id,
        value=value,
        c=bool(verdicts.c[row] == Status.PASS),
        g=bool(verdicts.g[row] == Status.PASS),
        q_numerator=int(verdicts.q_hi[row]),
        q_denominator=int(verdicts.q_den[row]),
        pool_size=int(verdicts.pool_size[row]),
        evidence_digest=proof,
        kernel=KERNEL,
        cut=snapshot.cut,
    )


def reward_id(campaign: str, program: str, criterion: str, calibration: str | None, proof: str) -> str:
    """The id of a reward: what it is about and what it rests on, never a cut, a clock or a release."""
    return sha256_words("reward", campaign, program, criterion, calibration or "", proof, KERNEL)
