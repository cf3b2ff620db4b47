"""Axes as a person writes them: `100,50,30`, `0.8:1.2:0.1`, `0.5s,2s`, brought to exact numbers.

A range names its first value, its last and its step, and has both ends. Nothing is replayed here.
"""

import re
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import TypeVar

from lapledger.ledger.errors import UserError

T = TypeVar("T")
MOST_VALUES = 1000
UNITS_NS = {"ns": 1, "us": 1_000, "ms": 1_000_000, "s": 1_000_000_000}
NUMBER = r"[+-]?[0-9]{1,9}(?:[.][0-9]{1,9})?"
UNCHANGED = "none"


def percents(text: str) -> tuple[int, ...]:
    """Whole percents from 1 to 100 in the order given, each once."""
    return tuple(_distinct("--tau", [_percent(value) for value in _values("--tau", text, _number)]))


def factors(option: str, text: str) -> tuple[float, ...]:
    """Numbers above 0, each the nearest float to what was written."""
    values = _values(option, text, _number)
    if any(value <= 0 for value in values):
        raise UserError(f"{option} {text}: a factor must be above 0")
    return tuple(_distinct(option, [float(value) for value in values]))


def durations_ns(option: str, text: str, *, signed: bool = False) -> tuple[int, ...]:
    """Durations in whole ns; negative ones only where `signed`."""
    values = _values(option, text, lambda item: _duration(option, item))
    if any(value.denominator != 1 for value in values):
        raise UserError(f"{option} {text}: less than a nanosecond; write whole ns")
    if not signed and any(value <= 0 for value in values):
        raise UserError(f"{option} {text}: a duration must be above 0")
    return tuple(_distinct(option, [int(value) for value in values]))


def limits_ns(option: str, text: str) -> tuple[int | None, ...]:
    """Durations in ns, and None for the word `none`: as the criterion says."""
    parts = text.split(",")
    unchanged = UNCHANGED in _distinct(option, [item for item in parts if item == UNCHANGED])
    rest = ",".join(item for item in parts if item != UNCHANGED)
    timed = durations_ns(option, rest) if rest or not unchanged else ()
    return (*((None,) if unchanged else ()), *timed)


def _values(option: str, text: str, read: Callable[[str], Fraction]) -> list[Fraction]:
    values: list[Fraction] = []
    for item in text.split(","):
        try:
            ends = [read(part) for part in item.split(":")]
        except UserError:  # is a ValueError too, and says more
            raise
        except ValueError:
            raise UserError(
                f"{option} {text}: {item!r} cannot be read; write values as 1,2,3 or a range as FIRST:LAST:STEP"
            ) from None
        values += _range(option, item, ends) if len(ends) > 1 else ends
    if len(values) > MOST_VALUES:
        raise UserError(f"{option} {text}: {len(values)} values; give at most {MOST_VALUES}")
    return values


def _range(option: str, item: str, ends: Sequence[Fraction]) -> list[Fraction]:
    if len(ends) != 3 or not ends[2] or (ends[1] - ends[0]) / ends[2] < 0:
        raise UserError(f"{option} {item}: a range is FIRST:LAST:STEP, with a step that leads from first to last")
    first, last, step = ends
    steps = (last - first) / step
    if steps > MOST_VALUES:
        raise UserError(f"{option} {item}: more than {MOST_VALUES} values; choose a larger step")
    return [first + i * step for i in range(int(steps) + 1)]


def _number(item: str) -> Fraction:
    if not re.fullmatch(NUMBER, item.strip(), re.ASCII):
        raise ValueError
    return Fraction(item.strip())


def _duration(option: str, item: str) -> Fraction:
    match = re.fullmatch(f"({NUMBER})(ns|us|ms|s)?", item.strip(), re.ASCII)
    if match is None:
        raise ValueError
    number, unit = match.groups()
    if unit is None and Fraction(number):
        raise UserError(f"{option} {item}: a duration needs its unit, as in {number}ms or {number}s")
    return Fraction(number) * UNITS_NS[unit or "ns"]


def _percent(value: Fraction) -> int:
    if value.denominator != 1 or not 1 <= value <= 100:
        raise UserError(f"--tau {float(value):g}: give whole percents from 1 to 100")
    return int(value)


def _distinct(option: str, values: list[T]) -> list[T]:
    if len(set(values)) != len(values):
        raise UserError(f"{option}: a value is given twice; give each once")
    return values
