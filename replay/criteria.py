"""The criterion: which question is put to the measurements, as frozen plain data with a schema number and a hash.

One table holds every field with its meaning, allowed values and default; parsing, hashing and the docs page all read
it. No measurement is looked at here.
"""

import difflib
import hashlib
import re
import tomllib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Self

import rfc8785

from replay.errors import ReplayError

SCHEMA = 1
"""Version of the fields and their meaning; part of every hash."""
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
class _Field:
    doc: FieldDoc
    parse: Callable[[Any], Any]  # raises ValueError on a wrong value


def _decimal(value: Any) -> str:
    """A percentage as its shortest decimal text, read through the value's own text so that 12.5 is 25/2."""
    text = str(value)
    if isinstance(value, bool) or not re.fullmatch(r"\d{1,3}(\.\d{1,9})?", text) or not 0 < Fraction(text) <= 100:
        raise ValueError
    whole, _, rest = text.partition(".")
    return f"{int(whole)}.{rest.rstrip('0')}".rstrip(".")


def _whole(value: Any) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or not 1 <= value <= LARGEST:
        raise ValueError
    return value


def _whole_or_none(value: Any) -> int | None:
    return None if value is None else _whole(value)


def _field(name: str, default: Any, parse: Callable[[Any], Any], allowed: str, meaning: str) -> _Field:
    return _Field(FieldDoc(name, meaning, allowed, default), parse)


def _choice(name: str, words: tuple[str, ...], meaning: str) -> _Field:
    """A field of fixed words, the first of which is the default."""

    def parse(value: Any) -> str:
        if not isinstance(value, str) or value not in words:
            raise ValueError
        return value

    return _field(name, words[0], parse, " | ".join(words), meaning)


_FIELDS: Mapping[str, _Field] = {
    field.doc.name: field
    for field in (
        _field(
            "tau",
            "100",
            _decimal,
            "a decimal number, 0 < tau <= 100, at most nine decimals",
            "p_tau: a program passes when it is correct and its quality q is at most tau/100; 100 is pure correctness",
        ),
        _choice(
            "reading",
            ("leaderboard", "score"),
            "the quality q: `leaderboard` ranks the program's score among the references' own scores; `score` is the"
            " mean over the optimization tests of the per-test percentile, divided by 100",
        ),
        _choice(
            "correctness",
            ("strict", "original"),
            "the tests that count for correctness: `strict` all, where an optimization test must show no wrong answer"
            " and no crash; `original` only the problem's original tests",
        ),
        _choice(
            "timeouts",
            ("fail", "tolerated"),
            "whether a timeout on a test that is only an optimization test fails correctness; a timeout on any other"
            " counted test always does",
        ),
        _field(
            "timeout_ms",
            None,
            _whole_or_none,
            "a whole number of ms, 1 to 1000000000, or absent",
            "a tighter limit, judged on every test: a longer duration is a timeout, but still ranked as measured; a run"
            " killed below this limit is undecided",
        ),
        _choice("clock", ("wall", "cpu"), "the clock that durations are read from"),
        _choice(
            "estimator",
            ("median", "min", "mean"),
            "how repetitions become one duration; rounded down to whole ns",
        ),
        _choice(
            "startup",
            ("keep", "subtract"),
            "whether the worker's start-up baseline (wall time) is subtracted from a duration, down to 1 ns at least",
        ),
        _choice(
            "calibration",
            ("none", "affine"),
            "whether stored references of an earlier campaign join the pool: `affine` maps their durations by a fit on"
            " the references measured in both; candidates are never mapped",
        ),
        _field(
            "min_references",
            1,
            _whole,
            "a whole number, 1 to 1000000000",
            "the smallest pool that can decide p_tau below 100; with a smaller one the verdict is undecided",
        ),
        _choice(
            "missing",
            ("undecided", "fail"),
            "what a test without any result does: `undecided` leaves open what depends on it; `fail` counts it as"
            " failed",
        ),
        _choice(
            "reward",
            ("collapsed-binary", "correctness-only"),
            "the reward in [-1, 1]: `collapsed-binary` is +1 only when correct and fast enough, else -1;"
            " `correctness-only` is +1 when correct, else -1",
        ),
    )
}


