"""Measurements: durations from repetitions, bounds of killed runs, and the duration filter's robust CV."""

import dataclasses
import math
import statistics
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from statsmodels.robust.scale import mad

from lapledger.replay.criteria import Criterion
from lapledger.replay.errors import ReplayError
from lapledger.replay.measurements import Outcome, durations, kill_bounds, robust_cv
from tests.replay.builders import MS, make_tests, measured


@given(
    repetitions=st.lists(st.integers(-1, 10**10), min_size=1, max_size=6),
    estimator=st.sampled_from(["median", "min", "mean"]),
)
def test_the_estimator_reads_the_repetitions_that_are_present(repetitions, estimator):
    """Median, minimum and mean as in the statistics module, rounded down to whole ns; -1 where nothing is present."""
    m = measured([[repetitions]], reference=[])
    present = [r for r in repetitions if r >= 0]
    if not present:
        expected = -1
    elif estimator == "min":
        expected = min(present)
    elif estimator == "mean":
        expected = sum(present) // len(present)
    else:
        expected = (statistics.median_low(present) + statistics.median_high(present)) // 2
    assert durations(m, Criterion(estimator=estimator))[0, 0] == expected


@given(st.lists(st.integers(-1, 10**10), min_size=1, max_size=6))
def test_hodges_lehmann_is_the_median_of_the_means_of_all_pairs(repetitions):
    """Walsh averages, each repetition paired with itself too; rounded down to whole ns."""
    present = [r for r in repetitions if r >= 0]
    pairs = [Fraction(a + b, 2) for i, a in enumerate(present) for b in present[i:]]
    expected = math.floor(statistics.median(pairs)) if pairs else -1
    m = measured([[repetitions]], reference=[])
    assert durations(m, Criterion(estimator="hodges-lehmann"))[0, 0] == expected


def test_hodges_lehmann_by_hand():
    """Of 1, 2, 9: means 1, 1.5, 5, 2, 5.5, 9; their median is (2 + 5)/2 = 3.5, rounded down to 3."""
    m = measured([[[1, 2, 9]]], reference=[])
    assert durations(m, Criterion(estimator="hodges-lehmann"))[0, 0] == 3


def test_peak_memory_is_read_like_a_clock():
    """The clock `memory` reads bytes; where none were recorded there is no duration, and a kill bounds nothing."""
    bytes_ = np.array([[[100, 300, 200]]])
    m = measured([[[1, 2, 3]]], reference=[], memory_bytes=bytes_, outcome=[[Outcome.TIME_LIMIT]], limit=2)
    assert durations(m, Criterion(clock="memory"))[0, 0] == 200
    assert kill_bounds(m, Criterion(clock="memory"))[0, 0] == 200  # what was needed until the kill
    bare = dataclasses.replace(m, memory_bytes=None)
    assert durations(bare, Criterion(clock="memory"))[0, 0] == -1
    assert kill_bounds(bare, Criterion(clock="memory"))[0, 0] == 0


def test_clock_and_start_up():
    """The CPU clock reads its own array; the start-up is subtracted once, down to 1 ns."""
    m = measured([[100, 20]], reference=[], startup_ns=np.array([[30, 30]]))
    assert durations(m, Criterion(clock="cpu")).tolist() == [[50, 10]]
    assert durations(m, Criterion(startup="subtract")).tolist() == [[70, 1]]


def test_no_repetition_at_all():
    """Without any repetition stored every duration is absent."""
    m = measured(np.zeros((1, 2, 0)), reference=[], outcome=[[Outcome.TIME_LIMIT, Outcome.MISSING]], limit=7)
    assert durations(m, Criterion()).tolist() == [[-1, -1]]
    assert kill_bounds(m, Criterion()).tolist() == [[7, 0]]


