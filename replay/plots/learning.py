"""Learning curves as a picture: p_tau and its relative gain against the step, one column a tier."""

from collections.abc import Sequence

from lapledger.replay.plots.figure import Kind
from lapledger.replay.plots.panels import Line, Panel, band, look, panels_plot
from lapledger.replay.studies.curves import CurvePoint


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
