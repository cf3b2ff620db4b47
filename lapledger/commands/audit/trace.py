"""`lap trace`: the tree from a reward to its gates, percentiles, calibration and raw timings, computed again."""

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import click

from lapledger.cli.options import at_option, json_option, ledger_option
from lapledger.consumers.derive.reward_audit import Trace, trace
from lapledger.ledger.questions.open_questions import open_questions
from lapledger.render.output import print_json, say, stdout
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
    help="Write all that proves it, as a zip.",
)
@ledger_option
@at_option
@json_option
def command(reward_id: str, bundle: Path | None, ledger: str | None, at: str | None, as_json: bool) -> None:
    """Follow a reward down to raw timings and compute it again from them. Exit code 1 when it does not agree.

    REWARD_ID may be shortened to its first digits. A bundle holds the frames and blobs behind the reward, and
    the program that proves them against a head that you kept, with Python, pyarrow and numpy.

    \b
    Example:
      lap trace 3f2a91c0 --bundle reward.zip
      python -I reward.zip --head "$(cat head.txt)"
    """
    with open_questions(read_settings(ledger=ledger).location, at) as questions:
        found = trace(questions.ledger, questions, reward_id)
        if bundle is not None:
            _write_bundle(questions, found, bundle)
    if as_json:
        print_json({"cut": found.reward["cut"], **asdict(found)})
    else:
        stdout(width=150).print(trace_tree(found))
    if found.differences:
        raise click.exceptions.Exit(1)


def _write_bundle(questions: "Questions", found: Trace, path: Path) -> None:
    from lapledger.consumers.derive.reward_evidence import dependencies_of
    from lapledger.ledger.proof.bundles.reward_bundle import write_reward_bundle

    dependencies = dependencies_of(questions.ledger, questions, found)
    done = write_reward_bundle(path, questions.ledger, dependencies)
    size = f"{done.frames} frames, {len(dependencies.blobs)} blobs, {done.bytes} bytes"
    say(f"{path}: {size}; check it with `python {path.name}`")
