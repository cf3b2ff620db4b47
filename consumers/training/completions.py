"""Completions as trainers hand them over, and the text that a policy wrote. Nothing is executed or stored here."""

import json
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from lapledger.ledger.errors import UserError

_SHOWN = 60


@dataclass(frozen=True, slots=True, kw_only=True)
class Completion:
    """One answer of a policy to a problem, with what its trainer states of it; None is what it does not state.

    Completions of one problem with equal `group` are a group, wherever they lie in a batch: whoever makes them gives
    all of a group in one batch, and a key that no other group of the batch has. UserError for one that names no problem
    or holds no text.
    """

    problem: str  # id or slug
    group: Hashable
    text: str
    prompt: str | None = None
    policy: int | None = None  # its version: the optimizer step that made it
    tokens: int | None = None
    prompt_tokens: int | None = None
    finish_reason: str = ""
    source: str | None = None  # its program, where that is no part of a text
    log_probabilities: tuple[float, ...] | None = None  # of its tokens

    def __post_init__(self) -> None:
        if not isinstance(self.problem, str) or not self.problem:
            raise UserError(
                f"an answer names no problem ({_brief(self.problem)}); give each row a problem's id or slug"
            )
        if not isinstance(self.text, str):
            raise UserError(
                f"an answer to {_brief(self.problem)} is {_brief(self.text)}, no text; decode it, or give ''"
            )


def text_of(completion: Any) -> str:
    """The text that the policy wrote: a string as it is, of a conversation the last assistant message that has any.

    What a tool or a user said is never the policy's. A message without a role counts as the assistant's. A content in
    parts is the text parts joined; empty where the policy wrote nothing. UserError for what is neither.
    """
    if isinstance(completion, str) or completion is None:
        return completion or ""
    contents = [_content(turn) for turn in _turns(completion) if turn.get("role", "assistant") == "assistant"]
    return next((content for content in reversed(contents) if content), "")


def _content(message: Mapping[str, Any]) -> str:
    content = message.get("content")
    if isinstance(content, str) or content is None:
        return content or ""
    return "".join(str(part.get("text", "")) for part in _turns(content) if part.get("type", "text") == "text")


def _turns(value: Any) -> Sequence[Mapping[str, Any]]:
    """The messages of a conversation or the parts of a message; UserError for anything else."""
    if not isinstance(value, list | tuple) or not all(isinstance(turn, Mapping) for turn in value):
        raise UserError(
            f"{_brief(value)} is neither a text nor a conversation; give a text, or a list of messages such as"
            " {'role': 'user', 'content': 'Add up.'}"
        )
    return value


def _brief(value: Any) -> str:
    """A value as a message may show it: short, on one line."""
    text = repr(value)
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}..."


def prompt_text(prompt: str | Sequence[Mapping[str, Any]]) -> str:
    """A prompt as one text: a conversation in JSON, so that two of them are one prompt only when they are equal.

    Of what JSON cannot say, such as a picture, only the kind is named: it is another object in each row of a group.
    UserError for what is neither a text nor a conversation.
    """
    if isinstance(prompt, str):
        return prompt
    return json.dumps(_turns(prompt), ensure_ascii=False, sort_keys=True, default=_type_name)


def _type_name(value: Any) -> Any:
    return value.tolist() if hasattr(value, "tolist") else f"<{type(value).__name__}>"
