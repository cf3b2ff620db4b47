"""`lap simulate`: the rewards that criteria assign to human programs of known quality, before any training."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import click

from lapledger.cli.options import seed_option
from lapledger.cli.study_options import Study, named_criteria, small_print, study_options, study_warnings, title_of
from lapledger.ledger.errors import UserError
from lapledger.render.output import count, print_json, print_message, print_table, print_warnings, progress
from lapledger.render.pictures import Outputs
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
    "zero-advantage, %",
    "verdict",
)


@click.command()
@click.option(
    "--criterion",
    "criterion_names",
    multiple=True,
    metavar="NAME|FILE",
    help="Preset or TOML file; repeat.  [default: every environment and reward preset]",
)
@seed_option("the draws")
@click.option("--model", default=HUMAN, metavar="MODEL", help=f"Model whose programs are drawn.  [default: {HUMAN}]")
@click.option(
    "--training-results",
    default=None,
    metavar="FILE",
    type=click.Path(),
    help="CSV of `criterion,p_30` from training: rank correlation with each figure.",
)
@study_options(calibrated=False)
def command(
    study: Study, criterion_names: tuple[str, ...], training_results: str | None, seed: int, model: str
) -> None:
    """Estimate the rewards a criterion assigns to programs of known quality: sparse, saturated, flat or steep.

    Human programs are drawn from weak to strong. This rejects bad environments before any training; it does not predict
    the best one. The same seed gives the same draws, whatever else is simulated.

    \b
    Example:
      lap simulate --criterion top-30 --criterion rlvr --criterion raw-duration
      lap simulate --out curves.csv --out scatter.png
    """
    keep_freed_memory()
    criteria = named_criteria(criterion_names, [*ENVIRONMENTS.items(), *REWARDS.items()])
    results = read_results(training_results) if training_results else {}
    with study.open_questions() as questions:
        measured = study.measure_plainly(questions, criteria)
    _check_model(measured, model)
    simulations = _simulate(measured, criteria, seed=seed, model=model, engine=study.engine)
    agreed = _agreement(simulations, results)
    if study.outputs:
        _save(study.outputs, measured, criteria, simulations, seed)
    warnings = study_warnings(measured, criteria, {model})
    if study.as_json:
        print_json({**_as_json(measured, criteria, simulations, agreed, seed), "warnings": warnings})
    else:
        _show(measured, criteria, simulations, agreed, seed)
        print_warnings(warnings)


def _check_model(measured: "MeasuredCampaign", model: str) -> None:
    """Raise UserError if no program is of that model."""
    known = sorted({by for m in measured.measurements for by in m.models})
    if model not in known:
        raise UserError(f"--model {model}: no such model in this campaign; choose one of {', '.join(known)}")


def _simulate(
    measured: "MeasuredCampaign", criteria: Mapping[str, Criterion], *, seed: int, model: str, engine: Engine
) -> "list[Simulation]":
    from lapledger.replay.engines import ProblemRunner
    from lapledger.replay.studies.simulator import simulate

    with progress("simulate", len(measured.measurements)) as bar:

        def on_progress(done: int) -> None:
            bar.advance(bar.task_ids[0], done)

        return simulate(
            measured.measurements, criteria, model=model, runner=ProblemRunner(engine, seed), progress=on_progress
        )


def _agreement(simulations: "Sequence[Simulation]", results: Mapping[str, float]) -> "list[Agreement]":
    from lapledger.replay.studies.simulator import agreement

    return agreement(simulations, results) if results else []


def _row(simulation: "Simulation", criterion: Criterion) -> dict[str, Any]:
    """Everything that is known of one criterion but its curve."""
    return {
        "criterion": simulation.name,
        "hash": criterion.hash,
        "family": simulation.family,
        **asdict(simulation.figures),
        "auc_low": math.nan if simulation.auc_interval is None else simulation.auc_interval[0],
        "auc_high": math.nan if simulation.auc_interval is None else simulation.auc_interval[1],
        "zero_advantage": simulation.zero_advantage,
        "verdict": simulation.figures.verdict,
        "groups": simulation.groups,
        "problems": simulation.problems,
        "excluded": simulation.excluded,
        "too_few": simulation.too_few,
        "unplaced": simulation.unplaced,
        "programs": simulation.programs,
        "undecided": simulation.undecided,
        "undrawn": simulation.undrawn,
    }


def _as_json(
    measured: "MeasuredCampaign",
    criteria: Mapping[str, Criterion],
    simulations: "Sequence[Simulation]",
    agreed: "Sequence[Agreement]",
    seed: int,
) -> dict[str, Any]:
    return {
        "cut": measured.cut,
        "campaign": measured.campaign,
        "seed": seed,
        "simulations": [
            {**_row(simulation, criteria[simulation.name]), "u": simulation.u.tolist(), "f": simulation.f.tolist()}
            for simulation in simulations
        ],
        "online": [asdict(simulation) for simulation in agreed],
    }


def _save(
    outputs: Outputs,
    measured: "MeasuredCampaign",
    criteria: Mapping[str, Criterion],
    simulations: "Sequence[Simulation]",
    seed: int,
) -> None:
    from lapledger.replay.plots.scatter import simulator_plot

    rows = [
        {**_row(simulation, criteria[simulation.name]), "u": u, "f": f}
        for simulation in simulations
        for u, f in zip(simulation.u.tolist(), simulation.f.tolist(), strict=True)
    ]
    footer = small_print(
        measured, list(criteria.items()), f"seed {seed}; dotted: the cuts of the verdicts, and f(u) = u"
    )
    about = {"campaign": measured.campaign, "seed": str(seed), "cut": measured.cut}
    outputs.save(rows, lambda kind: simulator_plot(simulations, title_of(measured), footer, kind=kind), about)


def _show(
    measured: "MeasuredCampaign",
    criteria: Mapping[str, Criterion],
    simulations: "Sequence[Simulation]",
    agreed: "Sequence[Agreement]",
    seed: int,
) -> None:
    rows = [
        (simulation.name, simulation.problems, simulation.undecided, *_figures(simulation), simulation.figures.verdict)
        for simulation in simulations
    ]
    print_table(COLUMNS, rows, title=f"{title_of(measured)}, seed {seed}", cut=measured.cut)
    if agreed:
        shown = [
            (simulation.figure, simulation.criteria, _number(simulation.correlation), _number(simulation.p))
            for simulation in agreed
        ]
        print_table(("figure", "criteria", "Spearman with training", "p"), shown)
    print_table(("criterion", "hash"), [(name, criterion.hash[:12]) for name, criterion in criteria.items()])
    _report_exclusions(simulations)


def _figures(simulation: "Simulation") -> list[object]:
    f = simulation.figures
    interval = (
        "-"
        if simulation.auc_interval is None
        else f"{simulation.auc_interval[0]:.2f} .. {simulation.auc_interval[1]:.2f}"
    )
    values = (f.steepness, f.deviation, f.monotonicity, f.noise)
    share = "-" if math.isnan(simulation.zero_advantage) else round(100 * simulation.zero_advantage, 1)
    return [_number(f.auc), interval, *map(_number, values), share]


def _number(value: float) -> object:
    return "-" if math.isnan(value) else float(f"{value:.3g}")


def _report_exclusions(simulations: "Sequence[Simulation]") -> None:
    """Reports exclusions on stderr."""
    first = simulations[0]
    if first.unplaced:
        print_message(f"{count(first.unplaced, 'program')} not ranked: correctness or quality is undecided")
    if first.too_few:
        print_message(f"{count(first.too_few, 'problem')} excluded: fewer than two ranked programs")
    for simulation in simulations:
        if simulation.excluded:
            excluded = count(simulation.excluded, "problem")
            print_message(f"{simulation.name}: {excluded} excluded: the filter removes all their tests")
        if simulation.undrawn:
            values = count(simulation.undrawn, "value")
            print_message(f"{simulation.name}: no reward is known at {values} of u, where nothing was drawn")
