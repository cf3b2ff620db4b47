"""The train-by-eval matrix: every training run against every criterion, and how far criteria agree on the runs.

Shares of one campaign go in pairs by problem, so that a difference between two runs has an interval over problems;
where a training was repeated it has one over runs too, apart from it. No verdict is decided by rules of its own.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from lapledger.replay.correlation import spearman
from lapledger.replay.criteria import FAMILIES, Criterion, family
from lapledger.replay.devices.questions import Runner, one_by_one
from lapledger.replay.errors import ReplayError
from lapledger.replay.estimates import Interval, Share, difference_over_runs, mean_interval, over_problems, over_runs
from lapledger.replay.judging.gates import one_campaign
from lapledger.replay.measurements import Floats, Ints, ProblemMeasurements
from lapledger.replay.studies.pass_counts import CountQuestion, counts_of

NAN = math.nan


@dataclass(frozen=True, eq=False)
class Matrix:
    """pass@1 of every training run under every criterion: R runs of M models, C criteria, N problems."""

    runs: tuple[str, ...]
    members: tuple[tuple[int, ...], ...]  # [R] the models of each run; several where a training was repeated
    criteria: tuple[str, ...]
    families: tuple[str, ...]  # [C]
    by_model: Floats  # [C, M, N] share of the model's programs that pass; nan where the problem left the environment
    perhaps: Floats  # [C, M, N] the same with undecided programs counted as passed
    undecided: Ints  # [C, R] programs; they count as not passed
    programs: Ints  # [C, R]

    @cached_property
    def shares(self) -> Floats:
        """Share of the run's programs that pass [C, R, N], the mean over its models; nan as above."""
        return self._of_runs(self.by_model)

    @cached_property
    def cells(self) -> list[list[Share]]:
        """pass@1 of each run under each criterion [C][R] over the problems that stayed, with interval and bound."""
        upper = self._of_runs(self.perhaps)
        return [
            [over_problems(low[~np.isnan(low)], high[~np.isnan(low)]) for low, high in zip(*row, strict=True)]
            for row in zip(self.shares, upper, strict=True)
        ]

    @cached_property
    def values(self) -> Floats:
        """pass@1 in percent [C, R], the mean over the problems that stayed; nan when none did."""
        return np.array([[100 * cell.value for cell in row] for row in self.cells])

    def repeats(self, row: int, run: int) -> Floats:
        """pass@1 in [0, 1] of each repetition of a run under a criterion [K]."""
        return _mean(self.by_model[row, list(self.members[run])])

    def over_runs(self, row: int, run: int) -> Interval | None:
        """The 95% interval of a cell over repetitions of the training, in [0, 1]; None with one."""
        repeated = self.repeats(row, run)
        return None if np.isnan(repeated).any() else over_runs(repeated)

    def _of_runs(self, by_model: Floats) -> Floats:
        parts = [_mean(np.moveaxis(by_model[:, list(members)], 1, -1)) for members in self.members]
        return np.stack(parts, axis=1)

    @property
    def problems(self) -> Ints:
        """The problems that stayed under each criterion for each run [C, R]."""
        return np.array([[cell.problems for cell in row] for row in self.cells], dtype=np.int64)

    @property
    def correlations(self) -> Floats:
        """Spearman's rank correlation between criteria over the runs [C, C]; nan where the runs do not vary."""
        rows = self.values
        return np.array([[_agree(a, b) for b in rows] for a in rows]).reshape(len(rows), len(rows))


@dataclass(frozen=True, slots=True)
class FamilyFigures:
    """How much a family of criteria sets training runs apart, and how much it moves with its own parameter."""

    family: str
    criteria: int  # those that keep at least one problem
    spread: float  # points: largest minus smallest p over the runs, mean over the family's criteria
    half_width: float  # points: of the 95% interval of that difference over problems, mean; nan with one problem
    half_width_runs: float  # the same over training runs; nan unless both runs were repeated
    range: float  # points: largest minus smallest p over the family's criteria, mean over the runs

    @property
    def decides(self) -> bool:
        """Whether the spread is beyond both intervals, as far as known; else it decides nothing about the runs."""
        return self.spread > self.half_width and not self.spread <= self.half_width_runs


