"""Curves: pass@1 against tau, and learning curves, p_tau of every checkpoint, absolute and relative, by tier.

`models` maps names to checkpoints. No rule is decided here, and random numbers come from a generator that is passed in.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from lapledger.replay.criteria import Criterion
from lapledger.replay.devices.questions import Runner, one_by_one
from lapledger.replay.estimates import (
    Interval,
    estimate_statuses,
    gain_bounds,
    gain_intervals_of,
    mean_of,
    members,
    over_problems,
    relative_gain,
)
from lapledger.replay.judging.context import combine, evaluate_problem
from lapledger.replay.judging.gates import one_campaign
from lapledger.replay.measurements import Floats, Ints, ProblemMeasurements
from lapledger.replay.studies.models import Checkpoint
from lapledger.replay.studies.pass_counts import CountQuestion, counts_of

ALL = "all"
"""The name of all tiers together."""
Curve = tuple[Floats, Floats, Floats, Floats]
"""tau [N], pass@1 [N] in [0, 1], lower and upper end of its 95% interval [N] (nan without one)."""


def tau_curve(
    measurements: Sequence[ProblemMeasurements], criterion: Criterion, taus: Sequence[str | float]
) -> dict[str, Curve]:
    """pass@1 in [0, 1] against tau, one curve a model; undecided counts as not passed.

    The criterion's own tau is not read. Ranks do not depend on tau and are made once; so another tau costs almost
    nothing.
    """
    judged = [evaluate_problem(m, criterion) for m in measurements]
    sizes, excluded = (
        [evaluation.ranks.pool_size for evaluation in judged],
        [evaluation.rules.excluded for evaluation in judged],
    )
    points: dict[str, list[tuple[float, float, float, float]]] = {}
    for tau in taus:
        at = replace(criterion, tau=str(tau))
        statuses = [combine(evaluation.c, evaluation.gate(at)) for evaluation in judged]
        for evaluation in estimate_statuses(statuses, sizes, measurements, k=1, excluded=excluded):
            low, high = evaluation.interval or (np.nan, np.nan)
            points.setdefault(evaluation.model, []).append((float(at.tau), evaluation.value, low, high))
    return {model: _curve(rows) for model, rows in points.items()}


def _curve(rows: list[tuple[float, float, float, float]]) -> Curve:
    tau, value, low, high = np.array(rows, dtype=np.float64).T
    return tau, value, low, high


@dataclass(frozen=True, slots=True)
class CurvePoint:
    """One checkpoint at one tau on the problems of one tier; all in percent."""

    run: str
    step: int
    tau: str
    tier: str
    p_tau: float  # mean over problems of the share that passes; nan without a problem
    interval: Interval | None  # 95% over problems
    method: str  # that gave it: `t` or `wilson`
    at_most: float  # undecided counted as passed: a bound, no interval
    relative: float  # gained on the run's first checkpoint, over the problems of both; nan where that is 0
    relative_interval: Interval | None  # 95%, problems resampled for both together
    relative_bounds: Interval | None  # what undecided programs of both leave open; infinite where the first may be 0
    problems: int
    programs: int
    undecided: int  # counted as not passed


def learning_curve(
    problems: Sequence[ProblemMeasurements],
    criterion: Criterion,
    checkpoints: Sequence[Checkpoint],
    *,
    taus: Sequence[str],
    tiers: Mapping[str, str],
    rng: Callable[[], np.random.Generator],
    progress: Callable[[int], None] | None = None,
    runner: Runner = one_by_one,
) -> list[CurvePoint]:
    """One point a checkpoint, tau and tier, on all problems first; a problem without a tier is in `all` alone.

    `rng` makes a fresh generator: each tier draws the same way, whatever other tiers there are. `runner` puts the
    question to the problems; `progress` is called with 1 after each. ReplayError when the measurements are of several
    campaigns.
    """
    one_campaign(problems)
    question = CountQuestion(
        tuple(replace(criterion, tau=tau) for tau in taus), tuple(checkpoint.model for checkpoint in checkpoints)
    )
    counts = counts_of(problems, question, runner, progress)
    measured = {m.problem for m in problems}
    parts = {ALL: measured} | {
        tier: set(tier_problems)
        for tier, tier_problems in members({p: tier for p, tier in tiers.items() if p in measured}).items()
    }
    points: list[CurvePoint] = []
    for tier, tier_problems in parts.items():
        inside = np.array([m.problem in tier_problems for m in problems], dtype=np.bool_)
        plain = [
            _point(counts[row, i][inside], checkpoint, tau, tier)
            for row, tau in enumerate(taus)
            for i, checkpoint in enumerate(checkpoints)
        ]
        points += _relative(plain, counts[:, :, inside].reshape(-1, int(inside.sum()), 3), checkpoints, rng())
    return points


def _shares(counts: Ints) -> tuple[Floats, Floats]:
    """What passes, and what may pass, of the programs of each problem [..., 3] -> [...]; nan where there are none."""
    there = np.where(counts[..., 2] > 0, counts[..., 2], np.nan)
    return counts[..., 0] / there, (counts[..., 0] + counts[..., 1]) / there


def _point(counts: Ints, checkpoint: Checkpoint, tau: str, tier: str) -> CurvePoint:
    present = counts[counts[:, 2] > 0]
    share = over_problems(*_shares(present))
    value, upper, interval = share.percent
    _, undecided, programs = (int(total) for total in present.sum(axis=0))
    return CurvePoint(
        run=checkpoint.run,
        step=checkpoint.step,
        tau=tau,
        tier=tier,
        p_tau=value,
        interval=interval,
        method=share.method,
        at_most=upper,
        relative=math.nan,
        relative_interval=None,
        relative_bounds=None,
        problems=share.problems,
        programs=programs,
        undecided=undecided,
    )


def _relative(
    points: Sequence[CurvePoint], counts: Ints, checkpoints: Sequence[Checkpoint], rng: np.random.Generator
) -> list[CurvePoint]:
    """The same points [taus x checkpoints] of one tier, each with its gain on the first checkpoint of its run.

    `counts` [taus x checkpoints, problems, 3] are theirs.
    """
    first: dict[str, int] = {}
    for i, checkpoint in enumerate(checkpoints):
        first.setdefault(checkpoint.run, i)
    base = [i - i % len(checkpoints) + first[point.run] for i, point in enumerate(points)]
    low, high = _shares(counts)
    both = ~np.isnan(low) & ~np.isnan(low[base])
    intervals = gain_intervals_of(low, low[base], both, rng)
    gained = []
    for i, (point, first_, on) in enumerate(zip(points, base, both, strict=True)):
        perhaps = high if first_ != i else low  # what is open of the first itself changes no gain on it
        mine, firsts = ((low[row][on], perhaps[row][on]) for row in (i, first_))
        gained.append(_gained(point, mine, firsts, intervals[i]))
    return gained


def _gained(
    point: CurvePoint, mine: tuple[Floats, Floats], first: tuple[Floats, Floats], interval: Interval | None
) -> CurvePoint:
    """The point with its gain; `mine` and `first` are the shares of each problem at least and at most."""
    a, b = ((mean_of(low), mean_of(high)) for low, high in (mine, first))
    gained, bounds = relative_gain(a[0], b[0]), gain_bounds(a, b)
    return replace(
        point,
        relative=math.nan if gained is None else 100 * gained,
        relative_interval=None if gained is None or interval is None else (100 * interval[0], 100 * interval[1]),
        relative_bounds=None if bounds is None else (100 * bounds[0], 100 * bounds[1]),
    )
