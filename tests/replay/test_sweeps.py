"""Every point of a sweep is the single replay of its criterion, in machine code and without; scaled pools by hand."""

import dataclasses
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import lapledger.replay.engines
from lapledger.replay.batches.problem_batches import ProblemBatch, is_common, judge_many
from lapledger.replay.batches.scaling import Scale, scaled
from lapledger.replay.criteria import Criterion
from lapledger.replay.errors import ReplayError
from lapledger.replay.estimates import estimate
from lapledger.replay.judging.gates import judge
from lapledger.replay.studies.sweeps import Axes, Point, at, sweep
from tests.replay.builders import MS, make_tests, measured
from tests.replay.worlds import common, measurements


@given(m=st.lists(measurements(), min_size=1, max_size=3), criterion=common(), data=st.data())
@settings(deadline=None, max_examples=300)
def test_machine_code_agrees_with_numpy(m, criterion, data):
    """The oracle is `judge`, problem by problem, on the scaled measurements; whole numbers, so all are equal."""
    by = Scale(data.draw(st.sampled_from([1.0, 0.5, 1.3])), data.draw(st.sampled_from([0, MS, -2 * MS])))
    m = [dataclasses.replace(problem, problem=f"p{n}") for n, problem in enumerate(m)]
    assert is_common(criterion)
    result, start = ProblemBatch.of(m, criterion).evaluate(criterion, by), 0
    for problem in m:
        rows = slice(start, start := start + len(problem.programs))
        verdicts, all_rows = judge(scaled(problem, criterion, by), criterion), slice(0, len(problem.programs))
        assert result.c[rows].tolist() == verdicts.c[all_rows].tolist()
        assert result.gate(criterion)[rows].tolist() == verdicts.g[all_rows].tolist()
        assert result.status(criterion)[rows].tolist() == verdicts.status[all_rows].tolist()
        for name in ("q_lo", "q_hi", "q_den", "pool_size", "censored_below_limit", "none_finished"):
            assert getattr(result, name)[rows].tolist() == getattr(verdicts, name)[all_rows].tolist(), name


@pytest.fixture(params=[0, 10**9], ids=["machine code", "one by one"])
def either(request, monkeypatch):
    """Both ways of a sweep."""
    monkeypatch.setattr(lapledger.replay.engines, "MACHINE_CODE_FROM", request.param)


@given(m=st.lists(measurements(), min_size=1, max_size=3), criterion=common(), compiled=st.booleans())
@settings(deadline=None, max_examples=40)
def test_every_point_is_its_single_replay(m, criterion, compiled):
    """p_tau, its interval over problems, its bound and its counts are those of `estimate`, to the last bit."""
    m = [dataclasses.replace(problem, problem=f"p{n}") for n, problem in enumerate(m)]
    axes = Axes((100, 50, 10), timeouts_ns=(None, 2 * MS), alphas=(1.0, 0.75), betas_ns=(0, -MS))
    reported = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(lapledger.replay.engines, "MACHINE_CODE_FROM", 0 if compiled else 10**9)
        points = sweep(m, criterion, axes, reported.append)
    assert sum(reported) == axes.replays == 24
    expected = []
    for scale in axes.scales:
        pools = [scaled(problem, criterion, scale) for problem in m]
        for timeout in axes.timeouts_ns:
            for tau in axes.taus:
                at_cell = at(criterion, timeout, tau)
                estimates = estimate([judge(pool, at_cell) for pool in pools], pools, 1)
                expected += [
                    Point(
                        e.model,
                        scale.alpha,
                        scale.beta_ns,
                        timeout,
                        tau,
                        100 * e.value,
                        None if e.interval is None else (100 * e.interval[0], 100 * e.interval[1]),
                        e.method,
                        100 * e.upper_bound,
                        e.undecided,
                        e.programs,
                        e.problems,
                    )
                    for e in estimates
                ]
    assert points == expected


def pool_of_four():
    """References of 100, 200, 300 and 400 ms on one test, a candidate of 250 ms and one of 90 ms."""
    wall = np.array([[100], [200], [300], [400], [250], [90]]) * MS
    models = ("human",) * 4 + ("model",) * 2
    candidate = np.array([False] * 4 + [True] * 2)
    return measured(wall, reference=range(4), models=models, candidate=candidate, tests=make_tests(1, original=1))


def test_slower_references_lift_candidates(either):
    """By hand: 250 ms is faster than two of four. Doubled references: 200, 400, 600, 800, faster than three.

    Halved: 50, 100, 150, 200: behind all. Less 300 ms, clipped at 0: 0, 0, 0, 100: behind all; 90 ms ahead of one.
    """
    criterion = Criterion(reading="score")
    axes = Axes((50, 25), alphas=(0.5, 1.0, 2.0), betas_ns=(0, -300 * MS))
    result = {(p.alpha, p.beta_ns, p.tau): p.p_tau for p in sweep([pool_of_four()], criterion, axes)}
    assert result[1.0, 0, 50] == 100
    assert result[1.0, 0, 25] == 50
    assert result[2.0, 0, 25] == 100
    assert result[0.5, 0, 50] == 50  # 90 ms: one of four is faster
    assert result[0.5, 0, 25] == 50
    assert result[1.0, -300 * MS, 50] == 0
    assert result[2.0, -300 * MS, 50] == 100  # 0, 100, 300, 500: 250 ms behind two, 90 ms behind one


