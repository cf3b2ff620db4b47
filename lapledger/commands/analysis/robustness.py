"""`lap robustness`: p_tau and the gain over a baseline when references are slowed down or sped up."""

import math
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from lapledger.cli.axes import durations_ns, factors, percents
from lapledger.cli.criterion_options import CriterionFlags, criterion_options
from lapledger.cli.study_options import (
    Study,
    about,
    scale_options,
    seed_option,
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
    "at most, %",
    "gain, %",
    "95% of gain",
    "gain if undecided, %",
    "undecided",
)


@click.command()
@criterion_options(tau=False)
@click.option("--baseline", required=True, metavar="MAKER", help="Whose p_tau a gain is relative to.")
@click.option("--run", "runs", multiple=True, metavar="PATTERN", help="Models to show.  [default: all but human]")
@tau_option("50,30")
@scale_options(
    ("0.5:1.5:0.1", "At beta = 0.  [default: 0.5:1.5:0.1]"),
    ("-50ms:50ms:10ms", "At alpha = 1.  [default: -50ms:50ms:10ms]"),
)
@seed_option
@study_options(calibrated=True, device=False)
def command(
    study: Study, criterion_flags: CriterionFlags, baseline: str, runs: tuple[str, ...], seed: int, **rest: Any
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
    import numpy as np

    from lapledger.replay.studies.robustness import lines

    taus, alphas = percents(rest.pop("tau")), factors("--alpha", rest.pop("alpha"))
    betas = durations_ns("--beta", rest.pop("beta"), signed=True)
    name, criterion = criterion_flags.read()
    with study.open_questions() as questions:
        found = study.measure(questions, criterion)
    shown = _shown(found, runs, baseline)
    points = _points(found, criterion, (taus, alphas, betas), study.engine)
    series = [one for one in lines(points, baseline, np.random.default_rng(seed)) if one.model in shown]
    if study.paths:
        _save(study.paths, found, (name, criterion), series, baseline)
    warnings = study_warnings(found, {name: criterion}, shown, _asked((taus, alphas, betas)))
    if study.as_json:
        told = {"baseline": baseline, "seed": seed, "warnings": warnings, "points": _rows(series)}
        print_json({**about(found, name, criterion), **told})
        return
    rows = [_words(place) for one in series for place in _places(one)]
    print_table(COLUMNS, rows, title=f"{title_of(found)}, gain over {baseline}", cut=found.cut)
    click.echo(f"{name}: criterion {criterion.hash[:12]}, seed {seed}; nothing was run")
    tell(warnings)


def _shown(found: "MeasuredCampaign", runs: Sequence[str], baseline: str) -> set[str]:
    """The models to show, the baseline always among them; UserError when it made nothing."""
    from lapledger.replay.studies.models import find_runs

    if baseline not in found.models:
        raise UserError(
            f"--baseline {baseline}: no such model in this campaign; choose one of {', '.join(found.models)}"
        )
    return {baseline, *(model for own in find_runs(found.models, runs).values() for model in own)}


def _points(
    found: "MeasuredCampaign",
    criterion: Criterion,
    asked: tuple[tuple[int, ...], tuple[float, ...], tuple[int, ...]],
    engine: Engine,
) -> "tuple[list[Point], list[Point]]":
    """The two sweeps that the lines run through, along beta and along alpha."""
    from lapledger.replay.studies.robustness import line_axes
    from lapledger.replay.studies.sweeps import sweep

    taus, alphas, betas = asked
    along = line_axes(taus, alphas=alphas, betas_ns=betas)
    with progress("robustness", sum(axes.replays for axes in along)) as bar:

        def heard(done: int) -> None:
            bar.advance(bar.task_ids[0], done)

        first, second = (
            sweep(found.measurements, criterion, axes, heard, with_shares=True, engine=engine) for axes in along
        )
    return first, second


def _asked(asked: tuple[tuple[int, ...], tuple[float, ...], tuple[int, ...]]) -> "Variants":
    """Every tau and scale of the two lines."""
    from lapledger.replay.studies.robustness import line_axes
    from lapledger.replay.studies.warnings import Variants

    taus, alphas, betas = asked
    both = line_axes(taus, alphas=alphas, betas_ns=betas)
    return Variants([str(tau) for tau in taus], [scale for axes in both for scale in axes.scales])


def _places(one: "Line") -> list[dict[str, Any]]:
    """Every place on a line."""
    return [
        {
            "along": one.along,
            "at": at,
            "unit": "ns" if one.along == "beta" else "",
            "model": one.model,
            "tau": one.tau,
            "p_tau": one.p_tau[i],
            "interval": one.interval[i],
            "method": one.method[i],
            "at_most": one.at_most[i],
            "gain": one.gain[i],
            "gain_interval": one.gain_interval[i],
            "gain_bounds": one.gain_bounds[i],
            "undecided": one.undecided[i],
        }
        for i, at in enumerate(one.at)
    ]


def _rows(series: "Sequence[Line]") -> list[dict[str, Any]]:
    """One row a place on a line, its interval and bounds in two places each."""
    ends = {
        "interval": ("low", "high"),
        "gain_interval": ("gain_low", "gain_high"),
        "gain_bounds": ("gain_at_least", "gain_at_most"),
    }
    return [flat(place, **ends) for one in series for place in _places(one)]


def _words(place: dict[str, Any]) -> tuple[object, ...]:
    at = f"{place['at'] / NS_PER_MS:g} ms" if place["along"] == "beta" else f"{place['at']:g}"
    value, gained = ("-" if math.isnan(place[name]) else place[name] for name in ("p_tau", "gain"))
    bounds = place["gain_bounds"]
    return (
        place["along"],
        at,
        place["model"],
        place["tau"],
        value,
        of_percents(place["interval"], place["method"]),
        at_most(place["p_tau"], place["at_most"]),
        gained,
        of_percents(place["gain_interval"]),
        of_percents(bounds if bounds and bounds[0] < bounds[1] else None),
        place["undecided"],
    )


def _save(
    paths: Sequence[Path],
    found: "MeasuredCampaign",
    named: tuple[str, Criterion],
    series: "Sequence[Line]",
    baseline: str,
) -> None:
    from lapledger.replay.plots.curves import robustness_plot

    footer = small_print(
        found, [named], "only references are scaled; bands: 95% over problems; hollow: some programs are undecided"
    )
    about = {"campaign": found.campaign, "baseline": baseline, "criterion": named[1].hash, "cut": found.cut}
    save(
        paths, _rows(series), lambda kind: robustness_plot(series, baseline, title_of(found), footer, kind=kind), about
    )
