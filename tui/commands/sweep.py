"""`lap sweep`: p_tau over a grid of tau, timeout, alpha and beta, from stored results alone."""

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ledger.errors import UserError
from replay.criteria import Criterion
from tui.axes import durations_ns, factors, percents, timeouts_ns
from tui.criteria import criterion_options, read_criterion
from tui.measured import Measured, measured, small_print
from tui.memory import keep_freed_memory
from tui.output import at_option, campaign_option, json_option, ledger_option, print_json, print_table, progress, say
from tui.pictures import endings, out_option, save
from tui.session import asking
from tui.settings import read_settings

if TYPE_CHECKING:
    from replay.studies.sweeps import Axes, Point

MOST_REPLAYS = 20_000
NS_PER_MS = 1_000_000
COLUMNS = ("alpha", "beta, ms", "timeout, ms", "tau, %", "maker", "problems", "programs", "undecided", "p_tau, %")


@click.command()
@criterion_options
@click.option("--tau", default="100,50,30,10", metavar="LIST", help="Percents.  [default: 100,50,30,10]")
@click.option("--timeout", default="none", metavar="LIST", help="As 0.5s,2s,10s; `none`: the criterion's own.")
@click.option("--alpha", default="1", metavar="LIST", help="Factors on the references, as 0.8:1.2:0.1.")
@click.option("--beta", default="0", metavar="LIST", help="Added to the references, as -50ms,0,50ms.")
@click.option("--from", "source", default=None, metavar="ID", help="Campaign that the calibration comes from.")
@out_option
@campaign_option
@ledger_option
@at_option
@json_option
def command(
    word: str | None,
    source: str | None,
    outs: tuple[str, ...],
    campaign: str | None,
    ledger: str | None,
    at: str | None,
    as_json: bool,
    **rest: Any,
) -> None:
    """Replay a criterion at every place of a grid: tau, timeout on optimization tests, and scaled references.

    A list is values with commas, or a range FIRST:LAST:STEP. References are scaled as alpha * d + beta, clipped at 0;
    candidates never. A timeout above the limit that was executed is never guessed: it leaves verdicts undecided.

    \b
    Example:
      lap sweep --tau 100,50,30,10 --timeout 0.5s,2s,10s
      lap sweep --tau 50 --alpha 0.8:1.2:0.1 --beta 0ms,20ms --out sweep.csv --out sweep.png
    """
    keep_freed_memory()
    axes = _axes(*(rest.pop(name) for name in ("tau", "timeout", "alpha", "beta")))
    name, criterion = read_criterion(word, rest)
    paths = endings(outs)
    with asking(read_settings(ledger=ledger).location, at) as questions:
        found = measured(questions, campaign, criterion, source)
    points = _sweep(found, criterion, axes)
    if paths:
        _save(paths, found, (name, criterion), points)
    if as_json:
        print_json({**_about(found, name, criterion), "capped": _capped(found, axes), "points": _rows(points)})
    else:
        _show(found, (name, criterion), axes, points)


def _axes(tau: str, timeout: str, alpha: str, beta: str) -> "Axes":
    """The grid; UserError when it is larger than anybody waits for."""
    from replay.studies.sweeps import Axes

    axes = Axes(
        percents(tau),
        timeouts_ns("--timeout", timeout),
        factors("--alpha", alpha),
        durations_ns("--beta", beta, signed=True),
    )
    if axes.replays > MOST_REPLAYS:
        raise UserError(
            f"lap sweep: the grid asks for {axes.replays} replays, and {MOST_REPLAYS} is the most;"
            " drop values, or sweep one axis after the other"
        )
    return axes


def _sweep(found: Measured, criterion: Criterion, axes: "Axes") -> "list[Point]":
    from replay.studies.sweeps import sweep

    with progress("sweep", axes.replays) as bar:
        return sweep(found.problems, criterion, axes, lambda done: bar.advance(bar.task_ids[0], done))


def _capped(found: Measured, axes: "Axes") -> list[dict[str, Any]]:
    """The timeouts that lie above what was executed, each with the runs that only a longer run could decide."""
    from replay.capped import killed_below

    beyond = [(timeout, *killed_below(found.problems, timeout)) for timeout in axes.timeouts_ns if timeout]
    return [{"timeout_ns": timeout, "runs": runs, "programs": programs} for timeout, runs, programs in beyond if runs]


def _about(found: Measured, name: str, criterion: Criterion) -> dict[str, Any]:
    return {
        "cut": found.cut,
        "campaign": found.campaign,
        "criterion": name,
        "hash": criterion.hash,
        "calibration": found.calibration or None,
    }


def _rows(points: "Sequence[Point]") -> list[dict[str, Any]]:
    return [asdict(point) for point in points]


def _save(paths: Sequence[Path], found: Measured, named: tuple[str, Criterion], points: "Sequence[Point]") -> None:
    from replay.plots.swept import sweep_plot

    footer = small_print(found, [named], "hollow: some programs are undecided and count as not passed")
    about = {"campaign": found.campaign, "criterion": named[1].hash, "cut": found.cut}
    save(paths, _rows(points), lambda kind: sweep_plot(points, found.title, footer, kind=kind), about)


def _show(found: Measured, named: tuple[str, Criterion], axes: "Axes", points: "Sequence[Point]") -> None:
    rows = [
        (
            point.alpha,
            _ms(point.beta_ns),
            "-" if point.timeout_ns is None else _ms(point.timeout_ns),
            point.tau,
            point.maker,
            point.problems,
            point.programs,
            point.undecided,
            point.p_tau if point.problems else "-",
        )
        for point in points
    ]
    print_table(COLUMNS, rows, title=found.title, cut=found.cut)
    click.echo(f"{named[0]}: criterion {named[1].hash[:12]}; {axes.replays} replays, nothing was run")
    for beyond in _capped(found, axes):
        say(
            f"warning: timeout {beyond['timeout_ns'] / NS_PER_MS:g} ms is above what was executed:"
            f" {beyond['runs']} runs of {beyond['programs']} candidates were killed before it; what hangs on them is"
            " undecided"
        )


def _ms(ns: int) -> int | float:
    """Whole ms as a whole number."""
    return ns // NS_PER_MS if ns % NS_PER_MS == 0 else ns / NS_PER_MS
