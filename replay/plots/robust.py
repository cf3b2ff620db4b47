"""The four panels of robustness: p_tau and relative gain, each against beta and against alpha."""

from collections.abc import Sequence

from lapledger.replay.criteria import NS_PER_MS
from lapledger.replay.plots.figure import Kind
from lapledger.replay.plots.panels import Line, Panel, band, look, panels_plot
from lapledger.replay.studies.robustness import ALPHA, BETA
from lapledger.replay.studies.robustness import Line as Series


def robustness_plot(series: Sequence[Series], baseline: str, title: str, footer: str, *, kind: Kind) -> bytes:
    """The bytes of the picture, with 95% bands; the baseline's own gain, 0 everywhere, is a dotted line."""
    models = sorted({one.model for one in series})
    taus = sorted({one.tau for one in series}, reverse=True)
    words = {BETA: "beta (ms) at alpha = 1", ALPHA: "alpha at beta = 0"}
    marks = {BETA: 0.0, ALPHA: 1.0}

    def panel(along: str, *, gains: bool) -> Panel:
        lines = [
            Line(
                f"{one.model}, p_{one.tau}",
                [at / NS_PER_MS if along == BETA else at for at in one.at],
                one.gain if gains else one.p_tau,
                look(models.index(one.model), taus.index(one.tau)),
                **band(one.gain_interval if gains else one.interval),
                hollow=[count > 0 for count in one.undecided],
            )
            for one in series
            if one.along == along and not (gains and one.model == baseline)
        ]
        label = f"gain over {baseline} (%)" if gains else "p_tau (%)"
        return Panel("", words[along], label, lines, mark=marks[along], level=0 if gains else None)

    grid = [[panel(along, gains=gains) for along in (BETA, ALPHA)] for gains in (False, True)]
    return panels_plot(grid, title, footer, kind=kind)
