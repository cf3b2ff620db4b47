"""Best of N, tiers, A/A figures and programs slower than every reference: values by hand and by counting."""

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lapledger.replay.criteria import Criterion
from lapledger.replay.errors import ReplayError
from lapledger.replay.estimates import (
    best_curve,
    best_of,
    by_field,
    by_terciles,
    count,
    efficiencies,
    members,
    pass_at_k,
    slower_than_all,
    token_count,
)
from tests.replay.builders import MS, measured
from tests.replay.races import judged, race

VALUES = st.lists(st.integers(0, 9), min_size=1, max_size=8)


@given(VALUES.flatmap(lambda v: st.tuples(st.just(v), st.integers(1, len(v)))))
def test_best_of_n_is_the_mean_over_all_draws(given_):
    """Counted draw by draw: the mean of the largest of every n-subset."""
    values, n = given_
    draws = [max(draw) for draw in combinations(values, n)]
    assert best_of(np.array(values, dtype=float), n) == pytest.approx(np.mean(draws))


@given(st.integers(1, 12).flatmap(lambda n: st.tuples(st.just(n), st.integers(0, n), st.integers(1, n))))
def test_best_of_n_of_passes_is_pass_at_n(counts):
    """With values 0 and 1 the two estimators are one."""
    n, c, k = counts
    assert best_of(np.array([1.0] * c + [0.0] * (n - c)), k) == pytest.approx(pass_at_k(n, c, k))


def test_a_curve_ends_where_a_problem_has_no_more_samples():
    """Up to the smallest number of samples; what was never seen is in the upper bound only."""
    low, high = [np.array([0.2, 0.6]), np.array([0.5, 0.5, 0.0])], [np.array([0.2, 1.0]), np.array([0.5, 0.5, 0.0])]
    first, second = best_curve(low, high)
    assert (first.n, first.problems, first.samples) == (1, 2, 5)
    assert (first.value, first.upper_bound) == (pytest.approx((0.4 + 1 / 3) / 2), pytest.approx((0.6 + 1 / 3) / 2))
    assert (second.n, second.value) == (2, pytest.approx((0.6 + 0.5) / 2))
    assert best_curve([], []) == []
    with pytest.raises(ReplayError, match="best of 3: only 2 samples; choose 1 to 2"):
        best_of(low[0], 3)


def test_efficiency_is_one_minus_q_where_correct():
    """By hand: against 2, 4, 6, 8 ms, 1 ms ties with the best own score: q = 1/8; 5 ms 1/2, 9 ms 7/8; wrong is 0."""
    m = race((1, 5, 9, 1), (), outcomes=[[1]] * 7 + [[2]])
    low, high = efficiencies(judged(m), [m], "a")
    assert low[0].tolist() == high[0].tolist() == [0.875, 0.5, 0.125, 0.0]
    open_ = race((1, 5), (), outcomes=[[1]] * 5 + [[0]])
    low, high = efficiencies(judged(open_), [open_], "a")
    assert (low[0].tolist(), high[0].tolist()) == ([0.875, 0.0], [0.875, 0.875])
    assert efficiencies(judged(m), [m], "nobody") == ([], [])


def test_counts_are_of_one_model():
    """The candidates of that model alone; a model without any is refused by name."""
    m = race((1, 9), (2,))
    verdicts = judged(m, criterion=Criterion(tau="50"))
    result = count(verdicts, [m], "a")
    assert (result.samples.tolist(), result.passed.tolist(), result.problems) == ([2], [1], ("sum",))
    with pytest.raises(ReplayError, match="no candidate of 'c' in these problems"):
        count(verdicts, [m], "c")
    with pytest.raises(ReplayError, match="different problems"):
        count(verdicts, [], "a")


def test_a_problem_that_left_the_environment_is_named():
    """A filter that keeps none of its tests: no rate, but its name."""
    m = race((1,), (2,))
    criterion = Criterion(keep_ms=1000)
    result = count(judged(m, criterion=criterion), [m], "a")
    assert (result.problems, result.excluded) == ((), ("sum",))
    assert efficiencies(judged(m, criterion=criterion), [m], "a") == ([], [])


def test_programs_slower_than_every_reference():
    """Of 9, 8 and 1 ms against 2..8 ms only 9 is: 8 is as slow as the last, not slower. A wrong one is not counted."""
    m = race((9, 8, 1, 9), (), outcomes=[[1]] * 7 + [[2]])
    result = slower_than_all(judged(m), [m], Criterion(), "a")
    assert (result.correct, result.slower, result.undecided, result.value, result.problems) == (3, 1, 0, 1 / 3, 1)
    assert slower_than_all(judged(m), [m], Criterion()).correct == 3
    assert slower_than_all(judged(m), [m], Criterion(), "b").value is None


def test_whether_a_killed_program_is_the_slowest_may_be_open():
    """Killed at 10 ms: slower than references that all ended before, else nobody knows; timeouts are tolerated."""
    tolerant = Criterion(timeouts="tolerated")
    rows = {"limit": 10 * MS, "reference": [0, 1], "models": ("human", "human", "a", "a")}
    ended = measured([[2 * MS], [8 * MS], [10 * MS], [9 * MS]], outcome=[[1], [1], [6], [1]], **rows)
    result = slower_than_all(judged(ended, criterion=tolerant), [ended], tolerant, "a")
    assert (result.correct, result.slower, result.undecided) == (2, 2, 0)
    open_ = measured([[2 * MS], [10 * MS], [10 * MS], [9 * MS]], outcome=[[1], [6], [6], [1]], **rows)
    result = slower_than_all(judged(open_, criterion=tolerant), [open_], tolerant, "a")
    assert (result.correct, result.slower, result.undecided) == (2, 0, 1)


def test_a_reference_is_not_held_against_itself():
    """The slowest reference is slower than all others; without another there is no pool, and it is not counted."""
    m = measured([[2], [5]], reference=[0, 1])
    assert slower_than_all(judged(m), [m], Criterion(), "human").slower == 1
    alone = measured([[2]], reference=[0])
    assert slower_than_all(judged(alone), [alone], Criterion()).correct == 0


def test_tiers_by_terciles_of_tokens():
    """Six problems with medians 10 .. 60: two a tier; equal medians share the easier one."""
    result = by_terciles({f"p{i}": [10 * i - 1, 10 * i, 10 * i + 1] for i in range(1, 7)})
    assert members(result) == {"easy": ["p1", "p2"], "medium": ["p3", "p4"], "hard": ["p5", "p6"]}
    assert set(by_terciles({"a": [5], "b": [5]}).values()) == {"easy"}
    assert by_terciles({}) == {}
    with pytest.raises(ReplayError, match="problem b has no correct reference"):
        by_terciles({"a": [5], "b": []})


def test_tiers_by_the_users_field():
    """Words as they are; easy, medium and hard first, in that order."""
    result = by_field({"a": "hard", "b": "easy", "c": "extra"})
    assert list(members(result)) == ["easy", "hard", "extra"]
    with pytest.raises(ReplayError, match="problem a names no tier"):
        by_field({"a": None})


@pytest.mark.parametrize(
    ("source", "tokens"),
    [("x = 1  # one\n\n", 3), ("def f(a):\n    return a + 'two words'\n", 10), ("x = (", 3), ("naïve", 1), ("", 0)],
)
def test_tokens_are_those_of_python(source, tokens):
    """Names, numbers, strings and operators; a text that is no Python is cut into words and signs."""
    assert token_count(source) == tokens
