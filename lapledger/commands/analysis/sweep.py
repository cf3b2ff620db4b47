"""`lap sweep`: p_tau over a grid of tau, timeout, alpha and beta, from stored results alone."""

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from lapledger.cli.axes import durations_ns, factors, limits_ns, percents
from lapledger.cli.criterion_options import CriterionFlags, criterion_options
from lapledger.cli.study_options import (
    Study,
    about,
    scale_options,
    small_print,
    study_options,
    study_warnings,
    tau_option,
    title_of,
)
from lapledger.ledger.errors import UserError
from lapledger.render.intervals import at_most, of_percents
from lapledger.render.output import print_json, print_table, progress, tell
from lapledger.render.pictures import flat, save
from lapledger.replay.criteria import NS_PER_MS, Criterion
from lapledger.replay.engines import Engine
from lapledger.workflows.malloc import keep_freed_memory

if TYPE_CHECKING:
    from lapledger.replay.loading import MeasuredCampaign
    from lapledger.replay.studies.sweeps import Axes, Point
    from lapledger.replay.studies.warnings import Variants

MOST_REPLAYS = 20_000
COLUMNS = (
    "alpha",
    "beta, ms",
    "test limit, ms",
    "tau, %",
    "model",
    "problems",
    "programs",
    "undecided",
    "p_tau, %",
    "95% interval",
    "at most, %",
)


@click.command()
@criterion_options(tau=False)
@tau_option("100,50,30,10")
@click.option(
    "--optimization-limit",
    default="none",
    metavar="LIST",
    help="Limits on optimization tests, e.g. 0.5s,2s,10s; `none`: the criterion's own.  [default: none]",
)
@scale_options(("1", "Factors on the references, as 0.8:1.2:0.1."), ("0", "Added to the references, as -50ms,0,50ms."))
@study_options(calibrated=True, device=False)
def command(study: Study, criterion_flags: CriterionFlags, **rest: Any) -> None:
    """Replay a criterion at every place of a grid: tau, timeout on optimization tests, and scaled references.

    A list is values with commas, or a range FIRST:LAST:STEP. References are scaled as alpha * d + beta, clipped at 0;
    candidates never. A timeout above the limit that was executed is never guessed: it leaves verdicts undecided.

    \b
    Example:
      lap sweep --tau 100,50,30,10 --optimization-limit 0.5s,2s,10s
      lap sweep --tau 50 --alpha 0.8:1.2:0.1 --beta 0ms,20ms --out sweep.csv --out sweep.png
    """
    keep_freed_memory()
    axes = _axes(*(rest.pop(name) for name in ("tau", "optimization_limit", "alpha", "beta")))
    name, criterion = criterion_flags.read()
    with study.open_questions() as questions:
        found = study.measure(questions, criterion)
    points = _sweep(found, criterion, axes, study.engine)
    if study.paths:
        _save(study.paths, found, (name, criterion), points)
    warnings = _warnings(found, criterion, axes)
    if study.as_json:
        told = {"capped": _capped(found, axes, criterion), "warnings": warnings, "points": _rows(points)}
        print_json({**about(found, name, criterion), **told})
    else:
        _show(found, (name, criterion), axes, points)
        tell(warnings)


def _axes(tau: str, limit: str, alpha: str, beta: str) -> "Axes":
    """The grid; UserError when it is larger than anybody waits for."""
    from lapledger.replay.studies.sweeps import Axes

    axes = Axes(
        percents(tau),
        limits_ns("--optimization-limit", limit),
        factors("--alpha", alpha),
        durations_ns("--beta", beta, signed=True),
    )
    if axes.replays > MOST_REPLAYS:
        raise UserError(
            f"lap sweep: the grid asks for {axes.replays} replays, and {MOST_REPLAYS} is the most;"
            " drop values, or sweep one axis after the other"
        )
    return axes


def _sweep(found: "MeasuredCampaign", criterion: Criterion, axes: "Axes", engine: Engine) -> "list[Point]":
    from lapledger.replay.studies.sweeps import sweep

    with progress("sweep", axes.replays) as bar:

        def heard(done: int) -> None:
            bar.advance(bar.task_ids[0], done)

        return sweep(found.measurements, criterion, axes, heard, engine=engine)


def _capped(found: "MeasuredCampaign", axes: "Axes", criterion: Criterion) -> list[dict[str, Any]]:
    """The timeouts that lie above what was executed, each with the runs that only a longer run could decide."""
    from lapledger.replay.studies.sweeps import at
    from lapledger.replay.studies.warnings import killed_before

    places = _places(axes)
    beyond = [
        (timeout, *killed_before(found.measurements, at(criterion, timeout), places)) for timeout in axes.timeouts_ns
    ]
    return [{"timeout_ns": timeout, "runs": runs, "programs": programs} for timeout, runs, programs in beyond if runs]


def _warnings(found: "MeasuredCampaign", criterion: Criterion, axes: "Axes") -> tuple[str, ...]:
    """What to be wary of at each timeout; one that is the criterion's own is not named."""
    from lapledger.replay.studies.sweeps import at

    asked = {f"timeout {timeout / NS_PER_MS:g} ms" if timeout else "": timeout for timeout in axes.timeouts_ns}
    return study_warnings(
        found, {name: at(criterion, timeout) for name, timeout in asked.items()}, places=_places(axes)
    )


def _places(axes: "Axes") -> "Variants":
    """Every tau and scale of the grid."""
    from lapledger.replay.studies.warnings import Variants

    return Variants([str(tau) for tau in axes.taus], axes.scales)


def _rows(points: "Sequence[Point]") -> list[dict[str, Any]]:
    """One row a point, its interval in two places."""
    rows = (flat(asdict(point), interval=("low", "high")) for point in points)
    return [{name: value for name, value in row.items() if name != "shares"} for row in rows]


def _save(
    paths: Sequence[Path], found: "MeasuredCampaign", named: tuple[str, Criterion], points: "Sequence[Point]"
) -> None:
    from lapledger.replay.plots.swept import sweep_plot

    footer = small_print(found, [named], "bands: 95% over problems; hollow: some programs are undecided")
    about = {"campaign": found.campaign, "criterion": named[1].hash, "cut": found.cut}
    save(paths, _rows(points), lambda kind: sweep_plot(points, title_of(found), footer, kind=kind), about)


def _show(found: "MeasuredCampaign", named: tuple[str, Criterion], axes: "Axes", points: "Sequence[Point]") -> None:
    rows = [
        (
            point.alpha,
            _ms(point.beta_ns),
            "-" if point.timeout_ns is None else _ms(point.timeout_ns),
            point.tau,
            point.model,
            point.problems,
            point.programs,
            point.undecided,
            point.p_tau if point.problems else "-",
            of_percents(point.interval, point.method),
            at_most(point.p_tau, point.at_most),
        )
        for point in points
    ]
    print_table(COLUMNS, rows, title=title_of(found), cut=found.cut)
    click.echo(f"{named[0]}: criterion {named[1].hash[:12]}; {axes.replays} replays, nothing was run")


def _ms(ns: int) -> int | float:
    """Whole ms as a whole number."""
    return ns // NS_PER_MS if ns % NS_PER_MS == 0 else ns / NS_PER_MS
