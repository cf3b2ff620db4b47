"""A share over problems: its mean, the bound that undecided programs leave, and its sampling interval.

The one computation of pass@k over problems, for estimates, reports, sweeps, matrices and curves alike. Which share a
problem has is counted elsewhere.
"""

import math
from dataclasses import dataclass

from lapledger.replay.estimates.intervals import Interval, analytic_interval
from lapledger.replay.measurements import Floats


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
