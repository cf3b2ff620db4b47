"""`lap matrix`: every training run against every criterion, and how far the criteria agree."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ledger.errors import UserError
from replay.criteria import ENVIRONMENTS, Criterion
from tui.measured import Measured, measured, named_criteria, small_print
from tui.memory import keep_freed_memory
from tui.output import at_option, campaign_option, json_option, ledger_option, print_json, print_table, progress, say
from tui.pictures import endings, out_option, save
from tui.session import asking
from tui.settings import read_settings

if TYPE_CHECKING:
    from replay.studies.matrix import FamilyFigures, Matrix


@click.command()
@click.option(
    "--run",
    "runs",
    multiple=True,
    metavar="PATTERN",
    help="Makers that are training runs (`*`, `?`); of NAME-{step} the last; NAME-{seed} is one run, repeated."
    "  [default: all but human]",
)
@click.option(
    "--criterion", "words", multiple=True, metavar="NAME|FILE", help="Repeat.  [default: every environment preset]"
)
@out_option
@campaign_option
@ledger_option
@at_option
@json_option
def command(
    runs: tuple[str, ...],
    words: tuple[str, ...],
    outs: tuple[str, ...],
    campaign: str | None,
    ledger: str | None,
    at: str | None,
    as_json: bool,
) -> None:
    """Judge every training run by every criterion: pass@1, rank correlations, and what a family of criteria decides.

    A family's spread is how far it sets the runs apart, its range how far it moves with its own parameter. A spread
    below its interval over problems decides nothing about the runs.

    \b
    Example:
      lap matrix
      lap matrix --run "qwen-*-{step}" --criterion top-30 --criterion pre-2s --out matrix.png --out matrix.csv
    """
    keep_freed_memory()
    from replay.studies.makers import find_runs
    from replay.studies.matrix import family_figures, matrix

    criteria = named_criteria(words, list(ENVIRONMENTS.items()))
    paths = endings(outs)
    with asking(read_settings(ledger=ledger).location, at) as questions:
        found = measured(questions, campaign, Criterion())
    chosen = find_runs(found.makers, runs)
    if not chosen:
        raise UserError("lap matrix: only humans made programs here; name a run with --run human, or run a model's")
    with progress("matrix", len(found.problems)) as bar:
        weighed = matrix(found.problems, criteria, chosen, lambda done: bar.advance(bar.task_ids[0], done))
    figures = family_figures(weighed)
    if paths:
        _save(paths, found, criteria, weighed)
    if as_json:
        print_json(_as_json(found, criteria, weighed, figures))
    else:
        _show(found, criteria, weighed, figures)


def _rows(criteria: Mapping[str, Criterion], weighed: "Matrix") -> list[dict[str, Any]]:
    """One row a criterion and run."""
    values, problems = weighed.values, weighed.problems
    return [
        {
            "criterion": name,
            "hash": criteria[name].hash,
            "family": weighed.families[row],
            "run": run,
            "pass_at_1": float(values[row, column]),
            "undecided": int(weighed.undecided[row, column]),
            "programs": int(weighed.programs[row, column]),
            "problems": int(problems[row, column]),
        }
        for row, name in enumerate(weighed.criteria)
        for column, run in enumerate(weighed.runs)
    ]


def _as_json(
    found: Measured, criteria: Mapping[str, Criterion], weighed: "Matrix", figures: "Sequence[FamilyFigures]"
) -> dict[str, Any]:
    return {
        "cut": found.cut,
        "campaign": found.campaign,
        "runs": list(weighed.runs),
        "criteria": list(weighed.criteria),
        "cells": _rows(criteria, weighed),
        "spearman": weighed.correlations.tolist(),
        "families": [{**asdict(one), "decides": one.decides} for one in figures],
    }


def _save(paths: Sequence[Path], found: Measured, criteria: Mapping[str, Criterion], weighed: "Matrix") -> None:
    from replay.plots.heatmap import matrix_plot

    footer = small_print(found, list(criteria.items()), "-: no problem left, or runs that do not differ")
    about = {"campaign": found.campaign, "cut": found.cut}
    save(paths, _rows(criteria, weighed), lambda kind: matrix_plot(weighed, found.title, footer, kind=kind), about)


def _show(
    found: Measured, criteria: Mapping[str, Criterion], weighed: "Matrix", figures: "Sequence[FamilyFigures]"
) -> None:
    values, problems = weighed.values, weighed.problems
    rows = [
        (name, weighed.families[row], int(problems[row].max()), int(weighed.undecided[row].sum()), *map(_one, line))
        for row, (name, line) in enumerate(zip(weighed.criteria, values.tolist(), strict=True))
    ]
    print_table(
        ("criterion", "family", "problems", "undecided", *weighed.runs), rows, title=f"{found.title}, pass@1 in %"
    )
    if len(weighed.runs) > 1:
        agree = weighed.correlations.tolist()
        pairs = [(name, *map(_two, line)) for name, line in zip(weighed.criteria, agree, strict=True)]
        numbers = [str(place) for place in range(1, len(pairs) + 1)]
        numbered = [(f"{place} {row[0]}", *row[1:]) for place, row in zip(numbers, pairs, strict=True)]
        print_table(("", *numbers), numbered, title="Spearman between criteria over the runs")
    _show_families(found, figures)
    click.echo(", ".join(f"{name} {criterion.hash[:12]}" for name, criterion in criteria.items()))


def _show_families(found: Measured, figures: "Sequence[FamilyFigures]") -> None:
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
