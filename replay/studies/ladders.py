"""The programs of one problem from the weakest to the strongest, and what criteria pay for draws from among them.

The simulator's question to a problem. A random number comes only from a generator that is passed in; no verdict is
made here by rules of its own.
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np

from lapledger.replay.criteria import Criterion
from lapledger.replay.devices.questions import VerdictQuestion
from lapledger.replay.judging.gates import Status, Verdicts, judge
from lapledger.replay.judging.rewards import reward
from lapledger.replay.measurements import Bools, Floats, Ints, ProblemMeasurements, correctness_of
from lapledger.replay.studies.models import HUMAN

POINTS = 21
"""Values of u at which programs are drawn: 0, 0.05, ..., 1."""
DRAWS = 16
"""Programs drawn at each u: one group of rollouts."""
ORDER = Criterion()
"""What puts programs in order: strict correctness, and q_lead over all optimization tests."""


@dataclass(frozen=True, slots=True, eq=False)
class Ladder:
    """The programs of one problem from the weakest to the strongest, and the random numbers that draw from them."""

    m: ProblemMeasurements
    rows: Ints  # [n]
    unplaced: int  # programs whose correctness or quality is undecided, or that no reference ranks
    numbers: Floats  # [21, 16] in [0, 1)


def ladder(m: ProblemMeasurements, generator: np.random.Generator, *, model: str = HUMAN) -> Ladder:
    """The model's programs of a problem in order: incorrect ones, then correct ones from slowest to fastest.

    Correct is strict-correct, and speed is q_lead over all optimization tests, whatever criterion is simulated; equal
    programs go by their ids. A program whose correctness is undecided, or whose speed is unknown, is excluded.
    """
    m = _among(m, model)
    return _ladder(m, judge(m, correctness_of(m)), generator, model)


@dataclass(frozen=True, slots=True, eq=False)
class Drawn:
    """What one problem gave under one criterion."""

    means: Floats  # [21] mean reward, nan where nothing was drawn
    equal: int  # groups whose rewards are all equal
    groups: int
    programs: int
    undecided: int


@dataclass(frozen=True, slots=True, eq=False)
class LadderResult:
    """What one problem gave under each of some criteria; nothing where fewer than two programs are in order."""

    programs: int  # in order
    unplaced: int
    drawn: tuple[Drawn | None, ...]  # one a criterion; None where its filter keeps no test of the problem


@dataclass(frozen=True)
class LadderQuestion(VerdictQuestion[LadderResult]):
    """The question what some criteria pay for draws from a model's programs; all draw with the same random numbers."""

    criteria: tuple[Criterion, ...]
    model: str = HUMAN

    def under(self) -> tuple[Criterion, ...]:
        """The criterion that orders programs, then every simulated criterion."""
        own_limits = self.criteria[0].own_limits if self.criteria else "ignored"
        return (replace(ORDER, own_limits=own_limits), *self.criteria)

    def part_of(self, m: ProblemMeasurements) -> ProblemMeasurements:
        """The model's programs and the references."""
        return _among(m, self.model)

    def from_verdicts(
        self, m: ProblemMeasurements, verdicts: Sequence[Verdicts], random: np.random.Generator
    ) -> LadderResult:
        """What was drawn, from verdicts of all criteria."""
        return self._result(_ladder(m, verdicts[0], random, self.model), verdicts[1:])

    def __call__(self, m: ProblemMeasurements, random: np.random.Generator, /) -> LadderResult:
        """The same, where nothing is judged that is not drawn from."""
        rungs = ladder(m, random, model=self.model)
        return self._result(rungs, (judge(rungs.m, criterion) for criterion in self.criteria))

    def _result(self, rungs: Ladder, verdicts: Iterable[Verdicts]) -> LadderResult:
        if len(rungs.rows) < 2:
            return LadderResult(len(rungs.rows), rungs.unplaced, ())
        drawn = (
            None if judged.excluded else _draw(rungs, streams(judged, criterion)[:, rungs.rows])
            for judged, criterion in zip(verdicts, self.criteria, strict=True)
        )
        return LadderResult(len(rungs.rows), rungs.unplaced, tuple(drawn))


