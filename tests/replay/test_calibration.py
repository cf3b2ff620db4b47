"""Calibration: the affine map, its merits out of fold, its refusals, and the references it moves."""

import dataclasses
import json
import statistics
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lapledger.replay.calibration import Fit, apply, fit_kinds, fit_line, with_stored
from lapledger.replay.criteria import Criterion
from lapledger.replay.errors import ReplayError
from lapledger.replay.judging.gates import judge
from lapledger.replay.measurements import Outcome, kill_bounds
from tests.replay.builders import MS, make_tests, measured


def fit_affine(stored, fresh, criterion):
    """The least-squares line alone."""
    return fit_kinds(stored, fresh, criterion, ("affine",))[0]


def campaigns(a, b_ns, *, problems=4, noise=0.0, rerun=5):
    """Stored and fresh problems: 8 references on 4 tests, the first `rerun` again at a * stored + b, with noise."""
    rng = np.random.default_rng(1)
    stored, fresh = [], []
    for i in range(problems):
        wall = (rng.uniform(5, 400, (8, 4)) * MS).astype(np.int64)
        again = np.maximum((a * wall + b_ns) * (1 + noise * rng.standard_normal((8, 4))), 1).astype(np.int64)
        name = f"problem {i}"
        stored.append(measured(wall, reference=range(8), problem=name, campaign="old"))
        m = measured(again[:rerun], reference=range(rerun), problem=name, campaign="new")
        fresh.append(m)
    return stored, fresh


def two_regimes():
    """Short tests run at 0.9 of their stored time, one long test at 0.5: least squares sees only the long one."""
    stored, fresh = campaigns(1, 0)
    scale = np.array([0.02, 0.02, 0.02, 5])[:, None]
    shrink = np.array([0.9, 0.9, 0.9, 0.5])[:, None]
    stored = [dataclasses.replace(m, wall_ns=(m.wall_ns * scale).astype(np.int64)) for m in stored]
    fresh = [dataclasses.replace(m, wall_ns=(m.wall_ns * scale * shrink).astype(np.int64)) for m in fresh]
    return stored, fresh


@given(st.lists(st.tuples(st.integers(1, 10**9), st.integers(1, 10**9), st.integers(0, 2)), min_size=6, max_size=30))
def test_the_line_is_least_squares_with_and_without_each_group(points):
    """As statistics.linear_regression finds it, on all points and with each group left out."""
    x, y, group = (np.array(column) for column in zip(*points, strict=True))
    kept = [x[group != g] for g in range(3)]
    if set(group.tolist()) != {0, 1, 2} or any(np.ptp(part) < 10**6 for part in kept):
        return
    line = fit_line(x.astype(float), y.astype(float), group)
    everything = statistics.linear_regression(x.tolist(), y.tolist())
    assert (line.a, line.b) == pytest.approx(everything, rel=1e-6, abs=1e-3)
    for g in range(3):
        without = statistics.linear_regression(kept[g].tolist(), y[group != g].tolist())
        assert (line.out_a[g], line.out_b[g]) == pytest.approx(without, rel=1e-5, abs=1e-2)


def test_an_exact_drift_is_found():
    """fresh = 1.1 stored + 53 ms, to the ns: the map, R^2 and order are right out of fold, no map is not."""
    fit = fit_affine(*campaigns(1.1, 53 * MS), Criterion())
    assert (fit.a, fit.b_ns) == (pytest.approx(1.1, rel=1e-6), pytest.approx(53 * MS, rel=1e-6))
    assert (fit.pairs, fit.problems, fit.refused) == (4 * 5 * 4, 4, "")
    assert fit.merits.r2 == pytest.approx(1, abs=1e-9)
    assert fit.merits.error < 1e-6 < 0.1 < fit.unmapped.error
    assert fit.merits.spearman == pytest.approx(1)
    assert fit.unmapped.spearman < 0.95
    assert fit.merits.points < 0.01 < 10 < fit.unmapped.points


@pytest.mark.parametrize(
    ("pair", "reason"),
    [
        (campaigns(1.1, 53 * MS, problems=1), "20 pairs on 1 problems"),
        (campaigns(1.1, 53 * MS, rerun=0), "0 pairs on 0 problems"),
        (campaigns(0, 53 * MS, noise=1e-9), "slope"),
        (campaigns(-0.5, 400 * MS), "slope -0.5 is not positive"),
        (campaigns(1, 0), "held-out median relative error"),
        (two_regimes(), "held-out median relative error"),
    ],
)
def test_a_map_that_does_not_help_is_refused(pair, reason):
    """Too little data, no increasing map, or no gain over no map: the reason is given and the map cannot be used."""
    fit = fit_affine(*pair, Criterion())
    assert reason in fit.refused
    with pytest.raises(ReplayError, match="refused"):
        apply(fit, np.array([1]))
    with pytest.raises(ReplayError, match="refused"):
        with_stored(pair[1][0], pair[0][0], fit)


