"""The two sides of a comparison: which training runs a word names, and how each side's campaign was judged.

Programs of two campaigns meet only here, and only through a stored calibration that is named.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from lapledger.cli.engine_options import NUMPY, How, judged
from lapledger.ledger.errors import UserError
from lapledger.render.output import progress
from lapledger.replay.criteria import Criterion
from lapledger.replay.judging.context import Weighed, combine, weigh_all
from lapledger.replay.judging.gates import Verdicts, decide
from lapledger.replay.loading import Calibration, Snapshot, load, prepared
from lapledger.replay.measurements import ProblemMeasurements
from lapledger.replay.studies.models import find_runs

if TYPE_CHECKING:
    from lapledger.ledger.questions.queries import Questions

DECLARED = ("model", "data", "environment", "reward")
"""What a declared training run may be named by, as `reward=collapsed-binary`."""


@dataclass(frozen=True, slots=True, eq=False)
class Judged:
    """One campaign judged under a criterion. Weighed once here, another tau costs almost nothing."""

    snapshot: Snapshot
    criterion: Criterion
    measured: Sequence[ProblemMeasurements]
    weighed: Sequence[Weighed]  # none where a device or a cluster judges: it is asked at every tau
    verdicts: Sequence[Verdicts]
    how: How = NUMPY

    def at(self, tau: str) -> list[Verdicts]:
        """The verdicts at another tau."""
        other = replace(self.criterion, tau=tau)
        if self.how != NUMPY:
            return judged(self.measured, other, self.how)
        return [
            replace(v, status=combine(w.c, w.gate(other)), criterion=other.hash)
            for v, w in zip(self.verdicts, self.weighed, strict=True)
        ]

    @property
    def models(self) -> list[str]:
        """Who made the candidates, in alphabetical order."""
        return sorted({m.models[row] for m in self.measured for row in m.candidate.nonzero()[0]})


@dataclass(frozen=True, slots=True, eq=False)
class Side:
    """The training runs that a word named, in their campaign."""

    word: str
    runs: tuple[str, ...]
    judged: Judged

    @property
    def campaign(self) -> str:
        """The campaign's id."""
        return self.judged.snapshot.name


@dataclass(frozen=True, slots=True, eq=False)
class Sides:
    """Both sides, and the calibration through which their campaigns meet; None within one campaign."""

    a: Side
    b: Side
    calibration: Calibration | None
    through: str  # in words

    @property
    def one_campaign(self) -> bool:
        """Whether durations of the two sides may be compared as they are."""
        return self.a.campaign == self.b.campaign


def find_sides(
    questions: "Questions",
    words: tuple[str, str],
    campaigns: tuple[str | None, str | None],
    criterion: Criterion,
    *,
    source: str | None = None,
    how: How = NUMPY,
) -> Sides:
    """Both sides judged. Within one campaign by one pool; of two campaigns each in its own, where a calibration allows.

    UserError where a word names nobody, or where two campaigns have no usable calibration from one into the other.
    """
    from lapledger.consumers.derive.calibrator import find_calibration

    first = load(questions, campaigns[0])
    if campaigns[1] in (None, first.name):
        calibration = find_calibration(questions, first.name, criterion, source=source)
        one = _judge(first, (criterion, calibration), how)
        sides = [Side(word, runs_of(questions, one.models, word), one) for word in words]
        return Sides(sides[0], sides[1], calibration, _told(calibration, "stored references joined the pool"))
    second = load(questions, campaigns[1])
    into, calibration = _meeting(questions, (first.name, second.name), criterion)
    mapped, plain = (criterion, calibration), (replace(criterion, calibration="none"), None)
    both = [_judge(one, mapped if one.name == into else plain, how) for one in (first, second)]
    sides = [Side(word, runs_of(questions, one.models, word), one) for word, one in zip(words, both, strict=True)]
    return Sides(sides[0], sides[1], calibration, _told(calibration, "two campaigns meet"))


def _meeting(questions: "Questions", names: tuple[str, str], criterion: Criterion) -> tuple[str, Calibration]:
    """(the campaign that is mapped into, the calibration) of two campaigns; either direction will do."""
    from lapledger.consumers.derive.calibrator import find_calibration

    one, other = names
    said = f"programs of campaigns {one} and {other} meet only through a named calibration"
    if criterion.calibration == "none":
        raise UserError(
            f"{said}: fit one with `lap calibrate --from {other} --to {one}`, then add --calibration affine"
        )
    reasons = []
    for target, source in ((one, other), (other, one)):
        try:
            found = find_calibration(questions, target, criterion, source=source)
        except UserError as error:
            reasons.append(str(error))
            continue
        if found is not None:
            return target, found
    raise UserError(f"{said}, and none is usable: {reasons[0]}")


def _told(calibration: Calibration | None, what: str) -> str:
    if calibration is None:
        return ""
    fit = calibration.fit
    return f"{what} through calibration {calibration.calibration_id[:12]} ({fit.kind}) from {calibration.stored.name}"


def _judge(snapshot: Snapshot, asked: tuple[Criterion, Calibration | None], how: How) -> Judged:
    criterion, calibration = asked
    measured = [prepared(snapshot, m, criterion, calibration) for m in snapshot.problems]
    if how != NUMPY:
        return Judged(snapshot, criterion, measured, (), judged(measured, criterion, how), how)
    weighed, verdicts = [], []
    with progress(f"judging {snapshot.name}", len(measured)) as bar:
        for m in measured:
            weighed.append(weigh_all(m, criterion))
            verdicts.append(decide(m, criterion, weighed[-1]))
            bar.advance(bar.task_ids[0])
    return Judged(snapshot, criterion, measured, weighed, verdicts)


def runs_of(questions: "Questions", models: Sequence[str], word: str) -> tuple[str, ...]:
    """The models that a word names: a model, `rlvr-*` or `rlvr-{seed}`, or declared runs such as `reward=collapsed`.

    Of a declared run the model called like it counts, or its last checkpoint, `RUN-STEP`. UserError or ReplayError
    where there is none.
    """
    if word in models:
        return (word,)
    name, _, value = word.partition("=")
    if not value or name not in DECLARED:
        return _models(models, word)
    found: list[str] = []
    for training in _declared(questions, name, value):
        if training in models:
            found.append(training)
        elif any(model.startswith(training) for model in models):
            found += _models(models, f"{training}*{{step}}")
    if not found:
        raise UserError(
            f"no program here is of a training run declared with {word}; the models are {', '.join(models)}"
        )
    return tuple(dict.fromkeys(found))


def _models(models: Sequence[str], pattern: str) -> tuple[str, ...]:
    """The models that match a pattern, each one training run; repetitions named by `{seed}` among them."""
    return tuple(model for own in find_runs(models, [pattern]).values() for model in own)


def _declared(questions: "Questions", name: str, value: str) -> list[str]:
    """The training runs that were declared with a value."""
    rows: Sequence[Mapping[str, str]] = questions.rows("SELECT * FROM training_declared ORDER BY training_id")
    return list(dict.fromkeys(row["training_id"] for row in rows if row[name] == value))
