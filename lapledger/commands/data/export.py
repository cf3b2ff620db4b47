"""`lap export`: results in other tools' formats, and a bundle that anyone can verify and replay."""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from lapledger.cli.export_options import FILE, FOLDER, question_options, request_of
from lapledger.cli.groups import HelpGroup
from lapledger.cli.options import escape_option
from lapledger.ledger.atomic_write import write_atomically
from lapledger.ledger.errors import UserError
from lapledger.ledger.questions.open_questions import open_questions
from lapledger.render.output import print_json, print_line, print_message, progress
from lapledger.settings import read_settings

if TYPE_CHECKING:
    from lapledger.consumers.exports.folders import Writer
    from lapledger.consumers.exports.judged_export import JudgedExport, Sample
    from lapledger.ledger.questions.queries import Questions

model_option = click.option(
    "--model",
    default=None,
    metavar="NAME",
    help="Model to export.  [default: the only non-human one]",
)


_LAZY = {
    "bundle": "lapledger.commands.data.export_bundle:bundle",
    "check": "lapledger.commands.data.export_bundle:check",
}


@click.group(cls=HelpGroup, lazy=_LAZY)
def command() -> None:
    """Export one campaign's results in other tools' formats, or as a bundle that replays without a ledger.

    \b
    Example:
      lap export datasets out --criterion top-30
      lap export bundle campaign.zip --criterion top-30
      python campaign.zip --head "$(cat head.txt)"
    """


@command.command()
@FOLDER
@question_options
def datasets(path: Path, **flags: Any) -> None:
    """Write a folder that Hugging Face `datasets` loads, one Parquet file per table.

    \b
    Example:
      lap export datasets out --criterion top-30
      python -c 'import datasets; print(datasets.load_dataset("out", "verdicts"))'
    """
    from lapledger.consumers.exports.datasets import dataset_files

    _folder(path, dataset_files, flags)


@command.command()
@FOLDER
@escape_option
@question_options
def csv(path: Path, *, escape_formulas: bool, **flags: Any) -> None:
    """Write a folder of CSV files, one per table.

    \b
    Example:
      lap export csv out --criterion top-30
    """
    from lapledger.consumers.exports.csvs import csv_files

    _folder(path, partial(csv_files, escape_formulas=escape_formulas), flags)


@command.command()
@FILE
@model_option
@question_options
def evalplus(path: Path, model: str | None, **flags: Any) -> None:
    """Write EvalPlus's result file of one model; undecided verdicts are null.

    \b
    Example:
      lap export evalplus model_eval_results.json --model model
    """
    from lapledger.consumers.exports.evalplus import evalplus as shape

    with _judged_export(flags) as (questions, export):
        _, by_problem = _samples(export, questions, model)
        _write(path, shape(export, by_problem), export, flags)


@command.command()
@FILE
@model_option
@question_options
def livecodebench(path: Path, model: str | None, **flags: Any) -> None:
    """Write LiveCodeBench's `*_eval_all.json` of one model; undecided verdicts are null.

    \b
    Example:
      lap export livecodebench model_eval_all.json --model model
    """
    from lapledger.consumers.exports.livecodebench import contests
    from lapledger.consumers.exports.livecodebench import livecodebench as shape

    with _judged_export(flags) as (questions, export):
        _, by_problem = _samples(export, questions, model)
        statements, contest_dates = _statements(export, questions), contests(questions, export.judged.campaign)
        _write(path, shape(export, by_problem, statements=statements, stored_metadata=contest_dates), export, flags)


@command.command()
@FILE
@model_option
@question_options
def inspect(path: Path, model: str | None, **flags: Any) -> None:
    """Write an Inspect log of one model in its JSON form; undecided programs have no score.

    \b
    Example:
      lap export inspect logs/model.json --model model
      inspect view --log-dir logs
    """
    from lapledger.consumers.exports.inspect import accuracies, inspect_log

    with _judged_export(flags) as (questions, export):
        who, by_problem = _samples(export, questions, model)
        statements = _statements(export, questions)
        log = inspect_log(export, by_problem, model=who, statements=statements, accuracy=accuracies(by_problem))
        _write(path, log, export, flags)


@contextmanager
def _judged_export(flags: Mapping[str, Any]) -> "Iterator[tuple[Questions, JudgedExport]]":
    from lapledger.consumers.exports.judged_export import judge_export

    request = request_of(flags)
    with open_questions(read_settings(ledger=flags["ledger"]).location, flags["at"]) as questions:
        yield questions, judge_export(questions, request)


def _samples(
    export: "JudgedExport", questions: "Questions", model: str | None
) -> "tuple[str, Sequence[tuple[str, list[Sample]]]]":
    from lapledger.consumers.exports.judged_export import one_model, samples

    who = one_model(export.judged, model)
    with progress("reading sources", len(export.judged.measurements)) as bar:
        exported = []
        for sample in samples(export, questions, who):
            exported.append(sample)
            bar.update(bar.task_ids[0], advance=1)
    return who, exported


def _statements(export: "JudgedExport", questions: "Questions") -> dict[str, str]:
    """The text of each problem that has one."""
    from lapledger.consumers.exports.judged_export import source_of

    wanted = {m.problem for m in export.judged.measurements}
    blobs = {name: row["statement_blob"] for name, row in export.problems.items() if name in wanted}
    return {name: source_of(questions, blob) or "" for name, blob in blobs.items()}


def _folder(
    path: Path, shape: "Callable[[Mapping[str, Any], Mapping[str, Any]], dict[str, Writer]]", flags: Mapping[str, Any]
) -> None:
    from lapledger.consumers.exports.folders import write_folder
    from lapledger.consumers.exports.tables import tables

    if path.exists():
        raise UserError(f"{path} exists; choose a new folder, or remove this one first")
    with _judged_export(flags) as (questions, export):
        exported = tables(export, questions)
        files = shape(exported, export.about())
        with progress("writing", len(files)) as bar:
            write_folder(path, files, lambda: bar.update(bar.task_ids[0], advance=1))
        _report(path, export, {"rows": {name: len(table) for name, table in exported.items()}}, flags)


def _write(path: Path, content: Any, export: "JudgedExport", flags: Mapping[str, Any]) -> None:
    write_atomically(path, (json.dumps(content, indent=1, ensure_ascii=False, allow_nan=False) + "\n").encode())
    _report(path, export, {}, flags)


def _report(path: Path, export: "JudgedExport", more: Mapping[str, Any], flags: Mapping[str, Any]) -> None:
    """Reports what was written, with the cut on stdout, and how many verdicts are undecided."""
    if flags["as_json"]:
        print_json({**export.about(), "path": path.name, "undecided": export.undecided, **more})
    else:
        print_line(f"cut {export.judged.cut}")
    print_message(f"{path}: campaign {export.judged.campaign} under {export.judged.name}")
    if export.undecided:
        print_message(
            f"warning: {export.undecided} programs are undecided; they are neither passed nor failed in the file"
        )
