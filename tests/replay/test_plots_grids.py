"""Pictures of sweeps, matrices, robustness, curves and simulations: they repeat, and say what they show."""

import dataclasses
import struct
import subprocess
import sys

import numpy as np
import pytest

from lapledger.replay.criteria import PRESETS, Criterion
from lapledger.replay.errors import ReplayError
from lapledger.replay.plots.curves import learning_plot, robustness_plot
from lapledger.replay.plots.heatmap import matrix_plot
from lapledger.replay.plots.scatter import simulator_plot
from lapledger.replay.plots.swept import sweep_plot
from lapledger.replay.studies.curves import learning_curve
from lapledger.replay.studies.matrix import Matrix, matrix
from lapledger.replay.studies.models import checkpoints
from lapledger.replay.studies.robustness import line_axes, lines
from lapledger.replay.studies.simulator import simulate
from lapledger.replay.studies.sweeps import Axes, Point, sweep
from tests.replay.program_groups import candidates_of

MS = 1_000_000
FOOTER = "cut control=7,facts=1.2.3.4,requests=0\ncriterion correct 67d6291b3014"
MODELS = {"run-1k": [95, 85, None], "run-2k": [15, 45, 35], "base": [55, 65, 75]}


def problems():
    return [candidates_of(f"p{i}", humans=10, wrong=2, models=MODELS) for i in range(3)]


def sweep_picture(kind, axes=None):
    axes = axes or Axes((50, 30), timeouts_ns=(None, 50 * MS, 20_000 * MS), betas_ns=(-10 * MS, 0))
    return sweep_plot(sweep(problems(), Criterion(), axes), "campaign one", FOOTER, kind=kind)


def matrix_picture(kind):
    criteria = {name: PRESETS[name] for name in ("rlvr", "top-50", "pre-2s")}
    return matrix_plot(
        matrix(problems(), criteria, {model: (model,) for model in MODELS}), "campaign one", FOOTER, kind=kind
    )


def robustness_picture(kind):
    both = line_axes((50,), alphas=(0.5, 1.0, 1.5), betas_ns=(-20 * MS, 0, 20 * MS))
    points = (sweep(problems(), Criterion(), both[0]), sweep(problems(), Criterion(), both[1]))
    series = lines(points, "base", np.random.default_rng(0))
    return robustness_plot(series, "base", "campaign one", FOOTER, kind=kind)


def curve_picture(kind):
    steps = checkpoints(MODELS, "run-{step}")
    tiers = {"p0": "easy", "p1": "hard"}
    points = learning_curve(
        problems(), Criterion(), steps, taus=["100", "50"], tiers=tiers, rng=lambda: np.random.default_rng(0)
    )
    return learning_plot(points, "campaign one", FOOTER, kind=kind)


def simulator_picture(kind):
    criteria = {name: PRESETS[name] for name in ("rlvr", "top-50", "per-test-top-30", "pre-2s", "leaderboard")}
    result = simulate(problems(), criteria)
    return simulator_plot(result, "campaign one", FOOTER, kind=kind)


PICTURES = {
    sweep_picture: (b"timeout (ms)", b"p_tau (%)", b"run-2k", b"p_50", b"beta -10 ms"),
    matrix_picture: (b"pass@1 (%), by training run", b"Spearman between criteria", b"top-50", b"run-1k"),
    robustness_picture: (b"beta (ms) at alpha = 1", b"alpha at beta = 0", b"p_tau (%)", b"gain over base (%)"),
    curve_picture: (b"step", b"p_tau (%)", b"easy: 1 problems", b"hard: 1 problems", b"p_100", b"gain on the first"),
    simulator_picture: (b"AUC of f(u)", b"steepness S", b"per-test-top-30", b"leaderboard ranking", b"family"),
}


@pytest.mark.parametrize("draw", PICTURES)
def test_pictures_repeat_and_report_what_they_show(draw):
    """PNG and SVG by their signatures; the same bytes twice; axes with units, names and the cut are in the SVG."""
    png, svg = draw("png"), draw("svg")
    assert png.startswith(b"\x89PNG\r\n")
    width, height = struct.unpack(">II", png[16:24])
    assert width >= 900
    assert height >= 450
    assert b"<svg" in svg
    for text in (*PICTURES[draw], b"campaign one", b"cut control=7,facts=1.2.3.4,requests=0"):
        assert text in svg, text
    assert (draw("png"), draw("svg")) == (png, svg)
    assert b"<dc:date>" not in svg


def test_four_things_may_vary_and_no_more():
    """tau, timeout, beta and models fill x, lines, columns and rows; alpha too is one too many."""
    axes = Axes((50, 30), timeouts_ns=(None, 50 * MS), betas_ns=(0, 1), alphas=(1.0,))
    assert sweep_picture("png", axes).startswith(b"\x89PNG")
    with pytest.raises(ReplayError, match="five things vary, and a picture shows four"):
        sweep_picture("png", dataclasses.replace(axes, alphas=(0.9, 1.0)))


def test_one_point_is_a_picture_too():
    """A grid of one replay and one model."""
    points = [shown for shown in sweep(problems(), Criterion(), Axes((50,))) if shown.model == "base"]
    assert b"p_tau" in sweep_plot(points, "", FOOTER, kind="svg")


def test_matplotlib_is_loaded_only_to_draw():
    """A command that draws nothing does not pay for it."""
    names = ("scatter", "heatmap", "curves", "swept")
    imports = ", ".join(["import sys, lapledger.replay.plots", *(f"lapledger.replay.plots.{name}" for name in names)])
    done = subprocess.run([sys.executable, "-c", f"{imports}; print('matplotlib' in sys.modules)"], capture_output=True)
    assert done.stdout == b"False\n"


def test_undecided_points_are_hollow():
    """A white marker on each point that has undecided programs, and on no other."""
    point = Point("m", 1.0, 0, None, 50, 40.0, (30.0, 50.0), "t", 45.0, 1, 4, 2)
    decided = [dataclasses.replace(point, tau=tau, undecided=0) for tau in (50, 30, 10)]
    drawn = [
        sweep_plot(
            [dataclasses.replace(shown, undecided=int(i < n)) for i, shown in enumerate(decided)], "", "", kind="svg"
        )
        for n in range(4)
    ]
    hollow = [svg.count(b"fill: #ffffff; stroke: #1b1b1b") for svg in drawn]
    assert hollow[0] == 0
    assert [bool(count) for count in hollow] == [False, True, True, True]
    assert len({len(svg) for svg in drawn}) == 4


def test_long_names_and_empty_rows_are_drawn():
    """A matrix in which nothing is known, and names longer than a label."""
    nothing = np.full((2, 2, 1), np.nan)
    counts = np.zeros((2, 2), dtype=np.int64)
    result = Matrix(
        ("a" * 60, "b"), ((0,), (1,)), ("c" * 60, "d"), ("pre-execution",) * 2, nothing, nothing, counts, counts
    )
    svg = matrix_plot(result, "campaign one", FOOTER, kind="svg")
    assert b"a" * 17 + b".." in svg
    assert b"a" * 35 not in svg
