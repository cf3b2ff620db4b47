"""Learning curves: checkpoints by name, p_tau as estimates count it, relative gains and tiers by hand."""

import math

import numpy as np
import pytest

from lapledger.replay.criteria import PRESETS, Criterion
from lapledger.replay.errors import ReplayError
from lapledger.replay.estimates import estimate
from lapledger.replay.judging.gates import judge
from lapledger.replay.studies.curves import ALL, learning_curve
from lapledger.replay.studies.models import Checkpoint, checkpoints
from tests.replay.program_groups import candidates_of

STEPS = {"run-1k": [95, 85, None, None], "run-2k": [95, 45, 35, None], "run-10k": [15, 25, 35, 45]}
NAMED = [Checkpoint("run", step, f"run-{step // 1000}k") for step in (1000, 2000, 10_000)]


def campaign():
    return [candidates_of(f"p{i}", humans=10, models=STEPS) for i in range(3)]


def rng():
    return np.random.default_rng(0)


def curve(taus=("100", "50"), tiers=(), criterion=None, problems=None, named=NAMED):
    points = campaign() if problems is None else problems
    return learning_curve(points, criterion or Criterion(), named, taus=taus, tiers=dict(tiers), rng=rng)


def test_a_point_is_the_estimate_of_its_checkpoint():
    """p_tau, its interval and its counts are those of `estimate` at that tau."""
    problems = campaign()
    for tau in ("100", "50", "12.5"):
        points = curve(taus=[tau])
        by_model = {
            estimated.model: estimated
            for estimated in estimate([judge(m, Criterion(tau=tau)) for m in problems], problems, 1)
        }
        for point, checkpoint in zip(points, NAMED, strict=True):
            estimated = by_model[checkpoint.model]
            assert point.p_tau == pytest.approx(100 * estimated.value)
            assert np.array(point.interval) == pytest.approx(100 * np.array(estimated.interval))
            assert (point.method, point.at_most) == (estimated.method, pytest.approx(100 * estimated.upper_bound))
            assert (point.programs, point.problems, point.undecided) == (estimated.programs, 3, estimated.undecided)


def test_absolute_and_relative_by_hand():
    """p_100 is 2/4, 3/4, 4/4; p_50 (references 10 .. 100 ms) is 0/4, 2/4, 4/4: relative to 0 nothing is said."""
    points = {(curve_point.tau, curve_point.step): curve_point for curve_point in curve()}
    assert [points["100", step].p_tau for step in (1000, 2000, 10_000)] == [50, 75, 100]
    assert [points["100", step].relative for step in (1000, 2000, 10_000)] == [0, 50, 100]
    assert [points["50", step].p_tau for step in (1000, 2000, 10_000)] == [0, 50, 100]
    assert math.isnan(points["50", 10_000].relative)
    assert (points["50", 10_000].relative_interval, points["50", 10_000].relative_bounds) == (None, None)


def varied():
    """Six problems: on p_50 the first checkpoint passes 1 or 2 of 4, the last 2, 3 or 4; one lacks the second."""
    first, last = (1, 2, 1, 2, 1, 2), (4, 3, 4, 2, 3, 4)
    made = []
    for i, (a, b) in enumerate(zip(first, last, strict=True)):
        walls = {"run-1k": [15] * a + [95] * (4 - a), "run-2k": [15, 95], "run-10k": [15] * b + [95] * (4 - b)}
        made.append(
            candidates_of(f"p{i}", humans=10, models=walls if i else {k: v for k, v in walls.items() if k != "run-2k"})
        )
    return made, np.array(first) / 4, np.array(last) / 4


def test_a_gain_has_an_interval_by_drawing_problems_for_both():
    """Held against a bootstrap written out: the same problems for both sides, 10,000 times, from the same seed."""
    problems, a, b = varied()
    point = next(curve_point for curve_point in curve(taus=["50"], problems=problems) if curve_point.step == 10_000)
    drawn = np.random.default_rng(0).integers(0, 6, (10_000, 6))
    gains = 100 * (b[drawn].mean(axis=1) / a[drawn].mean(axis=1) - 1)
    assert point.relative == pytest.approx(100 * (b.mean() / a.mean() - 1))
    assert point.relative_interval == pytest.approx(tuple(np.percentile(gains, [2.5, 97.5])))
    assert point.relative_bounds == (pytest.approx(point.relative),) * 2


