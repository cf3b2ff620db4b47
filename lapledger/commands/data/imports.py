"""`lap import`: problem packages, and result files of other tools as campaigns with their provenance."""

from collections.abc import Callable, Sequence
from dataclasses import asdict
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from lapledger.cli.groups import HelpGroup
from lapledger.cli.options import json_option, ledger_option
from lapledger.render.output import plain, print_json, print_message, print_table
from lapledger.render.terminal import TERMINAL
from lapledger.settings import read_settings
from lapledger.workflows.session import open_writer

if TYPE_CHECKING:
    from lapledger.workflows.data.import_results import ImportOptions, ImportSummary

Decorated = Callable[..., Any]
files_argument = click.argument("files", nargs=-1, required=True, type=click.Path(), metavar="FILE...")
campaign_option = click.option(
    "--campaign", default=None, metavar="ID", help="Name of the campaign, for one file.  [default: after the file]"
)
model_option = click.option(
    "--model", default=None, metavar="NAME", help="Model that wrote the samples.  [default: from the file's name]"
)
_PROVENANCE = (
    click.option("--source", default="", metavar="TEXT", help="Origin of the files, e.g. repository and commit."),
    click.option("--license", "license_", default="", metavar="TEXT", help="Licence of the files, if known."),
)


def shared(*format_options: Decorated) -> Callable[[Decorated], Decorated]:
    """The arguments and options of an import, those of the format first."""

    def decorate(function: Decorated) -> Decorated:
        for option in reversed((files_argument, *format_options, *_PROVENANCE, ledger_option, json_option)):
            function = option(function)
        return function

    return decorate


_LAZY = {"samples": "lapledger.commands.data.import_samples:command"}


@click.group(cls=HelpGroup, lazy=_LAZY)
def command() -> None:
    """Import problem packages and models' samples to run, or results of other tools as campaigns.

    What a file does not state stays unknown. Imports are idempotent.

    \b
    Example:
      lap import icpc path/to/packages
      lap import samples samples.jsonl --model my-model
      lap import mercury gpt-4-1106-preview_eval.json
      lap import livecodebench --model o1-mini first_eval_all.json second_eval_all.json
    """


@command.command()
@shared(campaign_option, model_option)
def mercury(**flags: Any) -> None:
    """Import Mercury's grading sessions (`MODEL_eval.json`), each with its own human reference times.

    \b
    Example:
      lap import mercury gpt-4-1106-preview_eval.json --source "Elfsong/Mercury a1e97209"
    """
    _import("mercury", **flags)


@command.command()
@shared(campaign_option, model_option)
def livecodebench(**flags: Any) -> None:
    """Import LiveCodeBench's graded generations (`*_eval_all.json`); two gradings of one model share its programs.

    \b
    Example:
      lap import livecodebench --model o1-mini graded-on-15.json graded-on-17.json
    """
    _import("livecodebench", **flags)


@command.command()
@shared(campaign_option, model_option)
def evalperf(**flags: Any) -> None:
    """Import EvalPerf's results (`*_evalperf_results.json`): verdicts, and processor instructions instead of time.

    \b
    Example:
      lap import evalperf --model qwen qwen_evalperf_results.json
    """
    _import("evalperf", **flags)


@command.command()
@shared(campaign_option)
def pyperf(**flags: Any) -> None:
    """Import pyperf's benchmark files: every value, each benchmark its own reference.

    \b
    Example:
      lap import pyperf linux.json windows.json
    """
    _import("pyperf", model=None, **flags)


@command.command()
@click.argument("paths", nargs=-1, required=True, metavar="PATH...")
@ledger_option
@json_option
def icpc(paths: tuple[str, ...], ledger: str | None, as_json: bool) -> None:
    """Import problems, tests and programs from packages in the ICPC problem package format.

    PATH is a package or a folder of packages. Imports are idempotent.

    \b
    Example:
      lap import icpc corpus/stonegame path/to/packages
    """
    from lapledger.producers.corpus.folders import find_packages
    from lapledger.workflows.data.import_packages import import_packages, read_packages

    settings = read_settings(ledger=ledger)
    folders = find_packages([Path(path) for path in paths])
    packages = read_packages(folders, TERMINAL)
    with open_writer(settings.location, "lap import icpc", TERMINAL) as session:
        imported = import_packages(session, packages)
        cut = str(session.ledger.cut())
    columns = ("problem", "new problems", "new tests", "new programs", "excluded")
    rows = [(p.problem, p.new_problems, p.new_tests, p.new_programs, len(p.excluded)) for p in imported]
    for path, reason in (file for package in imported for file in package.excluded):
        print_message(f"excluded {path}: {reason}")
    for package in imported:
        for key in package.unknown_keys:
            print_message(f"{package.problem}: unknown key {key}; it is not used")
    if as_json:
        listed: list[dict[str, Any]] = [dict(zip(columns, row, strict=True)) for row in rows]
        for entry, package in zip(listed, imported, strict=True):
            entry["unknown keys"] = list(package.unknown_keys)
        print_json({"cut": cut, "imported": listed})
    else:
        print_table(columns, rows, cut=cut)


