"""Programs of many problems grouped by model, and pass@1 of each model from bare statuses.

Counted all at once, because a sweep makes thousands of replays and a loop over problems and models would take longer
than the judging; `estimates` turns counts into estimates. No verdict is made here.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from lapledger.replay.estimates import Counts, Estimate, Interval, over_problems
from lapledger.replay.measurements import Bools, Bytes, Floats, Ints, ProblemMeasurements


@dataclass(frozen=True, slots=True)
class Rate:
    """pass@1 of one model's candidates."""

    model: str
    value: float  # mean over its problems, in [0, 1]; undecided counts as not passed
    passed: int
    undecided: int
    programs: int
    problems: int
    upper_bound: float  # undecided counted as passed
    interval: Interval | None  # 95% over problems
    method: str  # that gave it
    shares: Floats | None = field(default=None, compare=False, repr=False)  # of every problem, nan where it has none

    @classmethod
    def of(cls, summary: Estimate, counts: Counts, problems: Sequence[str]) -> "Rate":
        """The same of verdicts, and of what was counted of them."""
        figures = (
            summary.passed,
            summary.undecided,
            summary.programs,
            summary.problems,
            summary.upper_bound,
            summary.interval,
            summary.method,
        )
        known = dict(zip(counts.problems, (counts.passed / counts.samples).tolist(), strict=True))
        shares = np.array([known.get(problem, np.nan) for problem in problems], dtype=np.float64)
        return cls(summary.model, summary.value, *figures, shares)


@dataclass(frozen=True, slots=True, eq=False)
class ProgramsByModel:
    """The model of each program of many problems, one after another [P in all]."""

    models: tuple[str, ...]
    cell: Ints  # [P] problem * models + model; the last number of all for a program that is no candidate
    size: Ints  # [problems, models] candidates

    @classmethod
    def of(cls, problems: Sequence[ProblemMeasurements]) -> "ProgramsByModel":
        """The models of all candidates."""
        names: set[str] = set()
        for m in problems:
            names.update(model for model, mine in zip(m.models, m.candidate.tolist(), strict=True) if mine)
        models = {model: number for number, model in enumerate(sorted(names))}
        cells, nobody = [], len(problems) * len(models)
        for number, m in enumerate(problems):
            column = np.array([models.get(model, 0) for model in m.models], dtype=np.int64)
            cells.append(np.where(m.candidate, number * len(models) + column, nobody))
        cell = np.concatenate(cells) if cells else np.zeros(0, dtype=np.int64)
        size = np.bincount(cell, minlength=nobody + 1)[:nobody].reshape(len(problems), -1)
        return cls(tuple(models), cell, size)

    def count(self, chosen: Bools) -> Ints:
        """How many of each model's candidates on each problem are chosen [problems, models]."""
        return np.bincount(self.cell[chosen], minlength=self.size.size + 1)[: self.size.size].reshape(self.size.shape)

    def tallies(self, status: Bytes) -> dict[str, Ints]:
        """Of each model the candidates that passed, are undecided, and are there at all, by problem [problems, 3]."""
        counts = np.stack([self.count(status == 1), self.count(status == -1), self.size], axis=2)
        return {model: counts[self.size[:, number] > 0, number] for number, model in enumerate(self.models)}

    def rates(self, status: Bytes) -> list[Rate]:
        """pass@1 of each model from statuses [P], models in alphabetical order."""
        shares = self.count(status == 1) / np.where(self.size > 0, self.size, np.nan)
        rates = [rate_of(model, tally) for model, tally in self.tallies(status).items()]
        return [replace(rate, shares=column) for rate, column in zip(rates, shares.T, strict=True)]


def rate_of(model: str, tally: Ints) -> Rate:
    """pass@1 of a model from its passed, undecided and all candidates by problem [problems, 3]."""
    passed, undecided, programs = (int(total) for total in tally.sum(axis=0))
    share = over_problems(tally[:, 0] / tally[:, 2], (tally[:, 0] + tally[:, 1]) / tally[:, 2])
    counts = (passed, undecided, programs, share.problems)
    return Rate(model, share.value, *counts, share.upper_bound, share.interval, share.method)
