"""`lap simulate`: what criteria would pay for human programs of known quality, before any training."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from lapledger.cli.study_options import Study, named_criteria, small_print, study_options, study_warnings, title_of
from lapledger.ledger.errors import UserError
from lapledger.render.output import print_json, print_table, progress, say, tell
from lapledger.render.pictures import save
from lapledger.replay.criteria import ENVIRONMENTS, REWARDS, Criterion
from lapledger.replay.engines import Engine
from lapledger.replay.studies.models import HUMAN
from lapledger.workflows.data.training_results import read_results
from lapledger.workflows.malloc import keep_freed_memory

if TYPE_CHECKING:
    from lapledger.replay.loading import MeasuredCampaign
    from lapledger.replay.studies.simulator import Agreement, Simulation

COLUMNS = (
    "criterion",
    "problems",
    "undecided",
    "AUC",
    "95% interval",
    "steepness",
    "deviation",
    "monotonicity",
    "noise",
    "zero-advantage %",
    "verdict",
)


@click.command()
@click.option(
    "--criterion",
    "words",
    multiple=True,
    metavar="NAME|FILE",
    help="Repeat.  [default: every environment and reward preset]",
)
@click.option("--seed", default=0, type=click.IntRange(0, 2**63 - 1), metavar="N", help="Of the draws.  [default: 0]")
@click.option("--model", default=HUMAN, metavar="MAKER", help=f"Whose programs are drawn.  [default: {HUMAN}]")
@click.option(
    "--training-results",
    default=None,
    metavar="FILE",
    type=click.Path(),
    help="CSV of `criterion,p_30` from training: rank correlation with each figure.",
)
@study_options(calibrated=False)
def command(study: Study, words: tuple[str, ...], training_results: str | None, seed: int, model: str) -> None:
    """Draw human programs from weak to strong and ask what each criterion would pay: sparse, saturated, flat or steep.

    It rejects bad environments before any training; it does not predict the winner. The same seed gives the same
    draws, whatever else is simulated.

    \b
    Example:
      lap simulate --criterion top-30 --criterion rlvr --criterion raw-duration
      lap simulate --out curves.csv --out scatter.png
    """
    keep_freed_memory()
    criteria = named_criteria(words, [*ENVIRONMENTS.items(), *REWARDS.items()])
    results = read_results(training_results) if training_results else {}
    with study.open_questions() as questions:
        found = study.measure(questions, Criterion())
    _check_model(found, model)
    simulations = _simulate(found, criteria, seed=seed, model=model, engine=study.engine)
    agreed = _agreement(simulations, results)
    if study.paths:
        _save(study.paths, found, criteria, simulations, seed)
    warnings = study_warnings(found, criteria, {model})
    if study.as_json:
        print_json({**_as_json(found, criteria, simulations, agreed, seed), "warnings": warnings})
    else:
        _show(found, criteria, simulations, agreed, seed)
        tell(warnings)


def _check_model(found: "MeasuredCampaign", model: str) -> None:
    """Nothing; UserError where nobody of that name made a program."""
    known = sorted({by for m in found.measurements for by in m.models})
    if model not in known:
        raise UserError(f"--model {model}: no such model in this campaign; choose one of {', '.join(known)}")


def _simulate(
    found: "MeasuredCampaign", criteria: Mapping[str, Criterion], *, seed: int, model: str, engine: Engine
) -> "list[Simulation]":
    from lapledger.replay.engines import Each
    from lapledger.replay.studies.simulator import simulate

    with progress("simulate", len(found.measurements)) as bar:

        def heard(done: int) -> None:
            bar.advance(bar.task_ids[0], done)

        return simulate(found.measurements, criteria, model=model, runner=Each(engine, seed), progress=heard)


def _agreement(simulations: "Sequence[Simulation]", results: Mapping[str, float]) -> "list[Agreement]":
    from lapledger.replay.studies.simulator import agreement

    return agreement(simulations, results) if results else []


def _row(one: "Simulation", criterion: Criterion) -> dict[str, Any]:
    """Everything that is known of one criterion but its curve."""
    return {
        "criterion": one.name,
        "hash": criterion.hash,
        "family": one.family,
        **asdict(one.figures),
        "auc_low": math.nan if one.auc_interval is None else one.auc_interval[0],
        "auc_high": math.nan if one.auc_interval is None else one.auc_interval[1],
        "zero_advantage": one.zero_advantage,
        "verdict": one.figures.verdict,
        "groups": one.groups,
        "problems": one.problems,
        "left_out": one.left_out,
        "too_few": one.too_few,
        "unplaced": one.unplaced,
        "programs": one.programs,
        "undecided": one.undecided,
        "undrawn": one.undrawn,
    }


def _as_json(
    found: "MeasuredCampaign",
    criteria: Mapping[str, Criterion],
    simulations: "Sequence[Simulation]",
    agreed: "Sequence[Agreement]",
    seed: int,
) -> dict[str, Any]:
    return {
        "cut": found.cut,
        "campaign": found.campaign,
        "seed": seed,
        "simulations": [
            {**_row(one, criteria[one.name]), "u": one.u.tolist(), "f": one.f.tolist()} for one in simulations
        ],
        "online": [asdict(one) for one in agreed],
    }


def _save(
    paths: Sequence[Path],
    found: "MeasuredCampaign",
    criteria: Mapping[str, Criterion],
    simulations: "Sequence[Simulation]",
    seed: int,
) -> None:
    from lapledger.replay.plots.scatter import simulator_plot

    rows = [
        {**_row(one, criteria[one.name]), "u": u, "f": f}
        for one in simulations
        for u, f in zip(one.u.tolist(), one.f.tolist(), strict=True)
    ]
    footer = small_print(found, list(criteria.items()), f"seed {seed}; dotted: the cuts of the verdicts, and f(u) = u")
    about = {"campaign": found.campaign, "seed": str(seed), "cut": found.cut}
    save(paths, rows, lambda kind: simulator_plot(simulations, title_of(found), footer, kind=kind), about)


def _show(
    found: "MeasuredCampaign",
    criteria: Mapping[str, Criterion],
    simulations: "Sequence[Simulation]",
    agreed: "Sequence[Agreement]",
    seed: int,
) -> None:
    rows = [(one.name, one.problems, one.undecided, *_figures(one), one.figures.verdict) for one in simulations]
    print_table(COLUMNS, rows, title=f"{title_of(found)}, seed {seed}", cut=found.cut)
    if agreed:
        shown = [(one.figure, one.criteria, _number(one.correlation), _number(one.p)) for one in agreed]
        print_table(("figure", "criteria", "Spearman with training", "p"), shown)
    click.echo(", ".join(f"{name} {criterion.hash[:12]}" for name, criterion in criteria.items()))
    _tell(simulations)


def _figures(one: "Simulation") -> list[object]:
    f = one.figures
    interval = "-" if one.auc_interval is None else f"{one.auc_interval[0]:.2f} .. {one.auc_interval[1]:.2f}"
    values = (f.steepness, f.deviation, f.monotonicity, f.noise)
    share = "-" if math.isnan(one.zero_advantage) else round(100 * one.zero_advantage, 1)
    return [_number(f.auc), interval, *map(_number, values), share]


def _number(value: float) -> object:
    return "-" if math.isnan(value) else float(f"{value:.3g}")


def _tell(simulations: "Sequence[Simulation]") -> None:
    """What was left out, on stderr."""
    first = simulations[0]
    if first.unplaced:
        say(f"{first.unplaced} programs have no place in the order: their correctness or quality is undecided")
    if first.too_few:
        say(f"{first.too_few} problems have fewer than two programs in order and are left out")
    for one in simulations:
        if one.left_out:
            say(f"{one.name}: {one.left_out} problems left the environment, as its filter keeps no test of theirs")
        if one.undrawn:
            say(f"{one.name}: at {one.undrawn} places of u no reward is known, and nothing was drawn")