def matrix(
    problems: Sequence[ProblemMeasurements],
    criteria: Mapping[str, Criterion],
    runs: Mapping[str, Sequence[str]],
    progress: Callable[[int], None] | None = None,
    *,
    runner: Runner = one_by_one,
) -> Matrix:
    """The matrix of training runs, each with its models, under some criteria; undecided counts as not passed.

    `runner` puts the question to the problems, and `progress` is called with 1 after each. ReplayError without runs or
    criteria, or when the measurements are of several campaigns.
    """
    if not runs or not criteria:
        raise ReplayError("matrix: name at least one training run and one criterion")
    one_campaign(problems)
    models = list(dict.fromkeys(model for models_of in runs.values() for model in models_of))
    counts = counts_of(problems, CountQuestion(tuple(criteria.values()), tuple(models)), runner, progress)
    passed, open_, there = np.moveaxis(counts, 3, 0)
    members = tuple(tuple(models.index(model) for model in models_of) for models_of in runs.values())
    undecided, programs = (
        np.stack([part[:, list(models_of)].sum(axis=(1, 2)) for models_of in members], axis=1)
        for part in (open_, there)
    )
    return Matrix(
        runs=tuple(runs),
        members=members,
        criteria=tuple(criteria),
        families=tuple(family(criterion) for criterion in criteria.values()),
        by_model=np.where(there > 0, passed / np.maximum(there, 1), NAN),
        perhaps=np.where(there > 0, (passed + open_) / np.maximum(there, 1), NAN),
        undecided=undecided,
        programs=programs,
    )


def family_figures(result: Matrix) -> list[FamilyFigures]:
    """Spread over runs and range over the parameter of each family, in the families' order.

    The two runs that differ most were chosen by looking, so the interval of their difference is, if anything, too
    narrow.
    """
    values = result.values
    figures = []
    for name in (known for known in FAMILIES if known in result.families):
        rows = [row for row, of in enumerate(result.families) if of == name and not np.isnan(values[row]).all()]
        apart = [_difference(result, row) for row in rows] or [(NAN, NAN, NAN)]
        spread, problems, runs = (float(np.mean(part)) for part in zip(*apart, strict=True))
        figures.append(FamilyFigures(name, len(rows), spread, problems, runs, _range(values[rows])))
    return figures


def _range(values: Floats) -> float:
    """Largest minus smallest p over criteria [K, R], mean over the runs that have every one of them; nan without."""
    complete = values[:, ~np.isnan(values).any(axis=0)]
    return float((complete.max(axis=0) - complete.min(axis=0)).mean()) if complete.size else NAN


def _difference(result: Matrix, row: int) -> tuple[float, float, float]:
    """(largest minus smallest p of a criterion over the runs, its half-width over problems, that over runs), points.

    Student's t over the differences of the problems that both runs have, nan with fewer than two; Welch's over the
    repetitions of both, nan unless each has two.
    """
    values, shares = result.values[row], result.shares[row]
    best, worst = int(np.nanargmax(values)), int(np.nanargmin(values))
    apart = shares[best] - shares[worst]
    over_problems = mean_interval(apart[~np.isnan(apart)])
    over_runs = difference_over_runs(result.repeats(row, best), result.repeats(row, worst))
    return float(values[best] - values[worst]), _half(over_problems), _half(over_runs)


def _half(interval: tuple[float, float] | None) -> float:
    """Half the width of an interval of shares, in points; nan without one."""
    return NAN if interval is None else 50 * (interval[1] - interval[0])


def _agree(a: Floats, b: Floats) -> float:
    seen = ~(np.isnan(a) | np.isnan(b))
    return spearman(a[seen], b[seen]) if seen.sum() > 1 else NAN


def _mean(shares: Floats) -> Floats:
    seen = ~np.isnan(shares)
    count = seen.sum(axis=-1)
    return np.where(count > 0, np.where(seen, shares, 0).sum(axis=-1) / np.maximum(count, 1), NAN)
