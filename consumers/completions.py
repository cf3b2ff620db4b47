"""From what a model wrote to the program in it. Pure text: nothing is run, and nothing is stored."""

import json
import re
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

_FENCE = re.compile(r"^[ \t]*(`{3,}|~{3,})[ \t]*([^\s`]*)[^\n`]*$", re.MULTILINE)
LANGUAGES = frozenset(("", "python", "python3", "py", "py3"))
"""Words after a fence that say Python, or nothing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Completion:
    """One answer of a policy to a problem, with what its trainer told of it; None is what it did not tell.

    Completions of one problem with equal `group` are a group, wherever they lie in a batch: whoever makes them gives
    all of a group in one batch, and a key that no other group of the batch has.
    """

    problem: str  # id or slug
    group: Hashable
    text: str
    prompt: str | None = None
    policy: int | None = None  # its version: the optimizer step that made it
    tokens: int | None = None
    prompt_tokens: int | None = None
    finish_reason: str = ""


def extract_code(text: str) -> str:
    """The last block of Python in a completion; empty when there is none, so that nothing is run that was not meant.

    A block begins at a fence of three or more backticks or tildes and ends at one as long, or with the text where the
    answer was cut short. Blocks of other languages are passed over.
    """
    found, start, fence, language = "", None, "", ""
    for mark in _FENCE.finditer(text):
        if start is None:
            start, fence, language = mark.end() + 1, mark[1], mark[2].lower()
        elif mark[1].startswith(fence) and not mark[2]:
            found = text[start : mark.start()] if language in LANGUAGES else found
            start = None
    if start is not None and language in LANGUAGES:
        found = text[start:]
    return found


def text_of(message: Any) -> str:
    """The text of a prompt or a completion: a string as it is, of a conversation the last message's content.

    A content in parts is the text parts joined, and nothing is empty.
    """
    if isinstance(message, str) or message is None:
        return message or ""
    content = message[-1].get("content") if message else ""
    if isinstance(content, str) or content is None:
        return content or ""
    return "".join(str(part.get("text", "")) for part in content if part.get("type", "text") == "text")


def prompt_text(prompt: str | Sequence[Mapping[str, Any]]) -> str:
    """A prompt as one text: a conversation in JSON, so that two of them are one prompt only when they are equal.

    Of what JSON cannot say, such as a picture, only the kind is told: it is another object in each row of a group.
    """
    return prompt if isinstance(prompt, str) else json.dumps(prompt, ensure_ascii=False, sort_keys=True, default=_told)


def _told(value: Any) -> Any:
    return value.tolist() if hasattr(value, "tolist") else f"<{type(value).__name__}>"
