"""References as they would have been measured in a slower or a faster sandbox; candidates never change.

The one definition of a scaled pool, for single replays and sweeps alike. No verdict here.
"""

from dataclasses import dataclass, replace

import numpy as np

from lapledger.replay.criteria import Criterion
from lapledger.replay.errors import ReplayError
from lapledger.replay.measurements import ABSENT, Ints, Outcome, ProblemMeasurements, read, with_references

SCALED = "/scaled"
"""What the name of a scaled copy of a reference ends with."""


@dataclass(frozen=True, slots=True)
class Scale:
    """d' = max(alpha d + beta, 0), rounded to whole ns."""

    alpha: float = 1.0
    beta_ns: int = 0

    def __post_init__(self) -> None:
        """Refuse what would turn durations around (ReplayError)."""
        if not 0 < self.alpha <= 1000:
            raise ReplayError(f"alpha {self.alpha:g} is not allowed; use a number with 0 < alpha <= 1000")

    @property
    def nothing(self) -> bool:
        """Whether nothing changes."""
        return self.alpha == 1 and self.beta_ns == 0


def scale(durations_ns: Ints, by: Scale) -> Ints:
    """Scaled durations in whole ns, of the shape given."""
    mapped: Ints = np.maximum(np.rint(by.alpha * durations_ns + by.beta_ns), 0).astype(np.int64)
    return mapped


def scaled(m: ProblemMeasurements, criterion: Criterion, by: Scale) -> ProblemMeasurements:
    """The problem with its pool scaled and every candidate as measured; the same measurements where nothing changes.

    References are judged as they were measured and rank others, and limit them, by their scaled copies, which are no
    candidates. Scaled is the duration that the criterion reads, and the bound of a killed run with it; a bound of 0
    holds no information and stays. ReplayError when the criterion ranks memory. Source: the published robustness check,
    in which only references are scaled.
    """
    if by.nothing:
        return m
    refuse_memory(criterion)
    rows = np.flatnonzero(m.reference)
    readings = read(m, criterion)
    outcome, killed = m.outcome[rows], m.outcome[rows] == Outcome.TIME_LIMIT
    seen = np.where(killed, readings.bound_ns[rows], readings.duration_ns[rows])
    unknown = np.where(killed, seen == 0, seen == ABSENT)
    durations = np.where(unknown, ABSENT, scale(seen, by))
    limit = np.where(m.limit_ns[rows] == ABSENT, ABSENT, scale(m.limit_ns[rows], by))
    # the killed repetition is read as the limit: with the hard limit there, more would be known than was ever seen
    limit = np.where(killed, np.maximum(durations, 0), limit)
    copied = with_references(
        replace(m, reference=np.zeros_like(m.reference)),
        replace(m, programs=tuple(program + SCALED for program in m.programs)),
        rows,
        clock=criterion.clock,
        outcome=outcome,
        durations=durations,
        startup_ns=np.where(unknown, ABSENT, 0),
        limit_ns=limit,
    )
    return copied if m.interface is None else replace(copied, interface=np.append(m.interface, m.interface[rows]))


def refuse_memory(criterion: Criterion) -> None:
    """Raise ReplayError if the criterion ranks memory, which no slower sandbox changes."""
    if criterion.clock == "memory":
        raise ReplayError("references are scaled in time, and the clock is 'memory'; leave alpha and beta out")
