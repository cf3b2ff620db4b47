"""One campaign judged under one criterion: the one way from stored facts to verdicts, for every command and service.

What a command, an export, a screen, an audit or a reward adds to it is a function of a `JudgedCampaign`.
"""

from collections.abc import Callable, Collection, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from lapledger.ledger.questions.queries import Questions
from lapledger.replay.calibration import Fit, with_stored
from lapledger.replay.criteria import Criterion
from lapledger.replay.engines import AUTO, Engine, nothing
from lapledger.replay.estimates import Estimate, estimate, resolution_warning
from lapledger.replay.judging.gates import Verdicts, decide
from lapledger.replay.loading.calibrations import Calibration, find_calibration
from lapledger.replay.loading.snapshots import Snapshot, load
from lapledger.replay.measurements import ProblemMeasurements, of_models
from lapledger.replay.package_limits import NO_LIMITS, enforce
from lapledger.replay.studies.warnings import warnings_of


@dataclass(frozen=True, eq=False)
class MeasuredCampaign:
    """One campaign at one cut as a criterion reads it: its pool holds the references that a calibration adds."""

    snapshot: Snapshot
    criterion: Criterion
    calibration: Calibration | None
    measurements: Sequence[ProblemMeasurements]

    @property
    def campaign(self) -> str:
        """The campaign's id."""
        return self.snapshot.name

    @property
    def cut(self) -> str:
        """The cut that the facts were read at."""
        return self.snapshot.cut

    @property
    def calibration_id(self) -> str | None:
        """The id of the calibration; None without one."""
        return None if self.calibration is None else self.calibration.calibration_id

    @property
    def fit(self) -> Fit | None:
        """The map of the calibration; None without one."""
        return None if self.calibration is None else self.calibration.fit

    @property
    def models(self) -> list[str]:
        """The models of the candidates, in alphabetical order."""
        return sorted({m.models[row] for m in self.measurements for row in m.candidate.nonzero()[0]})


@dataclass(frozen=True, eq=False, kw_only=True)
class JudgedCampaign(MeasuredCampaign):
    """A measured campaign with the verdicts of its criterion, problem by problem in the order of the measurements.

    Estimates and warnings are computed when they are read first, and kept.
    """

    name: str  # of the criterion, as tables and warnings show it
    verdicts: Sequence[Verdicts]
    k: int = 1  # of pass@k
    engine: Engine = AUTO
    chosen: frozenset[str] | None = None  # the models whose programs were judged; None for all

    @cached_property
    def estimates(self) -> Sequence[Estimate]:
        """pass@k of each model, in alphabetical order."""
        return estimate(self.verdicts, self.measurements, self.k)

    @property
    def estimate_rows(self) -> list[dict[str, Any]]:
        """The estimates as plain rows: each with its bound, its 95% interval in [0, 1] and the method that gave it."""
        return [asdict(row) for row in self.estimates]

    @cached_property
    def warnings(self) -> tuple[str, ...]:
        """What to be wary of: too few references for tau, limits above what was run, values outside a calibration."""
        sizes = np.concatenate([v.pool_size[v.candidate] for v in self.verdicts])
        return tuple(w for w in (resolution_warning(sizes, self.criterion), *self.limit_warnings) if w)

    @cached_property
    def limit_warnings(self) -> tuple[str, ...]:
        """The same without the number of references."""
        return warnings_of(self.measurements, {self.name: self.criterion}, self.fit)

    def of(self, problem: str) -> tuple[ProblemMeasurements, Verdicts]:
        """The measurements and the verdicts of one problem; KeyError when the campaign has none of that id."""
        return {m.problem: (m, v) for m, v in zip(self.measurements, self.verdicts, strict=True)}[problem]

    def at(self, tau: str) -> "JudgedCampaign":
        """The same campaign judged at another tau; cheap where the evaluations were kept."""
        criterion = replace(self.criterion, tau=tau)
        kept = [v.details_from.evaluation for v in self.verdicts]
        if any(evaluation is None for evaluation in kept):
            verdicts = self.engine.judge(self.measurements, criterion)
        else:
            pairs = zip(self.measurements, kept, strict=True)
            verdicts = [decide(m, criterion, evaluation) for m, evaluation in pairs if evaluation is not None]
        return replace(self, criterion=criterion, verdicts=verdicts)

    def under(self, criterion: Criterion, name: str) -> "JudgedCampaign":
        """The same facts, with the same calibration, judged under another criterion."""
        return judge_snapshot(
            self.snapshot, criterion, self.calibration, name=name, k=self.k, engine=self.engine, models=self.chosen
        )


