"""How a person names a criterion: a preset, a TOML file, and flags that override single fields."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

import click

from ledger.errors import UserError
from replay.criteria import PRESETS, Criterion, preset

F = TypeVar("F", bound=Callable[..., Any])

FLAGS = ("reading", "correctness", "timeouts", "timeout_ms", "clock", "estimator", "startup", "calibration", "missing")


def criterion_options(function: F) -> F:
    """Adds --criterion and one flag for each of its fields but tau, which commands take in their own way."""
    for name in reversed(FLAGS):
        kind = click.INT if name == "timeout_ms" else click.STRING
        option = click.option(f"--{name.replace('_', '-')}", name, type=kind, default=None, metavar=name.upper())
        function = option(function)
    text = f"A TOML file or a preset: {', '.join(PRESETS)}."
    return click.option("--criterion", "word", default=None, metavar="NAME|FILE", help=text)(function)


def read_criterion(word: str | None, overrides: Mapping[str, Any]) -> tuple[str, Criterion]:
    """(name, criterion) of a preset or a TOML file, with overrides that are None left out; UserError or ReplayError."""
    name, criterion = _named(word)
    given = {key: value for key, value in overrides.items() if value is not None}
    if not given:
        return name, criterion
    return f"{name}+{'+'.join(f'{key}={value}' for key, value in sorted(given.items()))}", replace(criterion, **given)


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
