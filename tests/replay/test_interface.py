"""The interface of a program, read from its source: what must still be there, and what may change."""

import pytest

from replay.interface import interface, kept

GIVEN = """
class Solution:
    def solve(self, numbers, target=0):
        return 0

def main():
    def helper():
        pass
"""


def test_classes_methods_and_functions_are_the_interface():
    """By dotted name, with the numbers of parameters; what a function defines inside is its own affair."""
    assert interface(GIVEN) == {"Solution": None, "Solution.solve": (3, 1, 0, 0, 0), "main": (0, 0, 0, 0, 0)}


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (("return 0", "return sum(numbers)"), 1),  # any body will do
        (("numbers, target=0", "xs, t=1"), 1),  # and any names of parameters
        (("def main", "async def main"), 1),
        (("\n\ndef main", "\n\ndef more(): pass\n\ndef main"), 1),  # more is no less
        (("class Solution:", "class Other:"), 0),
        (("def solve", "def run"), 0),
        (("numbers, target=0", "numbers"), 0),
        (("numbers, target=0", "numbers, target"), 0),
        (("class Solution:", "if True:"), 0),  # the wrapper is gone
        (("def main():", "def main(:"), -1),  # no Python: not looked at
    ],
)
def test_an_interface_is_kept_or_not(change, expected):
    """What was given must be defined, with the same numbers of parameters."""
    assert kept(GIVEN.replace(*change), GIVEN) == expected


def test_nothing_given_is_always_kept():
    """A problem that reads standard input asks for no interface."""
    assert kept("print(1)", "") == 1
