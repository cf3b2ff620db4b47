"""Pictures of lines: pass@1 against tau, learning curves, and robustness. Their series are made in `studies`."""

from collections.abc import Mapping, Sequence

from lapledger.replay.criteria import NS_PER_MS
from lapledger.replay.plots.figure import Kind, picture, sheet, style
from lapledger.replay.plots.panels import Line, Panel, band, look, panels_plot
from lapledger.replay.studies.curves import Curve, CurvePoint
from lapledger.replay.studies.robustness import ALPHA, BETA
from lapledger.replay.studies.robustness import Line as Series


def curve_plot(curves: Mapping[str, Curve], title: str, footer: str, *, fmt: Kind = "png") -> bytes:
    """The bytes of a PNG or SVG picture of pass@1 (%) against tau (%) with 95% bands and a small footer (the cut)."""
    figure = sheet(6.4, 4.4)
    axes = figure.subplots()
    for number, (model, (tau, value, low, high)) in enumerate(curves.items()):
        look = style(number)
        axes.plot(tau, 100 * value, label=model, **look)
        axes.fill_between(tau, 100 * low, 100 * high, alpha=0.15, color=look["color"], linewidth=0)
    axes.set(title=title, xlabel="tau (%)", ylabel="pass@1 (%)", ylim=(0, 100))
    axes.invert_xaxis()  # stricter to the right
    axes.grid(visible=True, alpha=0.3)
    if curves:
        axes.legend(loc="best", fontsize="small")
    return picture(figure, footer, fmt)


def learning_plot(points: Sequence[CurvePoint], title: str, footer: str, *, kind: Kind) -> bytes:
    """The bytes of the picture: absolute above, relative to the first checkpoint below, both with 95% bands."""
    tiers = list(dict.fromkeys(point.tier for point in points))
    top = [_panel(points, tier, relative=False) for tier in tiers]
    bottom = [_panel(points, tier, relative=True) for tier in tiers]
    return panels_plot([top, bottom], title, footer, kind=kind)


def _panel(points: Sequence[CurvePoint], tier: str, *, relative: bool) -> Panel:
    runs = sorted({point.run for point in points})
    taus = list(dict.fromkeys(point.tau for point in points))
    lines = []
    for run in runs:
        for tau in taus:
            mine = [p for p in points if (p.run, p.tau, p.tier) == (run, tau, tier)]
            shown = look(runs.index(run), taus.index(tau)) if len(runs) > 1 else look(*(taus.index(tau),) * 2)
            lines.append(
                Line(
                    f"p_{tau}" if len(runs) == 1 else f"{run}, p_{tau}",
                    [point.step for point in mine],
                    [point.relative if relative else point.p_tau for point in mine],
                    shown,
                    **band([point.relative_interval if relative else point.interval for point in mine]),
                    hollow=[point.undecided > 0 for point in mine],
                )
            )
    problems = max((point.problems for point in points if point.tier == tier), default=0)
    label = "gain on the first\ncheckpoint (%)" if relative else "p_tau (%)"
    return Panel(
        "" if relative else f"{tier}: {problems} problems", "step", label, lines, level=0.0 if relative else None
    )


def robustness_plot(series: Sequence[Series], baseline: str, title: str, footer: str, *, kind: Kind) -> bytes:
    """The bytes of the picture, with 95% bands; the baseline's own gain, 0 everywhere, is a dotted line."""
    models = sorted({line.model for line in series})
    taus = sorted({line.tau for line in series}, reverse=True)
    labels = {BETA: "beta (ms) at alpha = 1", ALPHA: "alpha at beta = 0"}
    marks = {BETA: 0.0, ALPHA: 1.0}

    def panel(along: str, *, gains: bool) -> Panel:
        lines = [
            Line(
                f"{line.model}, p_{line.tau}",
                [at / NS_PER_MS if along == BETA else at for at in line.at],
                line.gain if gains else line.p_tau,
                look(models.index(line.model), taus.index(line.tau)),
                **band(line.gain_interval if gains else line.interval),
                hollow=[count > 0 for count in line.undecided],
            )
            for line in series
            if line.along == along and not (gains and line.model == baseline)
        ]
        label = f"gain over {baseline} (%)" if gains else "p_tau (%)"
        return Panel("", labels[along], label, lines, mark=marks[along], level=0 if gains else None)

    grid = [[panel(along, gains=gains) for along in (BETA, ALPHA)] for gains in (False, True)]
    return panels_plot(grid, title, footer, kind=kind)