def test_a_gain_is_over_the_problems_of_both():
    """The second checkpoint lacks p0: half of its two pass on five problems, where the first passes 8 of 20."""
    problems, _, _ = varied()
    point = next(curve_point for curve_point in curve(taus=["50"], problems=problems) if curve_point.step == 2000)
    assert (point.problems, point.p_tau, point.relative) == (5, 50, pytest.approx(100 * (0.5 / 0.4 - 1)))


def test_what_is_undecided_bounds_a_gain_and_no_interval():
    """By hand, 20 s asked over a cap of 10 s: of the first one passes and one is open, of the last two pass and one is.

    So p_100 is 25 to 50% and 50 to 75%: a gain of 100%, which is 0 to 200% if undecided; of the first itself nothing.
    """
    walls = {"run-1k": [15, 10_000, None, None], "run-10k": [15, 15, 10_000, None]}
    problems = [candidates_of(f"p{i}", humans=10, models=walls) for i in range(3)]
    criterion = Criterion(tau="50", reading="score", timeouts="fail", timeout_ms=20_000)
    first, last = curve(taus=["50"], problems=problems, criterion=criterion, named=[NAMED[0], NAMED[2]])
    assert (first.p_tau, first.at_most, last.p_tau, last.at_most) == (25, 25, 50, 50)
    # at p_50 a killed program is behind all references, whatever it would have taken: nothing is open
    first, last = curve(taus=["100"], problems=problems, criterion=criterion, named=[NAMED[0], NAMED[2]])
    assert (first.p_tau, first.at_most, last.p_tau, last.at_most) == (25, 50, 50, 75)
    assert (last.relative, last.relative_bounds) == (100, (0, 200))
    assert last.relative_interval == (pytest.approx(100), pytest.approx(100))
    assert (first.relative, first.relative_bounds, first.relative_interval) == (0, (0, 0), (0, 0))
    alone = curve(taus=["100"], problems=problems[:1], criterion=criterion, named=[NAMED[0], NAMED[2]])[1]
    assert (alone.relative_interval, alone.relative_bounds) == (None, (0, 200))


def test_tiers_split_the_problems():
    """All problems first, then tiers from easy to hard; a problem without a tier is in `all` alone."""
    points = curve(tiers={"p0": "hard", "p1": "easy"}.items())
    assert list(dict.fromkeys(curve_point.tier for curve_point in points)) == [ALL, "easy", "hard"]
    assert [
        curve_point.problems for curve_point in points if curve_point.step == 1000 and curve_point.tau == "100"
    ] == [3, 1, 1]
    assert {curve_point.interval for curve_point in points if curve_point.tier == "easy"} == {
        None
    }  # one problem has no interval


def test_a_filter_that_leaves_nothing():
    """Nothing takes 2 s: no problem, no value."""
    assert all(
        curve_point.problems == 0 and math.isnan(curve_point.p_tau)
        for curve_point in curve(criterion=PRESETS["pre-2s"])
    )


def test_checkpoints_by_pattern():
    """The step is a number, k is thousands; what is left names the run; runs and steps are in order."""
    models = ["human", "a-1k", "a-500", "b/step_20", "b/step_3", "c"]
    assert checkpoints(models, "a-{step}") == [Checkpoint("a", 500, "a-500"), Checkpoint("a", 1000, "a-1k")]
    assert checkpoints(models, "b/step_{step}") == [
        Checkpoint("b/step", 3, "b/step_3"),
        Checkpoint("b/step", 20, "b/step_20"),
    ]
    assert [curve_point.run for curve_point in checkpoints(models, "*-{step}")] == ["a", "a"]
    assert checkpoints(["qwen7b-100-rl"], "*-{step}-rl") == [Checkpoint("qwen7b-rl", 100, "qwen7b-100-rl")]
    assert checkpoints(["x12"], "*{step}") == [Checkpoint("x", 12, "x12")]


@pytest.mark.parametrize(
    ("models", "pattern", "args"),
    [
        (["a-1"], "a", "write {step} once"),
        (["a-1"], "{step}{step}", "write {step} once"),
        (["a-1"], "b-{step}", "no model matches 'b-{step}'; the campaign's models are a-1"),
        (["a-1k", "a-1000"], "a-{step}", "models 'a-1000' and 'a-1k' are both step 1000"),
    ],
)
def test_patterns_that_cannot_be_read(models, pattern, args):
    """Each refusal says what to write instead."""
    with pytest.raises(ReplayError) as refused:
        checkpoints(models, pattern)
    assert args in str(refused.value)
