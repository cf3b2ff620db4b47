"""Intervals clustered by problem against scipy and statsmodels; problems, samples and training runs kept apart."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats
from statsmodels.api import OLS
from statsmodels.stats.proportion import proportion_confint
from statsmodels.stats.weightstats import CompareMeans, DescrStatsW

from lapledger.replay.errors import ReplayError
from lapledger.replay.estimates import (
    Counts,
    adjusted,
    analytic_interval,
    bootstrap,
    difference,
    difference_over_runs,
    gain_interval,
    many_comparisons,
    mean_interval,
    over_runs,
    p_value,
    pass_at_k,
    pass_estimate,
    relative_gain,
    run_values,
    t_interval,
    two_stage,
    wilson_interval,
)
from lapledger.replay.estimates.intervals import mean

RATES = st.lists(st.sampled_from([0.0, 0.25, 0.5, 0.75, 1.0]), min_size=3, max_size=30).filter(
    lambda v: len(set(v)) > 1
)


def counts(passed, samples=4, *, run="a", undecided=0, names=None, excluded=()):
    """A run with so many passes a problem."""
    passed = np.array(passed, dtype=np.int64)
    problems = tuple(names or (f"problem {i}" for i in range(len(passed))))
    full, open_ = (np.broadcast_to(np.array(v, dtype=np.int64), passed.shape) for v in (samples, undecided))
    return Counts(run, problems, full, passed, open_, excluded)


def rng():
    """The same numbers each time."""
    return np.random.default_rng(7)


@given(RATES)
def test_the_analytic_interval_is_cluster_robust(rates):
    """That of statsmodels' OLS on the single samples, four a problem, with errors clustered by problem and t(P - 1)."""
    samples = np.array([[1.0] * round(4 * r) + [0.0] * round(4 - 4 * r) for r in rates]).ravel()
    groups = np.repeat(np.arange(len(rates)), 4)
    fit = OLS(samples, np.ones(len(samples))).fit(cov_type="cluster", cov_kwds={"groups": groups}, use_t=True)
    assert mean_interval(np.array(rates)) == pytest.approx(fit.conf_int()[0], rel=1e-9)


def test_the_bootstrap_is_that_of_scipy():
    """Percentile method, the same generator and so the same problems drawn: equal to the last digits."""
    values = np.random.default_rng(1).beta(2, 3, 40)
    theirs = stats.bootstrap((values,), np.mean, n_resamples=2000, method="percentile", rng=rng()).confidence_interval
    assert bootstrap([values], mean, rng(), resamples=2000) == pytest.approx((theirs.low, theirs.high), rel=1e-12)


def test_the_gain_is_bootstrapped_in_pairs_as_scipy_does():
    """The relative gain of one mean over another, problems drawn together."""
    a, b = np.random.default_rng(2).beta(3, 3, (2, 60))

    def gain(x, y, axis):
        return x.mean(axis=axis) / y.mean(axis=axis) - 1

    theirs = stats.bootstrap(
        (a, b), gain, paired=True, vectorized=True, n_resamples=2000, method="percentile", rng=rng()
    ).confidence_interval
    assert gain_interval(a, b, rng(), resamples=2000) == pytest.approx((theirs.low, theirs.high), rel=1e-12)
    assert gain_interval(a, np.zeros(60), rng(), resamples=100) is None
    assert gain_interval(a[:1], b[:1], rng()) is None


def test_blocks_of_resamples_change_nothing(monkeypatch):
    """Memory is bounded by blocks; the numbers are drawn in the same order."""
    values = np.random.default_rng(1).beta(2, 3, 40)
    resampled = bootstrap([values], mean, rng(), resamples=500)
    monkeypatch.setattr("lapledger.replay.estimates.intervals.CELLS", 40 * 7)
    assert bootstrap([values], mean, rng(), resamples=500) == resampled
    with pytest.raises(ReplayError, match="0 resamples"):
        bootstrap([values], mean, rng(), resamples=0)


