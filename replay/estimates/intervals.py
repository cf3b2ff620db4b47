"""Intervals of a mean over problems: the problem is the unit that was drawn, its samples are not independent.

Analytic and by bootstrap; random numbers come from a generator that is passed in. Bounds from what was never seen are
no interval, and are not made here.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.special import stdtr, stdtrit

from lapledger.replay.errors import ReplayError
from lapledger.replay.estimates.counts import Counts
from lapledger.replay.measurements import Floats, Ints

Interval = tuple[float, float]
LEVEL = 0.95
RESAMPLES = 10_000
SAME = 1e-12
"""Shares that differ by less are equal: what is left of them is rounding."""
CELLS = 2**22
"""Resampled values that are held at a time: a bound on memory, never on results."""
FEW = 5
"""Below so many passed or failed problems in expectation the t interval leaves [0, 1] too easily: Wilson's is used."""


def t_interval(values: Floats) -> Interval | None:
    """The 95% t interval of the mean of values in [0, 1], clipped to [0, 1]; None with fewer than two values.

    Cluster-robust when each value is one problem's mean.
    """
    interval = mean_interval(values)
    return None if interval is None else (max(interval[0], 0.0), min(interval[1], 1.0))


def mean_interval(values: Floats) -> Interval | None:
    """The 95% t interval of the mean of values [P], not clipped; None with fewer than two values."""
    if len(values) < 2:
        return None
    half = float(stdtrit(len(values) - 1, (1 + LEVEL) / 2) * values.std(ddof=1) / math.sqrt(len(values)))
    middle = float(values.mean())
    return middle - half, middle + half


def p_value(differences: Floats) -> float | None:
    """The two-sided p of the t test that the mean of differences [P] is 0; None where they do not vary or are few."""
    if len(differences) < 2 or not differences.std() > SAME:
        return None
    t = float(differences.mean() / (differences.std(ddof=1) / math.sqrt(len(differences))))
    return float(2 * stdtr(len(differences) - 1, -abs(t)))


def wilson_interval(values: Floats) -> Interval | None:
    """Wilson's 95% interval of the mean of values in [0, 1], one a problem, with the effective sample size.

    n_eff = p (1 - p) / (s^2 / P), the problems P where they do not vary, and t in place of z. Source: Dean & Pagano
    2015, Survey Methodology 41. None with fewer than two values.
    """
    problems, p = len(values), float(values.mean()) if len(values) else math.nan
    if problems < 2:
        return None
    variance = float(values.var(ddof=1)) / problems
    n = p * (1 - p) / variance if variance > 0 and 0 < p < 1 else float(problems)
    z2 = float(stdtrit(problems - 1, (1 + LEVEL) / 2)) ** 2
    middle, half = (
        (p + z2 / (2 * n)) / (1 + z2 / n),
        math.sqrt(z2 * (p * (1 - p) / n + z2 / (4 * n * n))) / (1 + z2 / n),
    )
    return max(middle - half, 0.0), min(middle + half, 1.0)


def analytic_interval(values: Floats) -> tuple[Interval | None, str]:
    """(95% interval, `t` or `wilson`) of the mean of values in [0, 1], one a problem.

    Wilson's where fewer than FEW passed or failed problems are expected, where the t interval is worst.
    """
    expected = float(values.sum()) if len(values) else 0.0
    if min(expected, len(values) - expected) < FEW:
        return wilson_interval(values), "wilson"
    return t_interval(values), "t"


def bootstrap(
    columns: Sequence[Floats],
    statistic: Callable[..., Floats],
    rng: np.random.Generator,
    *,
    resamples: int = RESAMPLES,
) -> Interval | None:
    """The 95% percentile interval of a statistic when problems are resampled; None with fewer than two problems.

    `columns` [P] each hold one value a problem and are drawn together; the statistic takes them resampled [B, P] and
    gives [B]. nan where a resample has no value and its end depends on it.
    """
    problems = len(columns[0])
    if problems < 2:
        return None
    resampled = []
    for block in blocks(resamples, problems):
        drawn = rng.integers(0, problems, (block, problems))
        resampled.append(statistic(*(column[drawn] for column in columns)))
    return percentile_interval(np.concatenate(resampled))


def mean(values: Floats) -> Floats:
    """The mean of each resample [B, P] -> [B]."""
    return np.asarray(values.mean(axis=-1))


def two_stage(counts: Counts, k: int, rng: np.random.Generator, *, resamples: int = RESAMPLES) -> Interval | None:
    """The 95% percentile interval of pass@k when problems, and in each its samples, are resampled.

    Wider than drawing problems alone: it counts the sampling within a problem a second time, so it is an upper bound.
    """
    if len(counts.problems) < 2:
        return None
    counts.rates(k)  # refuses a problem with fewer than k samples
    table, table_row = _tables(counts.samples, k)
    problems, means = len(counts.problems), []
    for block in blocks(resamples, problems):
        drawn = rng.integers(0, problems, (block, problems))
        n = counts.samples[drawn]
        passed = rng.binomial(n, counts.passed[drawn] / n)
        means.append(table[table_row[drawn], passed].mean(axis=1))
    return percentile_interval(np.concatenate(means))


def percentile_interval(values: Floats) -> Interval:
    """The 2.5th and the 97.5th percentile of resampled values."""
    low, high = np.percentile(values, [50 * (1 - LEVEL), 50 * (1 + LEVEL)])
    return float(low), float(high)


def _tables(samples: Ints, k: int) -> tuple[Floats, Ints]:
    """pass@k of every count of passes for each number of samples [sizes, largest + 1], and each problem's row [P]."""
    sizes, table_row = np.unique(samples, return_inverse=True)
    table = np.zeros((len(sizes), int(sizes.max()) + 1))
    for row, n in enumerate(sizes.tolist()):
        sized = Counts("", ("",) * (n + 1), np.full(n + 1, n), np.arange(n + 1), np.zeros(n + 1, dtype=np.int64))
        table[row, : n + 1] = sized.rates(k)
    return table, table_row


def blocks(resamples: int, problems: int) -> list[int]:
    """Sizes of blocks of resamples that keep memory bounded."""
    if resamples < 1:
        raise ReplayError(f"bootstrap: {resamples} resamples; ask for at least 1")
    step = max(1, CELLS // problems)
    return [min(step, resamples - start) for start in range(0, resamples, step)]


@dataclass(frozen=True, slots=True)
class Share:
    """The mean over problems of a share in [0, 1]; nan and no interval without a problem."""

    value: float  # undecided counted as not passed
    upper_bound: float  # undecided counted as passed: a bound, no interval
    interval: Interval | None  # 95% over problems, of value; None with fewer than two
    method: str  # `t` or `wilson`
    problems: int

    @property
    def percent(self) -> tuple[float, float, Interval | None]:
        """(value, upper bound, interval) in percent."""
        ends = None if self.interval is None else (100 * self.interval[0], 100 * self.interval[1])
        return 100 * self.value, 100 * self.upper_bound, ends


def over_problems(values: Floats, upper: Floats) -> Share:
    """The share over problems from each problem's own [P], undecided counted as not passed, and as passed."""
    interval, method = analytic_interval(values)
    return Share(mean_of(values), mean_of(upper), interval, method, len(values))


def mean_of(values: Floats) -> float:
    """The mean of values; nan without any."""
    return float(values.mean()) if len(values) else math.nan
