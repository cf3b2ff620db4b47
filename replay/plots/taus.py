"""pass@1 against tau: the series and its picture. Nothing is judged here by rules of its own."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from replay.criteria import Criterion
from replay.estimates import estimate_statuses
from replay.judging.court import combine, weigh_all
from replay.measurements import Floats, ProblemMeasurements
from replay.plots.figure import Kind, picture, sheet, style

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


def curve_plot(curves: Mapping[str, Curve], title: str, footer: str, *, fmt: Kind = "png") -> bytes:
    """The bytes of a PNG or SVG picture of pass@1 (%) against tau (%) with 95% bands and a small footer (the cut)."""
    figure = sheet(6.4, 4.4)
    axes = figure.subplots()
    for place, (maker, (tau, value, low, high)) in enumerate(curves.items()):
        look = style(place)
        axes.plot(tau, 100 * value, label=maker, **look)
        axes.fill_between(tau, 100 * low, 100 * high, alpha=0.15, color=look["color"], linewidth=0)
    axes.set(title=title, xlabel="tau (%)", ylabel="pass@1 (%)", ylim=(0, 100))
    axes.invert_xaxis()  # stricter to the right
    axes.grid(visible=True, alpha=0.3)
    if curves:
        axes.legend(loc="best", fontsize="small")
    return picture(figure, footer, fmt)


def _curve(rows: list[tuple[float, float, float, float]]) -> Curve:
    tau, value, low, high = np.array(rows, dtype=np.float64).T
    return tau, value, low, high
