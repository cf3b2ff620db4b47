"""The simulator: its figures by formula and by numpy and scipy, its draws by hand, and what must not change them."""

import dataclasses
import math
from functools import partial

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from lapledger.replay.criteria import ENVIRONMENTS, PRESETS, Criterion
from lapledger.replay.devices.questions import generator, one_by_one
from lapledger.replay.errors import ReplayError
from lapledger.replay.judging.gates import judge
from lapledger.replay.judging.rewards import reward
from lapledger.replay.measurements import Outcome
from lapledger.replay.studies.ladders import DRAWS, POINTS, ladder, reachable, streams
from lapledger.replay.studies.simulator import Figures, agreement, correlation_p, figures, simulate
from tests.replay.builders import MS, make_tests, measured, problems
from tests.replay.program_groups import candidates_of

U = np.linspace(0, 1, POINTS)
BY_RANK = Criterion(reading="score", reward="collapsed", shape="continuous")
"""Pays 1 - 2q, where q is the mean percentile among the references: the reward of the diagonal."""


def ladders(several):
    return [ladder(m, generator(0, m.problem)) for m in several]


def run(several, criterion, seed=0):
    (result,) = simulate(several, {"it": criterion}, runner=partial(one_by_one, seed=seed))
    return result


# figures of a curve


def test_the_diagonal():
    """f(u) = u: AUC 1/2, slope 1, S = 1/2, on the diagonal, rising throughout, without noise."""
    result = figures(U)
    assert dataclasses.astuple(result) == pytest.approx((0.5, 1, 0.5, 0, 1, 0), abs=1e-12)
    assert result.verdict == "steep and balanced"


def test_a_step_at_one_half():
    """f = 0 below 1/2, 1 from there on, at 21 points: slope 6 * 21 * ... by numpy's polyfit; AUC by its trapezoid."""
    f = (U >= 0.5).astype(float)
    result = figures(f)
    slope = np.polyfit(U, f, 1)[0]
    assert result.slope == pytest.approx(slope)
    assert result.steepness == pytest.approx(slope / (1 + slope))
    assert result.auc == pytest.approx(0.525)  # ten whole strips of 0.05 and half a one
    rough = [1 / 3, 1 / 3]  # the two points beside the step differ from their centred mean by -1/3 and +1/3
    assert result.noise == pytest.approx(math.sqrt(sum(r * r for r in rough) / 19))


@given(st.lists(st.integers(0, 1000).map(lambda n: n / 1000), min_size=POINTS, max_size=POINTS))
@settings(deadline=None, max_examples=60)
def test_figures_by_other_libraries(values):
    """scipy's regression and Spearman, numpy's trapezoid: the same numbers for any curve."""
    f = np.array(values)
    result = figures(f)
    line = stats.linregress(U, f)
    assert result.slope == pytest.approx(line.slope, abs=1e-9)
    assert result.steepness == pytest.approx(line.slope / (1 + abs(line.slope)), abs=1e-9)
    assert result.auc == pytest.approx(np.trapezoid(f, dx=1 / 20), abs=1e-9)
    assert result.deviation == pytest.approx(np.mean(np.abs(f - U)), abs=1e-9)
    if f.max() > f.min():
        assert result.monotonicity == pytest.approx(stats.spearmanr(f, U).statistic, abs=1e-9)
    smooth = np.convolve(f, np.ones(3) / 3, mode="valid")
    assert result.noise == pytest.approx(np.std(f[1:-1] - smooth), abs=1e-9)


@pytest.mark.parametrize(
    ("f", "verdict"),
    [
        (np.zeros(POINTS), "flat"),
        (np.ones(POINTS), "flat"),
        (0.05 * U, "sparse"),
        (1 - 0.05 * U, "saturated"),
        (0.4 + 0.2 * U, "flat"),  # slope 0.2, S = 1/6
        (0.3 + 0.3 * U, "steep and balanced"),  # slope 0.3, S = 3/13 = 0.23
        (1 - U, "flat"),  # falling
        (np.where(U < 0.1, np.nan, U), "undecided"),
    ],
)
def test_verdicts_by_their_cuts(f, verdict):
    """AUC below 0.1 sparse, above 0.9 saturated, S below 0.2 flat; what never varies is flat."""
    assert figures(f).verdict == verdict


# draws