@given(st.integers(3, 40), st.integers(0, 40))
def test_wilson_is_that_of_statsmodels_on_the_effective_size(problems, passed):
    """One sample a problem: n_eff = P - 1, or P where nothing varies, and t(P - 1) in the place of z."""
    values = np.array([1.0] * min(passed, problems) + [0.0] * (problems - min(passed, problems)))
    p = values.mean()
    n = problems if p in (0, 1) else problems - 1
    alpha = 2 * stats.norm.sf(stats.t.isf(0.025, problems - 1))
    low, high = proportion_confint(p * n, n, alpha, method="wilson")
    assert wilson_interval(values) == pytest.approx((low, high), abs=1e-12)
    few = min(values.sum(), (1 - values).sum())
    assert analytic_interval(values)[1] == ("wilson" if few < 5 else "t")


def test_nobody_passing_is_no_proof_of_zero():
    """0 of 20 problems: the t interval is a point, Wilson's reaches to 18%; with one problem there is none."""
    nothing = np.zeros(20)
    assert t_interval(nothing) == (0.0, 0.0)
    low, high = analytic_interval(nothing)[0]
    assert (low, high) == (0.0, pytest.approx(0.1797, abs=1e-4))
    assert p_value(np.array([0.1, 0.3 - 0.2])) is None  # equal but for rounding
    assert (wilson_interval(np.ones(1)), mean_interval(np.ones(1)), p_value(np.ones(1))) == (None, None, None)


def test_drawing_samples_too_widens_the_interval():
    """30 problems of 4 samples, all with 2 passes: no spread over problems; drawn within, pass@1 moves by 0.25 / sqrt.

    The SD of the mean of 30 binomial shares of 4 is sqrt(0.25 / 4 / 30) = 0.0456.
    """
    even = counts([2] * 30)
    assert bootstrap([even.rates(1)], mean, rng(), resamples=500) == (0.5, 0.5)
    low, high = two_stage(even, 1, rng(), resamples=4000)
    assert (high - low) / (2 * 1.96) == pytest.approx(0.0456, rel=0.06)
    mixed = counts([0, 1, 2, 3, 4, 5] * 5, samples=[4, 4, 4, 4, 4, 9] * 5)
    low, high = two_stage(mixed, 2, rng(), resamples=2000)
    assert low < mixed.rates(2).mean() < high
    assert two_stage(counts([1]), 1, rng()) is None
    with pytest.raises(ReplayError, match=r"pass@5 of a: problem problem 0 has 4 candidates; choose k <= 4"):
        two_stage(even, 5, rng())


def test_an_estimate_names_runs_problems_and_samples():
    """Two runs of three problems, one of which the second lacks: by hand, each column on its own."""
    first = counts([1, 2, 4], names=("p", "q", "r"), excluded=("gone",))
    second = counts([3, 4], run="b", names=("p", "q"), undecided=[1, 0])
    result = pass_estimate([first, second], 1, rng(), resamples=200)
    assert (result.runs, result.problems, result.samples, result.excluded) == (("a", "b"), 2, 16, ("gone", "r"))
    assert (result.value, result.upper_bound) == (pytest.approx((0.5 + 0.75) / 2), pytest.approx((0.625 + 0.75) / 2))
    runs = np.array([(0.25 + 0.5) / 2, (0.75 + 1) / 2])
    assert run_values([counts([1, 2], names="pq"), counts([3, 4], names="pq")], 1) == pytest.approx(runs)
    assert result.over_runs == (0.0, 1.0)  # 0.625 -+ 12.7 * 0.25, clipped
    near = np.array([0.5, 0.51, 0.53])
    assert over_runs(near) == pytest.approx(DescrStatsW(near).tconfint_mean())
    assert result.over_problems is not None
    assert (result.method, result.two_stage) == ("wilson", None)
    alone = pass_estimate([first], 2, rng(), resamples=200)
    assert (alone.over_runs, alone.k, alone.problems) == (None, 2, 3)
    assert alone.value == pytest.approx(np.mean([pass_at_k(4, c, 2) for c in (1, 2, 4)]))
    assert alone.two_stage is not None


