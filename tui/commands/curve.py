"""`lap curve`: p_tau of every checkpoint of a training run, absolute and relative to the first, by tier."""

import math
from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ledger.errors import UserError
from replay.criteria import Criterion
from tui.axes import percents
from tui.criteria import criterion_options, read_criterion
from tui.measured import Measured, measured, small_print
from tui.memory import keep_freed_memory
from tui.output import at_option, campaign_option, json_option, ledger_option, print_json, print_table, progress
from tui.pictures import endings, out_option, save
from tui.session import asking
from tui.settings import read_settings
from tui.tiers import HOW, tiers

if TYPE_CHECKING:
    from ledger.questions import Questions
    from replay.studies.curves import CurvePoint
    from replay.studies.makers import Checkpoint

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
    "gain on the first, %",
)
ROLLOUTS = """
SELECT DISTINCT p.program_id, g.training_id, r.policy
FROM program p JOIN rollout_sampled r USING (rollout_id) JOIN group_opened g USING (group_id)
"""


@click.command()
@criterion_options
@click.option("--checkpoint", "pattern", default=None, metavar="PATTERN", help="Makers by name, as in qwen-{step}.")
@click.option(
    "--training", default=None, metavar="ID", help="A stored training run.  [default: all, without --checkpoint]"
)
@click.option("--tau", default="100,50,30,10", metavar="LIST", help="Percents.  [default: 100,50,30,10]")
@click.option("--tiers", "how", default="auto", type=click.Choice(HOW), help="[default: auto]")
@click.option("--from", "source", default=None, metavar="ID", help="Campaign that the calibration comes from.")
@out_option
@campaign_option
@ledger_option
@at_option
@json_option
def command(
    word: str | None,
    outs: tuple[str, ...],
    campaign: str | None,
    ledger: str | None,
    at: str | None,
    as_json: bool,
    **rest: Any,
) -> None:
    """Draw the learning curve of a training run: every checkpoint, from p_100 to p_10, by difficulty tier.

    Checkpoints are makers whose name carries the step, which may end in k for thousands; or, where the samples of a
    training run are stored as rollouts, the policy that sampled them. Tiers are what the problems came with, else
    terciles of the median token count of the correct references.

    \b
    Example:
      lap curve --checkpoint "qwen-top30-{step}"
      lap curve --checkpoint "*-{step}" --tau 100:10:-10 --out curve.csv --out curve.png
    """
    keep_freed_memory()
    pattern, training, how, source = (rest.pop(name) for name in ("pattern", "training", "how", "source"))
    if pattern and training:
        raise UserError("lap curve: --checkpoint goes by names and --training by stored events; give one of them")
    taus = [str(tau) for tau in percents(rest.pop("tau"))]
    name, criterion = read_criterion(word, rest)
    paths = endings(outs)
    with asking(read_settings(ledger=ledger).location, at) as questions:
        found = measured(questions, campaign, criterion, source)
        found, steps = _checkpoints(questions, found, pattern, training)
        of_problem, followed = tiers(questions, found.problems, how)
    points = _points(found, criterion, steps, taus=taus, of_problem=of_problem)
    if paths:
        _save(paths, found, (name, criterion), points, followed)
    if as_json:
        about = {"cut": found.cut, "campaign": found.campaign, "criterion": name, "hash": criterion.hash}
        print_json({**about, "tiers": followed, "calibration": found.calibration or None, "points": _rows(points)})
        return
    print_table(COLUMNS, [_words(point) for point in points], title=found.title, cut=found.cut)
    click.echo(f"{name}: criterion {criterion.hash[:12]}; {followed}")


def _checkpoints(
    questions: "Questions", found: Measured, pattern: str | None, training: str | None
) -> "tuple[Measured, list[Checkpoint]]":
    """The checkpoints, and the measurements with each rollout's policy as its maker where events say them."""
    from replay.studies.makers import Checkpoint, checkpoints

    if pattern:
        return found, checkpoints(found.makers, pattern)
    members = {program for m in found.problems for program in m.programs}
    rows = [row for row in questions.rows(ROLLOUTS) if row["program_id"] in members]
    known = sorted({row["training_id"] for row in rows})
    if not known:
        raise UserError('lap curve: no rollouts of a training run are stored; give --checkpoint "NAME-{step}"')
    if training is not None and training not in known:
        raise UserError(f"--training {training}: no such run in this campaign; choose one of {', '.join(known)}")
    wanted = [row for row in rows if training in (None, row["training_id"])]
    steps = sorted({(row["training_id"], row["policy"]) for row in wanted})
    made = {row["program_id"]: f"{row['training_id']}@{row['policy']}" for row in wanted}
    relabelled = [
        replace(m, makers=tuple(made.get(p, by) for p, by in zip(m.programs, m.makers, strict=True)))
        for m in found.problems
    ]
    return replace(found, problems=relabelled), [Checkpoint(run, step, f"{run}@{step}") for run, step in steps]


def _points(
    found: Measured,
    criterion: Criterion,
    steps: "Sequence[Checkpoint]",
    *,
    taus: Sequence[str],
    of_problem: dict[str, str],
) -> "list[CurvePoint]":
    from replay.studies.curves import learning_curve

    with progress("curve", len(found.problems)) as bar:

        def heard(done: int) -> None:
            bar.advance(bar.task_ids[0], done)

        return learning_curve(found.problems, criterion, steps, taus=taus, tiers=of_problem, progress=heard)


def _rows(points: "Sequence[CurvePoint]") -> list[dict[str, Any]]:
    """One row a point, its interval in two places."""
    rows = []
    for point in points:
        row = asdict(point)
        low, high = row.pop("interval") or (math.nan, math.nan)
        rows.append({**row, "low": low, "high": high})
    return rows


def _words(point: "CurvePoint") -> tuple[object, ...]:
    interval = "-" if point.interval is None else f"{point.interval[0]:.1f} .. {point.interval[1]:.1f}"
    return (
        point.run,
        point.step,
        point.tier,
        point.tau,
        point.problems,
        point.programs,
        point.undecided,
        "-" if math.isnan(point.p_tau) else point.p_tau,
        interval,
        "-" if math.isnan(point.relative) else point.relative,
    )


def _save(
    paths: Sequence[Path], found: Measured, named: tuple[str, Criterion], points: "Sequence[CurvePoint]", followed: str
) -> None:
    from replay.plots.learning import learning_plot

    footer = small_print(found, [named], f"{followed}; bands: 95% over problems; hollow: some programs are undecided")
    about = {"campaign": found.campaign, "criterion": named[1].hash, "cut": found.cut}
    save(paths, _rows(points), lambda kind: learning_plot(points, found.title, footer, kind=kind), about)