@given(st.integers(2, 400))
@settings(deadline=None, max_examples=60)
def test_windows_have_width_a_tenth(programs):
    """Program i of n at i/(n - 1) may be drawn at u when it is within 0.05; there is always somebody to draw."""
    may = reachable(programs)
    at = np.arange(programs) / (programs - 1)
    away = np.abs(at[None, :] - U[:, None])
    clear = np.abs(away - 0.05) > 1e-9  # away from the edge, floats say the same
    inside = (away < 0.05).any(axis=1)
    assert (may[inside] == (away <= 0.05)[inside])[clear[inside]].all()
    assert may.any(axis=1).all()
    if programs >= 12:
        assert inside.all()


def test_who_may_be_drawn_by_hand():
    """Three programs at 0, 1/2, 1: near each its own window; between, the nearest, and both at 1/4."""
    may = reachable(3)
    assert may[[0, 1, 2, 5, 6, 10, 20]].tolist() == [
        [True, False, False],
        [True, False, False],
        [True, False, False],
        [True, True, False],  # u = 1/4
        [False, True, False],
        [False, True, False],
        [False, False, True],
    ]


def test_the_order_is_wrong_then_slow_to_fast():
    """Humans take 10, 20, ... 70 ms; the last two are wrong. Models have no place."""
    m = candidates_of(humans=7, wrong=2, models={"model": [5]})
    (simulation,) = ladders([m])
    assert [m.programs[row] for row in simulation.rows] == [f"p0/h00{i}" for i in (5, 6, 4, 3, 2, 1, 0)]


def test_an_undecided_program_has_no_location():
    """A correct program without a result on one test is neither correct nor wrong: counted, not ordered."""
    m = candidates_of(humans=5)
    outcome = m.outcome.copy()
    outcome[2, 1] = 0
    m = dataclasses.replace(m, outcome=outcome, limit_ns=np.where(outcome == 0, -1, m.limit_ns))
    result = run([m], Criterion())
    assert (result.unplaced, result.programs) == (1, 4)


def test_a_correct_program_that_nobody_ranks_has_no_location():
    """The sole reference takes 50 ms, others 10 to 30, a wrong one 5: it has no q_lead, and is not the strongest."""
    m = measured([[50], [10], [20], [30], [5]], reference=[0], outcome=[[1], [1], [1], [1], [2]])
    (simulation,) = ladders([m])
    assert ([m.programs[row] for row in simulation.rows], simulation.unplaced) == (["p4", "p1", "p2", "p3"], 1)
    (none,) = ladders([dataclasses.replace(m, tests=make_tests(1, correctness=1))])
    assert (none.rows.tolist(), none.unplaced) == ([4], 4)


# curves


def test_a_reward_that_is_quality_itself_is_the_diagonal():
    """11 programs, all right: at u = 0, 0.1, ... exactly one may be drawn, whose q is 1 - u, so f(u) = u there.

    Each is ranked among the ten others: i are faster than the one at 1 - i/10, so q = i/10.
    """
    result = run([candidates_of(f"p{i}", humans=11) for i in range(40)], BY_RANK)
    assert result.f[::2] == pytest.approx(U[::2])
    assert result.figures.auc == pytest.approx(0.5, abs=0.005)
    assert result.figures.deviation < 0.005
    assert result.figures.verdict == "steep and balanced"


def test_a_drawn_program_is_left_out_of_its_own_pool():
    """Two programs: each is ranked against the other alone, so the faster has q = 0 and the slower q = 1.

    Among both, ties with itself, they would have 1/4 and 3/4.
    """
    result = run([candidates_of(humans=2)], BY_RANK)
    assert (result.f[0], result.f[-1]) == (0, 1)


def test_constant_rewards_are_flat_without_advantage():
    """Everybody right, correctness only: +1 for all, f = 1 throughout, every group equal."""
    result = run([candidates_of(humans=12)], PRESETS["rlvr-added-tests"])
    assert (result.f == 1).all()
    assert (result.zero_advantage, result.groups, result.figures.verdict) == (1.0, POINTS, "flat")