def test_a_difference_is_paired_by_problem():
    """As statsmodels' paired t interval and test; Welch over runs; bounds from what is undecided stay apart."""
    a, b = counts([4, 3, 3, 2, 4, 1], run="a"), counts([2, 3, 1, 0, 1, 1], run="b", undecided=[0, 0, 0, 1, 0, 0])
    result = difference([a], [b], 1, rng(), resamples=2000)
    apart = a.rates(1) - b.rates(1)
    assert result.difference == pytest.approx(apart.mean())
    assert result.over_problems == pytest.approx(DescrStatsW(apart).tconfint_mean())
    assert result.p == pytest.approx(stats.ttest_rel(a.rates(1), b.rates(1)).pvalue)
    assert (result.over_runs, result.samples, result.problems) == (None, (24, 24), 6)
    assert result.bounds == (pytest.approx(apart.mean() - 0.25 / 6), pytest.approx(apart.mean()))
    assert result.gain == pytest.approx(17 / 8 - 1)
    more = difference([a, counts([4, 4, 3, 3, 4, 0], run="a2")], [b, counts([2] * 6, run="b2")], 1, rng())
    first, second = (np.array([17, 18]) / 24, np.array([8, 12]) / 24)
    welch = CompareMeans(DescrStatsW(first), DescrStatsW(second)).tconfint_diff(usevar="unequal")
    assert more.over_runs == pytest.approx(welch)
    assert more.a_runs == ("a", "a2")


def test_problems_that_one_arm_lacks_are_named():
    """Compared is what both have; the rest is named, never averaged."""
    result = difference([counts([1, 2], names=("p", "q"))], [counts([4, 4], names=("q", "r"))], 1, rng())
    assert (result.problems, result.excluded, result.a, result.b) == (1, ("p", "r"), 0.5, 1.0)
    assert (result.over_problems, result.bootstrapped, result.p) == (None, None, None)
    nothing = difference([counts([1], names=("p",))], [counts([4], names=("r",))], 1, rng())
    assert (nothing.problems, nothing.gain) == (0, None)
    assert np.isnan(nothing.difference)
    with pytest.raises(ReplayError, match="not all sampled on the same problems"):
        run_values([counts([1]), counts([1, 2])], 1)


@pytest.mark.parametrize(
    ("trained", "base", "gain"), [(31.3, 18.0, 73.9), (19.1, 7.7, 148.1), (50.4, 30.7, 64.2), (30.9, 13.7, 125.5)]
)
def test_the_published_relative_gains(trained, base, gain):
    """p_50 and p_30 of top-30% over RLVR, 7B and CWM: the domain's section 10 recomputes them to one decimal."""
    assert round(100 * relative_gain(trained, base), 1) == gain
    assert relative_gain(trained, 0) is None


def test_with_302_problems_the_half_width_is_the_published_one():
    """Domain, section 9: with 302 problems the 95% half-width at p_50 is about 4.3 points.

    20 samples a problem, at the published 31.3%: so wide an interval means that most problems pass almost always or
    almost never, as chances of beta(0.15, 0.33) do.
    """
    draw = np.random.default_rng(5)
    passed = draw.binomial(20, draw.beta(0.15, 0.33, 302))
    low, high = pass_estimate([counts(passed, samples=20)], 1, rng(), resamples=100).over_problems
    assert 100 * (high - low) / 2 == pytest.approx(4.3, abs=0.4)


def test_runs_are_an_uncertainty_of_their_own():
    """One run has none; runs that agree have no width; Welch's interval needs two on both sides."""
    assert over_runs(np.array([0.3])) is None
    assert difference_over_runs(np.array([0.3, 0.4]), np.array([0.2])) is None
    assert difference_over_runs(np.array([0.5, 0.5]), np.array([0.25, 0.25])) == (0.25, 0.25)


def test_many_comparisons_are_adjusted_and_stated():
    """By hand for Holm (0.01 * 3, 0.02 * 2, 0.2) and Benjamini-Hochberg (0.03, 0.03, 0.2); None counts as none."""
    p_values = [0.2, None, 0.01, 0.02]
    assert adjusted(p_values) == [pytest.approx(0.2), None, pytest.approx(0.03), pytest.approx(0.04)]
    assert adjusted(p_values, "fdr_bh") == [pytest.approx(0.2), None, pytest.approx(0.03), pytest.approx(0.03)]
    assert adjusted([None]) == [None]
    assert many_comparisons(4) == ""
    assert many_comparisons(40).startswith("40 comparisons: where nothing differs about 2 would still fall below")
    with pytest.raises(ReplayError, match="no method 'sidak'; use one of holm, fdr_bh"):
        adjusted(p_values, "sidak")
