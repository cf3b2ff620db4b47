"""Figures that every bench prints alike: a row, its line of text, a clock around a call. Nothing is measured here."""

import sys
import time
from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Row:
    """One figure. `ratio` is how many times better than the baseline it is, `reach` what it is meant to be."""

    name: str
    value: float
    unit: str
    baseline: float | None = None
    ratio: float | None = None
    reach: float | None = None
    reached: bool | None = None


def row(
    name: str, value: float, unit: str = "events/s", *, baseline: float | None = None, reach: float | None = None
) -> Row:
    """A figure beside its baseline; of seconds and MB less is better, of rates and of times more."""
    more = unit.endswith("/s") or unit == "times"
    ratio = None if baseline is None else value / baseline if more else baseline / value
    reached = None if reach is None else value >= reach if more else value <= reach
    return Row(name, value, unit, baseline, ratio, reach, reached)


def say(words: str) -> None:
    """Talk goes to stderr."""
    print(words, file=sys.stderr, flush=True)


def text(made: Row) -> str:
    """A figure in a line."""
    beside = "" if made.baseline is None else f"  baseline {made.baseline:12,.2f}  x {made.ratio:8.1f}"
    aim = "" if made.reach is None else f"  reach {_short(made.reach):>12} {'reached' if made.reached else 'missed'}"
    return f"{made.name:44} {_short(made.value):>14} {made.unit:8}{beside}{aim}"


def _short(value: float) -> str:
    return f"{value:,.2f}" if value >= 1 else f"{value:.4g}"


def timed(call: Callable[[], object]) -> float:
    """Seconds that a call takes."""
    start = time.perf_counter()
    call()
    return time.perf_counter() - start
