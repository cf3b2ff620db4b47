"""A question to a snapshot with its answer: verdicts, estimates, and all that was left out, left open or never seen.

The one place where the commands judge. What is told of an answer is made in `telling`.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from lapledger.cli.engine_options import NUMPY, How, judged
from lapledger.ledger.questions.queries import Questions
from lapledger.render.output import progress
from lapledger.replay.criteria import Criterion
from lapledger.replay.estimates import Estimate, estimate, resolution_warning
from lapledger.replay.explanations.flips import Judgement
from lapledger.replay.judging.gates import Status, Verdicts, share_within
from lapledger.replay.judging.reasons import kind_of
from lapledger.replay.loading import Calibration, Snapshot, prepared
from lapledger.replay.measurements import Bools, Outcome, ProblemMeasurements
from lapledger.replay.studies.warnings import cautions


@dataclass(frozen=True, slots=True, eq=False)
class Answer:
    """One criterion's verdicts over a snapshot, with its estimates and warnings."""

    name: str
    criterion: Criterion
    calibration: Calibration | None
    measured: Sequence[ProblemMeasurements]
    verdicts: Sequence[Verdicts]
    estimates: Sequence[Estimate]
    warnings: Sequence[str]

    @property
    def rows(self) -> list[dict[str, Any]]:
        """The table: each estimate with its bound, its sampling interval and the method that gave it."""
        return [asdict(one) for one in self.estimates]

    @property
    def judgement(self) -> Judgement:
        """What is compared with another answer."""
        return Judgement(self.name, self.criterion, self.measured, self.verdicts)


def weigh(
    snapshot: Snapshot, criterion: Criterion, calibration: Calibration | None, *, how: How = NUMPY
) -> tuple[Sequence[ProblemMeasurements], Sequence[Verdicts]]:
    """The measurements with the calibrated pool, and the verdicts, of every problem of a snapshot."""
    measured = [prepared(snapshot, m, criterion, calibration) for m in snapshot.problems]
    if how != NUMPY or len(measured) < MANY:
        return measured, judged(measured, criterion, how)
    with progress("judging", len(measured)) as bar:
        return measured, judged(measured, criterion, told=lambda count: bar.advance(bar.task_ids[0], count))


MANY = 50
"""Problems from which on judging may take so long that a bar is shown."""


@dataclass(frozen=True, slots=True)
class Asking:
    """How a criterion is asked: pass@k, the campaign that its calibration comes from, and who judges."""

    k: int = 1
    source: str | None = None
    how: How = NUMPY


def ask(
    questions: Questions, snapshot: Snapshot, name: str, criterion: Criterion, *, asking: Asking = Asking()
) -> Answer:
    """The answer to a criterion; UserError where the calibration that it asks for is not stored."""
    from lapledger.consumers.derive.calibrator import find_calibration

    source = asking.source if criterion.calibration != "none" else None  # it may be another criterion's beside it
    calibration = find_calibration(questions, snapshot.name, criterion, source=source)
    measured, verdicts = weigh(snapshot, criterion, calibration, how=asking.how)
    sizes = np.concatenate([v.pool_size[v.candidate] for v in verdicts])
    fit = None if calibration is None else calibration.fit
    warnings = [resolution_warning(sizes, criterion), *cautions(measured, {name: criterion}, fit)]
    return Answer(
        name=name,
        criterion=criterion,
        calibration=calibration,
        measured=measured,
        verdicts=verdicts,
        estimates=estimate(verdicts, measured, asking.k),
        warnings=[warning for warning in warnings if warning],
    )


def missing(measured: Sequence[ProblemMeasurements]) -> int:
    """Program-test pairs of candidates without any outcome."""
    return sum(int((m.outcome[m.candidate] == Outcome.MISSING).sum()) for m in measured)


@dataclass(frozen=True, slots=True)
class Kept:
    """What the filter of a criterion keeps: optimization tests over all problems, and problems that left."""

    tests: int
    kept: int
    undecided: int
    problems: int
    left_out: tuple[str, ...]


def kept(answer: Answer) -> Kept:
    """What the criterion's filter keeps of the optimization tests, and the problems of which it keeps none."""
    cells = [v.kept[m.tests.optimization] for v, m in zip(answer.verdicts, answer.measured, strict=True)]
    return Kept(
        tests=sum(len(cell) for cell in cells),
        kept=sum(int((cell == 1).sum()) for cell in cells),
        undecided=sum(int((cell == -1).sum()) for cell in cells),
        problems=len(answer.verdicts),
        left_out=tuple(v.problem for v in answer.verdicts if v.left_out),
    )


def _of_models(answer: Answer) -> list[tuple[str, list[tuple[Verdicts, Bools]]]]:
    """Each model with its candidates, problem by problem, models in alphabetical order."""
    found: dict[str, list[tuple[Verdicts, Bools]]] = {}
    for v, m in zip(answer.verdicts, answer.measured, strict=True):
        models = np.array(m.models)
        for model in sorted(set(models[m.candidate].tolist())):
            found.setdefault(model, []).append((v, m.candidate & (models == model)))
    return sorted(found.items())


@dataclass(frozen=True, slots=True)
class Within:
    """A model's (program, test) pairs with a percentile of at most tau: at least, at most, and of how many."""

    model: str
    least: int
    most: int
    tests: int


def within(answer: Answer) -> list[Within]:
    """The share of tests within tau by model, which the per-test gate reports beside its score; else nothing."""
    if answer.criterion.reading != "score":
        return []
    rows = []
    for model, problems in _of_models(answer):
        parts = [[part[mine].sum() for part in share_within(v, answer.criterion)] for v, mine in problems]
        least, most, tests = (int(sum(part)) for part in zip(*parts, strict=True))
        rows.append(Within(model, least, most, tests))
    return rows


def undecided(answer: Answer) -> list[tuple[str, str, int]]:
    """(model, kind of reason, candidates) of the undecided verdicts, the commonest reason of a model first.

    Problems that left the environment are counted as such, not here.
    """
    counts = Counter(
        (model, kind_of(v.reason[row]))
        for model, problems in _of_models(answer)
        for v, mine in problems
        if not v.left_out
        for row in np.flatnonzero(mine & (v.status == Status.UNDECIDED))
    )
    return [(model, kind, n) for (model, kind), n in sorted(counts.items(), key=lambda one: (one[0][0], -one[1], one))]
