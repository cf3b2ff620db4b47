"""The offline simulator: what a criterion would pay for human programs of known quality, before any training.

Human programs, from the weakest to the strongest, stand in for a model's samples, and stored durations for execution.
A random number comes only from a generator that is passed in; no verdict is made here.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np

from replay.correlation import spearman
from replay.criteria import Criterion
from replay.errors import ReplayError
from replay.estimates import t_interval
from replay.families import family
from replay.judging.gates import Status, Verdicts, judge
from replay.measurements import Bools, Floats, Ints, ProblemMeasurements
from replay.rewards import reward

POINTS = 21
"""Values of u at which programs are drawn: 0, 0.05, ..., 1."""
DRAWS = 16
"""Programs drawn at each u: one group of rollouts."""
NAN = math.nan

SPARSE, SATURATED, FLAT = 0.1, 0.9, 0.2
"""Our cuts for the verdict: AUC below SPARSE, AUC above SATURATED, steepness below FLAT."""


@dataclass(frozen=True, slots=True)
class Figures:
    """What a curve f(u) tells; nan throughout where the curve has a hole."""

    auc: float  # by trapezoid, in [0, 1]: too sparse near 0, saturated near 1
    slope: float  # a, by least squares
    steepness: float  # S = a / (1 + |a|), in (-1, 1); the diagonal has 0.5
    deviation: float  # mean |f(u) - u|
    monotonicity: float  # Spearman of f and u; nan where f does not vary
    noise: float  # SD of f minus its centred 3-point mean, over the inner points

    @property
    def verdict(self) -> str:
        """`sparse`, `saturated`, `flat` or `steep and balanced` by the cuts of this module; `undecided` with a hole.

        In that order, but a curve that pays the same everywhere is flat, however much it pays.
        """
        if math.isnan(self.auc):
            return "undecided"
        if math.isnan(self.monotonicity):
            return "flat"
        if self.auc < SPARSE:
            return "sparse"
        if self.auc > SATURATED:
            return "saturated"
        return "flat" if self.steepness < FLAT else "steep and balanced"


@dataclass(frozen=True, slots=True, eq=False)
class Simulation:
    """One criterion over a set of problems: its curve, its figures, and every denominator they stand on."""

    name: str
    family: str
    u: Floats  # [21] quality of the programs drawn, 0 weakest
    f: Floats  # [21] mean reward rescaled to [0, 1]; nan where nothing could be drawn
    figures: Figures
    auc_interval: tuple[float, float] | None  # 95% over problems whose own curve has no hole; None with fewer than two
    zero_advantage: float  # share of the groups of 16 whose rewards are all equal; nan without a group
    groups: int
    problems: int  # that gave at least one group
    left_out: int  # problems of which the criterion's filter keeps no test
    too_few: int  # problems with fewer than two programs in order
    unplaced: int  # programs without a place in the order: what they are worth is undecided
    programs: int  # in order, over the problems that are in the environment
    undecided: int  # of these, with a reward that is not known: never drawn
    undrawn: int  # places (problem, u) around which every program is undecided


@dataclass(frozen=True, slots=True, eq=False)
class Ladder:
    """The programs of one problem from the weakest to the strongest, and the random numbers that draw from them."""

    m: ProblemMeasurements
    rows: Ints  # [n]
    unplaced: int  # programs whose correctness or quality is undecided, or that nobody ranks
    numbers: Floats  # [21, 16] in [0, 1)


def ladder(m: ProblemMeasurements, generator: np.random.Generator, *, maker: str = "human") -> Ladder:
    """The maker's programs of a problem in order: incorrect ones, then correct ones from slowest to fastest.

    Correct is strict-correct, and speed is q_lead over all optimization tests, whatever criterion is simulated; equal
    programs go by their ids. A program whose correctness is undecided, or whose speed is not known, has no place.
    """
    m = _among(m, maker)
    verdicts = judge(m, Criterion())
    places = [(_place(verdicts, row), m.programs[row], row) for row, by in enumerate(m.makers) if by == maker]
    rows = [row for _, _, row in sorted((place, name, row) for place, name, row in places if place is not None)]
    return Ladder(m, np.array(rows, dtype=np.int64), len(places) - len(rows), generator.random((POINTS, DRAWS)))


def simulate(
    ladders: Sequence[Ladder],
    criteria: Mapping[str, Criterion],
    progress: Callable[[int], None] | None = None,
) -> list[Simulation]:
    """One simulation a criterion, in their order; `progress` is told after each problem under each criterion.

    All criteria draw with the same random numbers, and a program that is drawn is ranked without itself and its exact
    duplicates. ReplayError when no problem has two programs in order.
    """
    if not any(len(one.rows) > 1 for one in ladders):
        raise ReplayError("simulate: no problem has two human programs in order; import more, or run them first")
    return [
        _simulate(ladders, name, criterion, progress or (lambda done: None)) for name, criterion in criteria.items()
    ]


def figures(f: Floats) -> Figures:
    """What a curve f [N] over evenly spaced u in [0, 1] tells, N at least 4; all nan where it has a hole."""
    if np.isnan(f).any():
        return Figures(NAN, NAN, NAN, NAN, NAN, NAN)
    u = np.linspace(0, 1, len(f))
    centred = u - u.mean()
    a = float(centred @ (f - f.mean()) / (centred @ centred))
    rough = f[1:-1] - (f[:-2] + f[1:-1] + f[2:]) / 3
    return Figures(
        auc=float(np.trapezoid(f, u)),
        slope=a,
        steepness=a / (1 + abs(a)),
        deviation=float(np.abs(f - u).mean()),
        monotonicity=spearman(f, u),
        noise=float(rough.std()),
    )


def reachable(programs: int) -> Bools:
    """Which programs [n] may be drawn at each u [21, n]: those within 0.05 of it, else the nearest.

    Program i of n stands at i / (n - 1). Exact: 20 i is compared with j (n - 1).
    """
    away = np.abs(20 * np.arange(programs)[None, :] - np.arange(POINTS)[:, None] * (programs - 1))
    inside = away <= programs - 1
    nearest = away == away.min(axis=1, keepdims=True)
    return np.where(inside.any(axis=1, keepdims=True), inside, nearest)


def _among(m: ProblemMeasurements, maker: str) -> ProblemMeasurements:
    """The problem with the maker's programs and the references alone: nobody else ranks them."""
    rows = np.flatnonzero(m.reference | np.array([by == maker for by in m.makers], dtype=np.bool_))
    arrays = ("candidate", "reference", "duplicate", "outcome", "wall_ns", "cpu_ns", "startup_ns", "limit_ns")
    whole = {name: getattr(m, name) for name in (*arrays, "memory_bytes", "interface")}
    kept: dict[str, Any] = {name: None if array is None else array[rows] for name, array in whole.items()}
    kept |= {name: tuple(getattr(m, name)[row] for row in rows) for name in ("programs", "makers", "labels")}
    return replace(m, **kept)


