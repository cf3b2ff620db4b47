"""pass@1 against tau as a picture; its series is made in `studies.curves`."""

from collections.abc import Mapping

from lapledger.replay.plots.figure import Kind, picture, sheet, style
from lapledger.replay.studies.curves import Curve


def curve_plot(curves: Mapping[str, Curve], title: str, footer: str, *, fmt: Kind = "png") -> bytes:
    """The bytes of a PNG or SVG picture of pass@1 (%) against tau (%) with 95% bands and a small footer (the cut)."""
    figure = sheet(6.4, 4.4)
    axes = figure.subplots()
    for place, (model, (tau, value, low, high)) in enumerate(curves.items()):
        look = style(place)
        axes.plot(tau, 100 * value, label=model, **look)
        axes.fill_between(tau, 100 * low, 100 * high, alpha=0.15, color=look["color"], linewidth=0)
    axes.set(title=title, xlabel="tau (%)", ylabel="pass@1 (%)", ylim=(0, 100))
    axes.invert_xaxis()  # stricter to the right
    axes.grid(visible=True, alpha=0.3)
    if curves:
        axes.legend(loc="best", fontsize="small")
    return picture(figure, footer, fmt)