@command.command("code-contests")
@shared(
    click.option(
        "--validator-flags",
        default=None,
        metavar="FLAGS",
        help="How answers are compared, e.g. 'float_tolerance 1e-9'; '' compares exactly."
        "  [default: float_tolerance 1e-6 for problems with decimal fractions in answers]",
    )
)
def code_contests(
    files: tuple[str, ...],
    ledger: str | None,
    *,
    validator_flags: str | None,
    source: str,
    license_: str,
    as_json: bool,
) -> None:
    """Import problems, tests and Python 3 programs of Code Contests (Parquet or JSON Lines), to be run here.

    \b
    Example:
      lap import code-contests test-00000.parquet --license "CC BY 4.0"
    """
    from lapledger.workflows.data.import_results import import_problems

    options = _import_options(source, license_, validator_flags=validator_flags)
    with open_writer(read_settings(ledger=ledger).location, "lap import code-contests", TERMINAL) as writer:
        done = [import_problems(writer, Path(name), options) for name in files]
        cut = str(writer.ledger.cut())
    _show(done, cut, as_json=as_json)


def _import(
    form: str,
    *,
    files: Sequence[str],
    model: str | None,
    campaign: str | None,
    source: str,
    license_: str,
    ledger: str | None,
    as_json: bool,
) -> None:
    from lapledger.workflows.data.import_results import import_results, read_all

    options = _import_options(source, license_, campaign=campaign, model=model and plain(model))
    location = read_settings(ledger=ledger).location
    read = import_module(f"lapledger.producers.importers.{form}").read
    results = read_all(read, [Path(name) for name in files], options, reporter=TERMINAL)
    with open_writer(location, f"lap import {form}", TERMINAL) as writer:
        done = [import_results(writer, result, options) for result in results]
        cut = str(writer.ledger.cut())
    _show(done, cut, as_json=as_json)


def _import_options(
    source: str,
    license_: str,
    *,
    campaign: str | None = None,
    model: str | None = None,
    validator_flags: str | None = None,
) -> "ImportOptions":
    from lapledger.producers.importers.events import Provenance
    from lapledger.workflows.data import import_results

    return import_results.ImportOptions(
        campaign=campaign,
        model=model,
        provenance=Provenance(original_id=plain(source), license=plain(license_)),
        validator_flags=validator_flags,
    )


_COUNTS = ("problems", "programs", "executions", "timings")


def _show(done: Sequence["ImportSummary"], cut: str, *, as_json: bool) -> None:
    if as_json:
        print_json({"cut": cut, "imported": [asdict(result) for result in done]})
        return
    for result in done:
        if result.held:
            print_message(f"{plain(result.file)} is already imported, as {result.campaign or 'problems'}")
        if result.excluded:
            print_message(f"{plain(result.file)}: {len(result.excluded)} excluded, first {plain(result.excluded[0])}")
        if rounded := result.figures.get("rounded by more than 1%"):
            print_message(
                f"warning: {plain(result.file)}: {rounded} values lose more than 1% in whole nanoseconds; ratios of"
                " such short durations mean little"
            )
    rows = [
        (
            result.file,
            result.campaign,
            *(getattr(result, name) for name in _COUNTS),
            len(result.excluded),
            len(result.unknown),
        )
        for result in done
    ]
    columns = ("file", "campaign", "problems", "new programs", "new executions", "new timings", "excluded", "unknown")
    print_table(columns, rows)
    figures = list(dict.fromkeys(name for result in done for name in result.figures))
    values = [(result.file, *(_figure(result.figures.get(name)) for name in figures)) for result in done]
    print_table(("file", *figures), values, cut=cut)


def _figure(value: float | str | None) -> object:
    """Percentages to two digits, as published ones are."""
    return f"{value:.2f}" if isinstance(value, float) else value
