"""References as they would have been measured in a slower or a faster sandbox; candidates never change.

The one definition of a scaled pool, for single replays and sweeps alike. No verdict here.
"""

from dataclasses import dataclass, replace

import numpy as np

from lapledger.replay.criteria import Criterion
from lapledger.replay.errors import ReplayError
from lapledger.replay.measurements import ABSENT, Ints, Outcome, ProblemMeasurements, read

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
    tells nothing and stays. ReplayError when the criterion ranks memory. Source: the published robustness check, in
    which only references are scaled.
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
    copies = np.full((*outcome.shape, max(m.wall_ns.shape[2], 1)), ABSENT, dtype=np.int64)
    absent = copies.copy()
    copies[:, :, 0] = durations
    on = {clock: _below(values, copies if clock == criterion.clock else absent) for clock, values in _clocks(m)}
    return replace(
        m,
        programs=m.programs + tuple(m.programs[row] + SCALED for row in rows),
        models=m.models + tuple(m.models[row] for row in rows),
        labels=m.labels + tuple(m.labels[row] for row in rows),
        candidate=np.append(m.candidate, np.zeros(len(rows), dtype=np.bool_)),
        reference=np.append(np.zeros_like(m.reference), np.ones(len(rows), dtype=np.bool_)),
        duplicate=np.append(m.duplicate, m.duplicate[rows]),
        outcome=np.concatenate([m.outcome, outcome]),
        wall_ns=on["wall"],
        cpu_ns=on["cpu"],
        memory_bytes=on.get("memory"),
        startup_ns=np.concatenate([m.startup_ns, np.where(unknown, ABSENT, 0)]),
        limit_ns=np.concatenate([m.limit_ns, limit]),
        interface=None if m.interface is None else np.append(m.interface, m.interface[rows]),
    )


def refuse_memory(criterion: Criterion) -> None:
    """Nothing; ReplayError when the criterion ranks memory, which no slower sandbox changes."""
    if criterion.clock == "memory":
        raise ReplayError("references are scaled in time, and the clock is 'memory'; leave alpha and beta out")


def _clocks(m: ProblemMeasurements) -> list[tuple[str, Ints]]:
    found = [("wall", m.wall_ns), ("cpu", m.cpu_ns)]
    return found if m.memory_bytes is None else [*found, ("memory", m.memory_bytes)]


def _below(upper: Ints, lower: Ints) -> Ints:
    """Two sets of programs one below the other, padded to the same number of repetitions."""
    missing = lower.shape[2] - upper.shape[2]
    return np.concatenate([np.pad(upper, ((0, 0), (0, 0), (0, missing)), constant_values=ABSENT), lower])
