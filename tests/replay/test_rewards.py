"""Rewards: every family and shape by hand, and bounds where something was never seen."""

import dataclasses
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lapledger.replay.criteria import PRESETS, Criterion
from lapledger.replay.explanations.example import example
from lapledger.replay.judging.gates import judge
from lapledger.replay.judging.rewards import bounds, efficiency, reward
from lapledger.replay.measurements import Outcome
from tests.replay.builders import MS, measured, problems

ALL = tuple(Outcome)


def verdicts(c, g, q=(0, 0, 1), *, none_finished=False, pool=4):
    """Verdicts with the gates and the quality (from, to, of) given, all else from a small problem."""
    wall = [[1]] * len(c)
    base = judge(measured(wall, reference=[]), Criterion())
    lo, hi, den = (np.full(len(c), part, dtype=np.int64) for part in q)
    change = {"c": np.array(c, dtype=np.int8), "g": np.array(g, dtype=np.int8), "q_lo": lo, "q_hi": hi, "q_den": den}
    sizes = np.full(len(c), pool, dtype=np.int64)
    return dataclasses.replace(
        base, pool_size=sizes, none_finished=np.full(len(c), none_finished, dtype=np.bool_), **change
    )


@given(m=problems(outcomes=ALL), criterion=st.sampled_from([PRESETS["correct"], PRESETS["top-30"], PRESETS["rlvr"]]))
@settings(deadline=None)
def test_collapsed_binary_follows_the_verdict(m, criterion):
    """+1 for a pass, -1 for a fail and open when undecided: min(c~, g~)."""
    judged = judge(m, dataclasses.replace(criterion, reward="collapsed-binary"))
    table = {1: 1.0, 0: -1.0, -1: np.nan}
    np.testing.assert_array_equal(reward(judged, criterion), [table[s] for s in judged.status.tolist()])


def test_binary_rewards_by_hand():
    """c = 0 is -1 whatever g; a gate known to fail settles collapsed binary; correctness only ignores g."""
    judged = verdicts([1, 1, 1, 0, 0, -1, -1], [1, 0, -1, 1, -1, 0, 1])
    nan = np.nan
    np.testing.assert_array_equal(reward(judged, Criterion()), [1, -1, nan, -1, -1, -1, nan])
    np.testing.assert_array_equal(reward(judged, Criterion(reward="correctness-only")), [1, 1, 1, -1, -1, nan, nan])


CASES = [  # reward, shape, then by hand for (c, g) = (1, 1), (1, 0), (0, 1) at q = 3/10
    ("collapsed", "binary", (1, -1, -1)),
    ("collapsed", "bucketed", (5 / 9, 5 / 9, -1)),  # ceil(0.3 * 10) = 3: 1 - 2 * 2/9
    ("collapsed", "continuous", (0.4, 0.4, -1)),  # 1 - 0.6
    ("collapsed", "split", (0.7, -0.3, -1)),  # (+-1 + 0.4)/2
    ("two-gate", "binary", (1, 0, -1)),
    ("two-gate", "continuous", (0.7, 0.7, -1)),  # (0.4 + 1)/2
    ("additive", "binary", (1, 0, 0)),
    ("additive", "continuous", (0.7, 0.7, -0.3)),  # (+-1 + 0.4)/2
    ("optimization-only", "binary", (1, -1, 1)),
    ("optimization-only", "split", (0.7, -0.3, 0.7)),
]


@pytest.mark.parametrize(("family", "shape", "expected"), CASES)
def test_a_reward_by_hand(family, shape, expected):
    """Family by shape at q = 3/10, with B = 10, s = w = 1/2."""
    judged = verdicts([1, 1, 0], [1, 0, 1], (3, 3, 10))
    assert reward(judged, Criterion(reward=family, shape=shape)) == pytest.approx(expected)


def test_weights_are_those_of_the_criterion():
    """w = 0.2 and s = 0.25: 0.2 * 1 + 0.8 * 0.4 = 0.52; 0.25 * 1 + 0.75 * 0.4 = 0.55; of four buckets the second."""
    judged = verdicts([1], [1], (3, 3, 10))
    assert reward(judged, Criterion(reward="additive", shape="continuous", weight="0.2")) == pytest.approx([0.52])
    assert reward(judged, Criterion(reward="collapsed", shape="split", split="0.25")) == pytest.approx([0.55])
    assert reward(judged, Criterion(reward="collapsed", shape="bucketed", buckets=4)) == pytest.approx([1 / 3])


