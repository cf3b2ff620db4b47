"""Rows of a report: pass@k with its intervals, and the paired difference of two models on the same problems.

Every row names its training runs, problems and samples. Bounds from undecided verdicts, intervals over problems and
intervals over training runs stand in columns of their own.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from lapledger.replay.estimates.counts import Counts
from lapledger.replay.estimates.gains import gain_bounds, gain_interval, relative_gain
from lapledger.replay.estimates.intervals import (
    RESAMPLES,
    Interval,
    bootstrap,
    mean,
    mean_interval,
    mean_of,
    over_problems,
    p_value,
    two_stage,
)
from lapledger.replay.estimates.trainings import difference_over_runs, over_runs, run_values
from lapledger.replay.measurements import Floats


@dataclass(frozen=True, slots=True)
class PassEstimate:
    """pass@k of one or more training runs of one kind, in [0, 1]."""

    runs: tuple[str, ...]
    k: int
    problems: int
    samples: int
    value: float  # undecided counted as not passed
    upper_bound: float  # undecided counted as passed
    over_problems: Interval | None  # analytic, 95%
    method: str  # `t` or `wilson`
    bootstrapped: Interval | None  # the same by resampling problems
    two_stage: Interval | None  # by resampling problems and their samples; of one training run only
    over_runs: Interval | None  # 95%, None with one run
    excluded: tuple[str, ...]  # problems that left the environment


@dataclass(frozen=True, slots=True)
class Difference:
    """pass@k of A minus that of B over the problems that both have; values in [0, 1]."""

    k: int
    a_runs: tuple[str, ...]
    b_runs: tuple[str, ...]
    problems: int
    samples: tuple[int, int]
    excluded: tuple[str, ...]  # problems that one arm lacks, or that left the environment
    a: float
    b: float
    difference: float
    bounds: tuple[float, float]  # what undecided verdicts leave open
    over_problems: Interval | None  # paired t, 95%
    bootstrapped: Interval | None
    over_runs: Interval | None  # Welch, 95%; None unless both arms have two runs
    p: float | None  # of the paired t test; None where the differences do not vary
    gain: float | None  # relative: (a - b) / b; None where b is 0
    gain_interval: Interval | None  # by resampling problems; None where a resample of b may be 0
    gain_bounds: Interval | None  # what undecided verdicts leave open; infinite where b may be 0


def pass_estimate(
    runs: Sequence[Counts], k: int, rng: np.random.Generator, *, resamples: int = RESAMPLES
) -> PassEstimate:
    """pass@k of training runs on the problems that all of them have, with its intervals; nan without a problem."""
    shared = _shared(runs)
    kept = [_on(run, shared) for run in runs]
    values, upper = (_mean_rates(kept, k, optimistic=best) for best in (False, True))
    share = over_problems(values, upper)
    return PassEstimate(
        runs=tuple(run.run for run in runs),
        k=k,
        problems=share.problems,
        samples=_samples(kept),
        value=share.value,
        upper_bound=share.upper_bound,
        over_problems=share.interval,
        method=share.method,
        bootstrapped=bootstrap([values], mean, rng, resamples=resamples),
        two_stage=two_stage(kept[0], k, rng, resamples=resamples) if len(kept) == 1 else None,
        over_runs=over_runs(run_values(kept, k)) if len(kept) > 1 else None,
        excluded=_excluded(runs, shared),
    )


def difference(
    a: Sequence[Counts], b: Sequence[Counts], k: int, rng: np.random.Generator, *, resamples: int = RESAMPLES
) -> Difference:
    """The paired difference of two arms, each of one or more training runs; a problem's rate is the mean of its runs.

    ReplayError where a problem has fewer than k samples of a run.
    """
    shared = _shared([*a, *b])
    arms = [[_on(run, shared) for run in arm] for arm in (a, b)]
    low, high = ([_mean_rates(arm, k, optimistic=best) for arm in arms] for best in (False, True))
    apart = low[0] - low[1]
    gained = relative_gain(mean_of(low[0]), mean_of(low[1]))
    by_run = [run_values(arm, k) for arm in arms]
    return Difference(
        k=k,
        a_runs=tuple(run.run for run in a),
        b_runs=tuple(run.run for run in b),
        problems=len(shared),
        samples=(_samples(arms[0]), _samples(arms[1])),
        excluded=_excluded([*a, *b], shared),
        a=mean_of(low[0]),
        b=mean_of(low[1]),
        difference=mean_of(apart),
        bounds=(mean_of(low[0] - high[1]), mean_of(high[0] - low[1])),
        over_problems=mean_interval(apart),
        bootstrapped=bootstrap([apart], mean, rng, resamples=resamples),
        over_runs=difference_over_runs(*by_run) if shared else None,
        p=p_value(apart),
        gain=gained,
        gain_interval=gain_interval(low[0], low[1], rng, resamples=resamples),
        gain_bounds=gain_bounds(*((mean_of(least), mean_of(most)) for least, most in zip(low, high, strict=True))),
    )


def _shared(runs: Sequence[Counts]) -> tuple[str, ...]:
    """The problems that every run has, in the order of the first."""
    problem_sets = [set(run.problems) for run in runs[1:]]
    return tuple(p for p in runs[0].problems if all(p in problems for problems in problem_sets))


def _excluded(runs: Sequence[Counts], shared: Sequence[str]) -> tuple[str, ...]:
    named = {p for run in runs for p in (*run.problems, *run.excluded)}
    return tuple(sorted(named - set(shared)))


def _on(run: Counts, problems: Sequence[str]) -> Counts:
    """A run on some of its problems."""
    row_of = {p: i for i, p in enumerate(run.problems)}
    rows = np.array([row_of[p] for p in problems], dtype=np.int64)
    return Counts(run.run, tuple(problems), run.samples[rows], run.passed[rows], run.undecided[rows], run.excluded)


def _mean_rates(runs: Sequence[Counts], k: int, *, optimistic: bool) -> Floats:
    """pass@k of each problem [P], the mean over the runs."""
    return np.asarray(np.mean([run.rates(k, optimistic=optimistic) for run in runs], axis=0))


def _samples(runs: Sequence[Counts]) -> int:
    return sum(int(run.samples.sum()) for run in runs)
