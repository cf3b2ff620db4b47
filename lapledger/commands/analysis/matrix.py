"""`lap matrix`: every training run against every criterion, and how far the criteria agree."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from lapledger.cli.study_options import Study, named_criteria, small_print, study_options, study_warnings, title_of
from lapledger.ledger.errors import UserError
from lapledger.render.intervals import of_shares
from lapledger.render.output import print_json, print_table, progress, say, tell
from lapledger.render.pictures import flat, save
from lapledger.replay.criteria import ENVIRONMENTS, Criterion
from lapledger.workflows.malloc import keep_freed_memory

if TYPE_CHECKING:
    from lapledger.replay.loading import MeasuredCampaign
    from lapledger.replay.studies.matrix import FamilyFigures, Matrix


@click.command()
@click.option(
    "--run",
    "runs",
    multiple=True,
    metavar="PATTERN",
    help="Models that are training runs (`*`, `?`); of NAME-{step} the last; NAME-{seed} is one run, repeated."
    "  [default: all but human]",
)
@click.option(
    "--criterion", "words", multiple=True, metavar="NAME|FILE", help="Repeat.  [default: every environment preset]"
)
@study_options(calibrated=False)
def command(study: Study, runs: tuple[str, ...], words: tuple[str, ...]) -> None:
    """Judge every training run by every criterion: pass@1, rank correlations, and what a family of criteria decides.

    A family's spread is how far it sets the runs apart, its range how far it moves with its own parameter. A spread
    below its interval over problems decides nothing about the runs. A file of rows holds all three tables, told apart
    by the column `table`: cell, agreement, family.

    \b
    Example:
      lap matrix
      lap matrix --run "qwen-*-{step}" --criterion top-30 --criterion pre-2s --out matrix.png --out matrix.csv
    """
    keep_freed_memory()
    from lapledger.replay.engines import Each
    from lapledger.replay.studies.matrix import family_figures, matrix
    from lapledger.replay.studies.models import find_runs

    criteria = named_criteria(words, list(ENVIRONMENTS.items()))
    with study.open_questions() as questions:
        found = study.measure(questions, Criterion())
    chosen = find_runs(found.models, runs)
    if not chosen:
        raise UserError("lap matrix: only humans made programs here; name a run with --run human, or run a model's")
    with progress("matrix", len(found.measurements)) as bar:

        def heard(done: int) -> None:
            bar.advance(bar.task_ids[0], done)

        weighed = matrix(found.measurements, criteria, chosen, heard, runner=Each(study.engine))
    figures = family_figures(weighed)
    warnings = study_warnings(found, criteria, {model for own in chosen.values() for model in own})
    if study.paths:
        _save(study.paths, found, criteria, weighed, figures)
    if study.as_json:
        print_json({**_as_json(found, criteria, weighed, figures), "warnings": warnings})
    else:
        _show(found, criteria, weighed, figures)
        tell(warnings)


def _cells(criteria: Mapping[str, Criterion], weighed: "Matrix") -> list[dict[str, Any]]:
    """One row a criterion and run, in percent: interval over problems, interval over runs and bound by themselves."""
    rows = []
    for row, name in enumerate(weighed.criteria):
        for column, (run, cell) in enumerate(zip(weighed.runs, weighed.cells[row], strict=True)):
            value, upper, interval = cell.percent
            repeats = weighed.over_runs(row, column)
            found = {
                "criterion": name,
                "hash": criteria[name].hash,
                "family": weighed.families[row],
                "run": run,
                "pass_at_1": value,
                "interval": interval,
                "method": cell.method,
                "over_runs": None if repeats is None else (100 * repeats[0], 100 * repeats[1]),
                "at_most": upper,
                "undecided": int(weighed.undecided[row, column]),
                "programs": int(weighed.programs[row, column]),
                "problems": cell.problems,
            }
            rows.append(flat(found, interval=("low", "high"), over_runs=("runs_low", "runs_high")))
    return rows


def _tables(
    criteria: Mapping[str, Criterion], weighed: "Matrix", figures: "Sequence[FamilyFigures]"
) -> list[dict[str, Any]]:
    """The cells, the agreement of each two criteria, and the families' figures: rows told apart by `table`."""
    agree = weighed.correlations.tolist()
    return [
        *({"table": "cell", **row} for row in _cells(criteria, weighed)),
        *(
            {"table": "agreement", "criterion": one, "other": other, "spearman": agree[i][j]}
            for i, one in enumerate(weighed.criteria)
            for j, other in enumerate(weighed.criteria)
        ),
        *({"table": "family", **row} for row in _families(figures)),
    ]


def _families(figures: "Sequence[FamilyFigures]") -> list[dict[str, Any]]:
    return [{**asdict(one), "decides": one.decides} for one in figures]