@dataclass(frozen=True, slots=True)
class Criterion:
    """A question to the measurements. Every value is checked and brought to its one form (ReplayError)."""

    tau: str = "100"
    reading: str = "leaderboard"
    correctness: str = "strict"
    timeouts: str = "fail"
    timeout_ms: int | None = None
    clock: str = "wall"
    estimator: str = "median"
    startup: str = "keep"
    calibration: str = "none"
    min_references: int = 1
    missing: str = "undecided"
    reward: str = "collapsed-binary"

    def __post_init__(self) -> None:
        """Check each field against the table."""
        for name, field in _FIELDS.items():
            value = getattr(self, name)
            try:
                object.__setattr__(self, name, field.parse(value))
            except ValueError:
                message = f"criterion key {name!r}: {value!r} is not allowed; use {field.doc.allowed}"
                raise ReplayError(message) from None

    @classmethod
    def from_mapping(cls, mapping: Mapping[str, Any]) -> Self:
        """The criterion that a mapping of field names states; ReplayError names an unknown key or a wrong value."""
        values = dict(mapping)
        schema = values.pop("schema", SCHEMA)
        if schema != SCHEMA:
            raise ReplayError(f"criterion key 'schema': {schema!r} is not known here; use {SCHEMA}")
        for key in values:
            if key not in _FIELDS:
                raise ReplayError(f"criterion: unknown key {key!r}{_nearest(str(key), _FIELDS)}")
        return cls(**values)

    @classmethod
    def from_toml(cls, text: str) -> Self:
        """The criterion that a TOML text states, numbers read by their decimal text; ReplayError as above."""
        try:
            return cls.from_mapping(tomllib.loads(text, parse_float=str))
        except tomllib.TOMLDecodeError as error:
            raise ReplayError(f"criterion: not valid TOML ({error}); write one `key = value` a line") from None

    @property
    def threshold(self) -> Fraction:
        """The exact largest q that passes, tau/100, in (0, 1]."""
        return Fraction(self.tau) / 100

    @property
    def limit_ns(self) -> int | None:
        """The judged limit in ns, None without one."""
        return None if self.timeout_ms is None else self.timeout_ms * 1_000_000

    def canonical(self) -> bytes:
        """Canonical JSON (RFC 8785) of the schema number and every field that differs from its default."""
        stated = {name: getattr(self, name) for name, field in _FIELDS.items()}
        changed = {name: value for name, value in stated.items() if value != _FIELDS[name].doc.default}
        return bytes(rfc8785.dumps({"schema": SCHEMA, **changed}))

    @property
    def hash(self) -> str:
        """SHA-256 of the canonical form, in hexadecimal."""
        return hashlib.sha256(self.canonical()).hexdigest()


PRESETS: Mapping[str, Criterion] = {
    "correct": Criterion(),
    "top-50": Criterion(tau="50"),
    "top-30": Criterion(tau="30"),
    "top-10": Criterion(tau="10"),
    "per-test-top-50": Criterion(tau="50", reading="score"),
    "per-test-top-30": Criterion(tau="30", reading="score"),
}


def preset(name: str) -> Criterion:
    """The criterion of a preset's name; ReplayError lists the names."""
    if name not in PRESETS:
        raise ReplayError(f"no criterion preset {name!r}{_nearest(name, PRESETS)}")
    return PRESETS[name]


def describe() -> list[FieldDoc]:
    """Every field in order, with its meaning, allowed values and default."""
    return [field.doc for field in _FIELDS.values()]


def _nearest(word: str, known: Iterable[str]) -> str:
    names = list(known)
    close = difflib.get_close_matches(word, names, n=1)
    hint = f"; did you mean {close[0]!r}?" if close else ";"
    return f"{hint} Known: {', '.join(names)}"
