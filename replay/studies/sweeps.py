"""Sweeps: many criteria over the same measurements, one point for each model at each cell of a grid.

Every point equals the single replay of its criterion over the scaled measurements; what is shared between points is
computed once. No verdict is decided by other rules than those of `gates`, and nothing is drawn here.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import product

import numpy as np

from lapledger.replay.batches.problem_batches import ProblemBatch
from lapledger.replay.batches.program_groups import ProgramsByModel, Rate, rate_of
from lapledger.replay.batches.scaling import Scale, refuse_memory, scaled
from lapledger.replay.criteria import NS_PER_MS, Criterion
from lapledger.replay.engines import AUTO, Engine, runs_of
from lapledger.replay.errors import ReplayError
from lapledger.replay.estimates import Interval, count, estimate
from lapledger.replay.judging.gates import judge, one_campaign
from lapledger.replay.measurements import Bytes, Floats, Ints, ProblemMeasurements
from lapledger.replay.studies.pass_counts import statuses_of


@dataclass(frozen=True, slots=True)
class Axes:
    """The grid: every combination is one replay. ReplayError when a value has no criterion."""

    taus: tuple[int, ...]  # percent
    timeouts_ns: tuple[int | None, ...] = (None,)  # absolute intra-execution limit; None: the criterion's own
    alphas: tuple[float, ...] = (1.0,)  # references are scaled: d' = max(alpha d + beta, 0), candidates never
    betas_ns: tuple[int, ...] = (0,)

    def __post_init__(self) -> None:
        """Refuse empty axes and values that no criterion can hold."""
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
        """Number of single replays in the grid."""
        return len(self.taus) * len(self.timeouts_ns) * len(self.alphas) * len(self.betas_ns)

    @property
    def cells(self) -> "Iterator[Cell]":
        """Every cell of the grid, tau fastest."""
        return product(self.scales, self.timeouts_ns, self.taus)


@dataclass(frozen=True, slots=True)
class Point:
    """One model at one cell of the grid."""

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
    shares: Floats | None = field(default=None, compare=False, repr=False)  # share that passes of every problem


def sweep(
    problems: Sequence[ProblemMeasurements],
    criterion: Criterion,
    axes: Axes,
    progress: Callable[[int], None] | None = None,
    *,
    with_shares: bool = False,
    engine: Engine = AUTO,
) -> list[Point]:
    """One point a model at each cell of the grid: alpha, beta, timeout, tau, model, the last one fastest.

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
        results = _by_question(problems, SweepQuestion(criterion, axes, compiled), engine)
    elif compiled:
        results = _compiled(problems, criterion, axes)
    else:
        results = _one_by_one(problems, criterion, axes)
    points = []
    for (by, timeout, tau), rates in results:
        kept = rates if with_shares else [replace(rate, shares=None) for rate in rates]
        points += [_point(rate, by, timeout, tau) for rate in kept]
        if progress:
            progress(1)
    return points


Cell = tuple[Scale, int | None, int]


@dataclass(frozen=True)
class SweepQuestion:
    """How many of each model's candidates on one problem pass at every cell of a grid."""

    criterion: Criterion
    axes: Axes
    compiled: bool  # in machine code, for a common criterion

    def __call__(self, m: ProblemMeasurements, random: np.random.Generator, /) -> tuple[tuple[str, ...], Ints]:
        """(models [M], passed, undecided and all candidates [replays, M, 3]); none where the problem left."""
        models = ProgramsByModel.of([m]).models
        counts = np.zeros((self.axes.replays, len(models), 3), dtype=np.int64)
        for number, (programs, status) in enumerate(self._compiled(m) if self.compiled else self._plain(m)):
            if status is not None:
                counts[number] = np.stack(
                    [*(programs.count(status == decision)[0] for decision in (1, -1)), programs.size[0]], axis=1
                )
        return models, counts

    def _compiled(self, m: ProblemMeasurements) -> Iterator[tuple[ProgramsByModel, Bytes | None]]:
        batch, taus = ProblemBatch.of([m], self.criterion), self.axes.taus
        for by, timeout in product(self.axes.scales, self.axes.timeouts_ns):
            evaluated = batch.evaluate(at(self.criterion, timeout), by)
            yield from ((batch.programs, evaluated.status(at(self.criterion, timeout, tau))) for tau in taus)

    def _plain(self, m: ProblemMeasurements) -> Iterator[tuple[ProgramsByModel, Bytes | None]]:
        for by in self.axes.scales:
            part = scaled(m, self.criterion, by)
            programs = ProgramsByModel.of([part])  # scaled references stand beside the programs that are judged
            for timeout in self.axes.timeouts_ns:
                criteria = [at(self.criterion, timeout, tau) for tau in self.axes.taus]
                yield from ((programs, status) for status in statuses_of(part, criteria))


