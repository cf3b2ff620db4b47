"""Whether the simulator was right: its figures against what training with the same criteria gave.

Results of training are numbers that somebody hands in; nothing is simulated or judged here.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.special import stdtr

from lapledger.replay.correlation import spearman
from lapledger.replay.errors import ReplayError
from lapledger.replay.studies.simulator import Simulation

FIGURES = ("deviation", "monotonicity", "steepness", "noise", "auc")
NAN = math.nan


@dataclass(frozen=True, slots=True)
class Agreement:
    """How one figure of the simulator orders criteria against what training with them gave."""

    figure: str
    criteria: int
    correlation: float  # Spearman, in [-1, 1]
    p: float  # two-sided, from Student's t with n - 2 degrees of freedom


def agreement(simulations: Sequence[Simulation], online: Mapping[str, float]) -> list[Agreement]:
    """Spearman of each figure with the online result of the criterion of that name, over those that have one.

    ReplayError with fewer than three. Published over 18 runs at 7B: deviation -0.832, monotonicity 0.787, steepness
    0.723, noise -0.002.
    """
    known = [one for one in simulations if one.name in online and not math.isnan(one.figures.auc)]
    if len(known) < 3:
        names = ", ".join(one.name for one in simulations)
        raise ReplayError(f"online results: {len(known)} of the simulated criteria have one; name 3 or more of {names}")
    results = np.array([online[one.name] for one in known], dtype=np.float64)
    found = []
    for figure in FIGURES:
        values = np.array([getattr(one.figures, figure) for one in known])
        seen = ~np.isnan(values)
        rho = spearman(values[seen], results[seen]) if seen.sum() > 1 else NAN
        found.append(Agreement(figure, int(seen.sum()), rho, correlation_p(rho, int(seen.sum()))))
    return found


def correlation_p(correlation: float, n: int) -> float:
    """The two-sided p of a rank correlation over n pairs, by t = r sqrt((n - 2) / (1 - r^2)); nan below n = 3."""
    if math.isnan(correlation) or n < 3:
        return NAN
    rest = 1 - correlation**2
    return 0.0 if rest <= 0 else float(2 * stdtr(n - 2, -abs(correlation) * math.sqrt((n - 2) / rest)))
