"""Every block of docs/python.md is executed, in order, on the demo's ledger, and gives the output that stands there.

Numbers, ids and cuts differ from machine to machine: each counts as one placeholder, and so does any run of spaces.
"""

import ast
import re
from pathlib import Path
from typing import Any

import pytest

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "python.md").read_text()
BLOCKS = re.findall(r"^```python\n(.*?)^```$(?:\n\n```text\n(.*?)^```$)?", PAGE, re.MULTILINE | re.DOTALL)


@pytest.fixture(scope="module")
def names() -> dict[str, Any]:
    """What earlier blocks of the page have defined."""
    return {}


@pytest.fixture(autouse=True)
def _beside_the_demo(demo: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`demo` is a folder of the working directory, as on the page."""
    monkeypatch.chdir(demo.parent)


@pytest.mark.parametrize(("code", "output"), BLOCKS, ids=[code.splitlines()[0][:30] for code, _ in BLOCKS])
def test_a_block_gives_what_the_page_shows(
    names: dict[str, Any], code: str, output: str, capfd: pytest.CaptureFixture[str]
) -> None:
    """The value of its last expression, as a notebook prints it; nothing else is printed."""
    value = last_value(code, names)
    assert plain("" if value is None else repr(value)) == plain(output)
    assert capfd.readouterr() == ("", "")


def test_the_page_is_read_complete() -> None:
    """Every block of the page is one of those above."""
    assert len(BLOCKS) == PAGE.count("```python\n") >= 10
    assert sum(bool(output) for _, output in BLOCKS) == PAGE.count("```text\n")


def last_value(code: str, names: dict[str, Any]) -> Any:
    """What a notebook shows for a cell: the value of the last expression; None for a cell that ends otherwise."""
    tree = ast.parse(code)
    if not isinstance(tree.body[-1], ast.Expr):
        exec(compile(tree, "docs/python.md", "exec"), names)  # noqa: S102
        return None
    last = ast.Expression(tree.body.pop().value)  # type: ignore[attr-defined]
    exec(compile(tree, "docs/python.md", "exec"), names)  # noqa: S102
    return eval(compile(last, "docs/python.md", "eval"), names)  # noqa: S307


def plain(text: str) -> str:
    """The text with a placeholder for each cut, id and number, and single spaces."""
    text = re.sub(r"cut control=\S+", "cut", text)
    text = re.sub(r"\b[0-9a-f]{12,}\b|-?\b\d+(\.\d+)?(e-?\d+)?\b", "0", text)
    return "\n".join(" ".join(line.split()) for line in text.strip().splitlines())
