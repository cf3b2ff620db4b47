"""Kinds of fields of a criterion: what values are allowed, and how one is brought to its one form.

`fields` lists the fields and their meaning. A parser raises ValueError on a wrong value.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

LARGEST = 10**9
"""Largest whole number in a criterion: a limit of eleven days, far from any overflow in ns."""


@dataclass(frozen=True, slots=True)
class FieldDoc:
    """One field of a criterion as a docs page shows it."""

    name: str
    meaning: str
    allowed: str
    default: str | int | None


@dataclass(frozen=True, slots=True)
class Field:
    """One field with the function that brings a value to its one form; it raises ValueError on a wrong value."""

    doc: FieldDoc
    parse: Callable[[Any], Any]


def _decimal(value: Any, low: str, high: str, *, open_: bool = True) -> str:
    """A number as its shortest decimal text, read through the value's own text so that 12.5 is 25/2."""
    text = str(value)
    if isinstance(value, bool) or not re.fullmatch(r"[0-9]{1,4}([.][0-9]{1,9})?", text):
        raise ValueError
    number = Fraction(text)
    if number > Fraction(high) or number < Fraction(low) or (open_ and number == Fraction(low)):
        raise ValueError
    integer_part, _, rest = text.partition(".")
    return f"{int(integer_part)}.{rest.rstrip('0')}".rstrip(".")


def percent(value: Any) -> str:
    """A decimal number of percent, above 0 and up to 100."""
    return _decimal(value, "0", "100")


def factor(value: Any) -> str:
    """A decimal number above 0 and up to 1000."""
    return _decimal(value, "0", "1000")


def share(value: Any) -> str:
    """A decimal number from 0 to 1."""
    return _decimal(value, "0", "1", open_=False)


def integer(value: Any) -> int:
    """A whole number from 1 to LARGEST."""
    if not isinstance(value, int) or isinstance(value, bool) or not 1 <= value <= LARGEST:
        raise ValueError
    return value


def buckets(value: Any) -> int:
    """A whole number from 2 to 1000."""
    if not 2 <= integer(value) <= 1000:
        raise ValueError
    return integer(value)


def _or_none(parse: Callable[[Any], Any]) -> Callable[[Any], Any]:
    return lambda value: None if value is None else parse(value)


PERCENT = "a decimal number, 0 < {} <= 100, at most nine decimals"
MS = "a whole number of ms, 1 to 1000000000"
SHARE = "a decimal number, 0 <= {} <= 1, at most nine decimals"
COUNT = "a whole number, 1 to 1000000000"


def field(name: str, default: Any, parse: Callable[[Any], Any], allowed: str, meaning: str) -> Field:
    """A field with its default."""
    return Field(FieldDoc(name, meaning, allowed, default), parse)


def optional(name: str, parse: Callable[[Any], Any], allowed: str, meaning: str) -> Field:
    """A field that is absent by default."""
    return field(name, None, _or_none(parse), f"{allowed}, or absent", meaning)


def choice(name: str, options: tuple[str, ...], meaning: str) -> Field:
    """A field of fixed words, the first of which is the default."""

    def parse(value: Any) -> str:
        if not isinstance(value, str) or value not in options:
            raise ValueError
        return value

    return field(name, options[0], parse, " | ".join(options), meaning)
