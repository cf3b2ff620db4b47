"""Lines in a grid of panels that share their scales: sweeps, robustness and learning curves are drawn with it.

Callers say what a line means; here it is only drawn.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from lapledger.replay.plots.figure import COLOURS, DASHES, MARKERS, Kind, picture, sheet

WIDE, HIGH = 3.3, 2.7
LONG_LEGEND = 34
"""More entries than this make a legend of two columns."""


@dataclass(frozen=True, slots=True)
class Line:
    """One line: points with an optional band, hollow where something is undecided."""

    label: str
    x: Sequence[float]
    y: Sequence[float]
    look: Mapping[str, Any]
    low: Sequence[float] = ()
    high: Sequence[float] = ()
    hollow: Sequence[bool] = ()


@dataclass(frozen=True, slots=True)
class Panel:
    """One panel: its labels, its lines, and a vertical mark where nothing is changed."""

    title: str
    x: str
    y: str
    lines: Sequence[Line]
    mark: float | None = None
    ticks: Mapping[float, str] = field(default_factory=dict)  # text instead of numbers along x
    level: float | None = None  # a horizontal line
    falling: bool = False  # x grows to the left


def look(colour: int, dash: int) -> dict[str, Any]:
    """Colour and marker by one key, dash by another, so that a grey print still shows both."""
    return {
        "color": COLOURS[colour % len(COLOURS)],
        "linestyle": DASHES[dash % len(DASHES)],
        "marker": MARKERS[colour % len(MARKERS)],
        "linewidth": 1.2,
        "markersize": 3.5,
    }


def band(intervals: Sequence[tuple[float, float] | None]) -> dict[str, Sequence[float]]:
    """The ends of a line's intervals; nan, and so no band, where there is none."""
    ends = [(np.nan, np.nan) if interval is None else interval for interval in intervals]
    return {"low": [low for low, _ in ends], "high": [high for _, high in ends]}


def panels_plot(grid: Sequence[Sequence[Panel]], title: str, footer: str, *, kind: Kind) -> bytes:
    """The bytes of a picture of panels [rows][columns]; rows share their y axis, columns their x axis."""
    rows, columns = len(grid), max(len(row) for row in grid)
    figure = sheet(max(WIDE * columns + 1.9, 6.4), HIGH * rows + 0.9)
    axes = figure.subplots(rows, columns, squeeze=False, sharey="row", sharex="col")
    handles: dict[str, Any] = {}
    for down, (row, row_axes) in enumerate(zip(grid, axes, strict=True)):
        for column, (panel, panel_axes) in enumerate(zip(row, row_axes, strict=True)):
            _draw(panel_axes, panel, handles)
            panel_axes.set_ylabel(panel.y if column == 0 else "", fontsize=8)
            panel_axes.set_xlabel(panel.x if down == rows - 1 else "", fontsize=8)
    if handles:
        beside = 2 if len(handles) > LONG_LEGEND else 1
        figure.legend(
            list(handles.values()),
            list(handles),
            loc="outside right upper",
            ncols=beside,
            fontsize=7,
            handlelength=3.2,
        )
    figure.suptitle(title, fontsize=10)
    return picture(figure, footer, kind)


def _draw(axes: Any, panel: Panel, handles: dict[str, Any]) -> None:
    for line in panel.lines:
        (drawn,) = axes.plot(line.x, line.y, **line.look)
        handles.setdefault(line.label, drawn)
        if len(line.low):
            axes.fill_between(line.x, line.low, line.high, alpha=0.12, color=line.look["color"], linewidth=0)
        open_ = np.array(line.hollow, dtype=np.bool_)
        if open_.any():
            at = np.array(line.x)[open_], np.array(line.y)[open_]
            dots = {"marker": line.look["marker"], "markerfacecolor": "white", "markeredgecolor": line.look["color"]}
            axes.plot(*at, linestyle="none", markersize=line.look["markersize"] + 1, **dots)
    if panel.mark is not None:
        axes.axvline(panel.mark, color="0.6", linewidth=0.8, linestyle=":")
    if panel.level is not None:
        axes.axhline(panel.level, color="0.6", linewidth=0.8, linestyle=":")
    axes.set_title(panel.title, fontsize=8)
    axes.tick_params(labelsize=7)
    axes.grid(visible=True, alpha=0.25)
    if panel.ticks:
        axes.set_xticks(list(panel.ticks), list(panel.ticks.values()))
    if panel.falling and not axes.xaxis_inverted():  # columns share it
        axes.invert_xaxis()
