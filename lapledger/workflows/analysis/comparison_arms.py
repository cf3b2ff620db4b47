"""The two arms of a comparison: which training runs a pattern names, and the judged campaign of each arm.

Programs of two campaigns meet only here, and only through a stored calibration that is named.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

from lapledger.ledger.errors import UserError
from lapledger.replay.criteria import Criterion
from lapledger.replay.engines import AUTO, Engine
from lapledger.replay.loading import (
    Calibration,
    JudgedCampaign,
    Snapshot,
    find_calibration,
    judge_snapshot,
    load,
)
from lapledger.replay.studies.models import find_runs
from lapledger.workflows.reporter import LOGGING, Reporter

if TYPE_CHECKING:
    from lapledger.ledger.questions.queries import Questions

DECLARED = ("model", "data", "environment", "reward")
"""What a declared training run may be named by, as `reward=collapsed-binary`."""


@dataclass(frozen=True, slots=True, eq=False)
class Arm:
    """The training runs that a pattern named, in their campaign."""

    pattern: str
    runs: tuple[str, ...]
    judged: JudgedCampaign

    @property
    def campaign(self) -> str:
        """The campaign's id."""
        return self.judged.campaign


@dataclass(frozen=True, slots=True, eq=False)
class Arms:
    """Both arms, and the calibration through which their campaigns are compared; None without one."""

    a: Arm
    b: Arm
    calibration: Calibration | None
    through: str  # the calibration as text; empty without one

    @property
    def one_campaign(self) -> bool:
        """Whether durations of the two arms may be compared as they are."""
        return self.a.campaign == self.b.campaign


def find_arms(
    questions: "Questions",
    patterns: tuple[str, str],
    campaigns: tuple[str | None, str | None],
    criterion: Criterion,
    *,
    source: str | None = None,
    engine: Engine = AUTO,
    criteria: int = 1,
    reporter: Reporter = LOGGING,
) -> Arms:
    """Both arms judged: of one campaign by one pool, of two campaigns each in its own, where a calibration allows it.

    `criteria` is how many will be put to them in all.

    UserError where a pattern names nobody, or where two campaigns have no usable calibration from one into the other.
    """
    judged_under = partial(_judge, engine=engine, criteria=criteria, reporter=reporter)
    first = load(questions, campaigns[0])
    if campaigns[1] in (None, first.name):
        calibration = find_calibration(questions, first.name, criterion, source=source)
        judged = judged_under(first, criterion, calibration)
        a, b = (Arm(pattern, runs_of(questions, judged.models, pattern), judged) for pattern in patterns)
        return Arms(a, b, calibration, _through(calibration, "stored references joined the pool"))
    second = load(questions, campaigns[1])
    target, calibration = _calibration_between(questions, (first.name, second.name), criterion)
    plain = replace(criterion, calibration="none")
    both = [
        judged_under(label, criterion, calibration) if label.name == target else judged_under(label, plain, None)
        for label in (first, second)
    ]
    a, b = (
        Arm(pattern, runs_of(questions, judged.models, pattern), judged)
        for pattern, judged in zip(patterns, both, strict=True)
    )
    return Arms(a, b, calibration, _through(calibration, "two campaigns meet"))


def _calibration_between(
    questions: "Questions", names: tuple[str, str], criterion: Criterion
) -> tuple[str, Calibration]:
    """(the campaign that is mapped into, the calibration) of two campaigns; either direction will do."""
    a, b = names
    rule = f"programs of campaigns {a} and {b} meet only through a named calibration"
    if criterion.calibration == "none":
        raise UserError(f"{rule}: fit one with `lap calibrate --from {b} --to {a}`, then add --calibration affine")
    reasons = []
    for target, source in ((a, b), (b, a)):
        try:
            calibration = find_calibration(questions, target, criterion, source=source)
        except UserError as error:
            reasons.append(str(error))
            continue
        if calibration is not None:
            return target, calibration
    raise UserError(f"{rule}, and none is usable: {reasons[0]}")


def _through(calibration: Calibration | None, what: str) -> str:
    if calibration is None:
        return ""
    fit = calibration.fit
    return f"{what} through calibration {calibration.calibration_id[:12]} ({fit.kind}) from {calibration.stored.name}"


def _judge(
    snapshot: Snapshot,
    criterion: Criterion,
    calibration: Calibration | None,
    *,
    engine: Engine,
    criteria: int,
    reporter: Reporter,
) -> JudgedCampaign:
    with reporter.progress(f"judging {snapshot.name}", len(snapshot.problems)) as bar:
        return judge_snapshot(
            snapshot,
            criterion,
            calibration,
            engine=engine,
            on_progress=bar.advance,
            keep=True,
            criteria=criteria,
        )


def runs_of(questions: "Questions", models: Sequence[str], pattern: str) -> tuple[str, ...]:
    """The models that a pattern names: a model, `rlvr-*` or `rlvr-{seed}`, or declared runs such as `reward=collapsed`.

    Of a declared run the model called like it counts, or its last checkpoint, `RUN-STEP`. UserError or ReplayError
    where there is none.
    """
    if pattern in models:
        return (pattern,)
    name, _, value = pattern.partition("=")
    if not value or name not in DECLARED:
        return _models(models, pattern)
    runs: list[str] = []
    for training in _declared(questions, name, value):
        if training in models:
            runs.append(training)
        elif any(model.startswith(training) for model in models):
            runs += _models(models, f"{training}*{{step}}")
    if not runs:
        raise UserError(
            f"no program here is of a training run declared with {pattern}; the models are {', '.join(models)}"
        )
    return tuple(dict.fromkeys(runs))


def _models(models: Sequence[str], pattern: str) -> tuple[str, ...]:
    """The models that match a pattern, each one training run; repetitions named by `{seed}` among them."""
    return tuple(model for matching in find_runs(models, [pattern]).values() for model in matching)


def _declared(questions: "Questions", name: str, value: str) -> list[str]:
    """The training runs that were declared with a value."""
    rows: Sequence[Mapping[str, str]] = questions.rows("SELECT * FROM training_declared ORDER BY training_id")
    return list(dict.fromkeys(row["training_id"] for row in rows if row[name] == value))
