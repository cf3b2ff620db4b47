"""What the commands that ask many questions share: their options, one campaign read once, and its criteria."""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import wraps
from typing import TYPE_CHECKING, Any

import click

from lapledger.cli.engine_options import engine_options
from lapledger.cli.options import (
    at_option,
    campaign_option,
    escape_option,
    from_option,
    json_option,
    ledger_option,
    out_option,
)
from lapledger.ledger.errors import UserError
from lapledger.ledger.questions.open_questions import open_questions
from lapledger.render.pictures import Outputs
from lapledger.replay.criteria import Criterion
from lapledger.replay.engines import AUTO, Engine
from lapledger.replay.measurements import of_models
from lapledger.replay.studies.warnings import AS_GIVEN, Variants, tau_warning, warnings_of
from lapledger.settings import read_settings
from lapledger.workflows.analysis.criterion_arguments import read_criterion

if TYPE_CHECKING:
    from lapledger.ledger.questions.queries import Questions
    from lapledger.replay.loading import MeasuredCampaign

Command = Callable[..., Any]


@dataclass(frozen=True, slots=True)
class Study:
    """Where a study reads, and what it writes beside its table."""

    outputs: Outputs
    campaign: str | None
    ledger: str | None
    at: str | None
    as_json: bool
    source: str | None = None
    engine: Engine = AUTO

    @contextmanager
    def open_questions(self) -> "Iterator[Questions]":
        """Questions to the ledger at the cut that is asked for."""
        with open_questions(read_settings(ledger=self.ledger).location, self.at) as questions:
            yield questions

    def measure(self, questions: "Questions", criterion: Criterion) -> "MeasuredCampaign":
        """The campaign as the criterion reads it; UserError where its calibration is not stored."""
        from lapledger.replay.loading import measure_campaign

        return measure_campaign(questions, self.campaign, criterion, source=self.source)

    def measure_plainly(self, questions: "Questions", criteria: Mapping[str, Criterion]) -> "MeasuredCampaign":
        """The campaign without a calibration, for criteria that agree on a problem's own limits."""
        return self.measure(questions, Criterion(own_limits=next(iter(criteria.values())).own_limits))


def study_options(*, calibrated: bool, device: bool = True) -> Callable[[Command], Command]:
    """Adds --out, --exact, --campaign, --ledger, --at, --json, the engine; where `calibrated` --calibration-from.

    They reach the command together as `study`. What --out names is looked at before anything is read, and a device is
    refused where the study counts in machine code.
    """
    options = [out_option, escape_option, campaign_option, ledger_option, at_option, json_option]
    options = [from_option, *options] if calibrated else options

    def decorate(function: Command) -> Command:
        @wraps(function)
        def with_study(*args: Any, outs: tuple[str, ...], escape_formulas: bool, **rest: Any) -> Any:
            flags = {name: rest.pop(name) for name in ("campaign", "ledger", "at", "as_json", "engine")}
            outputs = Outputs.of(outs, escape_formulas=escape_formulas)
            study = Study(outputs, **flags, source=rest.pop("source", None))
            return function(*args, study=study, **rest)

        for option in reversed(options):
            with_study = option(with_study)
        return engine_options(with_study, device=device)

    return decorate


def tau_option(default: str) -> Callable[[Command], Command]:
    """Adds --tau, a list of percents."""
    return click.option("--tau", default=default, metavar="LIST", help=f"Whole percents.  [default: {default}]")


def scale_options(alpha: tuple[str, str], beta: tuple[str, str]) -> Callable[[Command], Command]:
    """Adds --alpha and --beta, which scale the references; each with its default and its help."""

    def decorate(function: Command) -> Command:
        function = click.option("--beta", default=beta[0], metavar="LIST", help=beta[1])(function)
        return click.option("--alpha", default=alpha[0], metavar="LIST", help=alpha[1])(function)

    return decorate


def title_of(measured: "MeasuredCampaign") -> str:
    """The campaign and its size, as the title of a table or a picture."""
    count = len(measured.measurements)
    return f"campaign {measured.campaign}: {count} {'problem' if count == 1 else 'problems'}"


def study_warnings(
    measured: "MeasuredCampaign",
    criteria: Mapping[str, Criterion],
    models: Collection[str] | None = None,
    variants: Variants = AS_GIVEN,
) -> tuple[str, ...]:
    """What to be wary of under some criteria at some places, in the programs of some models: see `warnings_of`."""
    ignored = [tau_warning(criterion, variants.taus) for criterion in criteria.values()]
    warnings = warnings_of(of_models(measured.measurements, models), criteria, measured.fit, variants)
    return tuple(dict.fromkeys((*(warning for warning in ignored if warning), *warnings)))


def named_criteria(names: Sequence[str], default: Sequence[tuple[str, Criterion]]) -> dict[str, Criterion]:
    """The criteria that words name (presets and files), or the default ones, by name, each once.

    UserError when two differ under one name, or when one asks for a calibration: these tables compare one pool.
    """
    criteria_by_name: dict[str, Criterion] = {}
    for name, criterion in [read_criterion(name, {}) for name in names] or default:
        if criteria_by_name.setdefault(name, criterion) != criterion:
            raise UserError(f"--criterion {name}: two criteria have this name; rename one of the files")
        if criterion.calibration != "none":
            raise UserError(f"--criterion {name}: it asks for a calibration; use `lap replay` or `lap sweep` for it")
    return criteria_by_name


def about(measured: "MeasuredCampaign", name: str, criterion: Criterion) -> dict[str, Any]:
    """What JSON says first of a study of one criterion."""
    return {
        "cut": measured.cut,
        "campaign": measured.campaign,
        "criterion": name,
        "hash": criterion.hash,
        "calibration": measured.calibration_id,
    }


def small_print(measured: "MeasuredCampaign", criteria: Sequence[tuple[str, Criterion]], more: str = "") -> str:
    """The words below a picture: cut, then the hash of every criterion."""
    hashes = ", ".join(f"{name} {criterion.hash[:12]}" for name, criterion in criteria)
    calibrated = f", calibration {measured.calibration_id[:12]}" if measured.calibration_id else ""
    noun = "criterion" if len(criteria) == 1 else "criteria"
    return f"cut {measured.cut}{calibrated}{'; ' if more else ''}{more}\n{noun} {hashes}"