def test_a_timeout_is_requested_as_a_limit_on_optimization_tests(either):
    """By hand: 200 ms stop the candidate of 250 ms, and two references leave the pool."""
    result = sweep([pool_of_four()], Criterion(), Axes((100,), timeouts_ns=(None, 200 * MS, 50 * MS)))
    assert [(p.timeout_ns, p.p_tau) for p in result] == [(None, 100.0), (200 * MS, 50.0), (50 * MS, 0.0)]


def test_other_criteria_are_judged_one_by_one():
    """A relative limit is none that machine code knows; the sweep says the same as the single replay all the same."""
    criterion = Criterion(reading="over-limit", limit_quantile="50", timeouts="tolerated")
    assert not is_common(criterion)
    (point,) = sweep([pool_of_four()], criterion, Axes((100,), alphas=(2.0,)))
    pool = scaled(pool_of_four(), criterion, Scale(2.0))
    (problem,) = estimate([judge(pool, criterion)], [pool], 1)
    assert (point.model, point.p_tau) == (problem.model, 100 * problem.value)


def test_a_problem_that_left_is_not_counted():
    """Every problem is dropped by the filter: no problem is left, and p_tau is no number."""
    (point,) = sweep([pool_of_four()], Criterion(keep_ms=10_000), Axes((50,)))
    assert (point.problems, math.isnan(point.p_tau)) == (0, True)


@pytest.mark.parametrize(
    ("axes", "message"),
    [
        ({"taus": ()}, "an axis is empty"),
        ({"taus": (0,)}, "tau 0"),
        ({"taus": (101,)}, "tau 101"),
        ({"taus": (50,), "timeouts_ns": (1,)}, "a timeout of 1 ns"),
        ({"taus": (50,), "alphas": (0.0,)}, "alpha 0"),
        ({"taus": (50,), "alphas": (math.nan,)}, "alpha nan"),
        ({"taus": (50,), "betas_ns": (2**61,)}, "a beta of"),
    ],
)
def test_a_grid_of_wrong_values_is_refused(axes, message):
    with pytest.raises(ReplayError, match=message):
        Axes(**axes)


def test_memory_is_not_scaled(either):
    """Bytes do not change with the speed of a sandbox."""
    m = dataclasses.replace(pool_of_four(), memory_bytes=pool_of_four().wall_ns)
    with pytest.raises(ReplayError, match="the clock is 'memory'"):
        sweep([m], Criterion(clock="memory"), Axes((50,), alphas=(2.0,)))
    assert sweep([m], Criterion(clock="memory"), Axes((50,)))[0].programs == 2


def test_other_criteria_than_the_prepared_ones_are_refused():
    batch = ProblemBatch.of([pool_of_four()], Criterion())
    with pytest.raises(ReplayError, match="judge this one by itself"):
        batch.evaluate(Criterion(clock="cpu"))
    with pytest.raises(ReplayError, match="judge this one by itself"):
        batch.evaluate(Criterion(limit_quantile="50"))


@given(m=st.lists(measurements(), min_size=1, max_size=3), criterion=common())
@settings(deadline=None, max_examples=40)
def test_many_problems_are_judged_as_one_by_one(m, criterion):
    """Verdicts in machine code are those of `judge`, ranks and reasons too, and so is what estimates make of them."""
    m = [dataclasses.replace(problem, problem=f"p{n}") for n, problem in enumerate(m)]
    expected = [judge(problem, criterion) for problem in m]
    for result, verdicts in zip(judge_many(m, criterion), expected, strict=True):
        names = {field.name for field in dataclasses.fields(verdicts)} - {"details_from"}
        for name in sorted(names | {"k_lo", "k_hi", "reason"}):
            ours, theirs = getattr(result, name), getattr(verdicts, name)
            assert np.array_equal(ours, theirs), name
            assert np.asarray(ours).dtype == np.asarray(theirs).dtype, name
    batch = ProblemBatch.of(m, criterion)
    rates = {rate.model: rate for rate in batch.programs.rates(batch.evaluate(criterion).status(criterion))}
    estimates = estimate(expected, m, 1)
    assert sorted(rates) == [problem.model for problem in estimates]
    for problem in estimates:
        rate = rates[problem.model]
        assert (rate.value, rate.passed, rate.undecided) == (problem.value, problem.passed, problem.undecided)
        assert (rate.programs, rate.problems) == (problem.programs, problem.problems)
        assert (rate.upper_bound, rate.interval, rate.method) == (problem.upper_bound, problem.interval, problem.method)


@pytest.mark.parametrize("reading", ["leaderboard", "score"])
def test_many_references_are_searched(reading):
    """The oracle is `judge`; 150 references, with ties, exact duplicates, killed and wrong runs."""
    random = np.random.default_rng(1)
    shape = (180, 4)
    m = measured(
        random.integers(1, 60, shape),
        reference=range(150),
        outcome=random.choice([1, 1, 1, 1, 1, 1, 1, 1, 1, 6, 2], shape),
        limit=40,
        duplicate=random.integers(0, 120, 180),
        tests=make_tests(4, original=1),
    )
    criterion = Criterion(tau="30", reading=reading, correctness="original")
    (result,), expected = judge_many([m], criterion), judge(m, criterion)
    for name in ("c", "g", "status", "q_lo", "q_hi", "q_den", "pool_size"):
        assert getattr(result, name).tolist() == getattr(expected, name).tolist(), name
