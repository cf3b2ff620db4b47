"""A bundle of one campaign: facts, fits, verdicts, criteria and the chain, with what verifies and replays them.

One zip file that Python runs: `python BUNDLE.zip`. It needs pyarrow and numpy, no ledger and no network. Which facts it
takes, and how they are written, is in `bundle_facts`.
"""

import hashlib
import io
import json
import shutil
import zipfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import IO, Any

import numpy as np
import pyarrow as pa

from lapledger.consumers.exports.bundle_facts import Contents, Facts, LeftOut, blobs, parquet, places
from lapledger.consumers.exports.chain import digests, head_at, partitions
from lapledger.consumers.exports.judged_export import JudgedExport
from lapledger.consumers.exports.replayer.known import FORMAT
from lapledger.consumers.exports.tables import verdict_table
from lapledger.ledger.atomic_write import atomic_write, finite
from lapledger.ledger.questions.queries import Questions
from lapledger.ledger.store.reader import segment_rows
from lapledger.ledger.store.sql.engine import reading
from lapledger.replay.loading import KERNEL

_Q = ("q_lo", "q_hi", "q_den")
Told = Callable[[int, int], None]
_DATE = (1980, 1, 1, 0, 0, 0)
"""A bundle of the same cut has the same bytes, whenever it is written."""
_OWN = "lapledger.consumers.exports.replayer"
_THEIRS = {
    "lapledger.ledger.proof.bundles.bundle_verifier": "canonical",
    "lapledger.replay.judging.interface": "interface",
}
"""Modules of other rooms that need the standard library and pyarrow alone, and what they are called in a bundle."""
_MAIN = """import os
import sys

from lapbundle.cli import main

code = main(sys.argv[1:], sys.path[0])
sys.stdout.flush()
sys.stderr.flush()
os._exit(code)  # threads of pyarrow that end while the interpreter does abort it now and then, with another exit code
"""


@dataclass(frozen=True, slots=True)
class Bundled:
    """What a bundle came to."""

    frames: int
    events: int
    tables: int
    replays: int  # named ones
    bytes: int
    digest: str  # SHA-256 of bundle.json: written down, it stands for the whole bundle


def write_bundle(
    path: Path,
    questions: Questions,
    answers: Sequence[JudgedExport],
    told: Told = lambda _done, _total: None,
    *,
    left_out: Sequence[LeftOut] = (),
) -> Bundled:
    """Writes the bundle of one campaign with every answer's table and the campaign's named replays.

    `told` hears how many frames of how many are in it; `left_out` are the declared criteria that have no answer. Fault
    when a frame or a blob is missing or altered; UserError when the file cannot be written, and nothing is left then.
    """
    contents = Contents.of(questions, answers, left_out=left_out)
    with atomic_write(path) as part, zipfile.ZipFile(part, "w", zipfile.ZIP_DEFLATED) as archive:
        facts = Facts(part.parent)
        named = {name: _put(archive, name, data) for name, data in _parts(questions, contents, facts=facts, told=told)}
        about = _json(_about(questions, answers[0]) | {"parts": named})
        digest = _put(archive, "bundle.json", io.BytesIO(about))
    counts = (len(facts.frames), facts.events, len(answers), len(contents.replays))
    return Bundled(*counts, path.stat().st_size, digest)


def _put(archive: zipfile.ZipFile, name: str, data: IO[bytes]) -> str:
    """Copies a part into the bundle, a piece at a time; its SHA-256."""
    entry = zipfile.ZipInfo(name, _DATE)
    entry.compress_type, entry.external_attr = zipfile.ZIP_DEFLATED, 0o644 << 16
    entry.file_size = data.seek(0, io.SEEK_END)
    data.seek(0)
    digest = hashlib.file_digest(data, "sha256").hexdigest()  # type: ignore[arg-type]  # any file that reads into
    data.seek(0)
    with archive.open(entry, "w") as out:
        shutil.copyfileobj(data, out)
    return digest


