"""`lap trace`: the tree from a reward to its gates, percentiles, calibration and raw timings, recomputed."""

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import click

from lapledger.cli.options import at_option, json_option, ledger_option
from lapledger.consumers.derive.reward_audit import Trace, trace
from lapledger.ledger.questions.open_questions import open_questions
from lapledger.render.output import print_json, print_message, stdout
from lapledger.render.trace_tree import trace_tree
from lapledger.settings import read_settings

if TYPE_CHECKING:
    from lapledger.ledger.questions.queries import Questions


@click.command()
@click.argument("reward_id")
@click.option(
    "--bundle",
    default=None,
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Write the evidence as a zip file.",
)
@ledger_option
@at_option
@json_option
def command(reward_id: str, bundle: Path | None, ledger: str | None, at: str | None, as_json: bool) -> None:
    """Trace a reward back to its raw timings, and recompute it from them. Exit code 1 on a mismatch.

    REWARD_ID may be abbreviated to its first digits. A bundle holds the frames and blobs behind the reward, and
    the program that verifies them against a stored head, with Python, pyarrow and numpy.

    \b
    Example:
      lap trace 3f2a91c0 --bundle reward.zip
      python -I reward.zip --head "$(cat head.txt)"
    """
    with open_questions(read_settings(ledger=ledger).location, at) as questions:
        traced = trace(questions.ledger, questions, reward_id)
        if bundle is not None:
            _write_bundle(questions, traced, bundle)
    if as_json:
        print_json({"cut": traced.reward["cut"], **asdict(traced)})
    else:
        stdout(width=150).print(trace_tree(traced))
    if traced.differences:
        raise click.exceptions.Exit(1)


def _write_bundle(questions: "Questions", traced: Trace, path: Path) -> None:
    from lapledger.consumers.derive.reward_evidence import dependencies_of
    from lapledger.ledger.proof.bundles.reward_bundle import write_reward_bundle

    dependencies = dependencies_of(questions.ledger, questions, traced)
    done = write_reward_bundle(path, questions.ledger, dependencies)
    size = f"{done.frames} frames, {len(dependencies.blobs)} blobs, {done.bytes} bytes"
    print_message(f"{path}: {size}; check it with `python {path.name}`")
