"""Estimates: pass@k without bias, intervals over problems, and every denominator shown."""

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats
from statsmodels.stats.weightstats import DescrStatsW

from lapledger.replay.criteria import Criterion
from lapledger.replay.errors import ReplayError
from lapledger.replay.estimates import count, estimate, pass_at_k, pass_estimate, resolution_warning, t_interval
from lapledger.replay.judging.gates import judge
from lapledger.replay.studies.curves import learning_curve, tau_curve
from lapledger.replay.studies.models import Checkpoint
from tests.replay.builders import measured

COUNTS = st.integers(1, 9).flatmap(lambda n: st.tuples(st.just(n), st.integers(0, n), st.integers(1, n)))


@given(COUNTS)
def test_pass_at_k_is_the_share_of_draws_with_a_pass(counts):
    """Counted draw by draw: of all k-subsets of n samples, those with at least one of the c that pass."""
    n, c, k = counts
    draws = list(combinations([True] * c + [False] * (n - c), k))
    assert pass_at_k(n, c, k) == sum(any(draw) for draw in draws) / len(draws)


@given(st.integers(1, 400).flatmap(lambda n: st.tuples(st.just(n), st.integers(0, n), st.integers(1, n))))
def test_pass_at_k_is_the_published_product(counts):
    """1 if n-c < k else 1 - prod_{i=n-c+1..n} (1 - k/i), as HumanEval's code has it."""
    n, c, k = counts
    expected = 1.0 if n - c < k else 1 - np.prod(1 - k / np.arange(n - c + 1, n + 1))
    assert pass_at_k(n, c, k) == pytest.approx(expected, abs=1e-10)


@pytest.mark.parametrize("counts", [(4, 1, 5), (4, 5, 1), (4, -1, 1), (4, 1, 0)])
def test_pass_at_k_past_the_samples_is_refused(counts):
    """No 1.0 where n < k, and no impossible counts."""
    with pytest.raises(ReplayError):
        pass_at_k(*counts)


@given(st.lists(st.floats(0.3, 0.7), min_size=2, max_size=30).filter(lambda v: np.std(v) > 1e-6))
def test_the_interval_is_the_t_interval_of_statsmodels(values):
    """95%, n - 1 degrees of freedom, clipped to [0, 1]."""
    low, high = DescrStatsW(values).tconfint_mean(alpha=0.05)
    assert t_interval(np.array(values)) == pytest.approx((max(low, 0), min(high, 1)), abs=1e-12)


def problem(name, outcomes, models):
    """One problem whose programs pass (1), fail (2) or lack a test (0)."""
    outcomes = np.array(outcomes)[:, None]
    return measured(np.ones(outcomes.shape), reference=[], outcome=outcomes, problem=name, models=models)


def wilson(p, variance, problems):
    """Wilson's interval from its own equation, (p - x)^2 = t^2 x (1 - x) / n, with n = p (1 - p) / variance."""
    n = p * (1 - p) / variance if variance else problems
    t2 = stats.t.ppf(0.975, problems - 1) ** 2
    low, high = np.sort(np.roots([1 + t2 / n, -(2 * p + t2 / n), p * p]))
    return low, high


@pytest.mark.parametrize("passing", [0, 1, 4, 16, 20])
def test_one_interval_wherever_pass_at_1_is_reported(passing):
    """Of 20 problems 0, 1, 4, 16 or 20 pass: estimate, report, tau curve and learning curve have Wilson's interval.

    0 of 20 is 0 to 18%, in a table and in a picture alike.
    """
    measurements = [problem(f"p{i}", [1 if i < passing else 2], ("a",)) for i in range(20)]
    p = passing / 20
    expected = wilson(p, p * (1 - p) / 19, 20)
    verdicts = [judge(m, Criterion()) for m in measurements]
    (estimated,) = estimate(verdicts, measurements, 1)
    assert estimated.interval == pytest.approx(expected, abs=1e-9)
    reported = pass_estimate([count(verdicts, measurements, "a")], 1, np.random.default_rng(0), resamples=100)
    assert reported.over_problems == estimated.interval
    _, _, low, high = tau_curve(measurements, Criterion(), ["100"])["a"]
    assert (low[0], high[0]) == estimated.interval
    (point,) = learning_curve(
        measurements,
        Criterion(),
        [Checkpoint("a", 1, "a")],
        taus=["100"],
        tiers={},
        rng=lambda: np.random.default_rng(0),
    )
    assert point.interval == pytest.approx(tuple(100 * end for end in estimated.interval))
    assert (estimated.method, reported.method, point.method) == ("wilson",) * 3