def _as_json(
    found: "MeasuredCampaign", criteria: Mapping[str, Criterion], weighed: "Matrix", figures: "Sequence[FamilyFigures]"
) -> dict[str, Any]:
    return {
        "cut": found.cut,
        "campaign": found.campaign,
        "runs": list(weighed.runs),
        "criteria": list(weighed.criteria),
        "cells": _cells(criteria, weighed),
        "spearman": weighed.correlations.tolist(),
        "families": _families(figures),
    }


def _save(
    paths: Sequence[Path],
    found: "MeasuredCampaign",
    criteria: Mapping[str, Criterion],
    weighed: "Matrix",
    figures: "Sequence[FamilyFigures]",
) -> None:
    from lapledger.replay.plots.heatmap import matrix_plot

    footer = small_print(found, list(criteria.items()), "-: no problem left, or runs that do not differ")
    about = {"campaign": found.campaign, "cut": found.cut}
    rows = _tables(criteria, weighed, figures)
    save(paths, rows, lambda kind: matrix_plot(weighed, title_of(found), footer, kind=kind), about)


def _show(
    found: "MeasuredCampaign", criteria: Mapping[str, Criterion], weighed: "Matrix", figures: "Sequence[FamilyFigures]"
) -> None:
    _show_cells(found, weighed)
    if len(weighed.runs) > 1:
        agree = weighed.correlations.tolist()
        pairs = [(name, *map(_two, line)) for name, line in zip(weighed.criteria, agree, strict=True)]
        numbers = [str(place) for place in range(1, len(pairs) + 1)]
        numbered = [(f"{place} {row[0]}", *row[1:]) for place, row in zip(numbers, pairs, strict=True)]
        print_table(("", *numbers), numbered, title="Spearman between criteria over the runs")
    _show_families(found, figures)
    click.echo(", ".join(f"{name} {criterion.hash[:12]}" for name, criterion in criteria.items()))


def _show_cells(found: "MeasuredCampaign", weighed: "Matrix") -> None:
    """pass@1 and its intervals over problems; those over repetitions, and bounds, where there are any."""
    values, problems = weighed.values, weighed.problems
    rows = [
        (name, weighed.families[row], int(problems[row].max()), int(weighed.undecided[row].sum()), *map(_one, line))
        for row, (name, line) in enumerate(zip(weighed.criteria, values.tolist(), strict=True))
    ]
    first = ("criterion", "family", "problems", "undecided", *weighed.runs)
    print_table(first, rows, title=f"{title_of(found)}, pass@1 in %")
    columns, lines = ("criterion", *weighed.runs), list(zip(weighed.criteria, weighed.cells, strict=True))
    within = [(name, *(of_shares(cell.interval, cell.method) for cell in cells)) for name, cells in lines]
    print_table(columns, within, title="95% interval of pass@1 over problems, %")
    if any(len(own) > 1 for own in weighed.members):
        repeats = [
            (name, *(of_shares(weighed.over_runs(row, place)) for place in range(len(weighed.runs))))
            for row, name in enumerate(weighed.criteria)
        ]
        print_table(columns, repeats, title="95% interval of pass@1 over repeated trainings, %")
    if weighed.undecided.any():
        upper = [(name, *(_one(100 * cell.upper_bound) for cell in cells)) for name, cells in lines]
        print_table(columns, upper, title="pass@1 at most, with undecided programs as passed, %")


def _show_families(found: "MeasuredCampaign", figures: "Sequence[FamilyFigures]") -> None:
    columns = (
        "family",
        "criteria",
        "spread over runs, points",
        "over problems, ±",
        "over runs, ±",
        "range over its parameter, points",
    )
    rows = [(one.family, one.criteria, *map(_one, _four(one))) for one in figures]
    print_table(columns, rows, cut=found.cut)
    for one in figures:
        if not one.decides and not math.isnan(one.spread):
            widest = max((half for half in _four(one)[1:3] if not math.isnan(half)), default=math.nan)
            interval = "has no interval" if math.isnan(widest) else f"is within its interval, ±{widest:.1f}"
            say(
                f"warning: {one.family}: a spread of {one.spread:.1f} points {interval}: it decides nothing of the runs"
            )
    if any(math.isnan(one.half_width_runs) for one in figures):
        say("where no run was repeated nothing is known of what training it again would change")


def _four(one: "FamilyFigures") -> tuple[float, float, float, float]:
    """Spread, its half-widths over problems and over runs, and range, in points."""
    return one.spread, one.half_width, one.half_width_runs, one.range


def _one(value: float) -> float | str:
    return "-" if math.isnan(value) else round(value, 1)


def _two(value: float) -> str:
    return "-" if math.isnan(value) else f"{value:.2f}"
