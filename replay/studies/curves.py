"""Learning curves: p_tau of every checkpoint of a training run, absolute and relative to the first, by tier.

Which maker is which checkpoint is told by `makers`. No verdict is decided by rules of its own.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from replay.criteria import Criterion
from replay.estimates import members, t_interval
from replay.judging.gates import Status, one_campaign
from replay.measurements import Floats, ProblemMeasurements
from replay.studies.makers import Checkpoint
from replay.studies.matrix import statuses_of
from replay.studies.robustness import gain

ALL = "all"
"""The name of all tiers together."""


@dataclass(frozen=True, slots=True)
class CurvePoint:
    """One checkpoint at one tau on the problems of one tier."""

    run: str
    step: int
    tau: str
    tier: str
    p_tau: float  # percent, mean over problems of the share that passes; nan without a problem
    interval: tuple[float, float] | None  # 95% over problems, percent
    relative: float  # percent gained on the run's first checkpoint; nan where that is 0
    problems: int
    programs: int
    undecided: int  # counted as not passed


def learning_curve(
    problems: Sequence[ProblemMeasurements],
    criterion: Criterion,
    found: Sequence[Checkpoint],
    *,
    taus: Sequence[str],
    tiers: Mapping[str, str],
    progress: Callable[[int], None] | None = None,
) -> list[CurvePoint]:
    """One point a checkpoint, tau and tier, on all problems first; a problem without a tier is in `all` alone.

    `progress` is told after each problem. ReplayError when the measurements are of several campaigns.
    """
    one_campaign(problems)
    criteria = [replace(criterion, tau=tau) for tau in taus]
    rows: dict[tuple[str, str, int], list[_Share]] = {}
    for m in problems:
        statuses = statuses_of(m, criteria)
        for checkpoint in found:
            mine = np.array([by == checkpoint.maker for by in m.makers], dtype=np.bool_) & m.candidate
            for criterion_, status in zip(criteria, statuses, strict=True):
                if status is None or not mine.any():
                    continue
                share = _Share.of(status[mine])
                for tier in (ALL, tiers[m.problem]) if m.problem in tiers else (ALL,):
                    key = (tier, criterion_.tau, found.index(checkpoint))
                    rows.setdefault(key, []).append(share)
        if progress:
            progress(1)
    measured = {m.problem for m in problems}
    named = [ALL, *members({problem: tier for problem, tier in tiers.items() if problem in measured})]
    return [
        point
        for tier in named
        for one in criteria
        for point in _relative(
            [_point(rows.get((tier, one.tau, i), []), c, one.tau, tier) for i, c in enumerate(found)]
        )
    ]


@dataclass(frozen=True, slots=True)
class _Share:
    """One checkpoint on one problem."""

    passed: float
    programs: int
    undecided: int

    @classmethod
    def of(cls, status: "np.ndarray[tuple[int, ...], np.dtype[np.int8]]") -> "_Share":
        passed, open_ = (int((status == word).sum()) for word in (Status.PASS, Status.UNDECIDED))
        return cls(passed / len(status), len(status), open_)


def _point(shares: list[_Share], checkpoint: Checkpoint, tau: str, tier: str) -> CurvePoint:
    values: Floats = np.array([share.passed for share in shares], dtype=np.float64)
    interval = t_interval(values)
    return CurvePoint(
        run=checkpoint.run,
        step=checkpoint.step,
        tau=tau,
        tier=tier,
        p_tau=float(100 * values.mean()) if len(values) else math.nan,
        interval=None if interval is None else (100 * interval[0], 100 * interval[1]),
        relative=math.nan,
        problems=len(shares),
        programs=sum(share.programs for share in shares),
        undecided=sum(share.undecided for share in shares),
    )


def _relative(points: Sequence[CurvePoint]) -> list[CurvePoint]:
    """The same points of one tau and tier, each with its gain on the first checkpoint of its run."""
    first: dict[str, float] = {}
    for point in points:
        first.setdefault(point.run, point.p_tau)
    return [replace(point, relative=gain(point.p_tau, first[point.run])) for point in points]