def _by_question(
    problems: Sequence[ProblemMeasurements], question: SweepQuestion, engine: Engine
) -> Iterator[tuple[Cell, list[Rate]]]:
    """Each replay from what every problem answered; each model's problems in their order, as they are added up here."""
    one_campaign(problems)
    answers = list(engine.answer(problems, question))
    models = sorted({model for row, _ in answers for model in row})
    tallies = np.zeros((question.axes.replays, len(models), len(problems), 3), dtype=np.int64)
    for number, (row, counts) in enumerate(answers):
        tallies[:, [models.index(model) for model in row], number] = counts
    for cell, tally in zip(question.axes.cells, tallies, strict=True):
        yield cell, [_rate(model, row) for model, row in zip(models, tally, strict=True)]


def _rate(model: str, tally: Ints) -> Rate:
    """pass@1 of a model from its candidates by problem [problems, 3], none where it has none or the problem left."""
    there = tally[:, 2] > 0
    return replace(rate_of(model, tally[there]), shares=tally[:, 0] / np.where(there, tally[:, 2], np.nan))


def _compiled(
    problems: Sequence[ProblemMeasurements], criterion: Criterion, axes: Axes
) -> Iterator[tuple[Cell, list[Rate]]]:
    """Each replay in machine code; one evaluation serves all taus."""
    batch = ProblemBatch.of(problems, criterion)
    for by in axes.scales:
        for timeout in axes.timeouts_ns:
            evaluated = batch.evaluate(at(criterion, timeout), by)
            for tau in axes.taus:
                yield (by, timeout, tau), batch.programs.rates(evaluated.status(at(criterion, timeout, tau)))


def _one_by_one(
    problems: Sequence[ProblemMeasurements], criterion: Criterion, axes: Axes
) -> Iterator[tuple[Cell, list[Rate]]]:
    """Each replay by itself: any criterion, in its own time."""
    for by in axes.scales:
        measured = [scaled(m, criterion, by) for m in problems]
        for timeout in axes.timeouts_ns:
            for tau in axes.taus:
                at_cell = at(criterion, timeout, tau)
                verdicts, names = [judge(m, at_cell) for m in measured], [m.problem for m in measured]
                estimates = estimate(verdicts, measured, 1)
                counts = [count(verdicts, measured, summary.model) for summary in estimates]
                rates = [Rate.of(summary, counted, names) for summary, counted in zip(estimates, counts, strict=True)]
                yield (by, timeout, tau), rates


def at(criterion: Criterion, timeout_ns: int | None, tau: int = 100) -> Criterion:
    """The criterion at one cell of the grid."""
    at_tau = replace(criterion, tau=str(tau))
    return at_tau if timeout_ns is None else replace(at_tau, limit_ms=timeout_ns // NS_PER_MS)


def _point(rate: Rate, by: Scale, timeout: int | None, tau: int) -> Point:
    interval = None if rate.interval is None else (100 * rate.interval[0], 100 * rate.interval[1])
    return Point(
        model=rate.model,
        alpha=by.alpha,
        beta_ns=by.beta_ns,
        timeout_ns=timeout,
        tau=tau,
        p_tau=100 * rate.value,
        interval=interval,
        method=rate.method,
        at_most=100 * rate.upper_bound,
        undecided=rate.undecided,
        programs=rate.programs,
        problems=rate.problems,
        shares=rate.shares,
    )
