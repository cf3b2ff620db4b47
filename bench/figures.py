"""Figures that every bench prints alike: a row, its line of text, a clock around a call. Nothing is measured here."""

import json
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from importlib.util import cache_from_source
from pathlib import Path

import numpy as np

from lapledger.replay import criteria


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


def log(message: str) -> None:
    """Talk goes to stderr."""
    print(message, file=sys.stderr, flush=True)


def text(made: Row) -> str:
    """A figure in a line."""
    beside = "" if made.baseline is None else f"  baseline {made.baseline:12,.2f}  x {made.ratio:8.1f}"
    aim = "" if made.reach is None else f"  reach {_short(made.reach):>12} {'reached' if made.reached else 'missed'}"
    return f"{made.name:44} {_short(made.value):>14} {made.unit:8}{beside}{aim}"


def printed(rows: Sequence[Row], *, as_json: bool) -> str:
    """All figures as JSON or as a table, and whether the processes that were measured loaded compiled bytecode."""
    compiled = has_bytecode()
    if as_json:
        return json.dumps({"rows": [asdict(made) for made in rows], "bytecode": compiled})
    note = "yes" if compiled else "no: figures from exec hold the time that it takes to compile every module"
    return "\n".join([*map(text, rows), f"compiled bytecode: {note}"])


def has_bytecode() -> bool:
    """Whether lapledger and what it imports lie there compiled, as in an environment that is used for some time."""
    files = (criteria.__file__, np.__file__)
    return all(Path(cache_from_source(str(Path(file).resolve()))).exists() for file in files if file)


def _short(value: float) -> str:
    return f"{value:,.2f}" if value >= 1 else f"{value:.4g}"


def timed(call: Callable[[], object]) -> float:
    """Seconds that a call takes."""
    start = time.perf_counter()
    call()
    return time.perf_counter() - start
