"""What problem.yaml, testdata.yaml and .timelimit say about a problem: titles, judging settings, scores of test groups.

Pure: documents in, frozen values out. What lapledger cannot judge is refused here, never judged wrongly later.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation

import rfc8785

from lapledger.ledger.errors import UserError
from lapledger.producers.corpus.documents import Document, text_of
from lapledger.producers.sandbox.output_checker import AnswerFlags

MAX_LIMIT_S = 86_400
_Json = str | float | None | list[float | None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """A problem's title, origin and judging, as its problem.yaml states them."""

    name: str
    source: str
    license: str
    scoring: bool
    validator_flags: str
    time_limit_ns: int | None
    tier: str | None


def read_settings(document: Document, where: str, *, tier_field: str = "") -> Settings:
    """The settings of a problem.yaml; UserError for what cannot be judged (custom validators, odd flags)."""
    validation = text_of(document.get("validation"), where, key="validation") or "default"
    if validation != "default":
        raise UserError(
            f"{where}: validation `{validation}`: custom validators and interactive problems are not supported; "
            "import problems with `validation: default`"
        )
    limits = document.get("limits")
    limit = text_of(limits.get("time_limit"), where, key="time_limit") if isinstance(limits, dict) else ""
    return Settings(
        name=text_of(document.get("name"), where, key="name"),
        source=text_of(document.get("source"), where, key="source"),
        license=text_of(document.get("license"), where, key="license"),
        scoring=_is_scoring(document, where),
        validator_flags=_flags(text_of(document.get("validator_flags"), where, key="validator_flags"), where),
        time_limit_ns=read_limit(limit, where) if limit else None,
        tier=text_of(document.get(tier_field), where, key=tier_field) or None if tier_field else None,
    )


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


def read_grading(groups: Mapping[str, tuple[Document, str]]) -> str:
    """Canonical JSON (RFC 8785) of the scores of test groups, from group path to its document and where that lies.

    Each group, "" for the root of all, keeps what it states of `accept_score` (a number), `range` ([low, high], null
    for an open end), `on_reject` (`break` or `continue`) and `grader_flags` (words).
    """
    return rfc8785.dumps({group: _group(document, where) for group, (document, where) in groups.items()}).decode()


def _is_scoring(document: Document, where: str) -> bool:
    stated = document.get("type")
    kinds = text_of(stated, where, key="type").replace(";", " ").split() or ["pass-fail"]
    if kinds not in (["pass-fail"], ["scoring"]):
        raise UserError(f"{where}: type `{' '.join(kinds)}` is not supported; only `pass-fail` and `scoring` are")
    return kinds == ["scoring"]


def _flags(text: str, where: str) -> str:
    flags = " ".join(text.replace(";", " ").split())
    try:
        AnswerFlags.parse(flags)
    except UserError as error:
        raise UserError(f"{where}: {error}") from error
    return flags


def _group(document: Document, where: str) -> dict[str, _Json]:
    if text_of(document.get("output_validator_flags"), where, key="output_validator_flags"):
        raise UserError(
            f"{where}: `output_validator_flags` of one group are not supported; "
            "set `validator_flags` in problem.yaml for all"
        )
    if text_of(document.get("grading"), where, key="grading") not in ("", "default"):
        raise UserError(f"{where}: custom graders are not supported; use `grading: default`")
    texts = {key: text_of(document.get(key), where, key=key) for key in _GROUP_KEYS}
    return {key: _GROUP_KEYS[key](text, where) for key, text in texts.items() if text}


def _score(text: str, where: str) -> _Json:
    score = _number(text, where, key="accept_score")
    if score is None:
        raise UserError(f"{where}: `accept_score` has no bound; write a finite number")
    return score


def _range(text: str, where: str) -> _Json:
    ends = text.split()
    if len(ends) != 2:
        raise UserError(f"{where}: `range: {text}`; write two numbers, for instance `range: 0 100`")
    return [_number(end, where, key="range") for end in ends]


def _on_reject(text: str, where: str) -> _Json:
    if text not in ("break", "continue"):
        raise UserError(f"{where}: `on_reject: {text}`; write `break` or `continue`")
    return text


def _grader_flags(text: str, where: str) -> _Json:
    return text


_GROUP_KEYS = {"accept_score": _score, "range": _range, "on_reject": _on_reject, "grader_flags": _grader_flags}


def _number(text: str, where: str, *, key: str) -> int | float | None:
    """A number as JSON can hold it, None when it is infinite."""
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if math.isnan(value) or (math.isfinite(value) and abs(value) >= 2**53):
        raise UserError(f"{where}: `{key}` is {text[:40]!r}; write a number")
    if math.isinf(value):
        return None
    return int(value) if value.is_integer() else value
