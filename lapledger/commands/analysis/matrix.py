"""`lap matrix`: every training run against every criterion, and how far the criteria agree."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import click

from lapledger.cli.study_options import Study, named_criteria, small_print, study_options, study_warnings, title_of
from lapledger.ledger.errors import UserError
from lapledger.render.intervals import of_shares
from lapledger.render.output import print_json, print_message, print_table, print_warnings, progress
from lapledger.render.pictures import Outputs, flat
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
    help="Models that are training runs (`*`, `?`); the last of NAME-{step}; NAME-{seed} is one repeated run."
    "  [default: all but human]",
)
@click.option(
    "--criterion",
    "criterion_names",
    multiple=True,
    metavar="NAME|FILE",
    help="Preset or TOML file; repeat.  [default: every environment preset]",
)
@study_options(calibrated=False)
def command(study: Study, runs: tuple[str, ...], criterion_names: tuple[str, ...]) -> None:
    """Evaluate every training run under every criterion: pass@1, rank correlations, and how well families discriminate.

    A family's spread is how far it separates the runs, its range how far it moves with its own parameter. A spread
    below its interval over problems does not discriminate between the runs. A file of rows holds all three tables,
    distinguished by the column `table`: cell, agreement, family.

    \b
    Example:
      lap matrix
      lap matrix --run "qwen-*-{step}" --criterion top-30 --criterion pre-2s --out matrix.png --out matrix.csv
    """
    keep_freed_memory()
    from lapledger.replay.engines import ProblemRunner
    from lapledger.replay.studies.matrix import family_figures, matrix
    from lapledger.replay.studies.models import find_runs

    criteria = named_criteria(criterion_names, list(ENVIRONMENTS.items()))
    with study.open_questions() as questions:
        measured = study.measure_plainly(questions, criteria)
    chosen = find_runs(measured.models, runs)
    if not chosen:
        raise UserError("lap matrix: all programs here are human; use --run human, or run programs of a model")
    with progress("matrix", len(measured.measurements)) as bar:

        def on_progress(done: int) -> None:
            bar.advance(bar.task_ids[0], done)

        matrix_result = matrix(measured.measurements, criteria, chosen, on_progress, runner=ProblemRunner(study.engine))
    figures = family_figures(matrix_result)
    warnings = study_warnings(measured, criteria, {model for members in chosen.values() for model in members})
    if study.outputs:
        _save(study.outputs, measured, criteria, matrix_result, figures)
    if study.as_json:
        print_json({**_as_json(measured, criteria, matrix_result, figures), "warnings": warnings})
    else:
        _show(measured, criteria, matrix_result, figures)
        print_warnings(warnings)


def _cells(criteria: Mapping[str, Criterion], matrix_result: "Matrix") -> list[dict[str, Any]]:
    """One row a criterion and run, in percent: interval over problems, interval over runs and bound by themselves."""
    rows = []
    for row, name in enumerate(matrix_result.criteria):
        for column, (run, cell) in enumerate(zip(matrix_result.runs, matrix_result.cells[row], strict=True)):
            value, upper, interval = cell.percent
            repeats = matrix_result.over_runs(row, column)
            measured = {
                "criterion": name,
                "hash": criteria[name].hash,
                "family": matrix_result.families[row],
                "run": run,
                "pass_at_1": value,
                "interval": interval,
                "method": cell.method,
                "over_runs": None if repeats is None else (100 * repeats[0], 100 * repeats[1]),
                "at_most": upper,
                "undecided": int(matrix_result.undecided[row, column]),
                "programs": int(matrix_result.programs[row, column]),
                "problems": cell.problems,
            }
            rows.append(flat(measured, interval=("low", "high"), over_runs=("runs_low", "runs_high")))
    return rows


def _tables(
    criteria: Mapping[str, Criterion], matrix_result: "Matrix", figures: "Sequence[FamilyFigures]"
) -> list[dict[str, Any]]:
    """The cells, the agreement of each two criteria, and the families' figures: rows distinguished by `table`."""
    agree = matrix_result.correlations.tolist()
    return [
        *({"table": "cell", **row} for row in _cells(criteria, matrix_result)),
        *(
            {"table": "agreement", "criterion": figure, "other": second, "spearman": agree[i][j]}
            for i, figure in enumerate(matrix_result.criteria)
            for j, second in enumerate(matrix_result.criteria)
        ),
        *({"table": "family", **row} for row in _families(figures)),
    ]


def _families(figures: "Sequence[FamilyFigures]") -> list[dict[str, Any]]:
    return [{**asdict(figure), "decides": figure.decides} for figure in figures]


