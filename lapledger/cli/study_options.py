"""What the commands that ask many questions share: their options, one campaign read once, and its criteria."""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import numpy as np

from lapledger.cli.criterion_options import read_criterion
from lapledger.cli.engine_options import NUMPY, How, engine_options
from lapledger.ledger.errors import UserError
from lapledger.render.output import at_option, campaign_option, from_option, json_option, ledger_option
from lapledger.render.pictures import endings, out_option
from lapledger.replay.criteria import Criterion
from lapledger.replay.measurements import ProblemMeasurements
from lapledger.replay.studies.warnings import HERE, Places, cautions, tau_warning
from lapledger.settings import read_settings
from lapledger.workflows.session import asking

if TYPE_CHECKING:
    from lapledger.ledger.questions.queries import Questions
    from lapledger.replay.calibration import Fit

Command = Callable[..., Any]


@dataclass(frozen=True, slots=True)
class Study:
    """Where a study reads, and what it writes beside its table."""

    paths: tuple[Path, ...]
    campaign: str | None
    ledger: str | None
    at: str | None
    as_json: bool
    source: str | None = None
    how: How = NUMPY

    @contextmanager
    def asking(self) -> "Iterator[Questions]":
        """Questions to the ledger at the cut that is asked for."""
        with asking(read_settings(ledger=self.ledger).location, self.at) as questions:
            yield questions

    def measured(self, questions: "Questions", criterion: Criterion) -> "Measured":
        """The campaign as the criterion asks for it; UserError where its calibration is not stored."""
        return measured(questions, self.campaign, criterion, self.source)


def study_options(*, calibrated: bool, device: bool = True) -> Callable[[Command], Command]:
    """Adds --out, --campaign, --ledger, --at, --json and who judges, and --from where a calibration may be asked for.

    They reach the command together as `study`. What --out names is looked at before anything is read, and a device is
    refused where the study counts in machine code.
    """
    options = [out_option, campaign_option, ledger_option, at_option, json_option]
    options = [from_option, *options] if calibrated else options

    def decorate(function: Command) -> Command:
        @wraps(function)
        def asked(*args: Any, outs: tuple[str, ...], **rest: Any) -> Any:
            words = {name: rest.pop(name) for name in ("campaign", "ledger", "at", "as_json")}
            source, how = rest.pop("source", None), rest.pop("how")
            if not device:
                how.refuse_device("a grid of replays is counted in machine code or by numpy")
            return function(*args, study=Study(tuple(endings(outs)), **words, source=source, how=how), **rest)

        for option in reversed(options):
            asked = option(asked)
        return engine_options(asked, device=device)

    return decorate


def tau_option(default: str) -> Callable[[Command], Command]:
    """Adds --tau, a list of percents."""
    return click.option("--tau", default=default, metavar="LIST", help=f"Whole percents.  [default: {default}]")


seed_option = click.option("--seed", default=0, type=click.IntRange(0), help="Of the bootstrap of gains.  [default: 0]")


def scale_options(alpha: tuple[str, str], beta: tuple[str, str]) -> Callable[[Command], Command]:
    """Adds --alpha and --beta, which scale the references; each with its default and its help."""

    def decorate(function: Command) -> Command:
        function = click.option("--beta", default=beta[0], metavar="LIST", help=beta[1])(function)
        return click.option("--alpha", default=alpha[0], metavar="LIST", help=alpha[1])(function)

    return decorate


@dataclass(frozen=True, slots=True, eq=False)
class Measured:
    """One campaign at one cut, with the stored references that a calibration adds."""

    campaign: str
    cut: str
    problems: Sequence[ProblemMeasurements]
    calibration: str  # its id; empty without one
    fit: "Fit | None" = None  # the map of that calibration

    @property
    def models(self) -> list[str]:
        """Who made the candidates, in alphabetical order."""
        return sorted({m.models[row] for m in self.problems for row in m.candidate.nonzero()[0]})

    @property
    def title(self) -> str:
        """The campaign and its size in words."""
        count = len(self.problems)
        return f"campaign {self.campaign}: {count} {'problem' if count == 1 else 'problems'}"

    def warnings(
        self, criteria: Mapping[str, Criterion], models: Collection[str] | None = None, places: Places = HERE
    ) -> tuple[str, ...]:
        """What to be wary of under some criteria at some places, in the programs of some models: see `cautions`."""
        ignored = [tau_warning(criterion, places.taus) for criterion in criteria.values()]
        said = cautions(of_models(self.problems, models), criteria, self.fit, places)
        return tuple(dict.fromkeys((*(one for one in ignored if one), *said)))


def of_models(problems: Sequence[ProblemMeasurements], models: Collection[str] | None) -> Sequence[ProblemMeasurements]:
    """The measurements with the programs of these models alone as candidates."""
    if models is None:
        return problems
    named = [np.array([by in models for by in m.models], dtype=np.bool_) for m in problems]
    return [replace(m, candidate=m.candidate & mine) for m, mine in zip(problems, named, strict=True)]


def measured(questions: "Questions", campaign: str | None, criterion: Criterion, source: str | None = None) -> Measured:
    """The measurements for a criterion, its pool calibrated where it asks so; UserError where that is not stored."""
    from lapledger.consumers.derive.calibrator import find_calibration
    from lapledger.replay.loading import load, prepared

    snapshot = load(questions, campaign)
    found = find_calibration(questions, snapshot.name, criterion, source=source)
    problems = [prepared(snapshot, m, criterion, found) for m in snapshot.problems]
    through = ("", None) if found is None else (found.calibration_id, found.fit)
    return Measured(snapshot.name, snapshot.cut, problems, *through)


def named_criteria(words: Sequence[str], default: Sequence[tuple[str, Criterion]]) -> dict[str, Criterion]:
    """The criteria that words name (presets and files), or the default ones, by name, each once.

    UserError when two differ under one name, or when one asks for a calibration: these tables compare one pool.
    """
    found: dict[str, Criterion] = {}
    for name, criterion in [read_criterion(word, {}) for word in words] or default:
        if found.setdefault(name, criterion) != criterion:
            raise UserError(f"--criterion {name}: two criteria have this name; rename one of the files")
        if criterion.calibration != "none":
            raise UserError(f"--criterion {name}: it asks for a calibration; use `lap replay` or `lap sweep` for it")
    return found


def about(found: Measured, name: str, criterion: Criterion) -> dict[str, Any]:
    """What JSON says first of a study of one criterion."""
    return {
        "cut": found.cut,
        "campaign": found.campaign,
        "criterion": name,
        "hash": criterion.hash,
        "calibration": found.calibration or None,
    }


def small_print(found: Measured, criteria: Sequence[tuple[str, Criterion]], more: str = "") -> str:
    """The words below a picture: cut, then the hash of every criterion."""
    hashes = ", ".join(f"{name} {criterion.hash[:12]}" for name, criterion in criteria)
    calibrated = f", calibration {found.calibration[:12]}" if found.calibration else ""
    word = "criterion" if len(criteria) == 1 else "criteria"
    return f"cut {found.cut}{calibrated}{'; ' if more else ''}{more}\n{word} {hashes}"
