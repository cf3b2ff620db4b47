"""Robustness: what becomes of p_tau, and of a run's gain over a baseline, when the sandbox is slower or faster.

Only references are scaled, d' = max(alpha d + beta, 0), by `sweeps`; candidates stay as they were measured. Here two
lines through that grid are read: beta at alpha = 1, and alpha at beta = 0.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from lapledger.replay.errors import ReplayError
from lapledger.replay.estimates import Interval, gain_bounds, gain_intervals_of, relative_gain
from lapledger.replay.studies.sweeps import Axes, Point

BETA, ALPHA = "beta", "alpha"


@dataclass(frozen=True, slots=True)
class Line:
    """One model at one tau along one of the two lines."""

    model: str
    tau: int
    along: str  # `beta` in ns at alpha = 1, or `alpha` at beta = 0
    at: tuple[float, ...]
    p_tau: tuple[float, ...]  # percent
    interval: tuple[Interval | None, ...]  # 95% of p_tau over problems
    method: tuple[str, ...]  # that gave it: `t` or `wilson`
    at_most: tuple[float, ...]  # percent, undecided counted as passed: a bound, no interval
    gain: tuple[float, ...]  # percent of the baseline's p_tau; nan where that is 0
    gain_interval: tuple[Interval | None, ...]  # 95%, problems resampled for both; None where no shares are known
    gain_bounds: tuple[Interval | None, ...]  # what undecided programs of both leave open; infinite over 0
    undecided: tuple[int, ...]


def line_axes(taus: tuple[int, ...], *, alphas: tuple[float, ...], betas_ns: tuple[int, ...]) -> tuple[Axes, Axes]:
    """The two grids to sweep: beta at alpha = 1, and alpha at beta = 0."""
    return Axes(taus, betas_ns=betas_ns), Axes(taus, alphas=alphas)


def lines(points: tuple[Sequence[Point], Sequence[Point]], baseline: str, rng: np.random.Generator) -> list[Line]:
    """Every model's lines from the two sweeps (along beta, along alpha), the baseline's own with gain 0.

    Relative gain is 100 (p / p_baseline - 1) at the same place; all intervals of gains are by the same draws of
    problems, from points with shares. ReplayError when no model is called like the baseline.
    """
    drawn = []
    for along, grid in zip((BETA, ALPHA), points, strict=True):
        models = sorted({point.model for point in grid})
        if baseline not in models:
            raise ReplayError(f"baseline {baseline!r} made none of the programs; choose one of {', '.join(models)}")
        taus = sorted({point.tau for point in grid}, reverse=True)
        drawn += [_line(grid, along, model=model, tau=tau, baseline=baseline) for tau in taus for model in models]
    return _with_intervals(drawn, points, baseline, rng)


def _with_intervals(
    drawn: Sequence[Line], points: tuple[Sequence[Point], Sequence[Point]], baseline: str, rng: np.random.Generator
) -> list[Line]:
    """The lines with the intervals of their gains, where the shares of model and baseline are known."""
    shares = {
        (along, point.model, point.tau, _position(point, along)): point.shares
        for along, grid in zip((BETA, ALPHA), points, strict=True)
        for point in grid
    }
    keys = [(line.along, line.model, line.tau, at) for line in drawn for at in line.at]
    pairs = [(shares[key], shares.get((key[0], baseline, *key[2:]))) for key in keys]
    if not all(line is not None and base is not None for line, base in pairs):
        return list(drawn)
    mine, theirs = (np.array(rows, dtype=np.float64) for rows in zip(*pairs, strict=True))
    both = ~np.isnan(mine) & ~np.isnan(theirs)
    intervals = iter(gain_intervals_of(mine, theirs, both, rng))
    return [replace(line, gain_interval=tuple(_percent(next(intervals)) for _ in line.at)) for line in drawn]


def _percent(interval: Interval | None) -> Interval | None:
    return None if interval is None else (100 * interval[0], 100 * interval[1])


def gain(value: float, base: float) -> float:
    """Relative gain in percent, 100 (value / base - 1); nan where the base is 0."""
    share = relative_gain(value, base)
    return math.nan if share is None else 100 * share


def _line(grid: Sequence[Point], along: str, *, model: str, tau: int, baseline: str) -> Line:
    mine = [point for point in grid if point.model == model and point.tau == tau]
    mine.sort(key=lambda point: _position(point, along))
    base = {_position(point, along): point for point in grid if point.model == baseline and point.tau == tau}
    pairs = [(point, base.get(_position(point, along))) for point in mine]
    return Line(
        model=model,
        tau=tau,
        along=along,
        at=tuple(_position(point, along) for point in mine),
        p_tau=tuple(point.p_tau for point in mine),
        interval=tuple(point.interval for point in mine),
        method=tuple(point.method for point in mine),
        at_most=tuple(point.at_most for point in mine),
        gain=tuple(gain(point.p_tau, over.p_tau) if over else math.nan for point, over in pairs),
        gain_interval=(None,) * len(mine),
        gain_bounds=tuple(_bounds(point, over) for point, over in pairs),
        undecided=tuple(point.undecided for point in mine),
    )


def _bounds(point: Point, over: Point | None) -> Interval | None:
    """What undecided programs leave open of a gain, in percent; nothing of a gain over oneself."""
    if over is None:
        return None
    if point is over:
        return (0.0, 0.0) if point.p_tau > 0 else None
    return _percent(gain_bounds((point.p_tau, point.at_most), (over.p_tau, over.at_most)))


def _position(point: Point, along: str) -> float:
    return float(point.beta_ns) if along == BETA else point.alpha
