"""Which sources are left out of a pool of Python 3 programs, and why."""

import pytest

from lapledger.producers.corpus.languages import unusable

PYTHON_2 = "a Python 2 program"


@pytest.mark.parametrize(
    "source",
    [
        "#!/usr/bin/env python2\nprint(1)\n",
        "#!/usr/bin/python2.7\nprint(1)\n",
        "a, b = map(int, raw_input().split())\nprint a + b\n",
        "print 'yes'\n",
        "try:\n    pass\nexcept ValueError, error:\n    pass\n",
        "raise ValueError, 'no'\n",
        "x = 10L\n",
        "x = 0777\n",
        "if 1 <> 2: pass\n",
        "exec 'x = 1'\n",
    ],
)
def test_python_2_programs_are_known(source: str) -> None:
    """By the first line, or as Python 3 cannot read them and Python 2 could."""
    assert unusable(source.encode(), "a.py") == PYTHON_2


@pytest.mark.parametrize(
    "source",
    [
        "print(1)\n",
        "#!/usr/bin/env python3\nprint(1)\n",
        "#!/usr/bin/env python\nprint(1)\n",
        "def broken(:\n",  # a syntax error of its own: run, and a failure of the program
        "# print x\nprint(\n",
        "x = '`a` <> 10L'\n",
        "(" * 5000 + ")" * 5000,
    ],
)
def test_other_programs_stay(source: str) -> None:
    """Python 3, or broken in a way that Python 2 would refuse too."""
    assert unusable(source.encode(), "a.py") == ""


def test_a_suffix_of_python_3_is_believed() -> None:
    """A `.py3` that cannot be read is a broken Python 3 program."""
    assert unusable(b"print 1\n", "a.py3") == ""


def test_what_is_not_utf_8_is_named_with_its_line() -> None:
    """One Latin-1 source does not refuse a package."""
    assert unusable(b"x = 1\ny = '\xe9'\n", "a.py") == "a program that is not UTF-8 (line 2)"