@given(st.integers(0, 60), st.integers(1, 60), st.integers(2, 30))
def test_buckets_are_exact(q, den, buckets):
    """1 - 2 (max(ceil(q B), 1) - 1)/(B - 1), as fractions; two buckets are the gate at 50%."""
    q = min(q, den)
    judged = verdicts([1], [1], (q, q, den))
    index = max(-(-q * buckets // den), 1)
    expected = 1 - 2 * Fraction(index - 1, buckets - 1)
    assert reward(judged, Criterion(reward="collapsed", shape="bucketed", buckets=buckets))[0] == float(expected)
    two = reward(judged, Criterion(reward="collapsed", shape="bucketed", buckets=2))[0]
    assert two == (1 if 2 * q <= den else -1)


def test_groups_of_multitask_alternate():
    """Even groups are paid for correctness, odd ones for speed; without a group nothing is decided."""
    judged = verdicts([1, 1, 0, 0, 1], [0, 0, 1, 1, 1])
    criterion, group = Criterion(reward="multitask"), np.array([0, 1, 2, 3, -1])
    np.testing.assert_array_equal(reward(judged, criterion, group=group), [1, -1, -1, 1, np.nan])
    assert np.isnan(reward(judged, criterion)).all()


def test_raw_duration_by_hand():
    """fast (55 + 350 + 1500)/3 = 635 ms: 1 - 2 * 0.0635; mixed 538.3 ms; the wrong ones -1, c first."""
    values = reward(judge(example(), PRESETS["raw-duration"]), PRESETS["raw-duration"])
    assert values[5:] == pytest.approx([0.873, 1 - 2 * 1615 / 30_000, -1, -1, -1])


def test_split_by_hand():
    """One half from the gate at 30%, one from 1 - 2 q: fast is q = 0 and passes, mixed 2/5 and does not."""
    judged = judge(example(), PRESETS["split"])
    assert reward(judged, PRESETS["split"])[5:] == pytest.approx([1, -0.5 + 0.5 * 0.2, -1, -1, -1])


def test_a_wrong_answer_is_paid_for_its_speed_where_the_family_reports_so():
    """`wrong` took 12 ms on each test: last on o2 under the others, the fastest of all under optimization only."""
    row = example().row("wrong")
    plain, paid = (judge(example(), criterion) for criterion in (PRESETS["top-30"], PRESETS["optimization-only"]))
    assert (plain.k_lo[row, 2:].tolist(), paid.k_lo[row, 2:].tolist()) == ([0, 10, 0], [0, 0, 0])
    assert reward(paid, PRESETS["optimization-only"])[row] == 1
    assert reward(judge(example(), PRESETS["additive"]), PRESETS["additive"])[row] == 0
    assert reward(plain, PRESETS["top-30"])[row] == -1


def test_no_finished_test_has_no_efficiency():
    """Wrong, and killed or crashed on every optimization test: e = -1, though a kill alone would leave it open."""
    m = measured([[4, 4], [5, 5], [6, 6]], reference=[1, 2], outcome=[[6, 3], [1, 1], [1, 1]], limit=4)
    criterion = Criterion(tau="30", reward="optimization-only", shape="continuous")
    judged = judge(m, criterion)
    assert (judged.c[0], judged.none_finished[0]) == (0, True)
    assert efficiency(judged, criterion)[0][0] < efficiency(judged, criterion)[1][0]
    assert reward(judged, criterion)[0] == -1


def test_a_killed_run_leaves_bounds():
    """Killed at 4 ns among 3 and 5 ns: q from 1/2 to 1, so the continuous reward lies between -1 and 0: undecided."""
    m = measured([[4], [3], [5]], reference=[1, 2], outcome=[[6], [1], [1]], limit=4)
    criterion = Criterion(reading="score", reward="collapsed", shape="continuous", timeouts="tolerated")
    judged = judge(m, criterion)
    assert np.isnan(reward(judged, criterion)[0])
    assert [end[0] for end in bounds(judged, criterion)] == [-1, 0]
    bucketed = dataclasses.replace(criterion, shape="bucketed", buckets=2)
    assert [end[0] for end in bounds(judged, bucketed)] == [-1, 1]


def test_bounds_meet_where_buckets_hide_the_doubt():
    """q from 3/10 to 4/10 is one bucket of two: decided, though q is not."""
    judged = verdicts([1], [1], (3, 4, 10))
    assert reward(judged, Criterion(reward="collapsed", shape="bucketed", buckets=2)).tolist() == [1]
    assert np.isnan(reward(judged, Criterion(reward="collapsed", shape="continuous"))).all()


def test_a_pool_too_small_leaves_efficiency_open():
    """min_references holds for the graded shapes as for the gate."""
    judged = verdicts([1], [1], (3, 3, 10), pool=2)
    graded = Criterion(reward="collapsed", shape="continuous", min_references=3)
    assert [end.tolist() for end in bounds(judged, graded)] == [[-1], [1]]
    assert np.isnan(reward(judged, graded)).all()


def test_a_problem_that_left_the_environment_has_no_reward():
    """Not even -1 for a wrong program: it is not asked there."""
    m = measured(np.array([[1], [2]]) * MS, reference=[1], outcome=[[2], [1]])
    criterion = Criterion(keep_ms=8)
    assert np.isnan(reward(judge(m, criterion), criterion)).all()


@given(m=problems(outcomes=ALL), data=st.data())
@settings(deadline=None)
def test_every_reward_lies_between_its_bounds_in_minus_one_to_one(m, data):
    """For all families and shapes: bounds are ordered, within [-1, 1], and meet exactly where a reward is decided."""
    family = data.draw(st.sampled_from(["collapsed", "two-gate", "additive", "optimization-only", "correctness-only"]))
    shape = data.draw(st.sampled_from(["binary", "bucketed", "continuous", "split"]))
    criterion = Criterion(tau="30", reward=family, shape=shape, timeouts="tolerated")
    judged = judge(m, criterion)
    low, high = bounds(judged, criterion)
    assert ((low >= -1) & (low <= high) & (high <= 1)).all()
    assert np.array_equal(np.isnan(reward(judged, criterion)), low != high)
