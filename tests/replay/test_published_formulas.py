"""Formulas of others give what others publish: values by hand, by enumeration, and of scipy and the standard library.

Every expectation here is computed in another way than the formula does it.
"""

import math
import statistics
from bisect import bisect_left
from itertools import combinations
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from lapledger.replay.errors import ReplayError
from tests.replay import published_formulas

SHARES = st.floats(0, 1, allow_nan=False)


def test_pyperf_critical_values_are_those_of_students_t() -> None:
    """To three digits up to 30 degrees of freedom; beyond, the point of a lower row: never below the true one."""
    for freedom in range(1, 31):
        assert published_formulas.pyperf_critical(freedom) == pytest.approx(stats.t.ppf(0.975, freedom), abs=0.00051)
    for freedom in range(31, 200):
        assert published_formulas.pyperf_critical(freedom) >= stats.t.ppf(0.975, freedom) - 0.0005
    assert published_formulas.pyperf_critical(10_000) == 1.960
    with pytest.raises(ReplayError, match="two values a side"):
        published_formulas.pyperf_critical(0)


@given(st.integers(2, 15), st.integers(0, 2**32 - 1), st.floats(0, 3))
def test_pyperf_significance_is_that_of_a_pooled_t_test(size: int, seed: int, shift: float) -> None:
    """As scipy's test with equal variances says, away from the rounding of the table."""
    random = np.random.default_rng(seed)
    first, second = random.normal(size=size), random.normal(loc=shift, size=size)
    p = stats.ttest_ind(first, second).pvalue
    if abs(p - 0.05) > 0.002:
        assert published_formulas.pyperf_significant(first.tolist(), second.tolist()) == (p < 0.05)


def test_pyperf_takes_what_it_cannot_test_to_differ() -> None:
    """Samples of other sizes, of one value, or without variance."""
    assert published_formulas.pyperf_significant([1.0, 1.1], [1.0, 1.1, 1.2])
    assert published_formulas.pyperf_significant([1.0], [1.0])
    assert published_formulas.pyperf_significant([1.0, 1.0], [1.0, 1.0])


def test_pyperf_geometric_mean_by_hand() -> None:
    """Ratios 2 (significant), 1.001 (not) and 0.5 (significant): the cube root of 2 * 0.5, or of their product."""
    still = [1.0, 1.1, 0.9, 1.05, 0.95]
    pairs = [
        (still, [2 * v for v in still]),
        (still, [1.001 * v for v in still]),
        (still, [v / 2 for v in still]),
    ]
    assert published_formulas.pyperf_geometric_mean(pairs) == pytest.approx(1.0)
    assert published_formulas.pyperf_geometric_mean(pairs, significant_only=False) == pytest.approx(1.001 ** (1 / 3))
    assert published_formulas.pyperf_geometric_mean(pairs[:2]) == pytest.approx(math.sqrt(2))
    with pytest.raises(ReplayError, match="no benchmark is in both"):
        published_formulas.pyperf_geometric_mean([])
    with pytest.raises(ReplayError, match="not positive"):
        published_formulas.pyperf_geometric_mean([([0.0, 0.0], [1.0, 1.0])])


@given(st.lists(st.tuples(st.floats(0.1, 100), st.booleans()), min_size=1, max_size=30))
def test_swefficiency_is_the_harmonic_mean_with_ones_for_failures(rows: list[tuple[float, bool]]) -> None:
    """As the standard library's harmonic mean says."""
    speedups, correct = [speedup for speedup, _ in rows], [right for _, right in rows]
    due = statistics.harmonic_mean([speedup if right else 1.0 for speedup, right in rows])
    assert published_formulas.swefficiency_speedup(speedups, correct) == pytest.approx(due)


def test_swefficiency_refuses_nonsense() -> None:
    """Lengths that differ, and speed-ups that are none."""
    with pytest.raises(ReplayError, match="1 values and 2 verdicts"):
        published_formulas.swefficiency_speedup([1.0], [True, False])
    with pytest.raises(ReplayError, match="positive"):
        published_formulas.swefficiency_speedup([0.0], [True])
    assert published_formulas.swefficiency_speedup([0.0, 2.0], [False, True]) == pytest.approx(4 / 3)
    assert published_formulas.swefficiency_human_ratio(3.0, 2.0) == 1.5
    with pytest.raises(ReplayError, match="positive"):
        published_formulas.swefficiency_human_ratio(1.0, 0.0)


@given(st.floats(0, 10), st.lists(st.integers(0, 10).map(float), min_size=1, max_size=20))
def test_afterburner_counts_the_references_that_are_not_faster(value: float, references: list[float]) -> None:
    """Counted one by one: ties are beaten."""
    due = sum(reference >= value for reference in references) / len(references)
    assert published_formulas.afterburner_percentile(value, references) == pytest.approx(due)
    assert bisect_left(sorted(references), value) == sum(reference < value for reference in references)
    with pytest.raises(ReplayError, match="needs references"):
        published_formulas.afterburner_percentile(1.0, [])


@given(st.lists(SHARES, min_size=1, max_size=8), st.data())
def test_enamel_eff_is_the_mean_best_of_all_draws(values: list[float], data: Any) -> None:
    """Over every choice of k samples, one by one."""
    k = data.draw(st.integers(1, len(values)))
    due = statistics.fmean(max(chosen) for chosen in combinations(values, k))
    assert published_formulas.enamel_eff_at_k(values, k) == pytest.approx(due)


def test_enamel_eff_with_verdicts_is_pass_at_k() -> None:
    """Efficiencies 0 and 1: 1 - C(n - c, k)/C(n, k) with n = 10, c = 3, k = 4; it stays exact for thousands."""
    assert published_formulas.enamel_eff_at_k([1.0] * 3 + [0.0] * 7, 4) == pytest.approx(
        1 - math.comb(7, 4) / math.comb(10, 4)
    )
    assert published_formulas.enamel_eff_at_k([0.5] * 3000, 1000) == pytest.approx(0.5)
    with pytest.raises(ReplayError, match=r"eff@3 of 2 samples: k must lie in 1 \.\. 2"):
        published_formulas.enamel_eff_at_k([1.0, 1.0], 3)


def test_kernelbench_fast_p_counts_right_and_faster() -> None:
    """Of four, three are right, two of them above 1.5 times; exactly p times is not faster."""
    correct, speedups = [True, True, True, False], [1.0, 2.0, 1.6, 9.0]
    assert published_formulas.kernelbench_fast_p(correct, speedups, 1.5) == 0.5
    assert published_formulas.kernelbench_fast_p(correct, speedups, 1.0) == 0.5
    assert published_formulas.kernelbench_fast_p(correct, speedups, 0.0) == 0.75
    with pytest.raises(ReplayError, match="0 verdicts"):
        published_formulas.kernelbench_fast_p([], [], 1.0)
