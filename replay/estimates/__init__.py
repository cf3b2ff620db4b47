"""Estimates over problems and training runs: pass@k, paired differences, win rates, best of N, and what noise does.

Pure: random numbers come from a generator that is passed in. Every estimate names its runs, problems and samples. What
undecided verdicts leave open is a bound, and never part of an interval.
"""

from lapledger.replay.estimates.best import BestOf, best_curve, best_of, efficiencies, speed_ups
from lapledger.replay.estimates.counts import Counts, count, pass_at_k
from lapledger.replay.estimates.gains import (
    gain_bounds,
    gain_interval,
    gain_intervals,
    gain_intervals_of,
    relative_gain,
)
from lapledger.replay.estimates.intervals import (
    Interval,
    Share,
    analytic_interval,
    bootstrap,
    mean_interval,
    mean_of,
    over_problems,
    p_value,
    t_interval,
    two_stage,
    wilson_interval,
)
from lapledger.replay.estimates.multiple import adjusted, many_comparisons
from lapledger.replay.estimates.noise import SameCode, SlowShare, between_campaigns, between_halves, slower_than_all
from lapledger.replay.estimates.passes import Estimate, estimate, estimate_statuses, resolution_warning
from lapledger.replay.estimates.tables import Difference, PassEstimate, difference, pass_estimate
from lapledger.replay.estimates.tiers import TIERS, by_field, by_terciles, members, token_count
from lapledger.replay.estimates.totals import READINGS, Totals, totals
from lapledger.replay.estimates.trainings import difference_over_runs, over_runs, run_values
from lapledger.replay.estimates.wins import WinRate, speeds, win_rate

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
    "Share",
    "SlowShare",
    "Totals",
    "WinRate",
    "adjusted",
    "analytic_interval",
    "best_curve",
    "best_of",
    "between_campaigns",
    "between_halves",
    "bootstrap",
    "by_field",
    "by_terciles",
    "count",
    "difference",
    "difference_over_runs",
    "efficiencies",
    "estimate",
    "estimate_statuses",
    "gain_bounds",
    "gain_interval",
    "gain_intervals",
    "gain_intervals_of",
    "many_comparisons",
    "mean_interval",
    "mean_of",
    "members",
    "over_problems",
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
    "totals",
    "two_stage",
    "wilson_interval",
    "win_rate",
]
