"""The simulator's picture: the curves f(u), and AUC against steepness with the cuts of its verdicts."""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from lapledger.replay.criteria import FAMILIES
from lapledger.replay.plots.figure import COLOURS, DASHES, MARKERS, Kind, picture, sheet
from lapledger.replay.studies.simulator import FLAT, SATURATED, SPARSE, Simulation

FONT_SIZE = 6.0
"""Size of the names beside the dots, in points."""
LETTER_WIDTH = 0.6
"""Width of a letter as a share of its size, about."""


def simulator_plot(simulations: Sequence[Simulation], title: str, footer: str, *, kind: Kind) -> bytes:
    """The bytes of the picture; colour and marker are the family, a criterion whose curve has a hole is not drawn."""
    shown = [simulation for simulation in simulations if not np.isnan(simulation.figures.auc)]
    figure = sheet(11.6, 5.2)
    left, right = figure.subplots(1, 2, width_ratios=(2, 3))
    _curves(left, shown)
    _dots(right, shown)
    named = [name for name in FAMILIES if any(simulation.family == name for simulation in shown)]
    handles = [right.scatter([], [], **_look(name)) for name in named]
    if named:
        figure.legend(handles, named, fontsize=7, loc="outside right upper", title="family", title_fontsize=7)
    figure.suptitle(title, fontsize=10)
    right.set_xlim(0, 1)
    _name(right, shown)
    return picture(figure, footer, kind)


def _look(family: str) -> dict[str, Any]:
    number = FAMILIES.index(family)
    return {"color": COLOURS[number], "marker": MARKERS[number], "s": 34, "edgecolor": "black", "linewidth": 0.4}


def _curves(axes: Any, shown: Sequence[Simulation]) -> None:
    for simulation in shown:
        number = FAMILIES.index(simulation.family)
        axes.plot(simulation.u, simulation.f, color=COLOURS[number], linestyle=DASHES[number], linewidth=1)
    axes.plot([0, 1], [0, 1], color="0.7", linewidth=0.8, linestyle=":")
    axes.set(xlim=(0, 1), ylim=(0, 1))
    axes.set_xlabel("quality u of the programs drawn (0 weakest, 1 strongest)", fontsize=8)
    axes.set_ylabel("f(u): mean reward, rescaled to 0 .. 1", fontsize=8)
    axes.tick_params(labelsize=7)
    axes.grid(visible=True, alpha=0.25)


def _dots(axes: Any, shown: Sequence[Simulation]) -> None:
    for simulation in shown:
        axes.scatter([simulation.figures.auc], [simulation.figures.steepness], zorder=3, **_look(simulation.family))
    values = [simulation.figures.steepness for simulation in shown]
    low, high = min([0.0, *values]) - 0.06, max([0.5, *values]) + 0.14
    axes.set_ylim(low, high)
    for cut in (SPARSE, SATURATED):
        axes.axvline(cut, color="0.6", linewidth=0.8, linestyle=":")
    axes.axhline(FLAT, color="0.6", linewidth=0.8, linestyle=":")
    for x, y, label in (
        (0.005, high - 0.03, "sparse"),
        (SATURATED + 0.005, high - 0.03, "saturated"),
        (0.47, low + 0.01, "flat"),
    ):
        axes.text(x, y, label, fontsize=7, color="0.45", style="italic")
    axes.set_xlabel("AUC of f(u)", fontsize=8)
    axes.set_ylabel("steepness S = a / (1 + |a|)", fontsize=8)
    axes.tick_params(labelsize=7)
    axes.grid(visible=True, alpha=0.2)


def _name(axes: Any, shown: Sequence[Simulation]) -> None:
    """Writes each criterion's name beside its dot, where it covers the least of what is there already."""
    axes.figure.draw_without_rendering()  # places the axes
    room = axes.get_window_extent()
    wide, high = (float(pixels) * 72 / axes.figure.dpi for pixels in (room.width, room.height))
    low, top = axes.get_ylim()
    at = [
        (wide * simulation.figures.auc, high * (simulation.figures.steepness - low) / (top - low))
        for simulation in shown
    ]
    taken = [(x - 4, y - 4, x + 4, y + 4) for x, y in at]
    for simulation, point in zip(shown, at, strict=True):
        size = LETTER_WIDTH * FONT_SIZE * len(simulation.name), FONT_SIZE
        (dx, dy), box = min(_label_boxes(point, size), key=lambda candidate: _cost(candidate[1], taken, wide))
        taken.append(box)
        moved = {"xytext": (dx, dy), "textcoords": "offset points", "fontsize": FONT_SIZE, "va": "bottom"}
        moved["ha"] = "left" if dx > 0 else "right"
        line = {"arrowprops": {"arrowstyle": "-", "linewidth": 0.3, "color": "0.5"}} if abs(dy) > 8 else {}
        axes.annotate(simulation.name, (simulation.figures.auc, simulation.figures.steepness), **moved, **line)


Box = tuple[float, float, float, float]


def _label_boxes(at: tuple[float, float], room: tuple[float, float]) -> Iterator[tuple[tuple[float, float], Box]]:
    """Shifts from a dot with the box that a name of that size would take, the nearest first."""
    for up in (-3, 4, -10, 11, -17, 18, -24, 25, -32, 33, -40, 41, -50, 51):
        for shift in (5, -5):
            x, y = at[0] + (shift if shift > 0 else shift - room[0]), at[1] + up
            yield (shift, up), (x, y, x + room[0], y + room[1])


def _cost(box: Box, taken: Sequence[Box], wide: float) -> float:
    """The area that a box shares with others, and what hangs over the edge, in square points."""
    left, bottom, right, top = box
    shared = sum(
        max(0.0, min(right, r) - max(left, a)) * max(0.0, min(top, t) - max(bottom, b)) for a, b, r, t in taken
    )
    return shared + 100 * (max(0.0, right - wide) + max(0.0, -left) + max(0.0, -bottom))