def test_the_interval_of_the_area_is_over_problems():
    """AUC is the mean of the problems' own areas; its interval is Student's t over them, by scipy; none with one."""
    several = [candidates_of(f"p{i}", humans=20, wrong=i) for i in range(2, 12)]
    result = run(several, PRESETS["top-50"])
    areas = [run([m], PRESETS["top-50"]).figures.auc for m in several]
    assert result.figures.auc == pytest.approx(np.mean(areas))
    expected = stats.t.interval(0.95, 9, loc=np.mean(areas), scale=stats.sem(areas))
    assert result.auc_interval == pytest.approx(expected)
    assert run(several[:1], PRESETS["top-50"]).auc_interval is None


def test_zero_advantage_by_the_draws_themselves():
    """The share of groups of 16 with one reward alone, from the ladder's own random numbers, program by program."""
    m = candidates_of(humans=40, wrong=15)
    criterion = PRESETS["top-50"]
    (simulation,) = ladders([m])
    values = reward(judge(m, criterion), criterion)[simulation.rows]
    equal, means = 0, []
    for u, numbers in zip(U, simulation.numbers, strict=True):
        near = [i for i in range(40) if abs(i / 39 - u) <= 0.05 + 1e-12]
        drawn = [values[near[int(number * len(near))]] for number in numbers]
        assert len(drawn) == DRAWS
        equal += len(set(drawn)) == 1
        means.append(np.mean(drawn))
    result = run([m], criterion)
    assert result.zero_advantage == equal / POINTS
    assert result.f == pytest.approx((np.array(means) + 1) / 2)


@given(st.permutations(range(4)), st.integers(0, 2**32))
@settings(deadline=None, max_examples=15)
def test_neither_order_nor_company_changes_draws(order, seed):
    """Random numbers are keyed by seed and problem: any order gives the same curve, and fewer problems their own."""
    several = [candidates_of(f"p{i}", humans=13 + i, wrong=i) for i in range(4)]
    full = run(several, PRESETS["top-50"], seed)
    assert run([several[i] for i in order], PRESETS["top-50"], seed).f == pytest.approx(full.f, abs=1e-12)
    alone = [run([m], PRESETS["top-50"], seed).f for m in several]
    assert np.mean(alone, axis=0) == pytest.approx(full.f, abs=1e-12)


@given(m=problems(outcomes=tuple(Outcome), programs=8), seed=st.integers(0, 99))
@settings(deadline=None, max_examples=40)
def test_models_beside_humans_change_nothing(m, seed):
    """Only references rank: a human's reward is the same with every model's program taken away."""
    models = tuple("human" if simulation or i % 2 else "model" for i, simulation in enumerate(m.reference))
    m = dataclasses.replace(m, models=models, interface=np.ones(len(models), dtype=np.int8), memory_bytes=m.wall_ns)
    simulation = ladder(m, generator(seed, m.problem))
    assert set(simulation.m.models) <= {"human"}
    for criterion in (PRESETS["top-50"], PRESETS["ranked-worst-p50"], PRESETS["additive"], Criterion(clock="memory")):
        rewards = (
            dict(zip(p.programs, reward(judge(p, criterion), criterion), strict=True)) for p in (m, simulation.m)
        )
        full, alone = rewards
        assert [full[name] for name in alone] == pytest.approx(list(alone.values()), nan_ok=True)


def test_multitask_is_half_of_each():
    """Groups alternate 1:1 between correctness and speed: twice the groups, the mean of both curves."""
    m = candidates_of(humans=30, wrong=10)
    criterion = PRESETS["multitask"]
    both = run([m], criterion)
    speed = run([m], dataclasses.replace(criterion, reward="optimization-only"))
    right = run([m], dataclasses.replace(criterion, reward="correctness-only"))
    assert both.groups == 2 * POINTS
    assert both.f == pytest.approx((speed.f + right.f) / 2)
    assert both.zero_advantage == pytest.approx((speed.zero_advantage + right.zero_advantage) / 2)
    assert streams(judge(m, criterion), criterion).shape == (2, 30)


def test_a_problem_without_a_test_left_is_counted():
    """Nothing takes 2 s here: the problem leaves the environment, and the curve says nothing."""
    result = run([candidates_of(humans=12)], PRESETS["pre-2s"])
    assert (result.excluded, result.problems, result.figures.verdict) == (1, 0, "undecided")
    assert math.isnan(result.zero_advantage)


