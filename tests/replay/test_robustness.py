"""Robustness: two lines through a sweep, gains by their formula, and the effect of a slowed sandbox by hand."""

import math

import numpy as np
import pytest

from lapledger.replay.criteria import Criterion
from lapledger.replay.errors import ReplayError
from lapledger.replay.studies.robustness import ALPHA, BETA, gain, line_axes, lines
from lapledger.replay.studies.sweeps import Point, sweep
from tests.replay.program_groups import candidates_of

MS = 1_000_000


def rng():
    return np.random.default_rng(0)


def point(model, **overrides):
    """One model at one place."""
    plain = {"alpha": 1.0, "beta_ns": 0, "timeout_ns": None, "tau": 50, "p_tau": 1.0, "interval": None, "method": "t"}
    counts = {"at_most": overrides.get("p_tau", 1.0), "undecided": 0, "programs": 4, "problems": 2}
    return Point(model, **(plain | counts | overrides))


def test_the_lines_of_a_small_campaign():
    """References of 10, 20, ... 100 ms against one model at 45 ms and the baseline at 75 ms; p_50 asks for half.

    At alpha = 1 the model has four references before it, at alpha = 0.5 (5 to 50 ms) eight; with beta = -40 ms eight,
    of which four are clipped at 0. The baseline, with seven of ten before it, passes once they take twice as long.
    """
    problems = [candidates_of("a", humans=10, models={"model": [45], "base": [75]})]
    grids = line_axes((50,), alphas=(0.5, 1.0, 2.0), betas_ns=(-40 * MS, 0, 40 * MS))
    by_line = lines((sweep(problems, Criterion(), grids[0]), sweep(problems, Criterion(), grids[1])), "base", rng())
    mine = {(line.model, line.along): line for line in by_line if line.model != "human"}
    assert mine["model", BETA].at == (-40 * MS, 0, 40 * MS)
    assert mine["model", BETA].p_tau == (0, 100, 100)
    assert mine["model", ALPHA].at == (0.5, 1.0, 2.0)
    assert mine["model", ALPHA].p_tau == (0, 100, 100)
    assert mine["base", ALPHA].p_tau == (0, 0, 100)
    assert mine["model", ALPHA].gain[2] == 0
    assert math.isnan(mine["model", ALPHA].gain[1])  # the baseline passes nowhere
    assert mine["base", BETA].gain[2] == 0


def test_gains_of_the_published_table():
    """7B: p_50 18.0 -> 31.3 gains 73.9%, p_30 148.1%; CWM: p_50 30.7 -> 50.4 gains 64.2%, p_30 125.5%."""
    pairs = ((31.3, 18.0), (19.1, 7.7), (50.4, 30.7), (30.9, 13.7))
    assert [round(gain(*pair), 1) for pair in pairs] == [73.9, 148.1, 64.2, 125.5]
    assert math.isnan(gain(5.0, 0.0))


def test_points_are_matched_by_location_and_tau():
    """Gains compare the same beta and the same tau, in whatever order the points come."""
    grid = [
        point(model, tau=tau, beta_ns=beta, p_tau=p, undecided=1, interval=(p - 1, p + 2), at_most=p + 10)
        for model, tau, beta, p in (
            ("m", 50, 10, 30.0),
            ("m", 50, -10, 10.0),
            ("b", 50, -10, 20.0),
            ("b", 50, 10, 15.0),
            ("m", 30, 10, 9.0),
            ("b", 30, 10, 3.0),
        )
    ]
    by_line = {(line.model, line.tau): line for line in lines((grid, grid), "b", rng()) if line.along == BETA}
    assert by_line["m", 50].gain == pytest.approx((-50, 100))
    assert by_line["m", 30].gain == pytest.approx((200,))
    assert by_line["m", 50].undecided == (1, 1)
    assert (by_line["m", 50].interval, by_line["m", 50].at_most) == (((9, 12), (29, 32)), (20, 40))
    # at -10 ns m is 10 to 20 and b 20 to 30; at 10 ns m is 30 to 40 and b 15 to 25
    assert by_line["m", 50].gain_bounds == (pytest.approx((-200 / 3, 0)), pytest.approx((20, 500 / 3)))
    assert by_line["b", 50].gain_bounds == ((0, 0), (0, 0))


def test_a_gain_over_what_may_be_nothing_has_no_upper_bound():
    """The baseline passes 0 to 10%: no gain is known, at least 0 and without an end if all of it is undecided."""
    grid = [point("m", p_tau=10.0, at_most=10.0), point("b", p_tau=0.0, at_most=10.0, undecided=1)]
    mine, base = ({line.model: line for line in lines((grid, grid), "b", rng())}[model] for model in "mb")
    assert (math.isnan(mine.gain[0]), mine.gain_bounds) == (True, ((0, math.inf),))
    assert base.gain_bounds == (None,)
    nothing = [point("m", p_tau=10.0, at_most=10.0), point("b", p_tau=0.0)]
    assert lines((nothing, nothing), "b", rng())[1].gain_bounds == (None,)


def test_an_unknown_baseline():
    """The models that could be meant are named."""
    with pytest.raises(ReplayError, match="baseline 'c' made none of the programs; choose one of m"):
        lines(([point("m")],) * 2, "c", rng())


@pytest.mark.parametrize("compiled", [True, False])
def test_a_gain_has_an_interval_by_drawing_problems_for_both(compiled, monkeypatch):
    """Five problems at p_50: the shares by hand, the bootstrap written out; both ways of a sweep say the same."""
    monkeypatch.setattr("lapledger.replay.engines.MACHINE_CODE_FROM", 0 if compiled else 10**9)
    mine, base = np.array([4, 3, 4, 2, 4]), np.array([1, 2, 2, 1, 3])
    problems = [
        candidates_of(f"p{i}", humans=10, models={"m": [15] * a + [95] * (4 - a), "b": [15] * b + [95] * (4 - b)})
        for i, (a, b) in enumerate(zip(mine, base, strict=True))
    ]
    grids = line_axes((50,), alphas=(1.0,), betas_ns=(0,))
    points = tuple(sweep(problems, Criterion(), axes, with_shares=True) for axes in grids)
    assert {tuple(line.shares) for line in points[0] if line.model == "m"} == {tuple(mine / 4)}
    by_line = {(line.model, line.along): line for line in lines(points, "b", rng())}
    drawn = np.random.default_rng(0).integers(0, 5, (10_000, 5))
    gains = 100 * (mine[drawn].mean(axis=1) / base[drawn].mean(axis=1) - 1)
    for along in (ALPHA, BETA):
        assert by_line["m", along].gain_interval[0] == pytest.approx(tuple(np.percentile(gains, [2.5, 97.5])))
        assert by_line["b", along].gain_interval == ((0, 0),)
    assert {line.gain_interval for line in lines((sweep(problems, Criterion(), grids[0]),) * 2, "b", rng())} == {
        (None,)
    }
