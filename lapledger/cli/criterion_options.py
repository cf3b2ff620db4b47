"""How a person names a criterion: a preset, a TOML file, and flags that override single fields."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

import click

from lapledger.ledger.errors import UserError
from lapledger.replay.criteria import PRESETS, Criterion, describe, preset
from lapledger.replay.fields import FieldDoc

F = TypeVar("F", bound=Callable[..., Any])

FLAGS = tuple(field.name for field in describe() if field.name != "tau")
"""The keys of a criterion that have a flag of their own; tau is taken by each command in its own way."""
WIDEST = 44
"""Words that are longer than this together are not spelled out in a command's help."""


def criterion_options(function: F) -> F:
    """Adds --criterion and one flag for each of its keys but tau."""
    fields = {field.name: field for field in describe()}
    for name in reversed(FLAGS):
        field = fields[name]
        kind = click.INT if field.allowed.startswith("a whole number") else click.STRING
        flag = f"--{name.replace('_', '-')}"
        function = click.option(flag, name, type=kind, default=None, metavar=_metavar(field))(function)
    text = f"A TOML file or a preset: {', '.join(PRESETS)}. Flags override single keys: docs/criteria.md."
    return click.option("--criterion", "word", default=None, metavar="NAME|FILE", help=text)(function)


def _metavar(field: FieldDoc) -> str:
    if " | " not in field.allowed:
        return "N" if field.allowed.startswith("a whole number") else "NUMBER"
    words = field.allowed.replace(" ", "")
    return words if len(words) <= WIDEST else "WORD"


def read_criterion(word: str | None, overrides: Mapping[str, Any]) -> tuple[str, Criterion]:
    """(name, criterion) of a preset or a TOML file, with overrides that are None left out; UserError or ReplayError."""
    name, criterion = _named(word)
    given = {key: value for key, value in overrides.items() if value is not None}
    if not given:
        return name, criterion
    if word is None and set(given) == {"tau"}:
        return f"p_{given['tau']}", replace(criterion, **given)
    return f"{name}+{'+'.join(f'{key}={value}' for key, value in sorted(given.items()))}", replace(criterion, **given)


def refuse_source(source: str | None, criteria: Iterable[Criterion]) -> None:
    """Nothing; UserError where --from names the campaign of a calibration that none of the criteria asks for."""
    if source is not None and all(criterion.calibration == "none" for criterion in criteria):
        raise UserError(f"--from {source}: no criterion here asks for a calibration; add one, or leave --from out")


def _named(word: str | None) -> tuple[str, Criterion]:
    if word is None:
        return "correct", preset("correct")
    path = Path(word)
    if word.endswith(".toml") or path.is_file():
        try:
            return path.stem, Criterion.from_toml(path.read_text())
        except (OSError, UnicodeDecodeError) as error:
            raise UserError(
                f"criterion file {word}: {getattr(error, 'strerror', None) or error}; give a TOML file"
            ) from None
    return word, preset(word)
