"""Cuts: their text form, and their order."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lapledger.ledger.errors import UserError
from lapledger.ledger.store.cuts import Cut
from tests.ledger.facts import partitions

CUTS = st.fixed_dictionaries({partition: st.integers(0, 10**15) for partition in partitions()}).map(Cut.of)


@given(CUTS)
def test_a_cut_is_its_text(cut: Cut) -> None:
    """Printing and parsing gives an equal cut with the same hash."""
    assert Cut.parse(f" {cut}\n") == cut
    assert hash(Cut.parse(str(cut))) == hash(cut)


def test_the_form_of_a_cut() -> None:
    """Streams in alphabetical order, partitions with a dot between them."""
    cut = Cut.of({("control", 0): 12, ("facts", 0): 431, ("facts", 1): 29, ("facts", 3): 77, ("requests", 0): 5})
    assert str(cut) == "control=12,facts=431.29.0.77,requests=5"
    assert (cut.at("facts", 1), cut.at("facts", 2)) == (29, 0)
    assert Cut.parse("requests=5,control=12,facts=431.29.0.77") == cut


@given(CUTS, CUTS)
def test_order_is_that_of_every_partition(a: Cut, b: Cut) -> None:
    """One cut is within another when no partition shows more."""
    assert (a <= b) == all(a.at(*partition) <= b.at(*partition) for partition in partitions())


@pytest.mark.parametrize(
    "text",
    [
        *("", "nonsense", "control=1", "control=1,facts=1.2.3.,requests=0", "control=1,facts=1.2.3.4.5,requests=0"),
        *("control=1,facts=1.2.3.-4,requests=0", "control=1,facts=0.0.0.0,requests=0,requests=0", "a=1" * 10_000),
        *("control=1,facts=0.0.0.0,other=0", "control=٣,facts=0.0.0.0,requests=0"),
        "control=99999999999999999999,facts=0.0.0.0,requests=0",
    ],
)
def test_nonsense_is_refused_in_one_line_that_shows_the_form(text: str) -> None:
    """Every stream once, each with all its partitions, plain digits."""
    with pytest.raises(UserError, match=r"in the form control=0,facts=0,requests=0") as caught:
        Cut.parse(text)
    assert len(str(caught.value)) < 300
    assert "\n" not in str(caught.value)


@given(st.text())
def test_any_text_is_a_cut_or_a_user_error(text: str) -> None:
    """Parsing raises nothing else, and what it takes is what it prints."""
    try:
        cut = Cut.parse(text)
    except UserError:
        return
    assert Cut.parse(str(cut)) == cut
