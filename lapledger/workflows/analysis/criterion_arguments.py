"""The criterion that a caller names: a preset, a TOML file or a `Criterion`, with keys overridden."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from os import PathLike, fspath
from pathlib import Path
from typing import Any

from lapledger.ledger.errors import UserError
from lapledger.replay.criteria import NS_PER_MS, Criterion, preset
from lapledger.replay.fields import FIELDS
from lapledger.workflows.analysis.axes import durations_ns

MAX_FILE_BYTES = 64 << 10
"""The largest criterion file; one of every key has less than 2 KiB."""


def read_criterion(source: str | None, overrides: Mapping[str, Any]) -> tuple[str, Criterion]:
    """(name, criterion) of a preset or a TOML file with some keys overridden; UserError or ReplayError."""
    name, criterion = _named(source)
    if not overrides:
        return name, criterion
    overridden = replace(criterion, **overrides)
    if source is None and set(overrides) == {"tau"}:
        return f"p_{overrides['tau']}", overridden
    return f"{name}+{'+'.join(f'{key}={value}' for key, value in sorted(overrides.items()))}", overridden


def named_criterion(
    criterion: str | PathLike[str] | Criterion | None, keys: Mapping[str, Any], timeout: str | float | None
) -> tuple[str, Criterion]:
    """(name, criterion) with the keys that are not None, and a timeout in seconds or as text, overridden.

    UserError for an unknown key; UserError or ReplayError for an unknown preset, a file that cannot be read, a value
    that is not allowed, or keys that contradict each other.
    """
    overrides: dict[str, Any] = {key: _text(value) for key, value in keys.items() if value is not None}
    for key in overrides:
        if key not in FIELDS:
            raise UserError(f"no criterion key {key!r}; `lap criteria` lists all keys")
    if timeout is not None:
        overrides["timeout_ms"] = _milliseconds(timeout)
    if isinstance(criterion, Criterion):
        return criterion.hash[:12], replace(criterion, **overrides)
    return read_criterion(None if criterion is None else fspath(criterion), overrides)


def tau_texts(tau: str | float | Sequence[str | float]) -> list[str]:
    """The thresholds as texts, as criteria have them."""
    values = [tau] if isinstance(tau, str | int | float) else tau
    return [str(value) for value in values]


def _text(value: object) -> object:
    """A float as its decimal text, which criteria read exactly."""
    return str(value) if isinstance(value, float) else value


def _milliseconds(timeout: str | float) -> int:
    if isinstance(timeout, float) and not math.isfinite(timeout):
        raise UserError(f"timeout {timeout}: give a finite number of seconds, such as 0.5")
    ns = durations_ns("timeout", timeout)[0] if isinstance(timeout, str) else int(Fraction(str(timeout)) * 10**9)
    if ns % NS_PER_MS:
        raise UserError(f"timeout {timeout}: give whole milliseconds, such as 0.5 or '500ms'")
    return ns // NS_PER_MS


def _named(source: str | None) -> tuple[str, Criterion]:
    if source is None:
        return "correct", preset("correct")
    path = Path(source)
    if source.endswith(".toml") or path.is_file():
        try:
            if path.stat().st_size > MAX_FILE_BYTES:
                raise UserError(f"criterion file {source}: more than {MAX_FILE_BYTES >> 10} KiB; give a file of keys")
            return path.stem, Criterion.from_toml(path.read_text())
        except (OSError, UnicodeDecodeError) as error:
            raise UserError(
                f"criterion file {source}: {getattr(error, 'strerror', None) or error}; give a TOML file"
            ) from None
    return source, preset(source)
