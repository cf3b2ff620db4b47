"""Uncertainty over training runs: how far an estimate would move if the training were done again.

Never merged with the uncertainty over problems: two columns. With one run an arm there is none.
"""

import math
from collections.abc import Sequence

import numpy as np
from scipy.special import stdtrit

from lapledger.replay.errors import ReplayError
from lapledger.replay.estimates.counts import Counts
from lapledger.replay.estimates.intervals import LEVEL, Interval, t_interval
from lapledger.replay.measurements import Floats


def run_values(runs: Sequence[Counts], k: int) -> Floats:
    """pass@k of each training run [R], each the mean over its problems; ReplayError when runs have other problems.

    Runs are compared as wholes, so all must be sampled on the same problems.
    """
    if len({run.problems for run in runs}) != 1:
        names = ", ".join(run.run for run in runs)
        raise ReplayError(f"training runs {names} were not all sampled on the same problems; name runs that were")
    return np.array([run.rates(k).mean() if run.problems else math.nan for run in runs])


def over_runs(values: Floats) -> Interval | None:
    """The 95% t interval of the mean share over training runs [R], clipped to [0, 1]; None with one."""
    return t_interval(values)


def difference_over_runs(a: Floats, b: Floats) -> Interval | None:
    """Welch's 95% interval of the difference of two means over training runs; None unless both arms have two.

    Degrees of freedom after Welch 1947; a difference of runs that do not vary has no width.
    """
    if min(len(a), len(b)) < 2:
        return None
    parts = [float(values.var(ddof=1)) / len(values) for values in (a, b)]
    middle, variance = float(a.mean() - b.mean()), sum(parts)
    if variance == 0:
        return middle, middle
    freedom = variance**2 / sum(part**2 / (len(values) - 1) for part, values in zip(parts, (a, b), strict=True))
    half = float(stdtrit(freedom, (1 + LEVEL) / 2)) * math.sqrt(variance)
    return middle - half, middle + half


def pairs_over_runs(rates: Floats) -> tuple[float | None, Interval | None]:
    """(mean, 95% interval) of the rates in [0, 1] of each training run of A against each of B [R, S].

    The variance of the mean of all pairs is that of the rows' means over A's runs plus that of the columns' means over
    B's (a two-sample U-statistic: Hoeffding 1948), so it is Welch's interval of these, clipped to [0, 1]. None where a
    rate is not known, and no interval unless both arms have two.
    """
    if not rates.size or np.isnan(rates).any():
        return None, None
    middle = float(rates.mean())
    apart = difference_over_runs(rates.mean(axis=1), 1 - rates.mean(axis=0))
    if apart is None:
        return middle, None
    half = (apart[1] - apart[0]) / 2
    return middle, (max(middle - half, 0.0), min(middle + half, 1.0))
