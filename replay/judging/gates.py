"""Verdicts: is a program correct (c), is it fast enough (g), and does it pass.

Three-valued: what depends on something never seen is undecided, never a guess. The evaluation comes from `context`, the
texts from `reasons`; rewards and estimates are made from these verdicts.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import IntEnum
from functools import cached_property, lru_cache

import numpy as np

from lapledger.replay.criteria import Criterion
from lapledger.replay.errors import ReplayError
from lapledger.replay.judging.context import Evaluation, combine, evaluate_problem
from lapledger.replay.judging.reasons import Case, reasons
from lapledger.replay.measurements import Bools, Bytes, Ints, ProblemMeasurements


class Status(IntEnum):
    """A verdict; the gates c and g use the same numbers."""

    UNDECIDED = -1
    FAIL = 0
    PASS = 1


@dataclass(frozen=True, slots=True, eq=False)
class Details:
    """Details of verdicts that most callers never read."""

    k_lo: Ints  # [P, T]
    k_hi: Ints  # [P, T]
    reason: tuple[str, ...]  # [P]


@dataclass(frozen=True, slots=True, eq=False)
class DetailSource:
    """Computes the details of a problem's verdicts on first use."""

    m: ProblemMeasurements
    criterion: Criterion
    evaluation: Evaluation | None  # None: evaluated again on first use

    def details(self) -> Details:
        """Ranks of every duration and a reason for every program."""
        m, evaluation = self.m, self.evaluation or evaluate_problem(self.m, self.criterion)
        ranked = evaluation.rules.ranked
        k_lo, k_hi = (np.full(m.outcome.shape, -1, dtype=np.int64) for _ in range(2))
        k_lo[:, ranked], k_hi[:, ranked] = evaluation.ranks.k_lo, evaluation.ranks.k_hi
        return Details(k_lo, k_hi, reasons(Case(m, self.criterion, evaluation, evaluation.gate(self.criterion))))


@dataclass(frozen=True, eq=False)
class Verdicts:
    """The verdict of a criterion on every program of one problem; programs that are not candidates are pool only.

    Ranks of single durations and reasons are computed on first use.
    """

    problem: str
    campaign: str
    criterion: str  # its hash
    programs: tuple[str, ...]  # [P]
    candidate: Bools  # [P]
    c: Bytes  # [P] correctness gate: 1, 0, -1 undecided
    g: Bytes  # [P] optimization gate: 1, 0, -1 undecided
    status: Bytes  # [P] of Status
    q_lo: Ints  # [P] smallest numerator of q; quality q = numerator / q_den, 0 best
    q_hi: Ints  # [P] largest numerator: equal to q_lo unless something was never seen
    q_den: Ints  # [P] 0 where the pool is empty or no test is an optimization test
    pool_size: Ints  # [P] references each program is ranked against
    kept: Bytes  # [T] 1 where a test stays as an optimization test, 0 where not, -1 undecided
    excluded: bool  # the filter keeps no optimization test: the problem leaves the environment, and is counted
    censored_below_limit: Ints  # [P] runs killed below the criterion's limit: only running them again can decide them
    lacking: Ints  # [P] tests without a result, skipped under missing = `skip`
    none_finished: Bools  # [P] every optimization test that may be kept crashed or was killed
    details_from: DetailSource = field(repr=False)

    @property
    def k_lo(self) -> Ints:
        """Smallest integer rank of each duration [P, T]; -1 off the optimization tests that may be kept."""
        return self._details.k_lo

    @property
    def k_hi(self) -> Ints:
        """Largest integer rank [P, T]; the percentile is 100 k / (2 pool_size)."""
        return self._details.k_hi

    @property
    def reason(self) -> tuple[str, ...]:
        """Why each program got its verdict, as short text [P]."""
        return self._details.reason

    @cached_property
    def _details(self) -> Details:
        return self.details_from.details()


def judge(m: ProblemMeasurements, criterion: Criterion, *, hold: bool = True) -> Verdicts:
    """Verdicts on every program of one problem under a criterion.

    The pool is every reference that is correct by re-execution under this criterion; an undecided one is excluded, and
    pool_size says how many ranked each program. Without `hold` the evaluation is dropped, and made again when details
    are read: of many problems, most never need them.
    """
    return decide(m, criterion, evaluate_problem(m, criterion), hold=hold)


def decide(m: ProblemMeasurements, criterion: Criterion, evaluation: Evaluation, *, hold: bool = True) -> Verdicts:
    """The verdicts on a problem from the evaluation of all its programs under the criterion."""
    g, r = evaluation.gate(criterion), evaluation.ranks
    return Verdicts(
        problem=m.problem,
        campaign=m.campaign,
        criterion=_hash(criterion),
        programs=m.programs,
        candidate=m.candidate,
        c=evaluation.c,
        g=g,
        status=combine(evaluation.c, g),
        q_lo=r.q_lo,
        q_hi=r.q_hi,
        q_den=r.q_den,
        pool_size=r.pool_size,
        kept=evaluation.rules.kept,
        excluded=evaluation.rules.excluded,
        censored_below_limit=evaluation.results.censored_below_limit.sum(axis=1),
        lacking=evaluation.results.lacking.sum(axis=1),
        none_finished=evaluation.results.none_finished,
        details_from=DetailSource(m, criterion, evaluation if hold else None),
    )


@lru_cache(maxsize=64)
def _hash(criterion: Criterion) -> str:
    """The criterion's hash, made once for many problems."""
    return criterion.hash


def one_campaign(measured: Sequence[Verdicts] | Sequence[ProblemMeasurements]) -> None:
    """Raise ReplayError if programs of more than one campaign are compared."""
    campaigns = sorted({part.campaign for part in measured})
    if len(campaigns) > 1:
        raise ReplayError(
            f"programs of campaigns {', '.join(campaigns)} meet only through a named calibration: "
            "run them in one campaign, or map the stored references with `lap calibrate` and calibration = 'affine'"
        )


def share_within(verdicts: Verdicts, criterion: Criterion) -> tuple[Ints, Ints, Ints]:
    """Optimization tests whose percentile is at most tau: at least, at most, and of how many [P].

    Reported beside the quality `score`, which compares the mean percentile and not this share.
    """
    ranked = (verdicts.k_lo >= 0) & (verdicts.pool_size > 0)[:, None]
    most = [int(criterion.threshold * 2 * int(size)) for size in verdicts.pool_size]
    allowed = np.array(most, dtype=np.int64)[:, None]
    counts = (((k <= allowed) & ranked).sum(axis=1) for k in (verdicts.k_hi, verdicts.k_lo))
    least, largest = counts
    return least, largest, ranked.sum(axis=1)
