"""The offline simulator: what a criterion would pay for human programs of known quality, before any training.

Human programs, from the weakest to the strongest, stand in for a model's samples, and stored durations for execution.
`ladders` says what one problem pays; here it is added up. No verdict is made and nothing is drawn.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.special import stdtr

from lapledger.replay.correlation import spearman
from lapledger.replay.criteria import Criterion, family
from lapledger.replay.devices.questions import Runner, one_by_one
from lapledger.replay.errors import ReplayError
from lapledger.replay.estimates import t_interval
from lapledger.replay.measurements import Floats, ProblemMeasurements
from lapledger.replay.studies.ladders import POINTS, LadderQuestion, LadderResult
from lapledger.replay.studies.models import HUMAN

NAN = math.nan

SPARSE, SATURATED, FLAT = 0.1, 0.9, 0.2
"""Our cuts for the verdict: AUC below SPARSE, AUC above SATURATED, steepness below FLAT."""


@dataclass(frozen=True, slots=True)
class Figures:
    """Figures of a curve f(u); nan throughout where the curve has a hole."""

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
    excluded: int  # problems of which the criterion's filter keeps no test
    too_few: int  # problems with fewer than two programs in order
    unplaced: int  # programs that cannot be ordered, as their correctness or quality is undecided
    programs: int  # in order, over the problems that are in the environment
    undecided: int  # of these, with a reward that is not known: never drawn
    undrawn: int  # pairs (problem, u) around which every program is undecided


def simulate(
    problems: Sequence[ProblemMeasurements],
    criteria: Mapping[str, Criterion],
    *,
    model: str = HUMAN,
    runner: Runner = one_by_one,
    progress: Callable[[int], None] | None = None,
) -> list[Simulation]:
    """One simulation a criterion, in their order.

    `runner` puts the question to the problems; `progress` is called with 1 after each.
    All criteria draw with the same random numbers, and a program that is drawn is ranked without itself and its exact
    duplicates. ReplayError when no problem has two programs in order.
    """
    climbs = []
    for result in runner(problems, LadderQuestion(tuple(criteria.values()), model)):
        climbs.append(result)
        if progress:
            progress(1)
    if not any(result.programs > 1 for result in climbs):
        raise ReplayError(f"simulate: no problem has two {model} programs in order; import more, or run them first")
    return [_simulation(climbs, number, name, criterion) for number, (name, criterion) in enumerate(criteria.items())]


def figures(f: Floats) -> Figures:
    """The figures of a curve f [N] over evenly spaced u in [0, 1], N at least 4; all nan where it has a hole."""
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


def _simulation(climbs: Sequence[LadderResult], number: int, name: str, criterion: Criterion) -> Simulation:
    stayed = [part.drawn[number] for part in climbs if part.drawn]
    drawn = [part for part in stayed if part is not None]
    means = np.array([part.means for part in drawn]).reshape(len(drawn), POINTS)
    seen = ~np.isnan(means)
    count = seen.sum(axis=0)
    total = np.where(seen, means, 0).sum(axis=0)
    f = np.where(count > 0, (total / np.maximum(count, 1) + 1) / 2, NAN)
    groups = sum(part.groups for part in drawn)
    return Simulation(
        name=name,
        family=family(criterion),
        u=np.linspace(0, 1, POINTS),
        f=f,
        figures=figures(f),
        auc_interval=t_interval(np.trapezoid((means[seen.all(axis=1)] + 1) / 2, dx=1 / (POINTS - 1), axis=1)),
        zero_advantage=sum(part.equal for part in drawn) / groups if groups else NAN,
        groups=groups,
        problems=int(seen.any(axis=1).sum()),
        excluded=len(stayed) - len(drawn),
        too_few=len(climbs) - len(stayed),
        unplaced=sum(part.unplaced for part in climbs),
        programs=sum(part.programs for part in drawn),
        undecided=sum(part.undecided for part in drawn),
        undrawn=int((~seen).sum()),
    )


FIGURES = ("deviation", "monotonicity", "steepness", "noise", "auc")


@dataclass(frozen=True, slots=True)
class Agreement:
    """How one figure of the simulator orders criteria against what training with them gave."""

    figure: str
    criteria: int
    correlation: float  # Spearman, in [-1, 1]
    p: float  # two-sided, from Student's t with n - 2 degrees of freedom


def agreement(simulations: Sequence[Simulation], online: Mapping[str, float]) -> list[Agreement]:
    """Spearman of each figure with the online result of the criterion of that name, over those that have one.

    ReplayError with fewer than three. Published over 18 runs at 7B: deviation -0.832, monotonicity 0.787, steepness
    0.723, noise -0.002.
    """
    known = [
        simulation for simulation in simulations if simulation.name in online and not math.isnan(simulation.figures.auc)
    ]
    if len(known) < 3:
        names = ", ".join(simulation.name for simulation in simulations)
        raise ReplayError(f"online results: {len(known)} of the simulated criteria have one; name 3 or more of {names}")
    results = np.array([online[simulation.name] for simulation in known], dtype=np.float64)
    agreements = []
    for figure in FIGURES:
        values = np.array([getattr(simulation.figures, figure) for simulation in known])
        seen = ~np.isnan(values)
        rho = spearman(values[seen], results[seen]) if seen.sum() > 1 else NAN
        agreements.append(Agreement(figure, int(seen.sum()), rho, correlation_p(rho, int(seen.sum()))))
    return agreements


def correlation_p(correlation: float, n: int) -> float:
    """The two-sided p of a rank correlation over n pairs, by t = r sqrt((n - 2) / (1 - r^2)); nan below n = 3."""
    if math.isnan(correlation) or n < 3:
        return NAN
    rest = 1 - correlation**2
    return 0.0 if rest <= 0 else float(2 * stdtr(n - 2, -abs(correlation) * math.sqrt((n - 2) / rest)))
