"""`lap robustness`: p_tau and the gain over a baseline when references are slowed down or sped up."""

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import click

from lapledger.cli.criterion_options import CriterionFlags, criterion_options
from lapledger.cli.options import seed_option
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
from lapledger.workflows.analysis.axes import durations_ns, factors, percents
from lapledger.workflows.malloc import keep_freed_memory

if TYPE_CHECKING:
    from lapledger.replay.loading import MeasuredCampaign
    from lapledger.replay.studies.robustness import Line
    from lapledger.replay.studies.sweeps import Point
    from lapledger.replay.studies.warnings import Variants

COLUMNS = (
    "along",
    "at",
    "model",
    "tau, %",
    "p_tau, %",
    "95% interval",
    "upper bound, %",
    "gain, %",
    "95% of gain",
    "gain bounds if undecided, %",
    "undecided",
)


@click.command()
@criterion_options(tau=False)
@click.option("--baseline", required=True, metavar="MODEL", help="Model that gains are relative to.")
@click.option("--run", "runs", multiple=True, metavar="PATTERN", help="Models to show.  [default: all but human]")
@tau_option("50,30")
@scale_options(
    ("0.5:1.5:0.1", "Factors on the references, at beta = 0.  [default: 0.5:1.5:0.1]"),
    ("-50ms:50ms:10ms", "Offsets of the references, at alpha = 1.  [default: -50ms:50ms:10ms]"),
)
@seed_option("the bootstrap of gains")
@study_options(calibrated=True, device=False)
def command(
    study: Study, criterion_flags: CriterionFlags, baseline: str, runs: tuple[str, ...], seed: int, **rest: Any
) -> None:
    """Check whether a gain would survive a slower or faster sandbox, in four panels.

    References are scaled as alpha * d + beta, clipped at 0; candidates stay as they were measured. alpha < 1 or
    beta < 0 is a slowed sandbox, in which candidates rank worse; alpha > 1 or beta > 0 one that was sped up.

    \b
    Example:
      lap robustness --baseline qwen-rlvr
      lap robustness --baseline qwen-rlvr --run "qwen-*" --tau 50,10 --out panels.png --out panels.csv
    """
    keep_freed_memory()
    import numpy as np

    from lapledger.replay.studies.robustness import lines

    taus, alphas = percents(rest.pop("tau")), factors("--alpha", rest.pop("alpha"))
    betas = durations_ns("--beta", rest.pop("beta"), signed=True)
    name, criterion = criterion_flags.read()
    with study.open_questions() as questions:
        measured = study.measure(questions, criterion)
    shown = _shown(measured, runs, baseline)
    points = _points(measured, criterion, (taus, alphas, betas), study.engine)
    series = [line for line in lines(points, baseline, np.random.default_rng(seed)) if line.model in shown]
    if study.outputs:
        _save(study.outputs, measured, (name, criterion), series, baseline)
    warnings = study_warnings(measured, {name: criterion}, shown, _grid_points((taus, alphas, betas)))
    if study.as_json:
        more = {"baseline": baseline, "seed": seed, "warnings": warnings, "points": _rows(series)}
        print_json({**about(measured, name, criterion), **more})
        return
    rows = [_cells(point) for line in series for point in _points_of(line)]
    print_table(COLUMNS, rows, title=f"{title_of(measured)}, gain over {baseline}", cut=measured.cut)
    print_line(f"{name}: criterion {criterion.hash[:12]}, seed {seed}; no programs were re-executed")
    print_warnings(warnings)


def _shown(measured: "MeasuredCampaign", runs: Sequence[str], baseline: str) -> set[str]:
    """The models to show, the baseline always among them; UserError when it has no programs."""
    from lapledger.replay.studies.models import find_runs

    if baseline not in measured.models:
        raise UserError(
            f"--baseline {baseline}: no such model in this campaign; choose one of {', '.join(measured.models)}"
        )
    return {baseline, *(model for members in find_runs(measured.models, runs).values() for model in members)}


def _points(
    measured: "MeasuredCampaign",
    criterion: Criterion,
    axes_values: tuple[tuple[int, ...], tuple[float, ...], tuple[int, ...]],
    engine: Engine,
) -> "tuple[list[Point], list[Point]]":
    """The two sweeps that the lines run through, along beta and along alpha."""
    from lapledger.replay.studies.robustness import line_axes
    from lapledger.replay.studies.sweeps import sweep

    taus, alphas, betas = axes_values
    along = line_axes(taus, alphas=alphas, betas_ns=betas)
    with progress("robustness", sum(axes.replays for axes in along)) as bar:

        def on_progress(done: int) -> None:
            bar.advance(bar.task_ids[0], done)

        first, second = (
            sweep(measured.measurements, criterion, axes, on_progress, with_shares=True, engine=engine)
            for axes in along
        )
    return first, second


def _grid_points(axes_values: tuple[tuple[int, ...], tuple[float, ...], tuple[int, ...]]) -> "Variants":
    """Every tau and scale of the two lines."""
    from lapledger.replay.studies.robustness import line_axes
    from lapledger.replay.studies.warnings import Variants

    taus, alphas, betas = axes_values
    both = line_axes(taus, alphas=alphas, betas_ns=betas)
    return Variants([str(tau) for tau in taus], [scale for axes in both for scale in axes.scales])


def _points_of(line: "Line") -> list[dict[str, Any]]:
    """Every point of a line."""
    return [
        {
            "along": line.along,
            "at": at,
            "unit": "ns" if line.along == "beta" else "",
            "model": line.model,
            "tau": line.tau,
            "p_tau": line.p_tau[i],
            "interval": line.interval[i],
            "method": line.method[i],
            "at_most": line.at_most[i],
            "gain": line.gain[i],
            "gain_interval": line.gain_interval[i],
            "gain_bounds": line.gain_bounds[i],
            "undecided": line.undecided[i],
        }
        for i, at in enumerate(line.at)
    ]


def _rows(series: "Sequence[Line]") -> list[dict[str, Any]]:
    """One row a point of a line, its interval and bounds in two columns each."""
    ends = {
        "interval": ("low", "high"),
        "gain_interval": ("gain_low", "gain_high"),
        "gain_bounds": ("gain_at_least", "gain_at_most"),
    }
    return [flat(point, **ends) for line in series for point in _points_of(line)]


def _cells(point: dict[str, Any]) -> tuple[object, ...]:
    at = f"{point['at'] / NS_PER_MS:g} ms" if point["along"] == "beta" else f"{point['at']:g}"
    value, gained = ("-" if math.isnan(point[name]) else point[name] for name in ("p_tau", "gain"))
    bounds = point["gain_bounds"]
    return (
        point["along"],
        at,
        point["model"],
        point["tau"],
        value,
        of_percents(point["interval"], point["method"]),
        at_most(point["p_tau"], point["at_most"]),
        gained,
        of_percents(point["gain_interval"]),
        of_percents(bounds if bounds and bounds[0] < bounds[1] else None),
        point["undecided"],
    )


def _save(
    outputs: Outputs,
    measured: "MeasuredCampaign",
    named: tuple[str, Criterion],
    series: "Sequence[Line]",
    baseline: str,
) -> None:
    from lapledger.replay.plots.curves import robustness_plot

    footer = small_print(
        measured, [named], "only references are scaled; bands: 95% over problems; hollow: some programs are undecided"
    )
    about = {"campaign": measured.campaign, "baseline": baseline, "criterion": named[1].hash, "cut": measured.cut}
    outputs.save(
        _rows(series),
        lambda kind: robustness_plot(series, baseline, title_of(measured), footer, kind=kind),
        about,
    )
