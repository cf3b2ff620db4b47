"""`lap sweep`: p_tau over a grid of tau, timeout, alpha and beta, from stored results alone."""

from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import click

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
from lapledger.render.output import print_json, print_line, print_table, print_warnings, progress
from lapledger.render.pictures import Outputs, flat
from lapledger.replay.criteria import NS_PER_MS, Criterion
from lapledger.replay.engines import Engine
from lapledger.workflows.analysis.axes import durations_ns, factors, limits_ns, percents
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
    "upper bound, %",
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
@scale_options(
    ("1", "Factors on the references, e.g. 0.8:1.2:0.1.  [default: 1]"),
    ("0", "Offsets of the references, e.g. -50ms,0,50ms.  [default: 0]"),
)
@study_options(calibrated=True, device=False)
def command(study: Study, criterion_flags: CriterionFlags, **rest: Any) -> None:
    """Evaluate a criterion on a grid of tau, limits on optimization tests, and scaled references.

    A list is values with commas, or a range FIRST:LAST:STEP. References are scaled as alpha * d + beta, clipped at 0;
    candidates never. A limit above the one that was executed is never extrapolated: verdicts become undecided.

    \b
    Example:
      lap sweep --tau 100,50,30,10 --optimization-limit 0.5s,2s,10s
      lap sweep --tau 50 --alpha 0.8:1.2:0.1 --beta 0ms,20ms --out sweep.csv --out sweep.png
    """
    keep_freed_memory()
    axes = _axes(*(rest.pop(name) for name in ("tau", "optimization_limit", "alpha", "beta")))
    name, criterion = criterion_flags.read()
    with study.open_questions() as questions:
        measured = study.measure(questions, criterion)
    points = _sweep(measured, criterion, axes, study.engine)
    if study.outputs:
        _save(study.outputs, measured, (name, criterion), points)
    warnings = _warnings(measured, criterion, axes)
    if study.as_json:
        more = {"capped": _capped(measured, axes, criterion), "warnings": warnings, "points": _rows(points)}
        print_json({**about(measured, name, criterion), **more})
    else:
        _show(measured, (name, criterion), axes, points)
        print_warnings(warnings)


def _axes(tau: str, limit: str, alpha: str, beta: str) -> "Axes":
    """The grid; UserError when it is too large."""
    from lapledger.replay.studies.sweeps import Axes

    axes = Axes(
        percents(tau),
        limits_ns("--optimization-limit", limit),
        factors("--alpha", alpha),
        durations_ns("--beta", beta, signed=True),
    )
    if axes.replays > MOST_REPLAYS:
        raise UserError(
            f"lap sweep: the grid has {axes.replays} replays, above the limit of {MOST_REPLAYS};"
            " drop values, or sweep one axis at a time"
        )
    return axes


def _sweep(measured: "MeasuredCampaign", criterion: Criterion, axes: "Axes", engine: Engine) -> "list[Point]":
    from lapledger.replay.studies.sweeps import sweep

    with progress("sweep", axes.replays) as bar:

        def on_progress(done: int) -> None:
            bar.advance(bar.task_ids[0], done)

        return sweep(measured.measurements, criterion, axes, on_progress, engine=engine)


def _capped(measured: "MeasuredCampaign", axes: "Axes", criterion: Criterion) -> list[dict[str, Any]]:
    """The timeouts that lie above what was executed, each with the runs that only a longer run could decide."""
    from lapledger.replay.studies.sweeps import at
    from lapledger.replay.studies.warnings import killed_before

    points_of_grid = _grid_points(axes)
    censored = [
        (timeout, *killed_before(measured.measurements, at(criterion, timeout), points_of_grid))
        for timeout in axes.timeouts_ns
    ]
    return [{"timeout_ns": timeout, "runs": runs, "programs": programs} for timeout, runs, programs in censored if runs]


def _warnings(measured: "MeasuredCampaign", criterion: Criterion, axes: "Axes") -> tuple[str, ...]:
    """What to be wary of at each timeout; one that is the criterion's own is not named."""
    from lapledger.replay.studies.sweeps import at

    named_limits = {f"timeout {timeout / NS_PER_MS:g} ms" if timeout else "": timeout for timeout in axes.timeouts_ns}
    return study_warnings(
        measured, {name: at(criterion, timeout) for name, timeout in named_limits.items()}, variants=_grid_points(axes)
    )


def _grid_points(axes: "Axes") -> "Variants":
    """Every tau and scale of the grid."""
    from lapledger.replay.studies.warnings import Variants

    return Variants([str(tau) for tau in axes.taus], axes.scales)


def _rows(points: "Sequence[Point]") -> list[dict[str, Any]]:
    """One row a point, its interval in two columns."""
    rows = (flat(asdict(point), interval=("low", "high")) for point in points)
    return [{name: value for name, value in row.items() if name != "shares"} for row in rows]


def _save(
    outputs: Outputs, measured: "MeasuredCampaign", named: tuple[str, Criterion], points: "Sequence[Point]"
) -> None:
    from lapledger.replay.plots.swept import sweep_plot

    footer = small_print(measured, [named], "bands: 95% over problems; hollow: some programs are undecided")
    about = {"campaign": measured.campaign, "criterion": named[1].hash, "cut": measured.cut}
    outputs.save(_rows(points), lambda kind: sweep_plot(points, title_of(measured), footer, kind=kind), about)


def _show(measured: "MeasuredCampaign", named: tuple[str, Criterion], axes: "Axes", points: "Sequence[Point]") -> None:
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
    print_table(COLUMNS, rows, title=title_of(measured), cut=measured.cut)
    print_line(f"{named[0]}: criterion {named[1].hash[:12]}; {axes.replays} replays, no programs were re-executed")


def _ms(ns: int) -> int | float:
    """Whole ms as a whole number."""
    return ns // NS_PER_MS if ns % NS_PER_MS == 0 else ns / NS_PER_MS
