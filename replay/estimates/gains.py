"""Relative gains: how much one share exceeds another as a part of it, with its interval and what undecided leave open.

Both shares are of the same problems, which are resampled for both together; random numbers come from a generator that
is passed in.
"""

import math

import numpy as np
import numpy.typing as npt

from lapledger.replay.estimates.intervals import RESAMPLES, Interval, blocks, percentile_interval
from lapledger.replay.measurements import Bools, Floats

UNBOUNDED = 1e300
"""The gain over nothing, while it is still a number."""
FINITE = 1e200
"""An end beyond this lies between a gain and a gain over nothing."""
TOGETHER = 256
"""Pairs whose resampled gains are held at a time: a bound on memory, never on results."""


def relative_gain(a: float, b: float) -> float | None:
    """How much a exceeds b as a share of b; None where b is 0 or unknown."""
    return (a - b) / b if b > 0 else None


def gain_bounds(a: tuple[float, float], b: tuple[float, float]) -> Interval | None:
    """The relative gain at least and at most, from what a and b are at least and at most; no sampling is in it.

    Infinite at most where b may be 0; None where it is 0 or unknown.
    """
    if not b[1] > 0:
        return None
    return (a[0] - b[1]) / b[1], (a[1] - b[0]) / b[0] if b[0] > 0 else math.inf


def gain_interval(a: Floats, b: Floats, rng: np.random.Generator, *, resamples: int = RESAMPLES) -> Interval | None:
    """The 95% percentile interval of the relative gain of mean a over mean b [P], problems resampled.

    None with fewer than two problems, or where so many resamples of b have mean 0 that an end is not finite.
    """
    return gain_intervals(a[None, :], b[None, :], rng, resamples=resamples)[0]


def gain_intervals(
    a: Floats, b: Floats, rng: np.random.Generator, *, resamples: int = RESAMPLES
) -> list[Interval | None]:
    """The same of K pairs on the same problems [K, P], all of them by the same draws: what each gives by itself."""
    if a.shape[1] < 2:
        return [None] * len(a)
    drawn = _draws(a.shape[1], rng, resamples)
    intervals: list[Interval | None] = []
    for start in range(0, len(a), TOGETHER):
        chunk = slice(start, start + TOGETHER)
        gains = np.concatenate([_gains(times.astype(np.float64), a[chunk], b[chunk]) for times in drawn])
        ends = [percentile_interval(column) for column in gains.T]
        intervals += [None if max(pair) >= FINITE else pair for pair in ends]
    return intervals


def gain_intervals_of(
    a: Floats, b: Floats, both: Bools, rng: np.random.Generator, *, resamples: int = RESAMPLES
) -> list[Interval | None]:
    """The same of K pairs [K, P], each on the problems that both members have [K, P].

    Pairs of the same problems go by the same draws.
    """
    patterns, pattern_of = np.unique(both, axis=0, return_inverse=True)
    intervals: list[Interval | None] = [None] * len(a)
    for number, pattern in enumerate(patterns):
        rows = np.flatnonzero(pattern_of.ravel() == number)
        own_intervals = gain_intervals(a[rows][:, pattern], b[rows][:, pattern], rng, resamples=resamples)
        for row, interval in zip(rows, own_intervals, strict=True):
            intervals[row] = interval
    return intervals


def _draws(problems: int, rng: np.random.Generator, resamples: int) -> list[npt.NDArray[np.uint32]]:
    """How often each problem is drawn in each resample, in blocks [B, P]."""
    draws = []
    for block in blocks(resamples, problems):
        drawn = rng.integers(0, problems, (block, problems)) + problems * np.arange(block)[:, None]
        times = np.bincount(drawn.ravel(), minlength=block * problems).reshape(block, problems)
        draws.append(times.astype(np.uint32))
    return draws


def _gains(times: Floats, a: Floats, b: Floats) -> Floats:
    """The gain of each pair [K, P] in each resample [B, P] -> [B, K]; UNBOUNDED over nothing."""
    top, bottom = times @ a.T, times @ b.T
    return np.divide(top - bottom, bottom, out=np.full_like(top, UNBOUNDED), where=bottom > 0)