def test_runs_that_did_not_finish_on_both_arms_do_not_fit():
    """A killed, wrong or missing run on either side is no pair; nor is a correctness test."""
    stored, fresh = campaigns(1.2, 10 * MS)
    outcome = fresh[0].outcome.copy()
    outcome[0] = [Outcome.TIME_LIMIT, Outcome.WRONG_ANSWER, Outcome.MISSING, Outcome.OK]
    fresh[0] = dataclasses.replace(fresh[0], outcome=outcome, tests=make_tests(4, correctness=1))
    wall = fresh[0].wall_ns.copy()
    wall[0, :3] = 1  # would ruin the fit
    fresh[0] = dataclasses.replace(fresh[0], wall_ns=wall)
    fit = fit_affine(stored, fresh, Criterion())
    assert fit.pairs == 80 - 5 - 2
    assert fit.a == pytest.approx(1.2, rel=1e-6)


def test_programs_and_tests_match_by_id():
    """Another order of programs and tests changes nothing."""
    stored, fresh = campaigns(1.1, 53 * MS, noise=0.02)
    verdict_changes = [
        dataclasses.replace(m, programs=m.programs[::-1], outcome=m.outcome[::-1], wall_ns=m.wall_ns[::-1])
        for m in stored
    ]
    verdict_changes = [dataclasses.replace(m, duplicate=m.duplicate[::-1]) for m in verdict_changes]
    flipped = [
        dataclasses.replace(m, wall_ns=m.wall_ns[:, ::-1], tests=dataclasses.replace(m.tests, ids=m.tests.ids[::-1]))
        for m in verdict_changes
    ]
    expected, result = (fit_affine(stored_part, fresh, Criterion()) for stored_part in (stored, flipped))
    for part in ("merits", "unmapped"):
        values = [dataclasses.astuple(getattr(fit, part)) for fit in (expected, result)]
        assert values[1] == pytest.approx(values[0], rel=1e-9)
    numbers = [(f.a, f.b_ns, f.pairs, f.problems, f.low_ns, f.high_ns, f.moved, f.outside) for f in (expected, result)]
    assert numbers[1] == pytest.approx(numbers[0], rel=1e-9)


def test_a_mapped_reference_joins_the_pool_and_is_never_judged():
    """The stored references that were not re-run are added once, mapped, as pool only; verdicts equal a full re-run."""
    stored, fresh = campaigns(1.1, 53 * MS)
    everything = campaigns(1.1, 53 * MS, rerun=8)[1]
    fit = fit_affine(stored, fresh, Criterion())
    pooled = with_stored(fresh[0], stored[0], fit)
    assert pooled.programs == tuple(f"p{i}" for i in range(8))
    assert pooled.candidate.tolist() == [True] * 5 + [False] * 3
    np.testing.assert_allclose(pooled.wall_ns[5:, :, 0], everything[0].wall_ns[5:, :, 0], atol=2)
    criterion = Criterion(tau="50")
    assert judge(pooled, criterion).k_lo.tolist() == judge(everything[0], criterion).k_lo.tolist()


def test_what_was_killed_stays_killed_at_the_mapped_limit():
    """A stored killed reference keeps its outcome, its bound mapped; a test that was not stored is missing."""
    stored, fresh = campaigns(2, 10 * MS, problems=3)
    outcome = stored[0].outcome.copy()
    outcome[7, 0] = Outcome.TIME_LIMIT
    ids = ("t0", "t1", "t2", "new")
    stored[0] = dataclasses.replace(stored[0], outcome=outcome, limit_ns=np.full((8, 4), 500 * MS))
    fit = fit_affine(stored, fresh, Criterion())
    m = dataclasses.replace(fresh[0], tests=dataclasses.replace(fresh[0].tests, ids=ids))
    pooled = with_stored(m, stored[0], fit)
    assert pooled.outcome[7].tolist() == [Outcome.TIME_LIMIT, Outcome.OK, Outcome.OK, Outcome.MISSING]
    assert pooled.limit_ns[7, 0] == pytest.approx(1010 * MS, abs=2)
    assert (pooled.wall_ns[7, 3, 0], pooled.limit_ns[7, 3]) == (-1, -1)


@given(
    repetitions=st.lists(st.integers(1, 9), max_size=3),
    more=st.integers(0, 2),
    reading=st.sampled_from([("wall", "keep"), ("wall", "subtract"), ("cpu", "keep")]),
    estimator=st.sampled_from(["median", "min", "mean", "hodges-lehmann"]),
)
def test_no_more_is_known_of_a_killed_run_after_the_map(repetitions, more, reading, estimator):
    """The identity map leaves every kill bound as it was, however many repetitions the fresh campaign has."""
    criterion = Criterion(clock=reading[0], startup=reading[1], estimator=estimator)
    stored = measured(
        np.array([[repetitions]]).reshape(1, 1, -1),
        reference=[0],
        outcome=[[Outcome.TIME_LIMIT]],
        limit=12,
        startup_ns=np.array([[3]]),
        programs=("old",),
    )
    fresh = measured(np.ones((1, 1, more)), reference=[], programs=("new",))
    identity = Fit(1.0, 0.0, 3, 2, criterion.clock, criterion.estimator, criterion.startup)
    pooled = with_stored(fresh, stored, identity)
    assert kill_bounds(pooled, criterion)[1] == kill_bounds(stored, criterion)[0]


