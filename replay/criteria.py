"""The criterion: how measurements are scored, as frozen plain data with a schema number and a hash.

The fields lie in one table, `fields`; the environments of the field's paper are the presets here. No measurement is
read.
"""

import hashlib
import tomllib
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, fields, replace
from fractions import Fraction
from typing import Any, Self

import rfc8785

from lapledger.replay.errors import ReplayError, nearest
from lapledger.replay.fields import FIELDS, OF_TIMES, FieldDoc

SCHEMA = 1
"""Version of the fields and their meaning; part of every hash. A field added with a default changes no meaning."""
NS_PER_MS = 1_000_000
PAY_WRONG = ("additive", "optimization-only", "multitask")
"""Rewards that pay for speed whatever c: under them a wrong answer is ranked by its measured duration."""


@dataclass(frozen=True, slots=True)
class Criterion:
    """How measurements are scored. Raise ReplayError if a value or a pair of values is not allowed.

    Each value is brought to its one form, so that equal criteria have equal hashes.
    """

    tau: str = "100"
    reading: str = "leaderboard"
    statistic: str = "mean"
    percentile: str = "mean"
    correctness: str = "strict"
    interface: str = "ignored"
    timeouts: str = "fail"
    timeout_ms: int | None = None
    own_limits: str = "ignored"
    keep: str = "at_least"
    keep_ms: int | None = None
    keep_chars: int | None = None
    keep_share: str | None = None
    limit_ms: int | None = None
    limit_quantile: str | None = None
    limit_ranked: str | None = None
    limit_factor: str = "1"
    in_time: str = "ignored"
    clock: str = "wall"
    estimator: str = "median"
    startup: str = "keep"
    calibration: str = "none"
    min_references: int = 1
    missing: str = "undecided"
    reward: str = "collapsed-binary"
    shape: str = "binary"
    buckets: int = 10
    split: str = "0.5"
    weight: str = "0.5"

    def __post_init__(self) -> None:
        """Check each field against the table, then all fields together."""
        for name, field in FIELDS.items():
            value = getattr(self, name)
            try:
                object.__setattr__(self, name, field.parse(value))
            except ValueError:
                message = f"criterion key {name!r}: {value!r} is not allowed; use {field.doc.allowed}"
                raise ReplayError(message) from None
        for contradiction in _contradictions(self):
            raise ReplayError(f"criterion: {contradiction}")

    @classmethod
    def from_mapping(cls, mapping: Mapping[str, Any]) -> Self:
        """The criterion that a mapping of field names states; ReplayError names an unknown key or a wrong value."""
        values = dict(mapping)
        schema = values.pop("schema", SCHEMA)
        if schema != SCHEMA:
            raise ReplayError(f"criterion key 'schema': {schema!r} is not known here; use {SCHEMA}")
        for key in values:
            if key not in FIELDS:
                raise ReplayError(f"criterion: unknown key {key!r}{_nearest(str(key), FIELDS)}")
        return cls(**values)

    @classmethod
    def from_toml(cls, text: str) -> Self:
        """The criterion that a TOML text states, numbers read by their decimal text; ReplayError as above."""
        try:
            return cls.from_mapping(tomllib.loads(text, parse_float=str))
        except RecursionError:
            raise ReplayError("criterion: TOML nested too deep; write one `key = value` a line") from None
        except tomllib.TOMLDecodeError as error:
            raise ReplayError(f"criterion: not valid TOML ({error}); write one `key = value` a line") from None

    @property
    def threshold(self) -> Fraction:
        """The exact largest q that passes, tau/100, in (0, 1]."""
        return Fraction(self.tau) / 100

    @property
    def limit_ns(self) -> int | None:
        """The limit judged on every test in ns, None without one."""
        return None if self.timeout_ms is None else self.timeout_ms * NS_PER_MS

    @property
    def filters(self) -> bool:
        """Whether only some optimization tests may be kept."""
        return any(bound is not None for bound in (self.keep_ms, self.keep_chars, self.keep_share))

    @property
    def limits(self) -> bool:
        """Whether optimization tests have limits of their own."""
        return any(limit is not None for limit in (self.limit_ms, self.limit_quantile, self.limit_ranked))

    @property
    def clocks(self) -> frozenset[str]:
        """The clocks that must be read: the one that is ranked, and what a problem's own limits are held against."""
        return frozenset([self.clock, "memory"] if self.own_limits == "enforced" else [self.clock])

    @property
    def needs_pool(self) -> bool:
        """Whether the quality q compares a program with references."""
        return self.reading in ("leaderboard", "score")

    @property
    def is_share(self) -> bool:
        """Whether a score is a share of 100, so that the quality metric `score` has a meaning."""
        return self.statistic == "win-rate" or self.statistic not in OF_TIMES

    @property
    def ranks_wrong(self) -> bool:
        """Whether a wrong answer is ranked by its measured duration instead of behind every reference."""
        return self.reward in PAY_WRONG

    def unfiltered(self) -> "Criterion":
        """What a reference must pass to shape the filters and limits of this criterion, which cannot depend on them."""
        return replace(
            self, keep_ms=None, keep_chars=None, keep_share=None, limit_ms=None, limit_quantile=None, limit_ranked=None
        )

    def sets_only(self, known: Collection[str]) -> bool:
        """Whether every key outside `known` has its default: an engine that knows these keys alone may judge this.

        Every field of the class counts, so that a key which is added later is unknown to an engine until it is listed.
        """
        return all(field_.name in known or getattr(self, field_.name) == field_.default for field_ in fields(self))

    def canonical(self) -> bytes:
        """Canonical JSON (RFC 8785) of the schema number and every field that differs from its default."""
        return bytes(rfc8785.dumps({"schema": SCHEMA, **self.changed()}))

    def changed(self) -> dict[str, str | int]:
        """Every field that differs from its default, in the order of the table."""
        stated = {name: getattr(self, name) for name in FIELDS}
        return {name: value for name, value in stated.items() if value != FIELDS[name].doc.default}

    @property
    def hash(self) -> str:
        """SHA-256 of the canonical form, in hexadecimal."""
        return hashlib.sha256(self.canonical()).hexdigest()


