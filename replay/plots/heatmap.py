"""The train-by-eval matrix as a picture: every criterion against every run, and criteria against each other."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from lapledger.replay.measurements import Floats
from lapledger.replay.plots.figure import Kind, picture, sheet
from lapledger.replay.studies.matrix import Matrix

CELL = 0.31
LONGEST = 34


def matrix_plot(result: Matrix, title: str, footer: str, *, kind: Kind) -> bytes:
    """The bytes of the picture: pass@1 in percent at the left, Spearman between criteria over the runs at the right."""
    values, criteria, runs = result.values, len(result.criteria), len(result.runs)
    width = CELL * 1.25 * (max(runs, 2) + criteria) + 0.062 * max(map(len, result.criteria)) + 3.2
    high = CELL * criteria + 0.062 * max(map(len, (*result.runs, *result.criteria))) + 1.3
    figure = sheet(max(width, 6.4), max(high, 3.2))
    left, right = figure.subplots(1, 2, width_ratios=(max(runs, 2), criteria))
    _heat(left, values, result.criteria, result.runs, limits=(0.0, max(float(np.nanmax([*values.ravel(), 1.0])), 1.0)))
    left.set_title("pass@1 (%), by training run", fontsize=8)
    _heat(right, result.correlations, (), result.criteria, limits=(-1.0, 1.0))
    right.set_title("Spearman between criteria over the runs", fontsize=8)
    figure.suptitle(title, fontsize=10)
    return picture(figure, footer, kind)


def _heat(
    axes: Any, values: Floats, rows: Sequence[str], columns: Sequence[str], *, limits: tuple[float, float]
) -> None:
    """Cells in shades that keep their order in grey, with their values in them; a cell without a value is hatched."""
    low, high = limits
    axes.set_facecolor("white")
    image = axes.imshow(values, cmap="cividis", vmin=low, vmax=high, aspect="auto", interpolation="nearest")
    for row, line in enumerate(values):
        for column, value in enumerate(line):
            text = "-" if np.isnan(value) else f"{value:.2f}".replace("0.", ".") if high == 1 else f"{value:.0f}"
            dark = np.isnan(value) or (value - low) / (high - low) > 0.5
            axes.text(column, row, text, ha="center", va="center", fontsize=6, color="black" if dark else "white")
    axes.set_xticks(range(len(columns)), [_short(name) for name in columns], rotation=90, fontsize=7)
    axes.set_yticks(range(len(values)), [_short(name) for name in rows] or [""] * len(values), fontsize=7)
    axes.tick_params(length=0)
    bar = axes.figure.colorbar(image, ax=axes, shrink=0.8, pad=0.015)
    bar.ax.tick_params(labelsize=6)


def _short(name: str) -> str:
    """A name of at most that many letters, its middle excluded."""
    return name if len(name) <= LONGEST else f"{name[: LONGEST // 2]}..{name[-LONGEST // 2 + 2 :]}"