def judge_campaign(
    questions: Questions,
    campaign: Snapshot | str | None,
    criterion: Criterion,
    *,
    name: str = "",
    source: str | None = None,
    k: int = 1,
    engine: Engine = AUTO,
    on_progress: Callable[[int], object] = nothing,
    criteria: int = 1,
    models: Collection[str] | None = None,
) -> JudgedCampaign:
    """One campaign judged under one criterion, at the cut of `questions`.

    `campaign` is its id, None for the only one or `main`, or its loaded snapshot, which several criteria may share.
    `name` is what tables call the criterion. `source` names the campaign that the calibration comes from, for a
    criterion that asks for one; `k` is that of pass@k; `engine` says who judges, which changes no verdict;
    `on_progress` gets the number of problems that each step has judged; `criteria` is how many will be put to the
    snapshot in all, by which an engine is chosen; `models` are those whose programs are judged, None for all.

    UserError where there is no such campaign or no usable calibration; ReplayError for what the engine refuses.
    """
    snapshot = campaign if isinstance(campaign, Snapshot) else load(questions, campaign)
    calibration = find_calibration(questions, snapshot.name, criterion, source=source)
    return judge_snapshot(
        snapshot,
        criterion,
        calibration,
        name=name,
        k=k,
        engine=engine,
        on_progress=on_progress,
        criteria=criteria,
        models=models,
    )


def judge_snapshot(
    snapshot: Snapshot,
    criterion: Criterion,
    calibration: Calibration | None = None,
    *,
    name: str = "",
    k: int = 1,
    engine: Engine = AUTO,
    on_progress: Callable[[int], object] = nothing,
    keep: bool = False,
    criteria: int = 1,
    models: Collection[str] | None = None,
) -> JudgedCampaign:
    """A snapshot judged under a criterion with a calibration that was found before; see `judge_campaign`.

    With `keep` numpy keeps what does not depend on tau, so that `JudgedCampaign.at` is cheap; it takes memory.
    """
    measurements = of_models(prepare(snapshot, criterion, calibration), models)
    verdicts = engine.judge(measurements, criterion, on_progress, keep=keep, criteria=criteria)
    chosen = None if models is None else frozenset(models)
    return JudgedCampaign(
        snapshot, criterion, calibration, measurements, name=name, verdicts=verdicts, k=k, engine=engine, chosen=chosen
    )


def measure_campaign(
    questions: Questions, campaign: Snapshot | str | None, criterion: Criterion, *, source: str | None = None
) -> MeasuredCampaign:
    """One campaign as a criterion reads it, for studies that put many criteria to it; errors as `judge_campaign`."""
    snapshot = campaign if isinstance(campaign, Snapshot) else load(questions, campaign)
    calibration = find_calibration(questions, snapshot.name, criterion, source=source)
    return MeasuredCampaign(snapshot, criterion, calibration, prepare(snapshot, criterion, calibration))


def prepare(
    snapshot: Snapshot, criterion: Criterion, calibration: Calibration | None = None
) -> list[ProblemMeasurements]:
    """The measurements of every problem as a criterion reads them: see `prepare_problem`."""
    return [prepare_problem(snapshot, m, criterion, calibration) for m in snapshot.problems]


def prepare_problem(
    snapshot: Snapshot, m: ProblemMeasurements, criterion: Criterion, calibration: Calibration | None = None
) -> ProblemMeasurements:
    """A problem with the stored references that the calibration adds, under its own limits and with programs'
    interfaces where the criterion asks for them."""
    if calibration is not None:
        stored = {problem.problem: problem for problem in calibration.stored.problems}
        m = with_stored(m, stored[m.problem], calibration.fit) if m.problem in stored else m
    lookups = snapshot.lookups
    if criterion.own_limits == "enforced":
        m = enforce(m, NO_LIMITS if lookups is None else lookups.limits(m.problem))
    if criterion.interface == "ignored" or lookups is None:
        return m
    return replace(m, interface=lookups.interfaces(m))