def _contradictions(c: Criterion) -> Iterable[str]:
    """One line for each pair of fields that cannot hold together."""
    if c.reading == "score" and not c.is_share:
        yield f"the statistic {c.statistic!r} is no share of 100; use reading = 'leaderboard'"
    if c.reward == "collapsed-binary" and c.shape != "binary":
        yield f"reward 'collapsed-binary' has the shape 'binary', not {c.shape!r}; use reward 'collapsed'"
    times = {"timeout_ms": c.timeout_ms, "keep_ms": c.keep_ms, "limit_ms": c.limit_ms}
    time_fields = [name for name, value in times.items() if value is not None]
    time_fields += [f"{name} = {text!r}" for name, text in _TIMES_ONLY.items() if getattr(c, name) == text]
    if c.clock == "memory" and time_fields:
        yield f"{time_fields[0]} is about time, and the clock is 'memory'; leave one of them out"
    if c.clock == "cpu" and c.startup == "subtract":
        yield "startup = 'subtract' takes off wall time, and the clock is 'cpu'; use the clock 'wall' or startup 'keep'"


_TIMES_ONLY = {"startup": "subtract", "reading": "raw-duration"}


def _environments() -> Iterable[tuple[str, Criterion]]:
    """The environments of the paper under its names: how c, g and q come about, with the reward 'collapsed binary'."""
    yield "rlvr", Criterion(correctness="original", reading="zero", reward="correctness-only")
    yield "rlvr-added-tests", Criterion(reading="zero", reward="correctness-only")
    before = Criterion(timeouts="tolerated", in_time="required")
    for name, ms in (("0.1s", 100), ("0.5s", 500), ("2s", 2000)):
        yield f"pre-{name}", replace(before, keep_ms=ms)
    yield "pre-10m-characters", replace(before, keep_chars=10_000_000)
    yield "pre-slowest-50", replace(before, keep_share="50")
    during = replace(before, reading="over-limit")
    for name, ms in (("0.5s", 500), ("2s", 2000)):
        yield f"timeout-{name}", replace(during, limit_ms=ms)
    for share in ("20", "50", "80"):
        yield f"relative-p{share}", replace(during, limit_quantile=share)
    for share in ("20", "50", "80"):
        yield f"ranked-worst-p{share}", replace(during, limit_ranked=share)
    for tau in ("80", "50", "30", "10"):
        yield f"top-{tau}", Criterion(tau=tau)
    for tau in ("80", "50", "30"):
        yield f"per-test-top-{tau}", Criterion(tau=tau, reading="score")


def _rewards() -> Iterable[tuple[str, Criterion]]:
    """The paper's other rewards, over the environment 'leaderboard'."""
    yield "raw-duration", Criterion(reading="raw-duration", reward="collapsed", shape="continuous")
    yield "leaderboard", Criterion(reward="two-gate", shape="bucketed")
    yield "split", Criterion(tau="30", reward="collapsed", shape="split")
    yield "optimization-only", Criterion(tau="30", reward="optimization-only")
    yield "additive", Criterion(tau="30", reward="additive")
    yield "multitask", Criterion(tau="30", reward="multitask")


ENVIRONMENTS: Mapping[str, Criterion] = dict(_environments())
REWARDS: Mapping[str, Criterion] = dict(_rewards())
PRESETS: Mapping[str, Criterion] = {"correct": Criterion(), **ENVIRONMENTS, **REWARDS}


def preset(name: str) -> Criterion:
    """The criterion of a preset's name; ReplayError lists the names."""
    if name not in PRESETS:
        raise ReplayError(f"no criterion preset {name!r}{_nearest(name, PRESETS)}")
    return PRESETS[name]


def describe() -> list[FieldDoc]:
    """Every field in order, with its meaning, allowed values and default."""
    return [field.doc for field in FIELDS.values()]


def _nearest(name: str, known: Iterable[str]) -> str:
    names = list(known)
    return f"{nearest(name, names) or ';'} Known: {', '.join(names)}"


FAMILIES = (
    "correctness only",
    "raw duration",
    "pre-execution",
    "absolute timeout",
    "relative timeout",
    "ranked-worst",
    "leaderboard ranking",
    "per-test ranking",
)
"""Every family, in the order in which tables and pictures show them."""


def family(criterion: Criterion) -> str:
    """The family's name: by the limits first, then the filters, then the quality metric; tau makes no difference."""
    if criterion.limit_ranked is not None:
        return "ranked-worst"
    if criterion.limit_quantile is not None:
        return "relative timeout"
    if criterion.limit_ms is not None or criterion.timeout_ms is not None:
        return "absolute timeout"
    if criterion.filters:
        return "pre-execution"
    by_reading = {"leaderboard": "leaderboard ranking", "score": "per-test ranking", "raw-duration": "raw duration"}
    return by_reading.get(criterion.reading, "correctness only")
