"""Learning curves: checkpoints by name, p_tau as estimates count it, relative gains and tiers by hand."""

import math

import numpy as np
import pytest
from crowds import crowd

from replay.criteria import PRESETS, Criterion
from replay.errors import ReplayError
from replay.estimates import estimate
from replay.judging.gates import judge
from replay.studies.curves import ALL, learning_curve
from replay.studies.makers import Checkpoint, checkpoints

STEPS = {"run-1k": [95, 85, None, None], "run-2k": [95, 45, 35, None], "run-10k": [15, 25, 35, 45]}
NAMED = [Checkpoint("run", step, f"run-{step // 1000}k") for step in (1000, 2000, 10_000)]


def campaign():
    return [crowd(f"p{i}", humans=10, makers=STEPS) for i in range(3)]


def curve(taus=("100", "50"), tiers=(), criterion=None):
    return learning_curve(campaign(), criterion or Criterion(), NAMED, taus=taus, tiers=dict(tiers))


def test_a_point_is_the_estimate_of_its_checkpoint():
    """p_tau, its interval and its counts are those of `estimate` at that tau."""
    problems = campaign()
    for tau in ("100", "50", "12.5"):
        found = learning_curve(problems, Criterion(), NAMED, taus=[tau], tiers={})
        by_maker = {one.maker: one for one in estimate([judge(m, Criterion(tau=tau)) for m in problems], problems, 1)}
        for point, checkpoint in zip(found, NAMED, strict=True):
            one = by_maker[checkpoint.maker]
            assert point.p_tau == pytest.approx(100 * one.value)
            assert np.array(point.interval) == pytest.approx(100 * np.array(one.interval))
            assert (point.programs, point.problems, point.undecided) == (one.programs, 3, one.undecided)


def test_absolute_and_relative_by_hand():
    """p_100 is 2/4, 3/4, 4/4; p_50 (references 10 .. 100 ms) is 0/4, 2/4, 4/4: relative to 0 nothing is said."""
    points = {(one.tau, one.step): one for one in curve()}
    assert [points["100", step].p_tau for step in (1000, 2000, 10_000)] == [50, 75, 100]
    assert [points["100", step].relative for step in (1000, 2000, 10_000)] == [0, 50, 100]
    assert [points["50", step].p_tau for step in (1000, 2000, 10_000)] == [0, 50, 100]
    assert math.isnan(points["50", 10_000].relative)


def test_tiers_split_the_problems():
    """All problems first, then tiers from easy to hard; a problem without a tier is in `all` alone."""
    found = curve(tiers={"p0": "hard", "p1": "easy"}.items())
    assert list(dict.fromkeys(one.tier for one in found)) == [ALL, "easy", "hard"]
    assert [one.problems for one in found if one.step == 1000 and one.tau == "100"] == [3, 1, 1]
    assert {one.interval for one in found if one.tier == "easy"} == {None}  # one problem has no interval


def test_a_filter_that_leaves_nothing():
    """Nothing takes 2 s: no problem, no value."""
    assert all(one.problems == 0 and math.isnan(one.p_tau) for one in curve(criterion=PRESETS["pre-2s"]))


def test_checkpoints_by_pattern():
    """The step is a number, k is thousands; what is left names the run; runs and steps are in order."""
    makers = ["human", "a-1k", "a-500", "b/step_20", "b/step_3", "c"]
    assert checkpoints(makers, "a-{step}") == [Checkpoint("a", 500, "a-500"), Checkpoint("a", 1000, "a-1k")]
    assert checkpoints(makers, "b/step_{step}") == [
        Checkpoint("b/step", 3, "b/step_3"),
        Checkpoint("b/step", 20, "b/step_20"),
    ]
    assert [one.run for one in checkpoints(makers, "*-{step}")] == ["a", "a"]
    assert checkpoints(["qwen7b-100-rl"], "*-{step}-rl") == [Checkpoint("qwen7b-rl", 100, "qwen7b-100-rl")]
    assert checkpoints(["x12"], "*{step}") == [Checkpoint("x", 12, "x12")]


@pytest.mark.parametrize(
    ("makers", "pattern", "words"),
    [
        (["a-1"], "a", "write {step} once"),
        (["a-1"], "{step}{step}", "write {step} once"),
        (["a-1"], "b-{step}", "no maker matches 'b-{step}'; the campaign's makers are a-1"),
        (["a-1k", "a-1000"], "a-{step}", "makers 'a-1000' and 'a-1k' are both step 1000"),
    ],
)
def test_patterns_that_cannot_be_read(makers, pattern, words):
    """Each refusal says what to write instead."""
    with pytest.raises(ReplayError) as refused:
        checkpoints(makers, pattern)
    assert words in str(refused.value)
