"""Typed access to the objects of a file: every getter checks, and says in one line what is wrong, where.

Nothing here knows a format or opens a file.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NoReturn

from lapledger.ledger.errors import UserError
from lapledger.producers.importers.files import MIB, shown
from lapledger.replay.measurements import LONGEST_NS

MAX_TEXT_CHARS = 32 * MIB
"""No single text in a file is longer."""
MAX_NAME_CHARS = 300


@dataclass(frozen=True, slots=True)
class Record:
    """An object of a file, with the words that say where it stands. Every getter raises UserError in one line."""

    value: Mapping[str, Any]
    where: str

    @classmethod
    def of(cls, value: Any, where: str) -> "Record":
        """The record, when the value is an object."""
        if not isinstance(value, dict):
            raise UserError(f"{where}: {shown(value)} is no object of names and values; is this the right tool's file?")
        return cls(value, where)

    def refuse(self, key: str, expected: str) -> NoReturn:
        """Raises the complaint that a value is not what the format says."""
        state = "is missing" if key not in self.value else f"is {shown(self.value[key])}"
        raise UserError(f"{self.where}: {key!r} {state}, expected {expected}; is this the right tool's file?")

    def has(self, key: str) -> bool:
        """Whether there is a value, null not counted."""
        return self.value.get(key) is not None

    def names(self) -> list[str]:
        """The keys, as names of what they lead to."""
        for key in self.value:
            if not key.isprintable() or not 0 < len(key) <= MAX_NAME_CHARS:
                raise UserError(f"{self.where}: {shown(key)} is no name; is this the right tool's file?")
        return list(self.value)

    def text(self, key: str) -> str:
        """A text that UTF-8 can hold."""
        value = self.value.get(key)
        if not isinstance(value, str) or len(value) > MAX_TEXT_CHARS:
            self.refuse(key, "a text")
        return self._sound(key, value)

    def _sound(self, key: str, value: str) -> str:
        try:
            value.encode()
        except UnicodeEncodeError:
            self.refuse(key, "a text without lone surrogates")
        return value

    def flag(self, key: str) -> bool:
        """True or false."""
        value = self.value.get(key)
        if not isinstance(value, bool):
            self.refuse(key, "true or false")
        return value

    def number(self, key: str) -> float:
        """A finite number."""
        value = self.value.get(key)
        if isinstance(value, bool) or not isinstance(value, int | float) or not _finite(value):
            self.refuse(key, "a finite number")
        return float(value)

    def integer(self, key: str) -> int:
        """A whole number from 0 below 2**60."""
        value = self.value.get(key)
        if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value < LONGEST_NS:
            self.refuse(key, "a whole number from 0")
        return value

    def seconds_ns(self, key: str) -> int:
        """A duration that the file tells in seconds, in whole ns."""
        return self._ns(key, self.value.get(key))

    def _ns(self, key: str, value: Any) -> int:
        if isinstance(value, bool) or not isinstance(value, int | float) or not _finite(value):
            self.refuse(key, "seconds")
        if not 0 <= value * 1e9 < LONGEST_NS:
            self.refuse(key, "seconds from 0")
        return round(value * 1e9)

    def all_seconds_ns(self, key: str) -> list[int]:
        """Durations that the file tells in seconds, in whole ns."""
        return [self._ns(key, value) for value in self.items(key)]

    def numbers(self, key: str) -> list[float]:
        """Finite numbers."""
        return [Record({key: value}, self.where).number(key) for value in self.items(key)]

    def items(self, key: str) -> list[Any]:
        """A list of anything."""
        value = self.value.get(key)
        if not isinstance(value, list):
            self.refuse(key, "a list")
        return value

    def texts(self, key: str) -> list[str]:
        """A list of texts."""
        return [Record({key: value}, self.where).text(key) for value in self.items(key)]

    def flags(self, key: str) -> list[bool]:
        """A list of true and false."""
        return [Record({key: value}, self.where).flag(key) for value in self.items(key)]

    def open_flags(self, key: str) -> list[bool | None]:
        """A list of true, false and null."""
        return [None if value is None else Record({key: value}, self.where).flag(key) for value in self.items(key)]

    def record(self, key: str) -> "Record":
        """An object in this one."""
        if not isinstance(self.value.get(key), dict):
            self.refuse(key, "an object of names and values")
        return Record(self.value[key], f"{self.where}, {key!r}")

    def records(self, key: str, noun: str) -> list["Record"]:
        """A list of objects; `each` is what one of them is called in a message."""
        items = self.items(key)
        return [Record.of(value, f"{self.where}, {noun} {number}") for number, value in enumerate(items, 1)]


def _finite(value: float) -> bool:
    try:
        return math.isfinite(value)
    except OverflowError:  # a whole number beyond every float
        return False
