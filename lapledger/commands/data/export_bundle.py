"""`lap export bundle` and `lap export check`: a file that verifies and replays without a ledger."""

import json
from argparse import ArgumentTypeError
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from lapledger.cli.export_options import FILE, question_options, request_of
from lapledger.cli.options import json_option
from lapledger.ledger.errors import LapError, UserError
from lapledger.ledger.questions.open_questions import open_questions
from lapledger.render.output import count, print_json, print_line, print_message, progress
from lapledger.settings import read_settings

if TYPE_CHECKING:
    from lapledger.consumers.exports.bundle_contents import ExcludedCriterion
    from lapledger.consumers.exports.judged_export import ExportRequest, JudgedExport
    from lapledger.ledger.questions.queries import Questions


@click.command()
@FILE
@question_options
def bundle(path: Path, **flags: Any) -> None:
    """Write one file with facts, calibrations, verdicts, criteria, the hash chain, and code to verify and replay it.

    The bundle covers the criterion asked for, every criterion in the ledger and the campaign's named replays. It runs
    with Python, pyarrow and numpy, without a ledger. Store its digest and `lap verify --print-head` elsewhere.

    \b
    Example:
      lap export bundle campaign.zip --criterion top-30
      python campaign.zip
      python campaign.zip --tau 50 --json
    """
    from lapledger.consumers.exports.campaign_bundle import write_campaign_bundle
    from lapledger.consumers.exports.judged_export import judge_export

    request = request_of(flags)
    with open_questions(read_settings(ledger=flags["ledger"]).location, flags["at"]) as questions:
        judged, (others_judged, excluded) = judge_export(questions, request), _declared(questions, request)
        with progress("bundling frames", 0) as bar:

            def on_progress(done: int, total: int) -> None:
                bar.update(bar.task_ids[0], completed=done, total=total)

            done = write_campaign_bundle(path, questions, [judged, *others_judged], on_progress, excluded=excluded)
        written = {"cut": str(questions.cut), "path": path.name, **asdict(done)}
    if flags["as_json"]:
        print_json(written)
    else:
        print_line(f"bundle {done.digest}")
        print_line(f"cut {written['cut']}")
    replays = f" and {count(done.replays, 'named replay')}" if done.replays else ""
    print_message(
        f"{path}: {done.tables} tables{replays}, {done.frames} frames with {done.events} events, {done.bytes} bytes"
    )


@click.command()
@click.argument("path", type=click.Path(exists=True, dir_okay=False, path_type=Path), metavar="FILE")
@click.option("--head", default=None, metavar="HEAD", help="A head that you stored, from `lap verify --print-head`.")
@json_option
def check(path: Path, head: str | None, as_json: bool) -> None:
    """Prove the bundle of a campaign or a reward with the code of this release, not with the code in the bundle.

    Exit code 1 when anything differs, 3 when all holds but a table could not be replayed.

    \b
    Example:
      lap export check campaign.zip --head "$(cat head.txt)"
    """
    from lapledger.consumers.exports.campaign_bundle import check_bundle
    from lapledger.ledger.proof.bundles.verifier.proof import head_text

    if head is not None:
        try:
            head = head_text(head)
        except ArgumentTypeError as error:
            raise UserError(f"--head: {error}") from None

    arguments = [*(["--head", head] if head else []), *(["--json"] if as_json else [])]
    code = check_bundle(arguments, str(path))
    if code:
        raise click.exceptions.Exit(code)


def _declared(questions: "Questions", request: "ExportRequest") -> "tuple[list[JudgedExport], list[ExcludedCriterion]]":
    """Results under every other criterion in the ledger, and those that cannot be evaluated, with the reason."""
    from lapledger.consumers.exports.bundle_contents import ExcludedCriterion
    from lapledger.consumers.exports.judged_export import ExportRequest, judge_export
    from lapledger.replay.criteria import Criterion

    seen, others_judged, excluded = {request.criterion.hash}, [], []
    for row in questions.rows("SELECT * FROM criterion ORDER BY name, criterion_hash"):
        try:
            criterion = Criterion.from_mapping(json.loads(row["canonical"]))
            if criterion.hash not in seen:
                seen.add(criterion.hash)
                others_judged.append(
                    judge_export(questions, ExportRequest(row["name"], criterion, request.campaign, request.source))
                )
        except LapError as error:
            print_message(f"criterion {row['name']} is excluded: {error}")
            excluded.append(ExcludedCriterion(row["criterion_hash"], row["canonical"], str(error)))
    return others_judged, excluded
