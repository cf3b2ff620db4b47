"""Sweeps: many criteria over the same measurements, one point for each model at each place of a grid.

Every point equals the single replay of its criterion over the scaled measurements; what is shared between points is
computed once. No verdict is decided by other rules than those of `gates`, and nothing is drawn here.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import product

import numpy as np

from lapledger.replay.criteria import NS_PER_MS, Criterion
from lapledger.replay.engines import AUTO, Engine, runs_of
from lapledger.replay.errors import ReplayError
from lapledger.replay.estimates import Interval, count, estimate
from lapledger.replay.judging.gates import judge, one_campaign
from lapledger.replay.measurements import Bytes, Floats, Ints, ProblemMeasurements
from lapledger.replay.studies.pass_counts import statuses_of
from lapledger.replay.studies.problem_batches import Many
from lapledger.replay.studies.program_groups import Crowd, Rate, rate_of
from lapledger.replay.studies.scaling import Scale, refuse_memory, scaled


@dataclass(frozen=True, slots=True)
class Axes:
    """The grid: every combination is one replay. ReplayError when a value has no criterion."""

    taus: tuple[int, ...]  # percent
    timeouts_ns: tuple[int | None, ...] = (None,)  # absolute intra-execution limit; None: as the criterion says
    alphas: tuple[float, ...] = (1.0,)  # references are scaled: d' = max(alpha d + beta, 0), candidates never
    betas_ns: tuple[int, ...] = (0,)

    def __post_init__(self) -> None:
        """Refuse empty axes and values that no criterion can say."""
        if not (self.taus and self.timeouts_ns and self.alphas and self.betas_ns):
            raise ReplayError("sweep: an axis is empty; give every axis at least one value")
        for tau in self.taus:
            if not 1 <= tau <= 100:
                raise ReplayError(f"sweep: tau {tau} is not allowed; use whole percents from 1 to 100")
        for timeout in self.timeouts_ns:
            if timeout is not None and (timeout < NS_PER_MS or timeout % NS_PER_MS):
                raise ReplayError(f"sweep: a timeout of {timeout} ns is not allowed; use whole ms, 1 or more")
        for scale in self.scales:
            if abs(scale.beta_ns) >= 2**60:
                raise ReplayError(f"sweep: a beta of {scale.beta_ns} ns is not allowed; use one below 36 years")

    @property
    def scales(self) -> list[Scale]:
        """Every alpha with every beta."""
        return [Scale(alpha, beta) for alpha in self.alphas for beta in self.betas_ns]

    @property
    def replays(self) -> int:
        """How many single replays the grid stands for."""
        return len(self.taus) * len(self.timeouts_ns) * len(self.alphas) * len(self.betas_ns)

    @property
    def places(self) -> "Iterator[Place]":
        """Every place of the grid, tau fastest."""
        return product(self.scales, self.timeouts_ns, self.taus)


@dataclass(frozen=True, slots=True)
class Point:
    """One model at one place of the grid."""

    model: str
    alpha: float
    beta_ns: int
    timeout_ns: int | None
    tau: int
    p_tau: float  # pass@1 averaged over problems, in percent; nan when every problem left the environment
    interval: Interval | None  # 95% over problems, percent; as the single replay gives it
    method: str  # that gave it: `t` or `wilson`
    at_most: float  # percent, undecided counted as passed: a bound, no interval
    undecided: int
    programs: int
    problems: int
    shares: Floats | None = field(default=None, compare=False, repr=False)  # what passes of every problem, where asked


def sweep(
    problems: Sequence[ProblemMeasurements],
    criterion: Criterion,
    axes: Axes,
    progress: Callable[[int], None] | None = None,
    *,
    with_shares: bool = False,
    engine: Engine = AUTO,
) -> list[Point]:
    """One point a model at each place of the grid: alpha, beta, timeout, tau, model, the last one fastest.

    `with_shares` keeps every problem's share [problems], nan where a model has none; of a large grid they are many.
    The points are the same with every engine; a cluster judges problem by problem, and `torch` leaves a grid to
    numpy. `progress` gets the number of replays of each step. ReplayError as `judge` and `estimate` raise, and when
    memory is to be scaled.
    """
    if not all(scale.nothing for scale in axes.scales):
        refuse_memory(criterion)
    runs = runs_of(problems) * axes.replays
    compiled = (AUTO if engine.name == "ray" else engine).uses_machine_code(criterion, runs)
    if engine.name == "ray":
        found = _asked(problems, Swept(criterion, axes, compiled), engine)
    elif compiled:
        found = _compiled(problems, criterion, axes)
    else:
        found = _one_by_one(problems, criterion, axes)
    points = []
    for (by, timeout, tau), rates in found:
        kept = rates if with_shares else [replace(one, shares=None) for one in rates]
        points += [_point(one, by, timeout, tau) for one in kept]
        if progress:
            progress(1)
    return points


Place = tuple[Scale, int | None, int]


@dataclass(frozen=True)
class Swept:
    """The question what passes of each model's candidates on one problem at every place of a grid."""

    criterion: Criterion
    axes: Axes
    compiled: bool  # in machine code, for a common criterion

    def __call__(self, m: ProblemMeasurements, random: np.random.Generator, /) -> tuple[tuple[str, ...], Ints]:
        """(models [M], passed, undecided and all candidates [replays, M, 3]); none where the problem left."""
        models = Crowd.of([m]).models
        counts = np.zeros((self.axes.replays, len(models), 3), dtype=np.int64)
        for place, (crowd, status) in enumerate(self._compiled(m) if self.compiled else self._plain(m)):
            if status is not None:
                counts[place] = np.stack([*(crowd.count(status == word)[0] for word in (1, -1)), crowd.size[0]], axis=1)
        return models, counts

    def _compiled(self, m: ProblemMeasurements) -> Iterator[tuple[Crowd, Bytes | None]]:
        many, taus = Many.of([m], self.criterion), self.axes.taus
        for by, timeout in product(self.axes.scales, self.axes.timeouts_ns):
            weighed = many.weigh(at(self.criterion, timeout), by)
            yield from ((many.crowd, weighed.status(at(self.criterion, timeout, tau))) for tau in taus)

    def _plain(self, m: ProblemMeasurements) -> Iterator[tuple[Crowd, Bytes | None]]:
        for by in self.axes.scales:
            part = scaled(m, self.criterion, by)
            crowd = Crowd.of([part])  # scaled references stand beside the programs that are judged
            for timeout in self.axes.timeouts_ns:
                asked = [at(self.criterion, timeout, tau) for tau in self.axes.taus]
                yield from ((crowd, status) for status in statuses_of(part, asked))


