"""The interface of a program, read from its source: what must still be there, and what may change."""

import pytest

from lapledger.replay.judging.interface import interface, kept, kept_of, shared

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


def test_what_all_sources_define_alike_is_shared():
    """`Solution.solve` with two parameters is in all; `main`, `Extra` and `read` with other parameters are not."""
    solve = "class Solution:\n    def solve(self, n): return n\n"
    sources = [
        solve + "def main(): pass\ndef read(): pass\n",
        "class Extra: pass\ndef read(file): pass\n" + solve,
        "def read(): pass\n" + solve,
    ]
    common = shared(sources)
    assert common == {"Solution": None, "Solution.solve": (2, 0, 0, 0, 0)}
    assert shared([*sources, "def broken(:"]) == common  # what cannot be read says nothing
    assert [kept_of(source, common) for source in (*sources, "def solve(n): return n", "def broken(:")] == [
        1,
        1,
        1,
        0,
        -1,
    ]


def test_sources_that_share_nothing_request_for_nothing():
    """Programs that read standard input; and where none can be read nobody knows what is asked."""
    common = shared(["print(1)", "def f(): pass"])
    assert common == {}
    assert kept_of("x = 1", common) == 1
    assert shared(["def broken(:"]) is None
    assert shared([]) is None
