"""What problem.yaml and .timelimit state about a problem: title, judging settings, limits.

Pure: documents in, frozen values out. What lapledger cannot judge is refused here, never judged wrongly later; a key
that no version of the format has is named.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation

from lapledger.ledger.errors import UserError
from lapledger.producers.corpus.documents import Document, text_of
from lapledger.producers.sandbox.output_checker import AnswerFlags

MAX_LIMIT_S = 86_400
MAX_LIMIT_MIB = 1 << 20
MIB = 1 << 20
VERSIONS = ("legacy", "legacy-icpc", "2023-07", "2023-07-draft", "2025-09", "2025-09-draft", "draft")
"""Values of `problem_format_version` that are read; a package without one is `legacy`."""
_KEYS = frozenset(
    (
        *("problem_format_version", "type", "name", "uuid", "version", "credits", "source", "source_url", "author"),
        *("license", "rights_owner", "embargo_until", "limits", "keywords", "languages", "allow_file_writing"),
        *("constants", "validation", "validator_flags", "grading", "libraries"),
    )
)
_LIMITS = frozenset(
    (
        *("time_limit", "time_multipliers", "time_resolution", "time_multiplier", "time_safety_margin"),
        *("memory", "output", "code", "compilation_time", "compilation_memory"),
        *("validation_time", "validation_memory", "validation_output", "validation_passes"),
    )
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """A problem's title, origin and judging, as its problem.yaml states them."""

    name: str
    source: str
    license: str
    scoring: bool
    validator_flags: str
    time_limit_ns: int | None
    memory_limit_bytes: int | None
    output_limit_bytes: int | None
    tier: str | None
    unknown_keys: tuple[str, ...]


def read_settings(document: Document, where: str, *, tier_field: str = "") -> Settings:
    """The settings of a problem.yaml; UserError for what cannot be judged (custom validators, constants, odd flags)."""
    _check_version(document, where)
    if document.get("constants"):
        raise UserError(f"{where}: `constants` are not supported; write their values into the package's files")
    validation = text_of(document.get("validation"), where, key="validation") or "default"
    if validation != "default":
        raise UserError(
            f"{where}: validation `{validation}`: custom validators and interactive problems are not supported; "
            "import problems with `validation: default`"
        )
    limits = document.get("limits") or {}
    if not isinstance(limits, dict):
        raise UserError(f"{where}: `limits` is no mapping; write for instance `limits: {{time_limit: 2}}`")
    time_limit = text_of(limits.get("time_limit"), where, key="time_limit")
    return Settings(
        name=text_of(document.get("name"), where, key="name"),
        source=text_of(document.get("source"), where, key="source"),
        license=text_of(document.get("license"), where, key="license"),
        scoring=_is_scoring(document, where),
        validator_flags=checked_flags(text_of(document.get("validator_flags"), where, key="validator_flags"), where),
        time_limit_ns=read_limit(time_limit, where) if time_limit else None,
        memory_limit_bytes=_size_limit(limits, "memory", where),
        output_limit_bytes=_size_limit(limits, "output", where),
        tier=text_of(document.get(tier_field), where, key=tier_field) or None if tier_field else None,
        unknown_keys=(*unknown(document, _KEYS | {tier_field}), *unknown(limits, _LIMITS, "limits.")),
    )


def unknown(keys: Iterable[str], known: frozenset[str], prefix: str = "") -> tuple[str, ...]:
    """The keys that are not known, each in one printable line, in their order."""
    return tuple(f"{prefix}{key if key.isprintable() else ascii(key)}"[:80] for key in keys if key not in known)


def read_limit(text: str, where: str) -> int:
    """A time limit in nanoseconds, from seconds as text; UserError unless it lies above 0 and within a day."""
    try:
        seconds = Decimal(text.strip())
        nanoseconds = int(seconds * 1_000_000_000) if 0 < seconds <= MAX_LIMIT_S else 0
    except InvalidOperation:
        nanoseconds = 0
    if nanoseconds < 1:
        raise UserError(f"{where}: time limit {text.strip()[:40]!r}; write seconds between 0 and {MAX_LIMIT_S}")
    return nanoseconds


def _check_version(document: Document, where: str) -> None:
    version = text_of(document.get("problem_format_version"), where, key="problem_format_version") or VERSIONS[0]
    if version not in VERSIONS:
        raise UserError(
            f"{where}: problem_format_version `{version[:40]}` is not supported; use one of {', '.join(VERSIONS)}"
        )


def _size_limit(limits: Document, key: str, where: str) -> int | None:
    """A limit in bytes, from MiB as text; None where it is not stated."""
    text = text_of(limits.get(key), where, key=key)
    if not text:
        return None
    if not (text.isascii() and text.isdigit() and 0 < len(text) < 9 and 0 < int(text) <= MAX_LIMIT_MIB):
        raise UserError(f"{where}: `limits.{key}` is {text[:40]!r}; write whole MiB between 1 and {MAX_LIMIT_MIB}")
    return int(text) * MIB


def _is_scoring(document: Document, where: str) -> bool:
    stated = document.get("type")
    kinds = text_of(stated, where, key="type").replace(";", " ").split() or ["pass-fail"]
    if kinds not in (["pass-fail"], ["scoring"]):
        raise UserError(f"{where}: type `{' '.join(kinds)}` is not supported; only `pass-fail` and `scoring` are")
    return kinds == ["scoring"]


def checked_flags(text: str, where: str) -> str:
    """Flags of the default answer check, separated by single spaces; UserError for one that it does not know."""
    flags = " ".join(text.replace(";", " ").split())
    try:
        AnswerFlags.parse(flags)
    except UserError as error:
        raise UserError(f"{where}: {error}") from error
    return flags
