"""Whether a source is a program that Python 3 can be asked to run. Sources are read, never executed."""

import ast
import re
import warnings

_PYTHON_2 = re.compile(rb"#!.*\bpython2(?:\.\d+)?\b")
_PYTHON_2_SYNTAX = re.compile(
    r"""^[^#\n]*(?:
        \bprint\b[ \t]*(?:["'\w]) | \bexec[ ]+["'\w] | \bexcept\b[^:\n]+,[ ]*\w+[ ]*: | \braise[ ]+\w+[ ]*, |
        <> | `[^`\n]+` | \b0\d+\b | \b\d+[lL]\b | \bur["']
    )""",
    re.MULTILINE | re.VERBOSE,
)
"""Statements and literals that Python 2 had and Python 3 refuses; asked only of what Python 3 cannot read."""


def unusable(source: bytes, name: str) -> str:
    """Why a source is excluded of a pool of Python 3 programs; "" when it is not.

    Excluded: what is not UTF-8, and Python 2 programs, known by their first line, or because Python 3 cannot read them
    and they hold syntax that Python 2 had. Any other syntax error is the program's own failure.
    """
    try:
        text = source.decode()
    except UnicodeDecodeError as error:
        return f"a program that is not UTF-8 (line {source.count(bytes([10]), 0, error.start) + 1})"
    if not name.endswith(".py3") and (_PYTHON_2.match(source) or _reads_as_python_2(text)):
        return "a Python 2 program"
    return ""


def _reads_as_python_2(text: str) -> bool:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            ast.parse(text)
    except SyntaxError:
        return _PYTHON_2_SYNTAX.search(text) is not None
    except (ValueError, RecursionError, MemoryError):  # nested too deep to be read here: for the sandbox to find out
        return False
    return False
