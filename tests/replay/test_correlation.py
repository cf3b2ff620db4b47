"""The rank correlation against scipy, and what rounding does to ties."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import spearmanr

from lapledger.replay.correlation import spearman

VALUES = st.lists(st.integers(0, 9), min_size=3, max_size=15)


@given(VALUES, st.randoms(use_true_random=False))
def test_spearman_is_that_of_scipy(x, random):
    """Averaged ties; nan where one side does not vary."""
    y = random.sample(x, len(x))
    correlation = spearman(np.array(x, dtype=float), np.array(y, dtype=float))
    if len(set(x)) == 1:
        assert np.isnan(correlation)
    else:
        assert correlation == pytest.approx(spearmanr(x, y).statistic, abs=1e-12)


def test_what_differs_by_rounding_alone_ties():
    """Means of .1 .2 .3, .3 .2 .1 and .1 .3 .2 are one value, and so are 0 and 1e-17; 1e-9 apart is not."""
    means = np.array(
        [np.mean(values) for values in ([0.1, 0.2, 0.3], [0.3, 0.2, 0.1], [0.1, 0.3, 0.2], [0.5, 0.5, 0.5])]
    )
    assert len(set(means[:3].tolist())) > 1
    y = [6.0, 12, 9, 18]
    assert spearman(100 * means, np.array(y)) == pytest.approx(spearmanr([1, 1, 1, 2], y).statistic, abs=1e-12)
    assert spearman(np.array([0, 1e-17, 0.5]), np.array([2.0, 1, 3])) == pytest.approx(3**0.5 / 2)  # 1.5 1.5 3
    assert spearman(np.array([0.2, 0.2 + 1e-9, 0.5]), np.array([1.0, 2, 3])) == pytest.approx(1)
    assert np.isnan(spearman(100 * means[:3], np.array(y[:3])))
