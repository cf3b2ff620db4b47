"""Which text of a completion is the program: the table of docs/trainers.md, and what holds for any text."""

import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lapledger.consumers.training.code_blocks import extract_code
from lapledger.consumers.training.completions import text_of

FENCE = "`" * 3
PROGRAM = "a, b = map(int, input().split())\nprint(a + b)\n"


def block(info: str, body: str) -> str:
    """A fenced block."""
    return f"{FENCE}{info}\n{body}{FENCE}\n"


TAGGED = block("python", PROGRAM)

PROGRAM_IS_FOUND = {
    "the only tagged block": TAGGED,
    "the only block, untagged": block("", PROGRAM),
    "an untagged sample output follows": TAGGED + "For `3 4` it prints:\n" + block("", "7\n"),
    "a demonstration that reads no input follows": TAGGED + "Try it:\n" + block("python", "print(1 + 2)\n"),
    "an empty block follows": TAGGED + block("python", ""),
    "another language follows": TAGGED + block("bash", "rm -r x\n"),
    "an earlier draft reads input too": block("python", "input()\n") + "Better:\n" + TAGGED,
    "inside a list item": "1. Code:\n\n" + "".join(f"   {line}\n" for line in TAGGED.splitlines()),
    "inside a quote": "".join(f"> {line}\n" for line in TAGGED.splitlines()),
    "indented by four spaces, right after a sentence": "So:\n" + "".join(f"    {x}\n" for x in TAGGED.splitlines()),
    "inside a tag": f"<answer>\n{TAGGED}</answer>\n",
    "`{.python}`": block("{.python}", PROGRAM),
    "`python3.11`": block("python3.11", PROGRAM),
    "`python,linenos`": block("python,linenos", PROGRAM),
    "`Python` in capitals": block("Python", PROGRAM),
    "`py3`": block("py3", PROGRAM),
    "tildes": f"~~~python\n{PROGRAM}~~~\n",
    "cut short before its closing fence": f"{FENCE}python\n{PROGRAM}",
    "lines end in CR LF": TAGGED.replace("\n", "\r\n"),
}


@pytest.mark.parametrize("case", PROGRAM_IS_FOUND)
def test_the_program_is_found(case: str) -> None:
    """Each of these completions holds the same program."""
    assert extract_code(PROGRAM_IS_FOUND[case]) == PROGRAM


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("no program", ""),
        ("say ```print(1)``` inline", ""),
        (block("python", ""), ""),
        (block("cpp", "int x;\n"), ""),
        (block("pycon", ">>> 1\n"), ""),
        (block("3", "x\n"), ""),
        (f"{FENCE}cpp\nint x;", ""),
        (f"{FENCE}python\ncut sho", "cut sho"),
        (block("py", "old\n") + "Better:\n" + block("Python", "new\n") + "Done", "new\n"),
        (block("python", "tagged\n") + block("", "untagged\n"), "tagged\n"),
        (f"````python\na = '''\n{FENCE}\n'''\n````", f"a = '''\n{FENCE}\n'''\n"),
    ],
)
def test_what_counts_where_nothing_reads_input(text: str, code: str) -> None:
    """The last tagged block, else the last untagged one; nothing of another language, and nothing inline."""
    assert extract_code(text) == code


def test_the_documented_cases_are_the_tested_ones() -> None:
    """docs/trainers.md lists every case of this file."""
    page = (Path(__file__).parents[2] / "docs" / "trainers.md").read_text()
    assert re.findall(r"^\| (.+?) +\| the program +\|$", page, re.MULTILINE) == list(PROGRAM_IS_FOUND)


@given(st.text(alphabet=st.characters(exclude_characters="`~\r", exclude_categories=["Cs"])).filter(str.strip))
def test_any_program_comes_out_as_it_went_in(code: str) -> None:
    """Between two fences, with whatever around."""
    body = code if code.endswith("\n") else code + "\n"
    assert extract_code(f"I think.\n{block('python', body)}That is all.") == body


@given(st.text())
def test_every_line_of_a_program_stands_in_the_text(text: str) -> None:
    """No text breaks the rule, and nothing comes out that was not written."""
    lines = [line.strip() for line in text.replace("\r\n", "\n").split("\n")]
    assert all(any(line.strip() in stood for stood in lines) for line in extract_code(text).split("\n"))


def reports(text: str | None, role: str = "assistant") -> dict[str, object]:
    """One message of a conversation."""
    return {"role": role, "content": text}


@pytest.mark.parametrize(
    ("conversation", "text"),
    [
        ([reports(None), reports(TAGGED, "tool")], ""),
        ([reports(TAGGED), reports("7", "tool")], TAGGED),
        ([reports("draft"), reports("7", "tool"), reports(TAGGED)], TAGGED),
        ([reports(TAGGED), reports(None)], TAGGED),
        ([reports(TAGGED, "user")], ""),
        ([{"content": TAGGED}], TAGGED),
    ],
)
def test_only_the_assistant_speaks_for_the_policy(conversation: list[dict[str, object]], text: str) -> None:
    """A program in a tool's or a user's message is never paid to the policy."""
    assert text_of(conversation) == text
