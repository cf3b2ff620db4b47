"""Admission: what is new, what is a duplicate, what is a fork, and how gaps open and close."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lapledger.ledger.events import EVENTS
from lapledger.ledger.frames.frame import FrameError, Link, make_frame
from lapledger.ledger.store.chain_rules import Chain, check_route
from tests.ledger.facts import chain_frames, decision, sample_frame


def chain_of(*sequences: int) -> Chain:
    """A chain to which these sequences were admitted, frame n with digest dn after d(n-1)."""
    chain = Chain()
    for sequence in sequences:
        chain.admit(sequence, f"d{sequence - 1}", f"d{sequence}")
    return chain


def test_the_next_frame_is_new() -> None:
    """It links to the digest before it."""
    assert chain_of(0, 1).is_new(2, "d1", "d2")


def test_the_same_frame_again_is_a_duplicate() -> None:
    """Same sequence, same digest."""
    assert not chain_of(0, 1).is_new(1, "d0", "d1")


@pytest.mark.parametrize(
    ("admitted", "frame"),
    [
        ((0, 1), (1, "d0", "other")),  # the same place with other values
        ((0, 1), (2, "other", "d2")),  # does not follow the frame before
        ((0, 2), (1, "d0", "other")),  # fills a gap, but the frame after it follows another
    ],
)
def test_a_fork_is_refused(admitted: tuple[int, ...], frame: tuple[int, str, str]) -> None:
    """A producer's history has one line."""
    with pytest.raises(FrameError) as caught:
        chain_of(*admitted).is_new(*frame)
    assert caught.value.reason == "fork"


def test_gaps_open_split_and_close() -> None:
    """Worked by hand: 0, then 5 (gap 1 to 4), then 3 (1 to 2 and 4), then 1, 2, 4."""
    chain = chain_of(0, 5)
    assert chain.gaps == [(1, 4)]
    chain.admit(3, "d2", "d3")
    assert chain.gaps == [(1, 2), (4, 4)]
    for sequence in (1, 2, 4):
        chain.admit(sequence, f"d{sequence - 1}", f"d{sequence}")
    assert (chain.gaps, chain.end) == ([], 6)


@given(st.permutations(range(8)), st.integers(0, 8))
def test_open_gaps_are_what_is_missing_below_the_end(order: list[int], count: int) -> None:
    """In whatever order frames come."""
    admitted = order[:count]
    chain = chain_of(*admitted)
    missing = sorted(set(range(max(admitted, default=-1) + 1)) - set(admitted))
    assert sorted(n for first, last in chain.gaps for n in range(first, last + 1)) == missing
    assert all(first <= last for first, last in chain.gaps)


def test_a_frame_belongs_to_the_partition_of_its_key() -> None:
    """`check_route` passes a producer's own frames of every type."""
    for declared in EVENTS.values():
        frame = sample_frame(declared)
        check_route(frame, frame.link.stream, frame.link.partition)


def test_a_frame_elsewhere_is_misrouted() -> None:
    """Another partition than in its header or of its key, a key not in its rows, a stream not of its type."""
    frame = chain_frames([decision(0)])[0]
    elsewhere = (frame.link.partition + 1) % 4
    moved = Link("e", "facts", elsewhere, 1, "x")
    wrong = [
        (frame, "facts", elsewhere),
        (make_frame(frame.declared, "p", moved, frame.batch), "facts", elsewhere),
        (make_frame(frame.declared, "", Link("e", "control", 0, 1, "x"), frame.batch), "control", 0),
        (make_frame(frame.declared, "another", Link("e", "facts", 0, 1, "x"), frame.batch), "facts", 0),
    ]
    for case, stream, partition in wrong:
        with pytest.raises(FrameError) as caught:
            check_route(case, stream, partition)
        assert caught.value.reason == "misrouted"
