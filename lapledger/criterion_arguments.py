"""The criterion of a call of the Python API: a preset, a TOML file or a `Criterion`, with keys overridden."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from os import PathLike, fspath
from typing import Any

from lapledger.cli.axes import durations_ns
from lapledger.cli.criterion_options import read_criterion
from lapledger.ledger.errors import UserError
from lapledger.replay.criteria import NS_PER_MS, Criterion
from lapledger.replay.fields import FIELDS


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