def reachable(programs: int) -> Bools:
    """Which programs [n] may be drawn at each u [21, n]: those within 0.05 of it, else the nearest.

    Program i of n stands at i / (n - 1). Exact: 20 i is compared with j (n - 1).
    """
    away = np.abs(20 * np.arange(programs)[None, :] - np.arange(POINTS)[:, None] * (programs - 1))
    inside = away <= programs - 1
    nearest = away == away.min(axis=1, keepdims=True)
    return np.where(inside.any(axis=1, keepdims=True), inside, nearest)


def streams(verdicts: Verdicts, criterion: Criterion) -> Floats:
    """The rewards of every program [S, P]: one stream, or for `multitask` those of an even and of an odd group."""
    if criterion.reward != "multitask":
        return reward(verdicts, criterion)[None, :]
    return np.array([reward(verdicts, criterion, group=np.full(len(verdicts.programs), n)) for n in (0, 1)])


def _ladder(m: ProblemMeasurements, verdicts: Verdicts, generator: np.random.Generator, model: str) -> Ladder:
    """The ladder of a problem with the model's programs and the references alone."""
    ranked = [(_quality(verdicts, row), m.programs[row], row) for row, by in enumerate(m.models) if by == model]
    rows = [row for _, _, row in sorted((quality, name, row) for quality, name, row in ranked if quality is not None)]
    return Ladder(m, np.array(rows, dtype=np.int64), len(ranked) - len(rows), generator.random((POINTS, DRAWS)))


def _among(m: ProblemMeasurements, model: str) -> ProblemMeasurements:
    """The problem with the model's programs and the references alone: no other program ranks them."""
    rows = np.flatnonzero(m.reference | np.array([by == model for by in m.models], dtype=np.bool_))
    arrays = ("candidate", "reference", "duplicate", "outcome", "wall_ns", "cpu_ns", "startup_ns", "limit_ns")
    arrays_of = {name: getattr(m, name) for name in (*arrays, "memory_bytes", "interface")}
    kept: dict[str, Any] = {name: None if array is None else array[rows] for name, array in arrays_of.items()}
    kept |= {name: tuple(getattr(m, name)[row] for row in rows) for name in ("programs", "models", "labels")}
    return replace(m, **kept)


def _quality(verdicts: Verdicts, row: int) -> Fraction | None:
    """Where a program stands, weakest first: -1 when incorrect, else 1 - q_lead in [0, 1]; None when undecided.

    A correct program that no reference ranks, or on no optimization test, has no q_lead.
    """
    if verdicts.c[row] == Status.FAIL:
        return Fraction(-1)
    unknown = verdicts.q_den[row] == 0 or verdicts.q_lo[row] != verdicts.q_hi[row]
    if verdicts.c[row] == Status.UNDECIDED or unknown:
        return None
    return 1 - Fraction(int(verdicts.q_hi[row]), int(verdicts.q_den[row]))


def _draw(rungs: Ladder, rewards: Floats) -> Drawn:
    """Draws from a ladder's rewards [S, n] at every u, with replacement among the programs whose reward is known."""
    known = ~np.isnan(rewards).any(axis=0)
    may = reachable(len(rungs.rows)) & known
    count = may.sum(axis=1)
    order = np.argsort(~may, axis=1, kind="stable")  # at each u, the programs that may be drawn come first
    nth = (rungs.numbers * count[:, None]).astype(np.int64)
    chosen = rewards[:, np.take_along_axis(order, nth, axis=1)]  # [S, 21, 16]
    full = count > 0
    equal = (chosen.max(axis=2) == chosen.min(axis=2)) & full
    means = np.where(full, np.where(full[:, None], chosen, 0).mean(axis=(0, 2)), math.nan)
    return Drawn(means, int(equal.sum()), int(full.sum()) * len(rewards), len(rungs.rows), int((~known).sum()))
