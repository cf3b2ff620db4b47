"""The sheet that every picture is drawn on: its size, its small print, and its bytes.

Colours are apart in grey too, and each goes with a marker and a dash of its own. Callers choose what is drawn.
"""

import io
import textwrap
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Kind = Literal["png", "svg"]

COLOURS = ("#1b1b1b", "#0072b2", "#d55e00", "#56b4e9", "#7b3294", "#009e73", "#e69f00", "#a0a0a0")
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "*")
DASHES: tuple[Any, ...] = ("-", "--", "-.", ":", (0, (5, 1)), (0, (3, 1, 1, 1)), (0, (1, 1)), (0, (8, 2)))
SMALL = 7


def style(number: int) -> dict[str, Any]:
    """Colour, marker and dash of the series with that number; after eight colours the markers shift."""
    shift = number + number // len(COLOURS)
    return {
        "color": COLOURS[number % len(COLOURS)],
        "marker": MARKERS[shift % len(MARKERS)],
        "linestyle": DASHES[shift % len(DASHES)],
        "markersize": 4,
        "linewidth": 1.3,
    }


def sheet(width: float, height: float) -> "Figure":
    """An empty figure of that size in inches, without any global state."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height), layout="constrained")
    FigureCanvasAgg(figure)
    return figure


def picture(figure: "Figure", footer: str, kind: Kind) -> bytes:
    """The bytes of a PNG or SVG with the small print (criterion, cut) below; no date is written into them."""
    width = int(figure.get_figwidth() * 72 / (0.6 * SMALL))
    lines = [line for part in footer.splitlines() for line in textwrap.wrap(part, width) or [""]]
    figure.supxlabel("\n".join(lines), fontsize=SMALL, color="0.35")
    out = io.BytesIO()
    with _fixed():
        figure.savefig(out, format=kind, dpi=150, metadata={"Date": None} if kind == "svg" else None)
    return out.getvalue()


def _fixed() -> AbstractContextManager[None]:
    """Settings under which the same drawing gives the same bytes."""
    import matplotlib as mpl

    context: AbstractContextManager[None] = mpl.rc_context({"svg.hashsalt": "lap"})
    return context
