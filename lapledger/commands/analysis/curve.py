"""`lap curve`: p_tau of every checkpoint of a training run, absolute and relative to the first, by tier."""

import math
from collections.abc import Sequence
from dataclasses import asdict, replace
from typing import TYPE_CHECKING, Any

import click

from lapledger.cli.criterion_options import CriterionFlags, criterion_options
from lapledger.cli.options import seed_option
from lapledger.cli.study_options import (
    Study,
    about,
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
from lapledger.replay.criteria import Criterion
from lapledger.replay.engines import Engine
from lapledger.replay.studies.warnings import Variants
from lapledger.workflows.analysis.axes import percents
from lapledger.workflows.analysis.tiers import HOW, tiers
from lapledger.workflows.malloc import keep_freed_memory

if TYPE_CHECKING:
    from lapledger.ledger.questions.queries import Questions
    from lapledger.replay.loading import MeasuredCampaign
    from lapledger.replay.studies.curves import CurvePoint
    from lapledger.replay.studies.models import Checkpoint

COLUMNS = (
    "run",
    "step",
    "tier",
    "tau, %",
    "problems",
    "programs",
    "undecided",
    "p_tau, %",
    "95% interval",
    "upper bound, %",
    "gain on first, %",
    "95% of gain",
    "gain bounds if undecided, %",
)
ROLLOUTS = """
SELECT DISTINCT p.program_id, g.training_id, r.policy
FROM program p JOIN rollout_sampled r USING (rollout_id) JOIN group_opened g USING (group_id) WHERE r.policy IS NOT NULL
"""


@click.command()
@criterion_options(tau=False)
@click.option("--checkpoint", "pattern", default=None, metavar="PATTERN", help="Models by name, e.g. qwen-{step}.")
@click.option(
    "--training", default=None, metavar="ID", help="Stored training run.  [default: all, without --checkpoint]"
)
@tau_option("100,50,30,10")
@click.option(
    "--tiers", "tier_source", default="auto", type=click.Choice(HOW), help="Difficulty tiers.  [default: auto]"
)
@seed_option("the bootstrap of gains")
@study_options(calibrated=True)
def command(
    study: Study, criterion_flags: CriterionFlags, pattern: str | None, training: str | None, **rest: Any
) -> None:
    """Plot the learning curve of a training run: every checkpoint, from p_100 to p_10, by difficulty tier.

    Checkpoints are models whose name carries the step, which may end in k for thousands; or, where the samples of a
    training run are stored as rollouts, the policy that sampled them. Tiers are those the problems came with, else
    terciles of the median token count of the correct references.

    \b
    Example:
      lap curve --checkpoint "qwen-top30-{step}"
      lap curve --checkpoint "*-{step}" --tau 100:10:-10 --out curve.csv --out curve.png
    """
    keep_freed_memory()
    tier_source, seed = rest.pop("tier_source"), rest.pop("seed")
    if pattern and training:
        raise UserError("lap curve: --checkpoint selects by name and --training by stored events; use one of them")
    taus = [str(tau) for tau in percents(rest.pop("tau"))]
    name, criterion = criterion_flags.read()
    with study.open_questions() as questions:
        measured = study.measure(questions, criterion)
        measured, steps = _checkpoints(questions, measured, pattern, training)
        of_problem, followed = tiers(questions, measured.measurements, tier_source)
    points = _points(measured, criterion, steps, taus=taus, of_problem=of_problem, seed=seed, engine=study.engine)
    if study.outputs:
        _save(study.outputs, measured, (name, criterion), points, followed)
    warnings = study_warnings(measured, {name: criterion}, {step.model for step in steps}, Variants(taus))
    if study.as_json:
        more = {"tiers": followed, "seed": seed, "warnings": warnings, "points": _rows(points)}
        print_json({**about(measured, name, criterion), **more})
        return
    print_table(COLUMNS, [_cells(point) for point in points], title=title_of(measured), cut=measured.cut)
    print_line(f"{name}: criterion {criterion.hash[:12]}; {followed}; seed {seed}")
    print_warnings(warnings)


def _checkpoints(
    questions: "Questions", measured: "MeasuredCampaign", pattern: str | None, training: str | None
) -> "tuple[MeasuredCampaign, list[Checkpoint]]":
    """The checkpoints, and the measurements with each rollout's policy as its model where events state it."""
    from lapledger.replay.studies.models import Checkpoint, checkpoints

    if pattern:
        return measured, checkpoints(measured.models, pattern)
    members = {program for m in measured.measurements for program in m.programs}
    rows = [row for row in questions.rows(ROLLOUTS) if row["program_id"] in members]
    known = sorted({row["training_id"] for row in rows})
    if not known and training is not None:
        raise UserError(
            f"--training {training}: no such run in this campaign, which holds no rollouts; select models by name with"
            f" --checkpoint, among {', '.join(measured.models)}"
        )
    if not known:
        raise UserError(
            'lap curve: no rollouts of a training run are stored; give --checkpoint "NAME-{step}"'
            " (rollouts of an unknown step have no checkpoint)"
        )
    if training is not None and training not in known:
        raise UserError(f"--training {training}: no such run in this campaign; choose one of {', '.join(known)}")
    wanted = [row for row in rows if training in (None, row["training_id"])]
    steps = sorted({(row["training_id"], row["policy"]) for row in wanted})
    made = {row["program_id"]: f"{row['training_id']}@{row['policy']}" for row in wanted}
    relabelled = [
        replace(m, models=tuple(made.get(p, by) for p, by in zip(m.programs, m.models, strict=True)))
        for m in measured.measurements
    ]
    return replace(measured, measurements=relabelled), [Checkpoint(run, step, f"{run}@{step}") for run, step in steps]


def _points(
    measured: "MeasuredCampaign",
    criterion: Criterion,
    steps: "Sequence[Checkpoint]",
    *,
    taus: Sequence[str],
    of_problem: dict[str, str],
    seed: int,
    engine: Engine,
) -> "list[CurvePoint]":
    import numpy as np

    from lapledger.replay.engines import ProblemRunner
    from lapledger.replay.studies.curves import learning_curve

    with progress("curve", len(measured.measurements)) as bar:

        def on_progress(done: int) -> None:
            bar.advance(bar.task_ids[0], done)

        return learning_curve(
            measured.measurements,
            criterion,
            steps,
            taus=taus,
            tiers=of_problem,
            rng=lambda: np.random.default_rng(seed),
            progress=on_progress,
            runner=ProblemRunner(engine),
        )


def _rows(points: "Sequence[CurvePoint]") -> list[dict[str, Any]]:
    """One row a point, its intervals and bounds in two columns each."""
    ends = {
        "interval": ("low", "high"),
        "relative_interval": ("relative_low", "relative_high"),
        "relative_bounds": ("relative_at_least", "relative_at_most"),
    }
    return [flat(asdict(point), **ends) for point in points]


def _cells(point: "CurvePoint") -> tuple[object, ...]:
    bounds = point.relative_bounds
    return (
        point.run,
        point.step,
        point.tier,
        point.tau,
        point.problems,
        point.programs,
        point.undecided,
        "-" if math.isnan(point.p_tau) else point.p_tau,
        of_percents(point.interval, point.method),
        at_most(point.p_tau, point.at_most),
        "-" if math.isnan(point.relative) else point.relative,
        of_percents(point.relative_interval),
        of_percents(bounds if bounds and bounds[0] < bounds[1] else None),
    )


def _save(
    outputs: Outputs,
    measured: "MeasuredCampaign",
    named: tuple[str, Criterion],
    points: "Sequence[CurvePoint]",
    followed: str,
) -> None:
    from lapledger.replay.plots.curves import learning_plot

    footer = small_print(
        measured, [named], f"{followed}; bands: 95% over problems; hollow: some programs are undecided"
    )
    about = {"campaign": measured.campaign, "criterion": named[1].hash, "cut": measured.cut}
    outputs.save(_rows(points), lambda kind: learning_plot(points, title_of(measured), footer, kind=kind), about)
