"""What the screens show, as frozen rows made from the ledger's answers. No terminal toolkit here.

Numbers come from the scoring engine; this module only picks them and puts them into rows and words.
"""

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from lapledger.replay.criteria import Criterion
from lapledger.replay.explanations.why import Explanation, explain
from lapledger.replay.judging.gates import Status, Verdicts
from lapledger.replay.loading import JudgedCampaign
from lapledger.replay.measurements import ABSENT, Bytes, Floats, Ints, Outcome, ProblemMeasurements, durations


@dataclass(frozen=True, slots=True)
class CampaignRow:
    """One campaign of the ledger with the progress of its works."""

    campaign: str
    state: str  # "open" or the reason of its end
    problems: int
    programs: int
    references: int
    done: int  # works with an accepted attempt
    works: int


@dataclass(frozen=True, slots=True)
class ProblemRow:
    """One problem of a judged campaign with its candidates counted by verdict."""

    problem: str
    passed: int
    failed: int
    undecided: int
    references: int  # largest pool that ranked a candidate
    tests: int


@dataclass(frozen=True, slots=True)
class ProgramRow:
    """One judged program. Pairs are (smallest, largest), equal unless something was never seen; None is undefined."""

    problem: str
    program: str
    verdict: str  # pass, fail or undecided
    percentile: tuple[float, float] | None  # mean per-test percentile, 0 fastest
    q: tuple[float, float] | None  # quality in [0, 1], 0 best
    label: str  # as claimed
    model: str
    median_ns: int | None  # median over the tests it passed
    references: int  # that ranked it
    reason: str


@dataclass(frozen=True, slots=True)
class TestRow:
    """One test of one program."""

    __test__ = False  # pytest must not collect it

    test: str
    kinds: str
    outcome: str
    duration_ns: int | None  # as the criterion reads it
    percentile: tuple[float, float] | None  # None where the test is not ranked
    repetitions_ns: tuple[int, ...]  # wall time, warm-ups excluded


def campaign_row(row: Mapping[str, Any]) -> CampaignRow:
    """The row of one answer to `ledger.questions.queries.CAMPAIGNS`."""
    problems, programs, references = (len(row[name]) for name in ("problems", "programs", "references"))
    state = row["closed"] or "open"
    return CampaignRow(row["campaign_id"], state, problems, programs, references, row["done"], row["works"])


def problem_rows(campaign: JudgedCampaign) -> list[ProblemRow]:
    """One row a problem, in the campaign's order."""
    return [_problem_row(m, v) for m, v in zip(campaign.measurements, campaign.verdicts, strict=True)]


def _problem_row(m: ProblemMeasurements, v: Verdicts) -> ProblemRow:
    statuses, sizes = v.status[v.candidate], v.pool_size[v.candidate]
    passed, failed, undecided = (int((statuses == s).sum()) for s in (Status.PASS, Status.FAIL, Status.UNDECIDED))
    return ProblemRow(m.problem, passed, failed, undecided, int(sizes.max(initial=0)), len(m.tests.ids))


def program_rows(campaign: JudgedCampaign, problem: str | None = None) -> list[ProgramRow]:
    """One row a candidate of one problem, or of all; those of the best quality first in each problem."""
    pairs = zip(campaign.measurements, campaign.verdicts, strict=True) if problem is None else [campaign.of(problem)]
    return [row for m, v in pairs for row in _program_rows(m, v, campaign.criterion)]


def _program_rows(m: ProblemMeasurements, v: Verdicts, criterion: Criterion) -> Iterator[ProgramRow]:
    percentiles = _pairs(*mean_percentiles(m, v))
    qualities = _pairs(*(np.where(v.q_den > 0, q / np.maximum(v.q_den, 1), np.nan) for q in (v.q_lo, v.q_hi)))
    medians = passed_medians(m.outcome, durations(m, criterion)).tolist()
    status, sizes = v.status.tolist(), v.pool_size.tolist()
    order = np.lexsort((v.q_hi / np.maximum(v.q_den, 1), -v.status))
    for row in order[v.candidate[order]].tolist():
        yield ProgramRow(
            problem=m.problem,
            program=m.programs[row],
            verdict=Status(status[row]).name.lower(),
            percentile=percentiles[row],
            q=qualities[row],
            label=m.labels[row],
            model=m.models[row],
            median_ns=medians[row] if medians[row] >= 0 else None,
            references=sizes[row],
            reason=v.reason[row],
        )


def mean_percentiles(m: ProblemMeasurements, v: Verdicts) -> tuple[Floats, Floats]:
    """Mean over the optimization tests of the per-test percentile, smallest and largest [P]; nan without a pool."""
    ranked = m.tests.optimization
    scale = 2.0 * v.pool_size * int(ranked.sum())
    sums = (k[:, ranked].sum(axis=1) for k in (v.k_lo, v.k_hi))
    low, high = (np.where(scale > 0, 100 * total / np.maximum(scale, 1), np.nan) for total in sums)
    return low, high


def passed_medians(outcome: Bytes, duration_ns: Ints) -> Ints:
    """Median in ns, rounded down, of each program's durations on the tests it passed [P]; -1 where there is none."""
    passed = (outcome == Outcome.OK) & (duration_ns != ABSENT)
    if not passed.shape[1]:
        return np.full(len(passed), ABSENT, dtype=np.int64)
    ordered = np.sort(np.where(passed, duration_ns, np.iinfo(np.int64).max), axis=1)
    count = np.maximum(passed.sum(axis=1), 1)[:, None]
    low, high = (np.take_along_axis(ordered, index, axis=1)[:, 0] for index in ((count - 1) // 2, count // 2))
    medians: Ints = np.where(passed.any(axis=1), low + (high - low) // 2, ABSENT)
    return medians


def _pairs(low: Floats, high: Floats) -> list[tuple[float, float] | None]:
    pairs = zip(low.tolist(), high.tolist(), strict=True)
    return [None if math.isnan(a) else (a, b) for a, b in pairs]


@dataclass(frozen=True, slots=True, eq=False)
class Details:
    """All about one program: its row, whether it is of the pool, what would flip its verdict, and its tests."""

    row: ProgramRow
    reference: bool
    explanation: Explanation
    tests: tuple[TestRow, ...]


def details(campaign: JudgedCampaign, problem: str, program: str) -> Details:
    """The details of one program; KeyError or ReplayError when the campaign does not hold it."""
    m, v = campaign.of(problem)
    at = m.row(program)
    row = next(row for row in program_rows(campaign, problem) if row.program == program)
    tests = tuple(_test_rows(m, v, at, campaign.criterion))
    return Details(row, bool(m.reference[at]), explain(m, campaign.criterion, program), tests)


def _test_rows(m: ProblemMeasurements, v: Verdicts, at: int, criterion: Criterion) -> Iterator[TestRow]:
    read = durations(m, criterion)[at].tolist()
    scale = 2 * int(v.pool_size[at])
    for column, test in enumerate(m.tests.ids):
        low, high = int(v.k_lo[at, column]), int(v.k_hi[at, column])
        wall = m.wall_ns[at, column]
        yield TestRow(
            test=test,
            kinds=", ".join(k for k in ("original", "correctness", "optimization") if getattr(m.tests, k)[column]),
            outcome=Outcome(int(m.outcome[at, column])).name.lower(),
            duration_ns=read[column] if read[column] >= 0 else None,
            percentile=(100 * low / scale, 100 * high / scale) if low >= 0 and scale else None,
            repetitions_ns=tuple(wall[wall != ABSENT].tolist()),
        )
