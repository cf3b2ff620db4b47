"""Whether an output is the expected answer: the ICPC default validator's rules, token by token.

Pure and linear in the bytes of both; no file and no process. An output is data: nothing in it can raise.
"""

import math
import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import zip_longest
from typing import Self

from lapledger.ledger.errors import UserError

DETAIL_CHARACTERS = 200
_TOKEN_CHARACTERS = 40
_CHUNK_BYTES = 1 << 18
_SPACE = re.compile(rb"\s")
_PIECE = re.compile(rb"\s|\S+")


@dataclass(frozen=True, slots=True)
class AnswerFlags:
    """How an output may differ from the answer; without a tolerance numbers are compared as text."""

    case_sensitive: bool = False
    space_change_sensitive: bool = False
    absolute_tolerance: float | None = None
    relative_tolerance: float | None = None

    @classmethod
    def parse(cls, text: str) -> Self:
        """The flags named in a line such as "case_sensitive float_tolerance 1e-6". Raises UserError for others."""
        flags, tokens = cls(), iter(text.split())
        for token in tokens:
            match token:
                case "case_sensitive":
                    flags = replace(flags, case_sensitive=True)
                case "space_change_sensitive":
                    flags = replace(flags, space_change_sensitive=True)
                case "float_tolerance":
                    bound = _tolerance(token, next(tokens, ""))
                    flags = replace(flags, absolute_tolerance=bound, relative_tolerance=bound)
                case "float_absolute_tolerance":
                    flags = replace(flags, absolute_tolerance=_tolerance(token, next(tokens, "")))
                case "float_relative_tolerance":
                    flags = replace(flags, relative_tolerance=_tolerance(token, next(tokens, "")))
                case _:
                    raise UserError(f"{token[:60]!r} is no answer flag: use {', '.join(_NAMES)}")
        return flags


_NAMES = (
    "case_sensitive",
    "space_change_sensitive",
    "float_tolerance E",
    "float_absolute_tolerance E",
    "float_relative_tolerance E",
)


@dataclass(frozen=True, slots=True)
class Judgement:
    """Whether the output was accepted and, where not, the first difference in one line that is safe to print."""

    accepted: bool
    detail: str = ""


def check(output: bytes, answer: bytes, flags: AnswerFlags) -> Judgement:
    """Whether `output` is accepted for `answer`.

    Source: the default output validator of the ICPC problem package format. Two additions: equal text is always
    equal, also "nan" and "inf", and a number too large for a double is near no other.
    """
    if output == answer:
        return Judgement(accepted=True)
    pieces = _pieces if flags.space_change_sensitive else _tokens
    noun = "piece" if flags.space_change_sensitive else "token"
    wanted, got = pieces(answer), pieces(output)
    for position, (want, have) in enumerate(zip_longest(wanted, got), start=1):
        if want is None or have is None:
            more = position + sum(1 for _ in (wanted if have is None else got))
            expected, actual = (more, position - 1) if have is None else (position - 1, more)
            return _rejected(f"expected {expected} {noun}s, got {actual}")
        if want != have and not _same(want, have, flags):
            return _rejected(f"{noun} {position}: expected {_shown(want)}, got {_shown(have)}")
    return Judgement(accepted=True)


def _tolerance(flag: str, text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not (0 <= value < math.inf):
        raise UserError(f"the answer flag {flag} needs a number of at least 0 after it, not {text[:40]!r}")
    return value


def _tokens(text: bytes) -> Iterator[bytes]:
    """The words between white space; split piece by piece, so that the memory in use stays small."""
    start = 0
    while start < len(text):
        space = _SPACE.search(text, start + _CHUNK_BYTES)
        end = space.start() if space else len(text)
        yield from text[start:end].split()
        start = end


def _pieces(text: bytes) -> Iterator[bytes]:
    """The words and each single character of white space between them, in order."""
    return (piece.group() for piece in _PIECE.finditer(text))


def _same(want: bytes, have: bytes, flags: AnswerFlags) -> bool:
    """Whether two unequal tokens count as equal: within a tolerance, or but for their case."""
    absolute, relative = flags.absolute_tolerance, flags.relative_tolerance
    if absolute is not None or relative is not None:
        expected, got = _number(want), _number(have)
        if expected is not None and got is not None:
            difference = abs(expected - got)
            return (absolute is not None and difference <= absolute) or (
                relative is not None and difference <= relative * abs(expected)
            )
    return not flags.case_sensitive and want.lower() == have.lower()


def _number(token: bytes) -> float | None:
    """The finite number that a token spells; None for other words and for what Python alone would read."""
    try:
        value = float(token)
    except ValueError:
        return None
    return value if math.isfinite(value) and b"_" not in token else None


def _shown(token: bytes) -> str:
    text = token[: 4 * _TOKEN_CHARACTERS].decode(errors="replace")
    safe = "".join(c if c.isprintable() else "\ufffd" for c in text[:_TOKEN_CHARACTERS])
    return f"'{safe}'" if len(text) <= _TOKEN_CHARACTERS else f"'{safe}...'"


def _rejected(detail: str) -> Judgement:
    return Judgement(accepted=False, detail=detail[:DETAIL_CHARACTERS])
