"""A problem's own limits, as its package states them, put to runs that were executed under others.

The measurements come out as a worker that enforces the limits would have recorded them. No verdict is made here.
"""

from dataclasses import dataclass, replace

import numpy as np

from lapledger.replay.measurements import ABSENT, Ints, Outcome, ProblemMeasurements


@dataclass(frozen=True, slots=True)
class PackageLimits:
    """The limits of one problem, in ns and bytes; None where its package states none."""

    time_ns: int | None = None
    memory_bytes: int | None = None


NO_LIMITS = PackageLimits()


def enforce(m: ProblemMeasurements, limits: PackageLimits) -> ProblemMeasurements:
    """The measurements with each run above a limit of its problem stopped there.

    A run with a repetition longer than the time limit, or killed at a longer one, is TIME_LIMIT at that limit; another
    one with a repetition of more memory is MEMORY_LIMIT. Repetitions stay as measured. Runs without a result, and
    those that ended within both limits, are as they were.
    """
    outcome, limit = m.outcome, m.limit_ns
    ran = outcome != Outcome.MISSING
    if limits.memory_bytes is not None:
        above = ran & (outcome <= Outcome.WRONG_ANSWER) & (_largest(m, "memory") > limits.memory_bytes)
        outcome = np.where(above, np.int8(Outcome.MEMORY_LIMIT), outcome)
    if limits.time_ns is not None:
        longer = ran & (_largest(m, "wall") > limits.time_ns)
        above = longer | ((m.outcome == Outcome.TIME_LIMIT) & (limit > limits.time_ns))
        outcome = np.where(above, np.int8(Outcome.TIME_LIMIT), outcome)
        limit = np.where(longer | (limit > limits.time_ns), limits.time_ns, limit)
    return replace(m, outcome=outcome, limit_ns=limit, own_limits=True)


def _largest(m: ProblemMeasurements, clock: str) -> Ints:
    """The largest repetition of each run on a clock [P, T]; -1 without one."""
    largest: Ints = m.on_clock(clock).max(axis=-1, initial=ABSENT)
    return largest
