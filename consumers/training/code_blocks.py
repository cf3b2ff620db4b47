"""Which text of a completion is the policy's program: one rule, stated in docs/trainers.md with its table of cases.

Pure text: no program is executed. Markdown is read by markdown-it, as renderers read it: fences inside list items and
quotes lose their indentation, an unclosed block ends with the text.
"""

import re
from functools import cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from markdown_it import MarkdownIt
    from markdown_it.rules_block import StateBlock

PYTHON = frozenset(("python", "py"))
"""Languages of an info string that mean Python; no language at all may mean it too."""
_LANGUAGE = re.compile(r"[\s{.]*([a-z]*)")
_READS_INPUT = re.compile(r"\b(?:input|stdin|fileinput)\b|\bopen\(0\b|/dev/stdin")


def extract_code(text: str) -> str:
    """The program in a completion; empty when there is none, so that no program is executed that was not meant.

    Blocks tagged as Python come before untagged ones, empty blocks and other languages never count. Among these the
    last one that reads standard input is the program, so that a demonstration after it is not; if none does, the last.
    """
    blocks = [(_language(info), body) for info, body in _blocks(text) if body.strip()]
    tagged = [body for language, body in blocks if language in PYTHON]
    candidates = tagged or [body for language, body in blocks if not language]
    programs = [body for body in candidates if _READS_INPUT.search(body)] or candidates
    return programs[-1] if programs else ""


def _language(info: str) -> str:
    """The leading letters of an info string in lower case: `python` for `{.python}`, `python3.11`, `Python,linenos`.

    A string that has none but is not empty is some other language.
    """
    match = _LANGUAGE.match(info.strip().lower())
    return (match[1] if match else "") or info.strip()


def _blocks(text: str) -> list[tuple[str, str]]:
    """(info string, body) of each fenced block, in order."""
    tokens = _parser().parse(text.replace("\r\n", "\n"))
    return [(token.info, token.content) for token in tokens if token.type == "fence"]


@cache
def _parser() -> "MarkdownIt":
    """Block structure alone. Fences count at any indentation and right after <think> or a sentence, as models write."""
    from markdown_it import MarkdownIt

    parser = MarkdownIt("commonmark")
    parser.core.ruler.enableOnly(["block"])
    parser.disable(["code", "html_block", "lheading", "reference"])
    parser.block.ruler.at("paragraph", _one_line)
    return parser


def _one_line(state: "StateBlock", start: int, _end: int, _silent: bool) -> bool:
    """A paragraph of one line, as a longer one would swallow a fence that is indented by four spaces after it."""
    state.line = start + 1
    return True
