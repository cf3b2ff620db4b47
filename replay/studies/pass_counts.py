"""What passes of some models' programs on one problem under some criteria, counted from bare statuses.

The question of matrices and of learning curves. No rule is decided here.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from lapledger.replay.criteria import Criterion
from lapledger.replay.devices.questions import Runner, VerdictQuestion
from lapledger.replay.judging.context import combine, evaluate_problem
from lapledger.replay.judging.gates import Status, Verdicts
from lapledger.replay.measurements import Bytes, Ints, ProblemMeasurements


@dataclass(frozen=True)
class CountQuestion(VerdictQuestion[Ints]):
    """Passed, undecided and all programs of each model [C, M, 3] under each criterion; none where the problem left."""

    criteria: tuple[Criterion, ...]  # [C]
    models: tuple[str, ...]  # [M]

    def under(self) -> tuple[Criterion, ...]:
        """The criteria, in their order."""
        return self.criteria

    def from_verdicts(self, m: ProblemMeasurements, verdicts: Sequence[Verdicts], random: np.random.Generator) -> Ints:
        """The counts from verdicts; nothing is drawn."""
        return self._counts(m, [None if verdict.excluded else verdict.status for verdict in verdicts])

    def __call__(self, m: ProblemMeasurements, random: np.random.Generator, /) -> Ints:
        """The counts; what does not depend on tau is evaluated once for all taus."""
        return self._counts(m, statuses_of(m, self.criteria))

    def _counts(self, m: ProblemMeasurements, statuses: Sequence[Bytes | None]) -> Ints:
        models = np.array(m.models)
        rows = [m.candidate & (models == model) for model in self.models]
        counts = np.zeros((len(statuses), len(rows), 3), dtype=np.int64)
        for row, status in enumerate(statuses):
            if status is not None:
                chosen = status == Status.PASS, status == Status.UNDECIDED, np.ones_like(m.candidate)
                counts[row] = [[int((flags & mine).sum()) for flags in chosen] for mine in rows]
        return counts


def counts_of(
    problems: Sequence[ProblemMeasurements],
    question: CountQuestion,
    runner: Runner,
    progress: Callable[[int], None] | None = None,
) -> Ints:
    """The counts of each problem [C, M, problems, 3]; `progress` is called with 1 after each."""
    counts = np.zeros((len(question.criteria), len(question.models), len(problems), 3), dtype=np.int64)
    for column, answer in enumerate(runner(problems, question)):
        counts[:, :, column] = answer
        if progress:
            progress(1)
    return counts


def statuses_of(m: ProblemMeasurements, criteria: Sequence[Criterion]) -> list[Bytes | None]:
    """The statuses [P] that each criterion gives a problem's programs; None where it leaves the environment.

    What does not depend on tau is evaluated once for all criteria that differ in it alone.
    """
    evaluations = {}
    statuses: list[Bytes | None] = []
    for criterion in criteria:
        common = replace(criterion, tau="100")
        if common not in evaluations:
            evaluations[common] = evaluate_problem(m, common)
        evaluation = evaluations[common]
        statuses.append(None if evaluation.rules.excluded else combine(evaluation.c, evaluation.gate(criterion)))
    return statuses