@pytest.mark.parametrize(
    ("repetitions", "criterion", "bound"),
    [
        ([12, -1, -1], Criterion(), 10),  # the kill took a moment: the limit counts
        ([9, -1, -1], Criterion(), 10),  # a clock read early: still killed at the limit
        ([3, 12, -1], Criterion(estimator="min"), 3),  # one finished: no minimum above it is proven
        ([3, 12, -1], Criterion(), 6),  # (3 + 10) // 2
        ([12, 12, 3], Criterion(estimator="mean"), 7),  # (10 + 10 + 3) // 3
        ([12, -1, -1], Criterion(startup="subtract"), 6),
        ([3, 12, -1], Criterion(estimator="hodges-lehmann"), 6),  # means 3, 6.5, 10
        ([12, -1, -1], Criterion(clock="cpu"), 6),  # the CPU time at the kill
    ],
)
def test_the_bound_of_a_killed_run(repetitions, criterion, bound):
    """Killed at 10 ns: the bound counts every repetition as no longer than what it is known to have taken."""
    outcome = [[Outcome.TIME_LIMIT]]
    m = measured([[repetitions]], reference=[], outcome=outcome, limit=10, startup_ns=np.array([[4]]))
    assert kill_bounds(m, criterion)[0, 0] == bound


@given(st.lists(st.lists(st.integers(1, 10**9), min_size=3, max_size=3), min_size=1, max_size=5))
def test_robust_cv_over_tests(wall):
    """1.4826 * MAD / median of the tests' median durations; MAD from statsmodels without its own scaling."""
    m = measured(wall, reference=range(len(wall)))
    for over, axis in (("tests", 0), ("programs", 1)):
        medians = np.median(np.array(wall, dtype=float), axis=axis)
        expected = 1.4826 * mad(medians, c=1) / np.median(medians)
        assert robust_cv(m, over=over) == pytest.approx(expected, rel=1e-12)


def test_robust_cv_reads_references_that_passed_optimization_tests_only():
    """A wrong run, a correctness test and a program outside the pool do not count; start-up is subtracted."""
    wall = [[7, 110, 210, 410], [7, 110, 999, 410], [1, 1, 1, 1]]
    outcome = [[1, 1, 1, 1], [1, 1, 2, 1], [1, 1, 1, 1]]
    startup = np.full((3, 4), 10)
    tests = make_tests(4, correctness=1)
    m = measured(wall, reference=[0, 1], outcome=outcome, startup_ns=startup, tests=tests)
    assert robust_cv(m) == pytest.approx(1.4826 * 100 / 200)  # 100, 200, 400: MAD 100, median 200


def test_robust_cv_without_references_is_undefined():
    """No reference, no spread: nan, not zero."""
    assert np.isnan(robust_cv(measured([[1 * MS]], reference=[])))


@pytest.mark.parametrize(
    ("change", "text"),
    [
        ({"duplicate": np.zeros(2, dtype=np.int32)}, "duplicate: expected int64"),
        ({"candidate": np.ones(3, dtype=np.bool_)}, "candidate: expected bool"),
        ({"models": ("human",)}, "models: expected 2"),
        ({"programs": ("same", "same")}, "'same' appears twice"),
        ({"cpu_ns": np.zeros((2, 1, 4), dtype=np.int64)}, "cpu_ns: expected"),
        ({"limit_ns": np.full((2, 1), -2)}, "limit_ns: values"),
        ({"outcome": np.full((2, 1), 9, dtype=np.int8)}, "outcome: values"),
        ({"memory_bytes": np.zeros((2, 1, 2), dtype=np.int64)}, "memory_bytes: expected"),
        ({"interface": np.full(2, 2, dtype=np.int8)}, "interface: values"),
    ],
)
def test_wrong_shapes_types_and_values_are_refused(change, text):
    """Measurements that do not fit together never reach the kernel."""
    with pytest.raises(ReplayError, match=text):
        measured([[1], [2]], reference=[], **change)


def test_an_unknown_program_is_named():
    """`row` finds a program's row and names one that is not there."""
    m = measured([[1], [2]], reference=[])
    assert m.row("p1") == 1
    with pytest.raises(ReplayError, match="'p7'"):
        m.row("p7")
