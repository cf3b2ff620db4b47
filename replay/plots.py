"""Pictures and the series behind them: pass@1 against tau.

Bytes come out, no file is written and no global plotting state is touched. matplotlib is imported only when a picture
is drawn.
"""

import io
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Literal

import numpy as np

from replay.court import combine, weigh_all
from replay.criteria import Criterion
from replay.estimates import estimate_statuses
from replay.measurements import Floats, ProblemMeasurements

Curve = tuple[Floats, Floats, Floats, Floats]
"""tau [N], pass@1 [N] in [0, 1], lower and upper end of its 95% interval [N] (nan without one)."""


def tau_curve(
    measurements: Sequence[ProblemMeasurements], criterion: Criterion, taus: Sequence[str | float]
) -> dict[str, Curve]:
    """pass@1 in [0, 1] against tau, one curve a maker; undecided counts as not passed.

    The criterion's own tau is not read. Ranks do not depend on tau and are made once; so another tau costs almost
    nothing.
    """
    judged = [weigh_all(m, criterion) for m in measurements]
    sizes, left_out = [one.ranks.pool_size for one in judged], [one.rules.left_out for one in judged]
    points: dict[str, list[tuple[float, float, float, float]]] = {}
    for tau in taus:
        at = replace(criterion, tau=str(tau))
        statuses = [combine(one.c, one.gate(at)) for one in judged]
        for one in estimate_statuses(statuses, sizes, measurements, k=1, left_out=left_out):
            low, high = one.interval or (np.nan, np.nan)
            points.setdefault(one.maker, []).append((float(at.tau), one.value, low, high))
    return {maker: _curve(rows) for maker, rows in points.items()}


def curve_plot(curves: Mapping[str, Curve], title: str, footer: str, *, fmt: Literal["png", "svg"] = "png") -> bytes:
    """The bytes of a PNG or SVG picture of pass@1 (%) against tau with 95% bands and a small footer (the cut).

    The same input gives the same bytes on the same machine: the file carries no date.
    """
    import matplotlib as mpl
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(6.4, 4.4), layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.subplots()
    for maker, (tau, value, low, high) in curves.items():
        (line,) = axes.plot(tau, 100 * value, marker="o", markersize=3, label=maker)
        axes.fill_between(tau, 100 * low, 100 * high, alpha=0.15, color=line.get_color(), linewidth=0)
    axes.set(title=title, xlabel="tau", ylabel="pass@1 (%)", ylim=(0, 100))
    axes.invert_xaxis()  # stricter to the right
    axes.grid(visible=True, alpha=0.3)
    if curves:
        axes.legend(loc="best", fontsize="small")
    figure.supxlabel(footer, fontsize=6, color="0.4")
    out = io.BytesIO()
    with mpl.rc_context({"svg.hashsalt": "lap"}):
        figure.savefig(out, format=fmt, dpi=150, metadata={"Date": None} if fmt == "svg" else None)
    return out.getvalue()


def _curve(rows: list[tuple[float, float, float, float]]) -> Curve:
    tau, value, low, high = np.array(rows, dtype=np.float64).T
    return tau, value, low, high