def test_the_map_holds_for_its_own_clock_and_start_up():
    """A fit on CPU time fills the CPU clock only; one without the start-up leaves none to subtract."""
    stored, fresh = campaigns(1.5, 0)
    fit = fit_affine(stored, fresh, Criterion(clock="cpu"))
    pooled = with_stored(fresh[0], stored[0], fit)
    assert (fit.clock, fit.startup) == ("cpu", "keep")
    assert (pooled.wall_ns[5:] == -1).all()
    np.testing.assert_allclose(pooled.cpu_ns[5:, :, 0], 1.5 * stored[0].cpu_ns[5:, :, 0], atol=2)
    stored = [dataclasses.replace(m, startup_ns=m.startup_ns + MS) for m in stored]
    fit = fit_affine(stored, fresh, Criterion(startup="subtract"))
    pooled = with_stored(fresh[0], stored[0], fit)
    assert (fit.clock, fit.startup) == ("wall", "subtract")
    assert (pooled.cpu_ns[5:] == -1).all()
    expected = 1.5 * stored[0].wall_ns[5:, :, 0]  # the fresh ones have no start-up: 1.5 (stored - 1 ms) + 1.5 ms
    np.testing.assert_allclose(pooled.wall_ns[5:, :, 0], expected, atol=2)
    assert (pooled.startup_ns[5:] == 0).all()


def test_a_map_of_memory_fills_memory_alone():
    """A fit on peak memory: mapped bytes, no wall or CPU time; stored references bring no word of their interface."""
    stored, fresh = (
        [dataclasses.replace(m, memory_bytes=m.wall_ns) for m in stored_part] for stored_part in campaigns(1.5, 0)
    )
    fresh = [dataclasses.replace(m, interface=np.ones(5, dtype=np.int8)) for m in fresh]
    fit = fit_affine(stored, fresh, Criterion(clock="memory"))
    pooled = with_stored(fresh[0], stored[0], fit)
    np.testing.assert_allclose(pooled.memory_bytes[5:, :, 0], 1.5 * stored[0].memory_bytes[5:, :, 0], atol=2)
    assert (pooled.wall_ns[5:] == -1).all()
    assert (pooled.cpu_ns[5:] == -1).all()
    assert pooled.interface.tolist() == [1] * 5 + [-1] * 3
    assert judge(pooled, Criterion(tau="50", clock="memory")).pool_size.tolist() == [7] * 8


def test_durations_stay_positive():
    """A mapped duration is a whole number of ns, at least 1."""
    fit = dataclasses.replace(fit_affine(*campaigns(1.1, 53 * MS), Criterion()), a=0.5, b_ns=-10.0)
    assert apply(fit, np.array([[1, 21], [22, 24]])).tolist() == [[1, 1], [1, 2]]


def test_a_problem_given_twice_is_refused():
    """Two measurements of one problem on one side have no meaning."""
    stored, fresh = campaigns(1.1, 53 * MS)
    with pytest.raises(ReplayError, match="twice"):
        fit_affine([*stored, stored[0]], fresh, Criterion())


PYPERF = Path(__file__).parents[3] / "shared" / "data" / "pyperf"


def benchmarks(machine):
    """One problem a pyperf benchmark, with its mean value in ns as the only reference's duration."""
    (path,) = PYPERF.glob(f"bm-*-{machine}-*.json")
    problems = []
    for m in json.loads(path.read_text())["benchmarks"]:
        values = [value for run in m["runs"] for value in run.get("values", [])]
        wall = [[round(statistics.mean(values) * 1e9)]]
        problems.append(measured(wall, reference=[0], problem=m["metadata"]["name"]))
    return problems


@pytest.mark.realdata
@pytest.mark.skipif(not PYPERF.is_dir(), reason="third-party files are not beside the checkout")
def test_real_machines_of_pyperf():
    """CPython 3.11.3's benchmarks, machine to machine: leave-one-out R^2 0.9935 (slope 1.053, -1.7 ms) and 0.625."""
    linux = benchmarks("linux-x86_64")
    near, far = (
        fit_affine(linux, benchmarks(name), Criterion()) for name in ("pythonperf2-x86_64", "pythonperf1-amd64")
    )
    assert (near.a, near.b_ns / 1e6) == (pytest.approx(1.053, abs=5e-4), pytest.approx(-1.7, abs=0.05))
    assert (near.merits.r2, far.merits.r2) == (pytest.approx(0.9935, abs=5e-5), pytest.approx(0.625, abs=5e-4))
