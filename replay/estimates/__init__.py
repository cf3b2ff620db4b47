"""Estimates over problems and training runs: pass@k, paired differences, win rates, best of N, and what noise does.

Pure: random numbers come from a generator that is passed in. Every estimate names its runs, problems and samples. What
undecided verdicts leave open is a bound, and never part of an interval.
"""

from replay.estimates.best import BestOf, best_curve, best_of, efficiencies, speed_ups
from replay.estimates.counts import Counts, count, pass_at_k
from replay.estimates.intervals import (
    Interval,
    analytic_interval,
    bootstrap,
    mean_interval,
    p_value,
    t_interval,
    two_stage,
    wilson_interval,
)
from replay.estimates.multiple import adjusted, many_comparisons
from replay.estimates.noise import SameCode, SlowShare, between_campaigns, between_halves, slower_than_all
from replay.estimates.passes import Estimate, estimate, estimate_statuses
from replay.estimates.tables import Difference, PassEstimate, difference, gain_interval, pass_estimate, relative_gain
from replay.estimates.tiers import TIERS, by_field, by_terciles, members, token_count
from replay.estimates.trainings import difference_over_runs, over_runs, run_values
from replay.estimates.warnings import beyond, cap_warning, resolution_warning
from replay.estimates.wins import READINGS, WinRate, speeds, win_rate

__all__ = [
    "READINGS",
    "TIERS",
    "BestOf",
    "Counts",
    "Difference",
    "Estimate",
    "Interval",
    "PassEstimate",
    "SameCode",
    "SlowShare",
    "WinRate",
    "adjusted",
    "analytic_interval",
    "best_curve",
    "best_of",
    "between_campaigns",
    "between_halves",
    "beyond",
    "bootstrap",
    "by_field",
    "by_terciles",
    "cap_warning",
    "count",
    "difference",
    "difference_over_runs",
    "efficiencies",
    "estimate",
    "estimate_statuses",
    "gain_interval",
    "many_comparisons",
    "mean_interval",
    "members",
    "over_runs",
    "p_value",
    "pass_at_k",
    "pass_estimate",
    "relative_gain",
    "resolution_warning",
    "run_values",
    "slower_than_all",
    "speed_ups",
    "speeds",
    "t_interval",
    "token_count",
    "two_stage",
    "wilson_interval",
    "win_rate",
]
