"""What testdata.yaml, test_group.yaml and NAME.yaml state about tests: answer flags, arguments, scores of groups.

Pure: documents in, frozen values out. A setting is inherited from folder to folder down to the test, and the nearest
one counts, as the problem package format has it.
"""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import rfc8785

from lapledger.ledger.errors import UserError
from lapledger.producers.corpus.documents import Document, text_of
from lapledger.producers.corpus.settings import checked_flags, unknown

MAX_ARGUMENTS = 64
MAX_ARGUMENT_CHARACTERS = 4096
_Json = str | float | None | list[float | None]


@dataclass(frozen=True, slots=True)
class TestSettings:
    """What a file sets for the tests that it concerns; None where it sets nothing."""

    __test__ = False  # pytest must not collect it

    validator_flags: str | None = None
    arguments: tuple[str, ...] | None = None
    unknown_keys: tuple[str, ...] = ()


def read_test_settings(document: Document, where: str, *, group: bool) -> TestSettings:
    """The settings of a group's file or of a test's own; UserError for what cannot be judged.

    Answer flags are `output_validator_args` (2025-09, a list) or `output_validator_flags` (legacy, a text).
    """
    for key in ("static_validator_args", "static_validation_score"):
        if document.get(key):
            raise UserError(f"{where}: `{key}`: static validators are not supported; import problems without one")
    known = _GROUP_FILE_KEYS if group else _CASE_KEYS
    flags = _flags(document, where)
    arguments = _strings(document, "args", where)
    return TestSettings(flags, arguments, unknown(document, known))


def inherited(levels: Iterable[TestSettings], problem_flags: str) -> TestSettings:
    """The settings of a test from its levels, outermost first; flags "" where those of its problem count."""
    flags, arguments = None, None
    for level in levels:
        flags = flags if level.validator_flags is None else level.validator_flags
        arguments = arguments if level.arguments is None else level.arguments
    return TestSettings(" ".join(filter(None, (problem_flags, flags))) if flags else "", arguments or ())


def read_grading(groups: Mapping[str, tuple[Document, str]]) -> str:
    """Canonical JSON (RFC 8785) of the scores of test groups, from group path to its document and where that lies.

    Each group, "" for the root of all, keeps what it states of `accept_score` (a number), `range` ([low, high], null
    for an open end), `on_reject` (`break` or `continue`) and `grader_flags` (words).
    """
    return rfc8785.dumps({group: _group(document, where) for group, (document, where) in groups.items()}).decode()


def _flags(document: Document, where: str) -> str | None:
    listed = _strings(document, "output_validator_args", where)
    if listed is not None:
        return checked_flags(" ".join(listed), where)
    if "output_validator_flags" not in document:
        return None
    return checked_flags(text_of(document["output_validator_flags"], where, key="output_validator_flags"), where)


def _strings(document: Document, key: str, where: str) -> tuple[str, ...] | None:
    value: Any = document.get(key)
    if value is None:
        return None
    if value == "":
        return ()
    if not isinstance(value, list) or not all(isinstance(item, str) and "\0" not in item for item in value):
        raise UserError(f'{where}: `{key}` is no list of strings; write for instance `{key}: [--factor, "2"]`')
    if len(value) > MAX_ARGUMENTS or any(len(item) > MAX_ARGUMENT_CHARACTERS for item in value):
        raise UserError(
            f"{where}: `{key}` has more than {MAX_ARGUMENTS} strings or {MAX_ARGUMENT_CHARACTERS} characters in one; "
            "put the data into the test's input"
        )
    return tuple(value)


def _group(document: Document, where: str) -> dict[str, _Json]:
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


def _plain_text(text: str, where: str) -> _Json:
    return text


def _max_score(text: str, where: str) -> _Json:
    return text if text == "unbounded" else _score(text, where)


def _aggregation(text: str, where: str) -> _Json:
    if text not in ("pass-fail", "sum", "min"):
        raise UserError(f"{where}: `score_aggregation: {text}`; write `pass-fail`, `sum` or `min`")
    return text


_GROUP_KEYS = {
    "accept_score": _score,
    "range": _range,
    "on_reject": _on_reject,
    "grader_flags": _plain_text,
    "max_score": _max_score,
    "score_aggregation": _aggregation,
    "require_pass": _plain_text,
}
_CASE_KEYS = frozenset(
    (
        *("args", "output_validator_args", "input_validator_args", "input_visualizer_args", "output_visualizer_args"),
        *("full_feedback", "hint", "description"),
    )
)
"""Keys of a test case's file that are honoured, and those that concern no verdict."""
_GROUP_FILE_KEYS = _CASE_KEYS | frozenset(
    (*_GROUP_KEYS, "grading", "output_validator_flags", "input_validator_flags", "grader", "range")
)


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