def _asked(
    problems: Sequence[ProblemMeasurements], question: Swept, engine: Engine
) -> Iterator[tuple[Place, list[Rate]]]:
    """Each replay from what every problem answered; each model's problems in their order, as they are added up here."""
    one_campaign(problems)
    answers = list(engine.answer(problems, question))
    models = sorted({model for own, _ in answers for model in own})
    tallies = np.zeros((question.axes.replays, len(models), len(problems), 3), dtype=np.int64)
    for number, (own, counts) in enumerate(answers):
        tallies[:, [models.index(model) for model in own], number] = counts
    for place, tally in zip(question.axes.places, tallies, strict=True):
        yield place, [_rate(model, own) for model, own in zip(models, tally, strict=True)]


def _rate(model: str, tally: Ints) -> Rate:
    """pass@1 of a model from its candidates by problem [problems, 3], none where it has none or the problem left."""
    there = tally[:, 2] > 0
    return replace(rate_of(model, tally[there]), shares=tally[:, 0] / np.where(there, tally[:, 2], np.nan))


def _compiled(
    problems: Sequence[ProblemMeasurements], criterion: Criterion, axes: Axes
) -> Iterator[tuple[Place, list[Rate]]]:
    """Each replay in machine code; one weighing serves all taus."""
    many = Many.of(problems, criterion)
    for by in axes.scales:
        for timeout in axes.timeouts_ns:
            weighed = many.weigh(at(criterion, timeout), by)
            for tau in axes.taus:
                yield (by, timeout, tau), many.crowd.rates(weighed.status(at(criterion, timeout, tau)))


def _one_by_one(
    problems: Sequence[ProblemMeasurements], criterion: Criterion, axes: Axes
) -> Iterator[tuple[Place, list[Rate]]]:
    """Each replay by itself: any criterion, in its own time."""
    for by in axes.scales:
        measured = [scaled(m, criterion, by) for m in problems]
        for timeout in axes.timeouts_ns:
            for tau in axes.taus:
                asked = at(criterion, timeout, tau)
                verdicts, names = [judge(m, asked) for m in measured], [m.problem for m in measured]
                found = estimate(verdicts, measured, 1)
                counts = [count(verdicts, measured, one.model) for one in found]
                rates = [Rate.of(one, own, names) for one, own in zip(found, counts, strict=True)]
                yield (by, timeout, tau), rates


def at(criterion: Criterion, timeout_ns: int | None, tau: int = 100) -> Criterion:
    """The criterion of one place of the grid."""
    asked = replace(criterion, tau=str(tau))
    return asked if timeout_ns is None else replace(asked, limit_ms=timeout_ns // NS_PER_MS)


def _point(one: Rate, by: Scale, timeout: int | None, tau: int) -> Point:
    interval = None if one.interval is None else (100 * one.interval[0], 100 * one.interval[1])
    return Point(
        model=one.model,
        alpha=by.alpha,
        beta_ns=by.beta_ns,
        timeout_ns=timeout,
        tau=tau,
        p_tau=100 * one.value,
        interval=interval,
        method=one.method,
        at_most=100 * one.upper_bound,
        undecided=one.undecided,
        programs=one.programs,
        problems=one.problems,
        shares=one.shares,
    )