def test_unknown_rewards_are_never_drawn():
    """A limit above what was executed: the killed programs' rewards are unknown; they are counted and not drawn."""
    m = candidates_of(humans=20, limit_ms=150)  # six are killed at 150 ms, and so they are wrong: the weakest
    m = dataclasses.replace(m, tests=make_tests(2))  # nothing but optimization tests: a timeout is tolerated
    tolerant = dataclasses.replace(PRESETS["timeout-0.5s"], limit_ms=400)
    result = run([m], tolerant)
    assert result.undecided == 6  # 150 ms itself is a kill too
    assert result.undrawn > 0
    assert np.isnan(result.f[:3]).all()
    assert result.figures.verdict == "undecided"


def test_too_few_programs():
    """One program alone has no order; without any other problem there is nothing to simulate."""
    with pytest.raises(ReplayError, match="no problem has two human programs in order"):
        run([candidates_of(humans=1)], Criterion())
    assert run([candidates_of("a", humans=1), candidates_of("b", humans=4)], Criterion()).too_few == 1


def test_stricter_thresholds_are_sparser():
    """AUC falls with tau, from a curve that pays all right programs to one that pays one in ten."""
    several = [candidates_of(f"p{i}", humans=40, wrong=10) for i in range(3)]
    result = simulate(several, {str(tau): Criterion(tau=str(tau)) for tau in (100, 50, 30, 10)})
    areas = [simulation.figures.auc for simulation in result]
    assert areas == sorted(areas, reverse=True)
    assert areas[0] == pytest.approx(0.75, abs=0.02)  # three quarters are right
    assert areas[3] == pytest.approx(0.075, abs=0.02)  # a tenth of these


def test_every_environment_has_a_curve():
    """All presets at once on one ladder, in their order; progress hears each problem."""
    reported = []
    m = candidates_of(humans=24, wrong=6)
    wall = m.wall_ns * 40  # up to 7.2 s, so that every filter and limit has something to do
    result = simulate([dataclasses.replace(m, wall_ns=wall)], ENVIRONMENTS, progress=reported.append)
    assert [simulation.name for simulation in result] == list(ENVIRONMENTS)
    assert reported == [1]  # one problem
    kept = [simulation for simulation in result if not simulation.excluded]
    assert {simulation.family for simulation in kept} >= {
        "pre-execution",
        "ranked-worst",
        "relative timeout",
        "absolute timeout",
    }
    assert all(0 <= simulation.figures.auc <= 1 for simulation in kept)
    assert wall.max() == 24 * 10 * 40 * MS


# against training


def named(name, **figure):
    base = run([candidates_of(humans=11)], BY_RANK)
    values = {"auc": 0.5, "slope": 1.0, "steepness": 0.5, "deviation": 0.0, "monotonicity": 1.0, "noise": 0.0}
    return dataclasses.replace(base, name=name, figures=Figures(**(values | figure)))


def test_agreement_by_scipy():
    """Spearman and its two-sided p of each figure with results of training, over the criteria that have one."""
    deviation, results = [0.3, 0.1, 0.2, 0.25, 0.05], [7.7, 19.1, 9.3, 16.8, 17.7]
    result = [named(str(i), deviation=d, steepness=1 - d) for i, d in enumerate(deviation)]
    online = {str(i): value for i, value in enumerate(results)} | {"another": 3.0}
    by_figure = {simulation.figure: simulation for simulation in agreement(result, online)}
    expected = stats.spearmanr(deviation, results)
    assert by_figure["deviation"].correlation == pytest.approx(expected.statistic)
    assert by_figure["deviation"].p == pytest.approx(expected.pvalue)
    assert by_figure["steepness"].correlation == pytest.approx(-expected.statistic)
    assert (by_figure["deviation"].criteria, math.isnan(by_figure["noise"].correlation)) == (5, True)


def test_the_published_p():
    """Spearman -0.832 over 18 runs has p = 2e-5, as published; no correlation has p = 1, a perfect one 0."""
    assert float(f"{correlation_p(-0.832, 18):.0e}") == 2e-5
    assert correlation_p(0.0, 18) == pytest.approx(1.0)
    assert correlation_p(1.0, 18) == 0.0
    assert math.isnan(correlation_p(0.5, 2))


def test_agreement_needs_three():
    """Two points always agree: refused, with the names that could be given."""
    with pytest.raises(ReplayError, match="1 of the simulated criteria have one; name 3 or more of a, b"):
        agreement([named("a"), named("b")], {"a": 1.0, "c": 2.0})