def test_an_estimate_names_its_denominators():
    """By hand: model a passes 1/2 and 2/2 of two problems; one undecided program of b is in the upper bound only."""
    measurements = [problem("one", [1, 2, 1], ("a", "a", "b")), problem("two", [1, 1, 0], ("a", "a", "b"))]
    a, b = estimate([judge(m, Criterion()) for m in measurements], measurements, 1)
    assert (a.model, a.problems, a.programs, a.passed, a.failed, a.undecided) == ("a", 2, 4, 3, 1, 0)
    assert (a.value, a.upper_bound) == (0.75, 0.75)
    assert (a.interval, a.method) == (pytest.approx(wilson(0.75, 0.0625, 2)), "wilson")
    assert (b.value, b.upper_bound, b.undecided) == (0.5, 1.0, 1)


def test_references_that_are_not_candidates_are_not_counted():
    """Pool-only programs rank others but belong to no model's estimate; the pool's range is shown."""
    wall, candidate = [[3], [1], [5], [7]], np.array([True, True, False, False])
    m = measured(wall, reference=[1, 2, 3], candidate=candidate, models=("a", "human", "human", "human"))
    a, human = estimate([judge(m, Criterion(tau="50"))], [m], 1)
    assert (a.programs, a.references_min, a.references_max, a.value, a.interval) == (1, 3, 3, 1.0, None)
    assert (human.programs, human.references_min, human.references_max) == (1, 2, 2)


def test_pass_at_k_needs_k_candidates_on_every_problem():
    """A problem with fewer than k candidates is an error that names it, never a silent gap."""
    measurements = [problem("one", [1, 1], ("a", "a")), problem("two", [1], ("a",))]
    verdicts = [judge(m, Criterion()) for m in measurements]
    with pytest.raises(ReplayError, match="problem two has 1 candidates"):
        estimate(verdicts, measurements, 2)
    with pytest.raises(ReplayError, match="different problems"):
        estimate(verdicts[::-1], measurements, 1)


def test_the_published_gain_is_reproduced_by_the_same_arithmetic():
    """Mean over problems: 181 of 1,000 one-sample problems passing is 18.1%, half-width 1.96 sqrt(p(1-p)/n) or so."""
    values = np.repeat([1.0, 0.0], [181, 819])
    low, high = t_interval(values)
    assert (high + low) / 2 == pytest.approx(0.181)
    assert (high - low) / 2 == pytest.approx(1.96 * np.sqrt(0.181 * 0.819 / 1000), rel=0.01)


@pytest.mark.parametrize(
    ("sizes", "tau", "small"),
    [([10, 12], "10", 0), ([9, 12], "10", 1), ([9, 0], "10", 2), ([2], "50", 0), ([1], "100", 0), ([], "10", 0)],
)
def test_pools_that_cannot_resolve_tau_are_counted(sizes, tau, small):
    """With n references q moves in steps of 100/n points: where that is above tau, the estimate says so."""
    warning = resolution_warning(sizes, Criterion(tau=tau))
    assert warning.startswith(f"p_{tau} needs pools") if small else warning == ""
    assert f"{small} of {len(sizes)} pools" in warning or not small


def test_models_come_in_alphabetical_order():
    """The order of rows does not depend on the order of programs."""
    m = problem("one", [1, 1, 1], ("b", "human", "a"))
    assert [e.model for e in estimate([judge(m, Criterion())], [m], 1)] == ["a", "b", "human"]
