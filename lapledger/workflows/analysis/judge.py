"""Campaigns judged for the commands, with progress, and what their tables count of verdicts.

The tables themselves are in `render.replay_table`.
"""

from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from lapledger.ledger.questions.queries import Questions
from lapledger.replay.criteria import Criterion
from lapledger.replay.engines import AUTO, Engine
from lapledger.replay.judging.gates import Status, Verdicts, share_within
from lapledger.replay.judging.reasons import kind_of
from lapledger.replay.loading import JudgedCampaign, Snapshot, judge_campaign
from lapledger.replay.measurements import Bools, Outcome, ProblemMeasurements
from lapledger.workflows.reporter import LOGGING, Reporter

BAR_FROM = 50
"""Problems from which on judging may take so long that a bar is shown."""


def judge_with_progress(
    questions: Questions,
    snapshot: Snapshot,
    criterion: Criterion,
    *,
    name: str,
    source: str | None = None,
    k: int = 1,
    engine: Engine = AUTO,
    criteria: int = 1,
    models: Collection[str] | None = None,
    reporter: Reporter = LOGGING,
) -> JudgedCampaign:
    """`judge_campaign` with a bar where there are many problems.

    `source` may be meant for another criterion: it is passed on where this one asks for a calibration.
    """
    source = source if criterion.calibration != "none" else None
    judged = partial(
        judge_campaign,
        questions,
        snapshot,
        criterion,
        name=name,
        source=source,
        k=k,
        engine=engine,
        criteria=criteria,
        models=models,
    )
    if len(snapshot.problems) < BAR_FROM:
        return judged()
    with reporter.progress("judging", len(snapshot.problems)) as bar:
        return judged(on_progress=bar.advance)


def missing(measurements: Sequence[ProblemMeasurements]) -> int:
    """Program-test pairs of candidates without any outcome."""
    return sum(int((m.outcome[m.candidate] == Outcome.MISSING).sum()) for m in measurements)


@dataclass(frozen=True, slots=True)
class Kept:
    """What the filter of a criterion keeps: optimization tests over all problems, and problems that left."""

    tests: int
    kept: int
    undecided: int
    problems: int
    excluded: tuple[str, ...]


def kept(judged: JudgedCampaign) -> Kept:
    """What the criterion's filter keeps of the optimization tests, and the problems of which it keeps none."""
    cells = [v.kept[m.tests.optimization] for v, m in zip(judged.verdicts, judged.measurements, strict=True)]
    return Kept(
        tests=sum(len(cell) for cell in cells),
        kept=sum(int((cell == 1).sum()) for cell in cells),
        undecided=sum(int((cell == -1).sum()) for cell in cells),
        problems=len(judged.verdicts),
        excluded=tuple(v.problem for v in judged.verdicts if v.excluded),
    )


def _of_models(judged: JudgedCampaign) -> list[tuple[str, list[tuple[Verdicts, Bools]]]]:
    """Each model with its candidates, problem by problem, models in alphabetical order."""
    by_model: dict[str, list[tuple[Verdicts, Bools]]] = {}
    for v, m in zip(judged.verdicts, judged.measurements, strict=True):
        models = np.array(m.models)
        for model in sorted(set(models[m.candidate].tolist())):
            by_model.setdefault(model, []).append((v, m.candidate & (models == model)))
    return sorted(by_model.items())


@dataclass(frozen=True, slots=True)
class Within:
    """A model's (program, test) pairs with a percentile of at most tau: at least, at most, and of how many."""

    model: str
    least: int
    most: int
    tests: int


def within(judged: JudgedCampaign) -> list[Within]:
    """The share of tests within tau by model, which the per-test gate reports beside its score; else nothing."""
    if judged.criterion.reading != "score":
        return []
    rows = []
    for model, problems in _of_models(judged):
        parts = [[part[mine].sum() for part in share_within(v, judged.criterion)] for v, mine in problems]
        least, most, tests = (int(sum(part)) for part in zip(*parts, strict=True))
        rows.append(Within(model, least, most, tests))
    return rows


def undecided(judged: JudgedCampaign) -> list[tuple[str, str, int]]:
    """(model, kind of reason, candidates) of the undecided verdicts, the commonest reason of a model first.

    Problems that left the environment are counted as such, not here.
    """
    counts = Counter(
        (model, kind_of(v.reason[row]))
        for model, problems in _of_models(judged)
        for v, mine in problems
        if not v.excluded
        for row in np.flatnonzero(mine & (v.status == Status.UNDECIDED))
    )
    return [(model, kind, n) for (model, kind), n in sorted(counts.items(), key=lambda row: (row[0][0], -row[1], row))]
