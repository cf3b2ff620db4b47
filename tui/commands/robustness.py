"""`lap robustness`: p_tau and the gain over a baseline when references are slowed down or sped up."""

import math
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ledger.errors import UserError
from replay.criteria import Criterion
from tui.axes import durations_ns, factors, percents
from tui.criteria import criterion_options, read_criterion
from tui.measured import Measured, measured, small_print
from tui.memory import keep_freed_memory
from tui.output import at_option, campaign_option, json_option, ledger_option, print_json, print_table, progress
from tui.pictures import endings, out_option, save
from tui.session import asking
from tui.settings import read_settings

if TYPE_CHECKING:
    from replay.studies.robustness import Line

NS_PER_MS = 1_000_000
COLUMNS = ("along", "at", "maker", "tau, %", "p_tau, %", "gain, %", "undecided")


@click.command()
@criterion_options
@click.option("--baseline", required=True, metavar="MAKER", help="Whose p_tau a gain is relative to.")
@click.option("--run", "runs", multiple=True, metavar="PATTERN", help="Makers to show.  [default: all but human]")
@click.option("--tau", default="50,30", metavar="LIST", help="Percents.  [default: 50,30]")
@click.option("--alpha", default="0.5:1.5:0.1", metavar="LIST", help="At beta = 0.  [default: 0.5:1.5:0.1]")
@click.option("--beta", default="-50ms:50ms:10ms", metavar="LIST", help="At alpha = 1.  [default: -50ms:50ms:10ms]")
@click.option("--from", "source", default=None, metavar="ID", help="Campaign that the calibration comes from.")
@out_option
@campaign_option
@ledger_option
@at_option
@json_option
def command(
    word: str | None,
    baseline: str,
    outs: tuple[str, ...],
    campaign: str | None,
    ledger: str | None,
    at: str | None,
    as_json: bool,
    **rest: Any,
) -> None:
    """Show in four panels whether a gain would survive a slower or faster sandbox.

    References are scaled as alpha * d + beta, clipped at 0; candidates stay as they were measured. alpha < 1 or
    beta < 0 is a slowed sandbox, in which candidates rank worse; alpha > 1 or beta > 0 one that was sped up.

    \b
    Example:
      lap robustness --baseline qwen-rlvr
      lap robustness --baseline qwen-rlvr --run "qwen-*" --tau 50,10 --out panels.png --out panels.csv
    """
    keep_freed_memory()
    runs, source = rest.pop("runs"), rest.pop("source")
    taus, alphas = percents(rest.pop("tau")), factors("--alpha", rest.pop("alpha"))
    betas = durations_ns("--beta", rest.pop("beta"), signed=True)
    name, criterion = read_criterion(word, rest)
    paths = endings(outs)
    with asking(read_settings(ledger=ledger).location, at) as questions:
        found = measured(questions, campaign, criterion, source)
    shown = _shown(found, runs, baseline)
    series = [one for one in _lines(found, criterion, (taus, alphas, betas), baseline) if one.maker in shown]
    if paths:
        _save(paths, found, (name, criterion), series, baseline)
    if as_json:
        about = {"cut": found.cut, "campaign": found.campaign, "criterion": name, "hash": criterion.hash}
        print_json({**about, "calibration": found.calibration or None, "baseline": baseline, "points": _rows(series)})
        return
    rows = [_words(row) for row in _rows(series)]
    print_table(COLUMNS, rows, title=f"{found.title}, gain over {baseline}", cut=found.cut)
    click.echo(f"{name}: criterion {criterion.hash[:12]}; nothing was run")


def _shown(found: Measured, runs: Sequence[str], baseline: str) -> set[str]:
    """The makers to show, the baseline always among them; UserError when it made nothing."""
    from replay.studies.makers import find_runs

    if baseline not in found.makers:
        raise UserError(
            f"--baseline {baseline}: no such maker in this campaign; choose one of {', '.join(found.makers)}"
        )
    return {baseline, *(maker for own in find_runs(found.makers, runs).values() for maker in own)}


def _lines(
    found: Measured,
    criterion: Criterion,
    asked: tuple[tuple[int, ...], tuple[float, ...], tuple[int, ...]],
    baseline: str,
) -> "list[Line]":
    from replay.studies.robustness import line_axes, lines
    from replay.studies.sweeps import sweep

    taus, alphas, betas = asked
    along = line_axes(taus, alphas=alphas, betas_ns=betas)
    with progress("robustness", sum(axes.replays for axes in along)) as bar:
        first, second = (
            sweep(found.problems, criterion, axes, lambda done: bar.advance(bar.task_ids[0], done)) for axes in along
        )
    return lines((first, second), baseline)


def _rows(series: "Sequence[Line]") -> list[dict[str, Any]]:
    """One row a place on a line."""
    return [
        {
            "along": one.along,
            "at": at,
            "unit": "ns" if one.along == "beta" else "",
            "maker": one.maker,
            "tau": one.tau,
            "p_tau": p,
            "gain": gained,
            "undecided": open_,
        }
        for one in series
        for at, p, gained, open_ in zip(one.at, one.p_tau, one.gain, one.undecided, strict=True)
    ]


def _words(row: dict[str, Any]) -> tuple[object, ...]:
    at = f"{row['at'] / NS_PER_MS:g} ms" if row["along"] == "beta" else f"{row['at']:g}"
    shares = ["-" if math.isnan(row[name]) else row[name] for name in ("p_tau", "gain")]
    return row["along"], at, row["maker"], row["tau"], *shares, row["undecided"]


def _save(
    paths: Sequence[Path], found: Measured, named: tuple[str, Criterion], series: "Sequence[Line]", baseline: str
) -> None:
    from replay.plots.robust import robustness_plot

    footer = small_print(found, [named], "only references are scaled; hollow: some programs are undecided")
    about = {"campaign": found.campaign, "baseline": baseline, "criterion": named[1].hash, "cut": found.cut}
    save(paths, _rows(series), lambda kind: robustness_plot(series, baseline, found.title, footer, kind=kind), about)