def _as_json(
    measured: "MeasuredCampaign",
    criteria: Mapping[str, Criterion],
    matrix_result: "Matrix",
    figures: "Sequence[FamilyFigures]",
) -> dict[str, Any]:
    return {
        "cut": measured.cut,
        "campaign": measured.campaign,
        "runs": list(matrix_result.runs),
        "criteria": list(matrix_result.criteria),
        "cells": _cells(criteria, matrix_result),
        "spearman": matrix_result.correlations.tolist(),
        "families": _families(figures),
    }


def _save(
    outputs: Outputs,
    measured: "MeasuredCampaign",
    criteria: Mapping[str, Criterion],
    matrix_result: "Matrix",
    figures: "Sequence[FamilyFigures]",
) -> None:
    from lapledger.replay.plots.heatmap import matrix_plot

    footer = small_print(measured, list(criteria.items()), "-: no problem left, or runs that do not differ")
    about = {"campaign": measured.campaign, "cut": measured.cut}
    rows = _tables(criteria, matrix_result, figures)
    outputs.save(rows, lambda kind: matrix_plot(matrix_result, title_of(measured), footer, kind=kind), about)


def _show(
    measured: "MeasuredCampaign",
    criteria: Mapping[str, Criterion],
    matrix_result: "Matrix",
    figures: "Sequence[FamilyFigures]",
) -> None:
    _show_cells(measured, matrix_result)
    if len(matrix_result.runs) > 1:
        agree = matrix_result.correlations.tolist()
        pairs = [(name, *map(_two_decimals, line)) for name, line in zip(matrix_result.criteria, agree, strict=True)]
        numbers = [str(column) for column in range(1, len(pairs) + 1)]
        numbered = [(f"{column} {row[0]}", *row[1:]) for column, row in zip(numbers, pairs, strict=True)]
        print_table(("", *numbers), numbered, title="Spearman between criteria over the runs")
    _show_families(measured, figures)
    print_table(("criterion", "hash"), [(name, criterion.hash[:12]) for name, criterion in criteria.items()])


def _show_cells(measured: "MeasuredCampaign", matrix_result: "Matrix") -> None:
    """pass@1 and its intervals over problems; those over repetitions, and bounds, where there are any."""
    values, problems = matrix_result.values, matrix_result.problems
    rows = [
        (
            name,
            matrix_result.families[row],
            int(problems[row].max()),
            int(matrix_result.undecided[row].sum()),
            *map(_one_decimal, line),
        )
        for row, (name, line) in enumerate(zip(matrix_result.criteria, values.tolist(), strict=True))
    ]
    first = ("criterion", "family", "problems", "undecided", *matrix_result.runs)
    print_table(first, rows, title=f"{title_of(measured)}, pass@1 in %")
    columns, lines = (
        ("criterion", *matrix_result.runs),
        list(zip(matrix_result.criteria, matrix_result.cells, strict=True)),
    )
    within = [(name, *(of_shares(cell.interval, cell.method) for cell in cells)) for name, cells in lines]
    print_table(columns, within, title="95% interval of pass@1 over problems, %")
    if any(len(members) > 1 for members in matrix_result.members):
        repeats = [
            (name, *(of_shares(matrix_result.over_runs(row, column)) for column in range(len(matrix_result.runs))))
            for row, name in enumerate(matrix_result.criteria)
        ]
        print_table(columns, repeats, title="95% interval of pass@1 over repeated trainings, %")
    if matrix_result.undecided.any():
        upper = [(name, *(_one_decimal(100 * cell.upper_bound) for cell in cells)) for name, cells in lines]
        print_table(columns, upper, title="upper bound of pass@1, %, undecided programs counted as passed")


def _show_families(measured: "MeasuredCampaign", figures: "Sequence[FamilyFigures]") -> None:
    columns = (
        "family",
        "criteria",
        "spread over runs, points",
        "over problems, ±",
        "over runs, ±",
        "range over its parameter, points",
    )
    rows = [(figure.family, figure.criteria, *map(_one_decimal, _four(figure))) for figure in figures]
    print_table(columns, rows, cut=measured.cut)
    for figure in figures:
        if not figure.decides and not math.isnan(figure.spread):
            widest = max((half for half in _four(figure)[1:3] if not math.isnan(half)), default=math.nan)
            interval = "has no interval" if math.isnan(widest) else f"is within its interval, ±{widest:.1f}"
            print_message(
                f"warning: {figure.family}: a spread of {figure.spread:.1f} points {interval}:"
                " it does not discriminate between the runs"
            )
    if any(math.isnan(figure.half_width_runs) for figure in figures):
        print_message("runs that were not repeated have no interval over trainings")


def _four(figure: "FamilyFigures") -> tuple[float, float, float, float]:
    """Spread, its half-widths over problems and over runs, and range, in points."""
    return figure.spread, figure.half_width, figure.half_width_runs, figure.range


def _one_decimal(value: float) -> float | str:
    return "-" if math.isnan(value) else round(value, 1)


def _two_decimals(value: float) -> str:
    return "-" if math.isnan(value) else f"{value:.2f}"
