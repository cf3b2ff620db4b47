"""A bundle of one campaign: facts, fits, verdicts, criteria and the chain, with the program that replays them.

One zip file that Python runs: `python BUNDLE.zip`. Which facts it takes is in `bundle_contents`.
"""

import json
import zipfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from lapledger.consumers.exports.bundle_contents import CampaignContents, ExcludedCriterion, blobs, frames_of
from lapledger.consumers.exports.judged_export import JudgedExport
from lapledger.consumers.exports.replayer import cli
from lapledger.consumers.exports.tables import verdict_table
from lapledger.ledger.atomic_write import finite
from lapledger.ledger.proof.bundles.bundle_writer import Contents, Program, as_json, write_bundle
from lapledger.ledger.proof.bundles.frame_tables import parquet
from lapledger.ledger.proof.bundles.verifier import reward
from lapledger.ledger.questions.queries import Questions
from lapledger.ledger.store.sql.engine import reading
from lapledger.replay.loading import KERNEL

_Q = ("q_lo", "q_hi", "q_den")
_PROGRAM = Program(
    "lapbundle.replayer.cli",
    packages={"lapledger.consumers.exports.replayer": "lapbundle.replayer"},
    modules={"lapledger.replay.judging.interface": "lapbundle.interface"},
)


@dataclass(frozen=True, slots=True)
class CampaignBundle:
    """A written bundle with the number of its tables and named replays."""

    frames: int
    events: int
    tables: int
    replays: int  # named ones
    bytes: int
    digest: str  # SHA-256 of bundle.json: written down, it stands for the whole bundle


def write_campaign_bundle(
    path: Path,
    questions: Questions,
    answers: Sequence[JudgedExport],
    on_progress: Callable[[int, int], None] = lambda _done, _total: None,
    *,
    excluded: Sequence[ExcludedCriterion] = (),
) -> CampaignBundle:
    """Writes the bundle of one campaign with every answer's table and the campaign's named replays.

    `on_progress` is called with (frames written, frames in all); `excluded` are the declared criteria without a table.
    Fault when a frame or a blob is missing or altered; UserError when the file cannot be written, and nothing is left
    then.
    """
    campaign = CampaignContents.of(questions, answers, excluded=excluded)
    contents = Contents(
        about={"campaign": answers[0].judged.campaign, "kernel": KERNEL},
        parts=_parts(questions, campaign),
        frames=frames_of(questions, campaign),
        program=_PROGRAM,
    )
    with reading(questions.ledger.engine) as connection:
        done = write_bundle(
            path, questions.ledger, connection, cut=questions.cut, contents=contents, on_progress=on_progress
        )
    return CampaignBundle(done.frames, done.events, len(answers), len(campaign.replays), done.bytes, done.digest)


def check_bundle(arguments: Sequence[str], path: str) -> int:
    """Checks a campaign's or a reward's bundle with the code of this release; the exit code of its program."""
    try:
        with zipfile.ZipFile(path) as archive:
            of_reward = "reward" in json.loads(archive.read("bundle.json"))
    except (OSError, ValueError, LookupError, zipfile.BadZipFile):
        of_reward = False  # the campaign's program reports what cannot be read
    return reward.main(arguments, path) if of_reward else cli.main(arguments, path)


def _parts(questions: Questions, contents: CampaignContents) -> Iterator[tuple[str, bytes]]:
    yield "tables.json", as_json(_tables(questions, contents))
    yield "verdicts.parquet", parquet(pa.concat_tables([_verdicts(answer) for answer in contents.answers]))
    yield from blobs(questions, contents)


def _tables(questions: Questions, contents: CampaignContents) -> list[dict[str, Any]]:
    """tables.json: every answer, and the declared criteria that have none."""
    rows = questions.rows("SELECT criterion_hash, name FROM criterion")
    names = {row["criterion_hash"]: row["name"] for row in rows}
    excluded = [
        {"name": names[row.hash], "hash": row.hash, "canonical": row.canonical, "excluded": row.reason}
        for row in contents.excluded
    ]
    return [*(_table(answer, names) for answer in contents.answers), *excluded]


def _table(answer: JudgedExport, names: Mapping[str, str]) -> dict[str, Any]:
    calibration = answer.judged.calibration_id
    criterion = answer.judged.criterion
    canonical = criterion.canonical().decode()
    return {
        "name": names.get(criterion.hash, canonical),  # never a name that nothing in the bundle proves
        "hash": criterion.hash,
        "canonical": canonical,
        "calibration": calibration,
        "k": 1,
        "estimates": finite(answer.judged.estimate_rows),
    }


def _verdicts(answer: JudgedExport) -> pa.Table:
    """The verdicts in columns that can be recomputed: q in lowest terms, without the reason."""
    table = verdict_table(answer).drop_columns(["reason"])
    numbers = np.array([table[name].to_numpy() for name in _Q])
    numbers[:, numbers[2] == 0] = 0
    numbers //= np.maximum(np.gcd.reduce(numbers, axis=0), 1)
    for name, values in zip(_Q, numbers, strict=True):
        position = table.schema.get_field_index(name)
        table = table.set_column(position, table.schema.field(position), pa.array(values))
    return table.add_column(0, "criterion_hash", pa.array([answer.judged.criterion.hash] * len(table), pa.string()))
