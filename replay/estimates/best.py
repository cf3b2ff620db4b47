"""Best of N: what the best of N samples would be worth, from the n that were drawn, without drawing again.

Values are efficiencies, larger is better; a sample that failed has the smallest. Says nothing of which sample it is.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from lapledger.replay.criteria import Criterion
from lapledger.replay.errors import ReplayError
from lapledger.replay.estimates.totals import ENDLESS, Totals, totals
from lapledger.replay.judging.gates import Status, Verdicts
from lapledger.replay.measurements import Bools, Floats, Ints, ProblemMeasurements


@dataclass(frozen=True, slots=True)
class BestOf:
    """The expected value of the best of N samples, the mean over problems."""

    n: int
    problems: int
    samples: int
    value: float
    upper_bound: float  # with everything that was never seen at its best; nan where that is not known


def best_of(values: Floats, n: int) -> float:
    """The expected largest of n of the values [m] drawn without replacement: an unbiased estimate.

    sum_{r=n..m} C(r-1, n-1) / C(m, n) * e_(r), e sorted ascending. Source: ENAMEL's eff@k (Qiu et al. 2024, arXiv
    2406.06647). ReplayError unless 1 <= n <= m.
    """
    m = len(values)
    if not 1 <= n <= m:
        raise ReplayError(f"best of {n}: only {m} samples; choose 1 to {m}")
    return float(np.sort(values)[n - 1 :] @ np.array(_chances(m, n)))


@lru_cache(maxsize=4096)
def _chances(m: int, n: int) -> tuple[float, ...]:
    """How likely the r-th smallest of m is the largest of n drawn, r = n .. m."""
    every = math.comb(m, n)
    return tuple(math.comb(r - 1, n - 1) / every for r in range(n, m + 1))


def best_curve(low: Sequence[Floats], high: Sequence[Floats]) -> list[BestOf]:
    """Best of 1 to as many samples as every problem has, from each problem's smallest and largest possible values."""
    most = min((len(values) for values in low), default=0)
    samples = sum(len(values) for values in low)
    return [
        BestOf(n, len(low), samples, *(float(np.mean([best_of(v, n) for v in ends])) for ends in (low, high)))
        for n in range(1, most + 1)
    ]


def efficiencies(
    verdicts: Sequence[Verdicts], measurements: Sequence[ProblemMeasurements], run: str
) -> tuple[list[Floats], list[Floats]]:
    """Each problem's efficiencies of one model's samples, from and to: 1 - q where correct, 0 where not.

    An undecided sample is worth 0 at least; one without a rank is worth 0 to 1. Problems that left the environment and
    those without a sample are not among them.
    """
    low, high = [], []
    for v, m in zip(verdicts, measurements, strict=True):
        mine = m.candidate & (np.array(m.models) == run)
        if v.excluded or not mine.any():
            continue
        den = np.maximum(v.q_den, 1)
        slow, fast = (np.where(v.q_den > 0, q / den, unknown) for q, unknown in ((v.q_hi, 1.0), (v.q_lo, 0.0)))
        low.append(np.where(v.c == Status.PASS, 1 - slow, 0.0)[mine])
        high.append(np.where(v.c != Status.FAIL, 1 - fast, 0.0)[mine])
    return low, high


def speed_ups(
    verdicts: Sequence[Verdicts], measurements: Sequence[ProblemMeasurements], criterion: Criterion, run: str
) -> tuple[list[Floats], list[Floats]]:
    """Each problem's speeds of one model's samples, from and to: total time of the median correct reference over own.

    Over all tests, as `totals` adds them. 0 where a sample is not correct, crashed or went wrong; 0 at least where that
    is open or it was killed, and not known (nan) at most where nothing of its time is. Problems without a correct
    reference are not among them.
    """
    low, high = [], []
    for v, m in zip(verdicts, measurements, strict=True):
        mine = m.candidate & (np.array(m.models) == run)
        if v.excluded or not mine.any():
            continue
        every = totals(v, m, criterion)
        pool = m.reference & (every.there == 1)
        if pool.any():
            slow, fast = _speeds(every, pool)
            low.append(slow[mine])
            high.append(fast[mine])
    return low, high


def _speeds(every: Totals, pool: Bools) -> tuple[Floats, Floats]:
    """The median reference's time over that of every program [P], at least and at most; nan where not known."""
    middle, longest = float(np.median(every.low[pool])), float(np.median(every.high[pool]))
    endless = longest >= ENDLESS / 2  # the mean of two, of which one may have no end
    slow = np.where(every.high < ENDLESS, middle / np.maximum(every.high, 1), 0.0)
    fast = np.full(len(every.low), np.nan) if endless else _over(longest, every.low)
    return np.where(every.there == 1, slow, 0.0), np.where(every.there == 0, 0.0, fast)


def _over(time: float, times: Ints) -> Floats:
    """A time over each of others [P]; nan over nothing."""
    return np.where(times > 0, time / np.maximum(times, 1), np.nan)
