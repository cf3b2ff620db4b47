"""Gates and verdicts: is a program correct (c), is it fast enough (g), and does it pass.

Three-valued throughout: what depends on something never seen is undecided, never a guess. Thresholds compare exactly.
Ranks come from `ranks`; rewards and estimates are made from what is decided here.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum

import numpy as np

from replay.criteria import Criterion
from replay.measurements import ABSENT, Bools, Bytes, Ints, Outcome, ProblemMeasurements, Readings, Tests, read
from replay.ranks import Ranks, rank


class Status(IntEnum):
    """What a criterion says of a program; the gates c and g use the same numbers."""

    UNDECIDED = -1
    FAIL = 0
    PASS = 1


@dataclass(frozen=True, slots=True, eq=False)
class Verdicts:
    """What a criterion says of every program of one problem; programs that are not candidates are pool only."""

    problem: str
    criterion: str  # its hash
    programs: tuple[str, ...]  # [P]
    candidate: Bools  # [P]
    c: Bytes  # [P] correctness gate: 1, 0, -1 undecided
    g: Bytes  # [P] optimization gate: 1, 0, -1 undecided
    status: Bytes  # [P] of Status
    q_lo: Ints  # [P] smallest numerator of q; quality q = numerator / q_den, 0 best
    q_hi: Ints  # [P] largest numerator: equal to q_lo unless something was never seen
    q_den: Ints  # [P] 0 where the pool is empty or no test is an optimization test
    k_lo: Ints  # [P, T] smallest integer rank 2 #{ref < d} + #{ref = d}; -1 off the optimization tests
    k_hi: Ints  # [P, T] largest; the percentile is 100 k / (2 pool_size)
    pool_size: Ints  # [P] references each program is ranked against
    reason: tuple[str, ...]  # [P] in short words


@dataclass(frozen=True, slots=True)
class Flip:
    """One program whose verdict differs between two judgements."""

    problem: str
    program: str
    before: Status
    after: Status


def judge(m: ProblemMeasurements, criterion: Criterion) -> Verdicts:
    """Verdicts on every program of one problem under a criterion.

    The pool is every reference that is correct by re-execution under this criterion; an undecided one is left out, and
    pool_size says how many ranked each program.
    """
    readings = read(m, criterion)
    cells = run_gates(readings, m.tests, criterion)
    c = correct(cells, m.tests, criterion)
    ranks = rank(m, readings, m.reference & (c == 1), criterion)
    g = fast(ranks.q_lo, ranks.q_hi, ranks.q_den, pool_size=ranks.pool_size, criterion=criterion)
    status = combine(c, g)
    words = _Words(m, criterion, readings, cells, ranks, f"{float(criterion.threshold):.6g}")
    reason = tuple(words.reason(row, c[row], g[row]) for row in range(len(m.programs)))
    k_lo, k_hi = (np.full(m.outcome.shape, -1, dtype=np.int64) for _ in range(2))
    k_lo[:, m.tests.optimization], k_hi[:, m.tests.optimization] = ranks.k_lo, ranks.k_hi
    ranked = (ranks.q_lo, ranks.q_hi, ranks.q_den, k_lo, k_hi, ranks.pool_size)
    return Verdicts(m.problem, criterion.hash, m.programs, m.candidate, c, g, status, *ranked, reason)


def judged_ranks(m: ProblemMeasurements, criterion: Criterion) -> tuple[Bytes, Ranks]:
    """The correctness gate c [P] and the ranks of one problem: all that a verdict needs except tau."""
    readings = read(m, criterion)
    c = correct(run_gates(readings, m.tests, criterion), m.tests, criterion)
    return c, rank(m, readings, m.reference & (c == 1), criterion)


def run_gates(readings: Readings, tests: Tests, criterion: Criterion) -> Bytes:
    """Whether each run passes its test: 1, 0, or -1 undecided [M, T], counted for correctness or not.

    A timeout is a kill at the hard limit or a duration above the judged limit. A run killed below the judged limit
    might have ended in any way. A known failure stays one, however long it took.
    """
    outcome, limit = readings.outcome, criterion.limit_ns
    killed, unknown = outcome == Outcome.TIME_LIMIT, outcome == Outcome.MISSING
    failed = (outcome > Outcome.OK) & ~killed
    timeout = killed
    if limit is not None:
        ok = outcome == Outcome.OK
        timeout = (killed & (readings.bound_ns >= limit)) | (ok & (readings.duration_ns > limit))
        unknown = unknown | (killed & ~timeout) | (ok & (readings.duration_ns == ABSENT))
    tolerated = tests.optimization & ~tests.correctness & (criterion.timeouts == "tolerated")
    failed |= timeout & ~tolerated
    if criterion.missing == "fail":
        failed |= outcome == Outcome.MISSING
    return np.where(failed, 0, np.where(unknown, -1, 1)).astype(np.int8)


def counted(tests: Tests, criterion: Criterion) -> Bools:
    """The tests that count for correctness [T]."""
    if criterion.correctness == "original":
        return tests.original
    return tests.original | tests.correctness | tests.optimization


def correct(cells: Bytes, tests: Tests, criterion: Criterion) -> Bytes:
    """The correctness gate c [M] from the gates of each test [M, T]; undecided where no test counts."""
    kept = cells[:, counted(tests, criterion)]
    if not kept.shape[1]:
        return np.full(len(cells), -1, dtype=np.int8)
    return np.where((kept == 0).any(axis=1), 0, kept.min(axis=1)).astype(np.int8)


def fast(q_lo: Ints, q_hi: Ints, q_den: Ints, *, pool_size: Ints, criterion: Criterion) -> Bytes:
    """The optimization gate g [M]: 1 where q <= tau/100 for certain, 0 where not for certain, -1 undecided.

    Exact: numerators are compared with the whole part of tau/100 * denominator. At tau = 100 the gate is open.
    """
    if criterion.threshold == 1:
        return np.ones(len(q_den), dtype=np.int8)
    dens, place = np.unique(q_den, return_inverse=True)
    most = np.array([int(criterion.threshold * int(den)) for den in dens], dtype=np.int64)[place]
    g = np.where(q_hi <= most, 1, np.where(q_lo > most, 0, -1))
    return np.where((q_den > 0) & (pool_size >= criterion.min_references), g, -1).astype(np.int8)


def combine(c: Bytes, g: Bytes) -> Bytes:
    """The verdict [M] of both gates: one that fails settles it, else one that is undecided leaves it open."""
    return np.where((c == 0) | (g == 0), Status.FAIL, np.minimum(c, g)).astype(np.int8)


def flips(before: Sequence[Verdicts], after: Sequence[Verdicts]) -> list[Flip]:
    """Candidates of both judgements whose verdict differs, in the order of the first."""
    new = {(v.problem, v.programs[i]): Status(v.status[i]) for v in after for i in np.flatnonzero(v.candidate)}
    old = [(v.problem, v.programs[i], Status(v.status[i])) for v in before for i in np.flatnonzero(v.candidate)]
    return [Flip(a, b, was, new[a, b]) for a, b, was in old if (a, b) in new and new[a, b] != was]


@dataclass(frozen=True, slots=True, eq=False)
class _Words:
    """Puts the reason for a verdict into short words."""

    m: ProblemMeasurements
    criterion: Criterion
    readings: Readings
    cells: Bytes
    ranks: Ranks
    tau: str  # the threshold on q, for display

    def reason(self, row: int, c: int, g: int) -> str:
        if c == 0:
            return self._failed(row)
        if g == 0:
            return f"too slow: q {_number(self.ranks.q_lo[row], self.ranks.q_den[row])} > {self.tau}"
        if c == -1:
            return self._unproven(row)
        if g == -1:
            return self._unranked(row)
        if self.criterion.tau == "100":
            return "correct"
        return f"q {_number(self.ranks.q_hi[row], self.ranks.q_den[row])} <= {self.tau}"

    def _first(self, row: int, gate: int) -> int:
        return int(np.flatnonzero((self.cells[row] == gate) & counted(self.m.tests, self.criterion))[0])

    def _failed(self, row: int) -> str:
        test = self._first(row, 0)
        outcome = Outcome(self.readings.outcome[row, test])
        word = Outcome.TIME_LIMIT if outcome == Outcome.OK else outcome  # finished, but above the judged limit
        return f"{word.name.lower()} on {self.m.tests.ids[test]}"

    def _unproven(self, row: int) -> str:
        kept = counted(self.m.tests, self.criterion)
        missing = int(((self.readings.outcome[row] == Outcome.MISSING) & kept).sum())
        if not kept.any():
            return "no test counts for correctness"
        if missing:
            return f"missing {missing} test{'s' if missing > 1 else ''}"
        test = self._first(row, -1)
        if self.readings.outcome[row, test] == Outcome.OK:
            return f"no {self.criterion.clock} duration on {self.m.tests.ids[test]}"
        at = self.readings.bound_ns[row, test] / 1e6
        return f"censored: killed at {at:.6g} ms on {self.m.tests.ids[test]}, below the judged limit"

    def _unranked(self, row: int) -> str:
        size, needed = int(self.ranks.pool_size[row]), self.criterion.min_references
        if size < needed:
            return f"pool of {size} reference{'' if size == 1 else 's'}, {needed} needed"
        if not self.m.tests.optimization.any():
            return "no optimization test"
        den = self.ranks.q_den[row]
        return f"censored: q from {_number(self.ranks.q_lo[row], den)} to {_number(self.ranks.q_hi[row], den)}"


def _number(numerator: int, denominator: int) -> str:
    common = math.gcd(int(numerator), int(denominator))
    top, bottom = int(numerator) // common, int(denominator) // common
    return f"{top}/{bottom} = {top / bottom:.4g}" if bottom > 1 else str(top)
