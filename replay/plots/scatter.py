"""The simulator's picture: the curves f(u), and AUC against steepness with the cuts of its verdicts."""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from lapledger.replay.criteria import FAMILIES
from lapledger.replay.plots.figure import COLOURS, DASHES, MARKERS, Kind, picture, sheet
from lapledger.replay.studies.simulator import FLAT, SATURATED, SPARSE, Simulation

WORDS = 6.0
"""Size of the names beside the dots, in points."""
LETTER = 0.6
"""Width of a letter as a share of its size, about."""


def simulator_plot(found: Sequence[Simulation], title: str, footer: str, *, kind: Kind) -> bytes:
    """The bytes of the picture; colour and marker are the family, a criterion whose curve has a hole is left out."""
    shown = [one for one in found if not np.isnan(one.figures.auc)]
    figure = sheet(11.6, 5.2)
    left, right = figure.subplots(1, 2, width_ratios=(2, 3))
    _curves(left, shown)
    _dots(right, shown)
    named = [name for name in FAMILIES if any(one.family == name for one in shown)]
    handles = [right.scatter([], [], **_look(name)) for name in named]
    if named:
        figure.legend(handles, named, fontsize=7, loc="outside right upper", title="family", title_fontsize=7)
    figure.suptitle(title, fontsize=10)
    right.set_xlim(0, 1)
    _name(right, shown)
    return picture(figure, footer, kind)


def _look(family: str) -> dict[str, Any]:
    place = FAMILIES.index(family)
    return {"color": COLOURS[place], "marker": MARKERS[place], "s": 34, "edgecolor": "black", "linewidth": 0.4}


def _curves(axes: Any, shown: Sequence[Simulation]) -> None:
    for one in shown:
        place = FAMILIES.index(one.family)
        axes.plot(one.u, one.f, color=COLOURS[place], linestyle=DASHES[place], linewidth=1)
    axes.plot([0, 1], [0, 1], color="0.7", linewidth=0.8, linestyle=":")
    axes.set(xlim=(0, 1), ylim=(0, 1))
    axes.set_xlabel("quality u of the programs drawn (0 weakest, 1 strongest)", fontsize=8)
    axes.set_ylabel("f(u): mean reward, rescaled to 0 .. 1", fontsize=8)
    axes.tick_params(labelsize=7)
    axes.grid(visible=True, alpha=0.25)


def _dots(axes: Any, shown: Sequence[Simulation]) -> None:
    for one in shown:
        axes.scatter([one.figures.auc], [one.figures.steepness], zorder=3, **_look(one.family))
    values = [one.figures.steepness for one in shown]
    low, high = min([0.0, *values]) - 0.06, max([0.5, *values]) + 0.14
    axes.set_ylim(low, high)
    for cut in (SPARSE, SATURATED):
        axes.axvline(cut, color="0.6", linewidth=0.8, linestyle=":")
    axes.axhline(FLAT, color="0.6", linewidth=0.8, linestyle=":")
    for x, y, word in (
        (0.005, high - 0.03, "sparse"),
        (SATURATED + 0.005, high - 0.03, "saturated"),
        (0.47, low + 0.01, "flat"),
    ):
        axes.text(x, y, word, fontsize=7, color="0.45", style="italic")
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
    at = [(wide * one.figures.auc, high * (one.figures.steepness - low) / (top - low)) for one in shown]
    taken = [(x - 4, y - 4, x + 4, y + 4) for x, y in at]
    for one, place in zip(shown, at, strict=True):
        size = LETTER * WORDS * len(one.name), WORDS
        (dx, dy), box = min(_places(place, size), key=lambda found: _cost(found[1], taken, wide))
        taken.append(box)
        moved = {"xytext": (dx, dy), "textcoords": "offset points", "fontsize": WORDS, "va": "bottom"}
        moved["ha"] = "left" if dx > 0 else "right"
        line = {"arrowprops": {"arrowstyle": "-", "linewidth": 0.3, "color": "0.5"}} if abs(dy) > 8 else {}
        axes.annotate(one.name, (one.figures.auc, one.figures.steepness), **moved, **line)


Box = tuple[float, float, float, float]


def _places(at: tuple[float, float], room: tuple[float, float]) -> Iterator[tuple[tuple[float, float], Box]]:
    """Shifts from a dot with the box that a name of that size would take, the nearest first."""
    for up in (-3, 4, -10, 11, -17, 18, -24, 25, -32, 33, -40, 41, -50, 51):
        for side in (5, -5):
            x, y = at[0] + (side if side > 0 else side - room[0]), at[1] + up
            yield (side, up), (x, y, x + room[0], y + room[1])


def _cost(box: Box, taken: Sequence[Box], wide: float) -> float:
    """The area that a box shares with others, and what hangs over the edge, in square points."""
    left, bottom, right, top = box
    shared = sum(
        max(0.0, min(right, r) - max(left, a)) * max(0.0, min(top, t) - max(bottom, b)) for a, b, r, t in taken
    )
    return shared + 100 * (max(0.0, right - wide) + max(0.0, -left) + max(0.0, -bottom))