def _place(verdicts: Verdicts, row: int) -> Fraction | None:
    """Where a program stands, weakest first: -1 when incorrect, else 1 - q_lead in [0, 1]; None when undecided.

    A correct program that no reference ranks, or on no optimization test, has no q_lead.
    """
    if verdicts.c[row] == Status.FAIL:
        return Fraction(-1)
    unknown = verdicts.q_den[row] == 0 or verdicts.q_lo[row] != verdicts.q_hi[row]
    if verdicts.c[row] == Status.UNDECIDED or unknown:
        return None
    return 1 - Fraction(int(verdicts.q_hi[row]), int(verdicts.q_den[row]))


@dataclass(frozen=True, slots=True, eq=False)
class _Drawn:
    """What one problem gave under one criterion."""

    means: Floats  # [21] mean reward, nan where nothing was drawn
    equal: int  # groups whose rewards are all equal
    groups: int
    programs: int
    undecided: int


def _on_problem(one: Ladder, criterion: Criterion, progress: Callable[[int], None]) -> _Drawn | None:
    """What a problem gives; None where the criterion's filter keeps no test of it."""
    progress(1)
    verdicts = judge(one.m, criterion)
    return None if verdicts.left_out else _draw(one, streams(verdicts, criterion)[:, one.rows])


def _simulate(
    ladders: Sequence[Ladder], name: str, criterion: Criterion, progress: Callable[[int], None]
) -> Simulation:
    enough = [one for one in ladders if len(one.rows) > 1]
    found = [_on_problem(one, criterion, progress) for one in enough]
    drawn = [one for one in found if one is not None]
    means = np.array([one.means for one in drawn]).reshape(len(drawn), POINTS)
    seen = ~np.isnan(means)
    count = seen.sum(axis=0)
    total = np.where(seen, means, 0).sum(axis=0)
    f = np.where(count > 0, (total / np.maximum(count, 1) + 1) / 2, NAN)
    groups = sum(one.groups for one in drawn)
    return Simulation(
        name=name,
        family=family(criterion),
        u=np.linspace(0, 1, POINTS),
        f=f,
        figures=figures(f),
        auc_interval=t_interval(np.trapezoid((means[seen.all(axis=1)] + 1) / 2, dx=1 / (POINTS - 1), axis=1)),
        zero_advantage=sum(one.equal for one in drawn) / groups if groups else NAN,
        groups=groups,
        problems=int(seen.any(axis=1).sum()),
        left_out=len(found) - len(drawn),
        too_few=len(ladders) - len(enough),
        unplaced=sum(one.unplaced for one in ladders),
        programs=sum(one.programs for one in drawn),
        undecided=sum(one.undecided for one in drawn),
        undrawn=int((~seen).sum()),
    )


def streams(verdicts: Verdicts, criterion: Criterion) -> Floats:
    """The rewards of every program [S, P]: one stream, or for `multitask` those of an even and of an odd group."""
    if criterion.reward != "multitask":
        return reward(verdicts, criterion)[None, :]
    return np.array([reward(verdicts, criterion, group=np.full(len(verdicts.programs), n)) for n in (0, 1)])


def _draw(one: Ladder, rewards: Floats) -> _Drawn:
    """Draws from a ladder's rewards [S, n] at every u, with replacement among the programs whose reward is known."""
    known = ~np.isnan(rewards).any(axis=0)
    may = reachable(len(one.rows)) & known
    count = may.sum(axis=1)
    order = np.argsort(~may, axis=1, kind="stable")  # at each u, the programs that may be drawn come first
    nth = (one.numbers * count[:, None]).astype(np.int64)
    chosen = rewards[:, np.take_along_axis(order, nth, axis=1)]  # [S, 21, 16]
    full = count > 0
    equal = (chosen.max(axis=2) == chosen.min(axis=2)) & full
    means = np.where(full, np.where(full[:, None], chosen, 0).mean(axis=(0, 2)), NAN)
    return _Drawn(means, int(equal.sum()), int(full.sum()) * len(rewards), len(one.rows), int((~known).sum()))
