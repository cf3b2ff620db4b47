"""What passes of some models' programs on one problem under some criteria, counted from bare statuses.

The question of matrices and of learning curves. No rule is decided here.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from lapledger.replay.criteria import Criterion
from lapledger.replay.devices.questions import Each, Weighing
from lapledger.replay.judging.context import combine, weigh_all
from lapledger.replay.judging.gates import Status, Verdicts
from lapledger.replay.measurements import Bytes, Ints, ProblemMeasurements


@dataclass(frozen=True)
class Counted(Weighing[Ints]):
    """Passed, undecided and all programs of each model [C, M, 3] under each criterion; none where the problem left."""

    criteria: tuple[Criterion, ...]  # [C]
    models: tuple[str, ...]  # [M]

    def under(self) -> tuple[Criterion, ...]:
        """The criteria, in their order."""
        return self.criteria

    def told(self, m: ProblemMeasurements, verdicts: Sequence[Verdicts], random: np.random.Generator) -> Ints:
        """The counts from verdicts; nothing is drawn."""
        return self._counts(m, [None if one.left_out else one.status for one in verdicts])

    def __call__(self, m: ProblemMeasurements, random: np.random.Generator, /) -> Ints:
        """The counts, where what does not hang on tau is weighed once for all taus."""
        return self._counts(m, statuses_of(m, self.criteria))

    def _counts(self, m: ProblemMeasurements, statuses: Sequence[Bytes | None]) -> Ints:
        models = np.array(m.models)
        rows = [m.candidate & (models == model) for model in self.models]
        counts = np.zeros((len(statuses), len(rows), 3), dtype=np.int64)
        for place, status in enumerate(statuses):
            if status is not None:
                words = status == Status.PASS, status == Status.UNDECIDED, np.ones_like(m.candidate)
                counts[place] = [[int((word & mine).sum()) for word in words] for mine in rows]
        return counts


def counts_of(
    problems: Sequence[ProblemMeasurements],
    question: Counted,
    each: Each,
    progress: Callable[[int], None] | None = None,
) -> Ints:
    """What each of some problems answers [C, M, problems, 3]; `progress` is told after each of them."""
    counts = np.zeros((len(question.criteria), len(question.models), len(problems), 3), dtype=np.int64)
    for place, found in enumerate(each(problems, question)):
        counts[:, :, place] = found
        if progress:
            progress(1)
    return counts


def statuses_of(m: ProblemMeasurements, criteria: Sequence[Criterion]) -> list[Bytes | None]:
    """The statuses [P] that each criterion gives a problem's programs; None where it leaves the environment.

    What does not hang on tau is weighed once for all criteria that differ in it alone.
    """
    weighed = {}
    found: list[Bytes | None] = []
    for criterion in criteria:
        common = replace(criterion, tau="100")
        if common not in weighed:
            weighed[common] = weigh_all(m, common)
        one = weighed[common]
        found.append(None if one.rules.left_out else combine(one.c, one.gate(criterion)))
    return found
