"""Relative gains: bounds over all corners, intervals against a bootstrap written out."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lapledger.replay.estimates import gain_bounds, gain_interval, gain_intervals
from lapledger.replay.estimates import gains as module

SPAN = st.tuples(st.integers(0, 20), st.integers(0, 20)).map(lambda ends: tuple(sorted(end / 20 for end in ends)))


@given(a=SPAN, b=SPAN)
def test_bounds_hold_every_corner(a, b):
    """The least and the largest of (a - b) / b over the ends of both; without an end where b may be 0."""
    bounds = gain_bounds(a, b)
    if b[1] == 0:
        assert bounds is None
        return
    corners = [(value - base) / base for value, base in itertools.product(a, b) if base > 0]
    assert bounds[0] == pytest.approx(min(corners))
    assert bounds[1] == (math.inf if b[0] == 0 else pytest.approx(max(corners)))


def written_out(a, b, seed, resamples):
    """The percentile interval of the ratio of resampled means, problem numbers drawn one array at a time."""
    drawn = np.random.default_rng(seed).integers(0, len(a), (resamples, len(a)))
    gains = [x.mean() / y.mean() - 1 for x, y in zip(a[drawn], b[drawn], strict=True)]
    return tuple(np.percentile(gains, [2.5, 97.5]))


def test_many_gains_are_each_the_bootstrap_by_itself(monkeypatch):
    """Seven pairs on 30 problems, three at a time, resamples in blocks: as one pair alone, and as written out."""
    draw = np.random.default_rng(7)
    a, b = draw.integers(0, 5, (7, 30)) / 4, draw.integers(1, 5, (7, 30)) / 4
    monkeypatch.setattr(module, "TOGETHER", 3)
    together = gain_intervals(a, b, np.random.default_rng(1), resamples=400)
    monkeypatch.setattr("lapledger.replay.estimates.intervals.CELLS", 30 * 100)
    for value, base, bounds in zip(a, b, together, strict=True):
        assert bounds == pytest.approx(written_out(value, base, 1, 400))
        assert gain_interval(value, base, np.random.default_rng(1), resamples=400) == bounds


def test_a_gain_over_nothing_has_no_interval():
    """One problem; a base that is 0 everywhere; a base so rare that many draws miss it; a base that few miss."""
    value = np.ones(1)
    assert gain_interval(value, value, np.random.default_rng(0)) is None
    assert gain_interval(np.ones(5), np.zeros(5), np.random.default_rng(0), resamples=200) is None
    assert gain_interval(np.ones(5), np.eye(5)[0], np.random.default_rng(0), resamples=500) is None
    assert gain_interval(np.ones(9), np.repeat([1.0, 0.0], [7, 2]), np.random.default_rng(0), resamples=500) is not None
