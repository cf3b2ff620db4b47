"""`lap import samples`: the completions of a model, as programs to run."""

from collections.abc import Sequence
from contextlib import closing
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import click

from lapledger.cli.options import json_option, ledger_option
from lapledger.render.output import count, plain, print_json, print_message, print_table
from lapledger.render.terminal import TERMINAL
from lapledger.settings import read_settings

if TYPE_CHECKING:
    from lapledger.workflows.data.import_samples import SampleSummary


@click.command()
@click.argument("files", nargs=-1, required=True, type=click.Path(), metavar="FILE...")
@click.option(
    "--model",
    default=None,
    metavar="NAME",
    help="Model that wrote the samples.  [default: from the rows, else the file]",
)
@click.option(
    "--map",
    "maps",
    multiple=True,
    metavar="NAME=FIELD",
    help="Field of a row that states a problem, text, source, group, tokens, ...; repeat, or separate by commas.",
)
@click.option(
    "--temperature", type=click.FloatRange(0), default=None, metavar="T", help="Sampling temperature, if known."
)
@click.option("--skip-unmatched", is_flag=True, help="Import what matches where samples name unknown problems.")
@click.option("--extend", is_flag=True, help="Add to the programs that the ledger holds of this model.")
@click.option("--source", default="", metavar="TEXT", help="Origin of the files, e.g. repository and commit.")
@click.option("--license", "license_", default="", metavar="TEXT", help="Licence of the files, if known.")
@ledger_option
@json_option
def command(
    files: Sequence[str],
    *,
    model: str | None,
    maps: Sequence[str],
    temperature: float | None,
    skip_unmatched: bool,
    extend: bool,
    source: str,
    license_: str,
    ledger: str | None,
    as_json: bool,
) -> None:
    """Import sampled completions (JSON Lines, Parquet) as programs of a model, to be run by `lap run`.

    A row names a problem by its id, slug or name, and holds one completion or a list. Known field names are those of
    EvalPlus, LiveCodeBench, TRL, lm-eval and verifiers; others are mapped.

    \b
    Example:
      lap import samples samples.jsonl --model my-model
      lap import samples logs.parquet --map problem=task,text=answer
    """
    from lapledger.ledger.questions.queries import Questions
    from lapledger.producers.importers.events import Provenance
    from lapledger.producers.importers.samples import FieldMap
    from lapledger.workflows.data.import_samples import import_samples
    from lapledger.workflows.data.sample_files import SampleOptions, check_samples
    from lapledger.workflows.session import open_writer

    options = SampleOptions(
        model=model and plain(model),
        names=FieldMap.parse(maps),
        temperature=temperature,
        skip_unmatched=skip_unmatched,
        extend=extend,
        provenance=Provenance(original_id=plain(source), license=plain(license_)),
    )
    with open_writer(read_settings(ledger=ledger).location, "lap import samples", TERMINAL) as writer:
        with closing(Questions(writer.ledger)) as questions:
            checked = check_samples(questions, [Path(name) for name in files], options, TERMINAL)
        done = [import_samples(writer, file, options) for file in checked]
        cut = str(writer.ledger.cut())
    if as_json:
        print_json({"cut": cut, "imported": [asdict(summary) for summary in done]})
        return
    _show(done, cut)


def _show(done: "Sequence[SampleSummary]", cut: str) -> None:
    for summary in done:
        if summary.held:
            print_message(f"{plain(summary.file)} is already imported")
        if summary.unmatched:
            skipped = count(sum(summary.unmatched.values()), "sample")
            print_message(f"{plain(summary.file)}: {skipped} of unknown problems skipped")
        if summary.without_program:
            empty = count(summary.without_program, "completion")
            print_message(
                f"warning: {plain(summary.file)}: {empty} without a Python block count as empty programs; where a field"
                " holds programs as they are, add --map source=FIELD"
            )
    rows = [
        (summary.file, model, summary.problems, 0 if summary.held else samples)
        for summary in done
        for model, samples in summary.models.items()
    ]
    print_table(("file", "model", "problems", "new programs"), rows, cut=cut)