def _parts(questions: Questions, contents: Contents, *, facts: Facts, told: Told) -> Iterator[tuple[str, IO[bytes]]]:
    answers = contents.answers
    small = {"__main__.py": _MAIN.encode(), **_code(), "tables.json": _json(_tables(questions, contents))}
    small["verdicts.parquet"] = parquet(pa.concat_tables([_verdicts(answer) for answer in answers]))
    yield from ((name, io.BytesIO(data)) for name, data in small.items())
    yield from ((name, io.BytesIO(data)) for name, data in blobs(questions, contents))
    with reading(questions.ledger.engine) as connection:
        for stream, partition in partitions():
            chain = digests(connection, questions, stream, partition)
            yield f"chains/{stream}.{partition}.txt", io.BytesIO("".join(f"{one}\n" for one in chain).encode())
        at = places(questions, contents)
        total = sum(map(len, at.values()))
        yield from facts.take(questions, connection, at=at, told=lambda done: told(done, total))


def _code() -> dict[str, bytes]:
    """The verifier and replayer as the package `lapbundle`."""
    found = {}
    for module in sorted(files(_OWN).iterdir(), key=lambda one: one.name):
        if module.name.endswith(".py"):
            source = module.read_text().replace(_OWN, "lapbundle")
            for theirs, ours in _THEIRS.items():
                source = source.replace(theirs, f"lapbundle.{ours}")
            found[f"lapbundle/{module.name}"] = source.encode()
    for theirs, ours in _THEIRS.items():
        package, _, name = theirs.rpartition(".")
        found[f"lapbundle/{ours}.py"] = files(package).joinpath(f"{name}.py").read_bytes()
    return found


def _tables(questions: Questions, contents: Contents) -> list[dict[str, Any]]:
    """What tables.json says: every answer, and the declared criteria that have none."""
    rows = questions.rows("SELECT criterion_hash, name FROM criterion")
    names = {row["criterion_hash"]: row["name"] for row in rows}
    left = [
        {"name": names[one.hash], "hash": one.hash, "canonical": one.canonical, "left_out": one.why}
        for one in contents.left_out
    ]
    return [*(_table(answer, names) for answer in contents.answers), *left]


def _table(answer: JudgedExport, names: Mapping[str, str]) -> dict[str, Any]:
    calibration = answer.judged.calibration_id
    criterion = answer.judged.criterion
    canonical = criterion.canonical().decode()
    return {
        "name": names.get(criterion.hash, canonical),  # never a word that nothing in the bundle proves
        "hash": criterion.hash,
        "canonical": canonical,
        "calibration": calibration,
        "k": 1,
        "estimates": finite(answer.judged.estimate_rows),
    }


def _verdicts(answer: JudgedExport) -> pa.Table:
    """The verdicts in columns that can be computed again: q in lowest terms, without the words on why."""
    table = verdict_table(answer).drop_columns(["reason"])
    numbers = np.array([table[name].to_numpy() for name in _Q])
    numbers[:, numbers[2] == 0] = 0
    numbers //= np.maximum(np.gcd.reduce(numbers, axis=0), 1)
    for name, values in zip(_Q, numbers, strict=True):
        place = table.schema.get_field_index(name)
        table = table.set_column(place, table.schema.field(place), pa.array(values))
    return table.add_column(0, "criterion_hash", pa.array([answer.judged.criterion.hash] * len(table), pa.string()))


def _about(questions: Questions, answer: JudgedExport) -> dict[str, Any]:
    ledger = questions.ledger
    with reading(ledger.engine) as connection:
        manifests = [segment.manifest for segment in segment_rows(connection)]
        head = head_at(connection, questions, manifests)
    return {
        "format": FORMAT,
        "ledger": ledger.identity,
        "cut": str(questions.cut),
        "head": head,
        "manifests": manifests,
        "campaign": answer.judged.campaign,
        "kernel": KERNEL,
    }


def _json(value: Mapping[str, Any] | Iterable[Any]) -> bytes:
    return (json.dumps(value, indent=1, ensure_ascii=False, allow_nan=False) + "\n").encode()
