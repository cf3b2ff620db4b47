"""How a person names a criterion: a preset or a TOML file, a few everyday flags, and `--set KEY=VALUE` for the rest."""

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import wraps
from typing import Any

import click
from click.shell_completion import CompletionItem

from lapledger.ledger.errors import UserError, nearest
from lapledger.replay.criteria import NS_PER_MS, PRESETS, Criterion
from lapledger.replay.fields import FIELDS
from lapledger.workflows.analysis.axes import durations_ns
from lapledger.workflows.analysis.criterion_arguments import read_criterion

Command = Callable[..., Any]
ABSENT = "none"
"""The text that takes an optional key out of a preset or a file."""


@dataclass(frozen=True, slots=True)
class CriterionFlags:
    """The criterion that a command line states: a preset or file, and the keys that flags override."""

    source: str | None = None  # preset or TOML file; None for the default criterion
    overrides: Mapping[str, Any] = field(default_factory=dict)

    @property
    def given(self) -> bool:
        """Whether any flag states a criterion."""
        return self.source is not None or bool(self.overrides)

    def read(self) -> tuple[str, Criterion]:
        """(name, criterion); UserError or ReplayError names what is wrong."""
        return read_criterion(self.source, self.overrides)


def _complete_preset(_context: click.Context, _option: click.Parameter, incomplete: str) -> list[CompletionItem]:
    return [CompletionItem(name) for name in PRESETS if name.startswith(incomplete)]


def _complete_key(_context: click.Context, _option: click.Parameter, incomplete: str) -> list[CompletionItem]:
    return [CompletionItem(f"{key}=") for key in FIELDS if key.startswith(incomplete)]


def _choice_option(key: str, text: str) -> Callable[[Command], Command]:
    allowed = FIELDS[key].doc.allowed.replace(" ", "")
    metavar = allowed if len(allowed) <= 30 else "KIND"
    return click.option(f"--{key}", key, default=None, metavar=metavar, help=text)


_LIMITS = {"own": "enforced", "executed": "ignored"}
_TAU = click.option("--tau", default=None, metavar="PERCENT", help="p_tau threshold.  [default: the criterion's]")
_OPTIONS = (
    click.option(
        "--criterion",
        "source_name",
        default=None,
        metavar="NAME|FILE",
        shell_complete=_complete_preset,
        help="Preset or TOML file; `lap criteria` lists presets and keys.",
    ),
    click.option("--timeout", default=None, metavar="DURATION", help="Tighter limit on every test: 500ms, 0.5s."),
    click.option(
        "--limit",
        type=click.Choice(list(_LIMITS)),
        default=None,
        help="Limits of a run: each problem's own, or those it was executed under.  [default: the criterion's]",
    ),
    _choice_option("clock", "Quantity that is ranked.  [default: the criterion's]"),
    click.option(
        "--set",
        "settings",
        multiple=True,
        metavar="KEY=VALUE",
        shell_complete=_complete_key,
        help="Set any criterion key, e.g. statistic=median; repeat.",
    ),
)


_CALIBRATION = _choice_option("calibration", "Kind of stored calibration to use.  [default: the criterion's]")


def criterion_options(*, tau: bool, calibration: bool = True) -> Callable[[Command], Command]:
    """Adds --criterion, --timeout, --limit, --clock, --set, and --tau and --calibration where they have a meaning.

    They reach the command together as `criterion_flags`. UserError for a key or a value that is not allowed.
    """

    optional = [name for name, wanted in (("tau", tau), ("calibration", calibration)) if wanted]

    def decorate(function: Command) -> Command:
        @wraps(function)
        def command(
            *args: Any,
            source_name: str | None,
            timeout: str | None,
            limit: str | None,
            clock: str | None,
            settings: tuple[str, ...],
            **rest: Any,
        ) -> Any:
            everyday = {"clock": clock, **{name: rest.pop(name) for name in optional}}
            everyday["own_limits"] = None if limit is None else _LIMITS[limit]
            flags = CriterionFlags(source_name, _overrides(everyday, timeout, settings))
            return function(*args, criterion_flags=flags, **rest)

        options: list[Callable[[Command], Command]] = list(_OPTIONS)
        options += [option for option, wanted in ((_TAU, tau), (_CALIBRATION, calibration)) if wanted]
        decorated: Command = command
        for option in reversed(options):
            decorated = option(decorated)
        return decorated

    return decorate


def _overrides(everyday: Mapping[str, str | None], timeout: str | None, settings: Iterable[str]) -> dict[str, Any]:
    """Key -> value of every flag that is given, each key once."""
    overrides = {key: _value(f"--{key}", key, text) for key, text in everyday.items() if text is not None}
    if timeout is not None:
        overrides["timeout_ms"] = _timeout_ms(timeout)
    for setting in settings:
        key, value = parse_setting(setting)
        if key in overrides:
            raise UserError(f"--set {setting}: criterion key {key!r} is set twice; set it once")
        overrides[key] = value
    return overrides


def parse_setting(text: str) -> tuple[str, Any]:
    """The key and value of `KEY=VALUE`; UserError names the nearest key, or the allowed values."""
    key, separator, value = (part.strip() for part in text.partition("="))
    if not separator or not key:
        raise UserError(f"--set {text}: write KEY=VALUE, for instance --set statistic=median")
    key = key.replace("-", "_")
    if key not in FIELDS:
        hint = nearest(key, FIELDS) or ";"
        raise UserError(f"--set {text}: no criterion key {key!r}{hint} `lap criteria` lists all keys")
    return key, _value("--set", key, value)


def _value(flag: str, key: str, text: str) -> Any:
    """The value in the key's own type; None for the text `none` where the key may be absent."""
    known = FIELDS[key]
    if text == ABSENT and known.doc.default is None:
        return None
    number = re.fullmatch(r"[0-9]{1,12}", text) is not None and known.doc.allowed.startswith("a whole number")
    try:
        return known.parse(int(text) if number else text)
    except ValueError:
        allowed = known.doc.allowed.replace("or absent", f"or {ABSENT}")
        raise UserError(f"{flag}: {text!r} is not allowed for criterion key {key!r}; use {allowed}") from None


def _timeout_ms(text: str) -> int | None:
    """The timeout in whole ms; None for `none`."""
    if text == ABSENT:
        return None
    durations = durations_ns("--timeout", text)
    if len(durations) != 1 or durations[0] % NS_PER_MS:
        raise UserError(f"--timeout {text}: give one duration in whole ms, as 500ms or 0.5s")
    return int(_value("--timeout", "timeout_ms", str(durations[0] // NS_PER_MS)))


def refuse_source(source: str | None, criteria: Iterable[Criterion]) -> None:
    """Raise UserError if --calibration-from names a campaign and none of the criteria uses a calibration."""
    if source is not None and all(criterion.calibration == "none" for criterion in criteria):
        raise UserError(
            f"--calibration-from {source}: no criterion here uses a calibration; add --calibration KIND,"
            " or omit --calibration-from"
        )
