"""A bundle of one campaign: facts, fits, verdicts, criteria and the chain, with what verifies and replays them.

One zip file that Python runs: `python BUNDLE.zip`. It needs pyarrow and numpy, no ledger and no network. Frames are
taken whole, as digests cover whole frames; they are proven on the way.
"""

import hashlib
import io
import json
import zipfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from sqlalchemy import Connection

from consumers.exports.chain import digests, head_at, partitions
from consumers.exports.gathered import Gathered, estimate_rows
from consumers.exports.tables import verdict_table
from ledger.events import EVENTS
from ledger.frames import Frame
from ledger.outputs import finite, whole
from ledger.proof.extract import Places, frames_at
from ledger.questions import Questions
from ledger.store.engine import reading
from ledger.store.reader import segment_rows
from replay.criteria import describe
from replay.shell import KERNEL

FORMAT = 1
Told = Callable[[int, int], None]
_DATE = (1980, 1, 1, 0, 0, 0)
"""A bundle of the same cut has the same bytes, whenever it is written."""
_OWN, _THEIRS = "consumers.exports.portable", "ledger.proof.bundle_verifier"
_MAIN = "import sys\n\nfrom lapbundle.cli import main\n\nsys.exit(main(sys.argv[1:], sys.path[0]))\n"
_PROBLEMS, _CAMPAIGNS = "list_contains($problems, problem_id)", "list_contains($campaigns, campaign_id)"
_WANTED = {
    "campaign_opened": _CAMPAIGNS,
    "problem_added": _PROBLEMS,
    "test_added": _PROBLEMS,
    "program_added": _PROBLEMS,
    "worker_started": _CAMPAIGNS,
    "execution_shared": _CAMPAIGNS,
    "execution_finished": _CAMPAIGNS,
    "timing_measured": _CAMPAIGNS,
    "calibration_fitted": "list_contains($fits, calibration_id)",
    "criterion_declared": "list_contains($criteria, criterion_hash)",
}
"""The events of a bundle: raw table, and which of its rows."""


@dataclass(frozen=True, slots=True)
class Bundled:
    """What a bundle came to."""

    frames: int
    events: int
    tables: int
    bytes: int
    digest: str  # SHA-256 of bundle.json: written down, it stands for the whole bundle


def write_bundle(
    path: Path, questions: Questions, answers: Sequence[Gathered], told: Told = lambda _done, _total: None
) -> Bundled:
    """Writes the bundle of one campaign with every answer's table; `told` hears how many frames of how many are in it.

    Fault when a frame is missing or altered; UserError when the file cannot be written, and nothing is left then.
    """
    with whole(path) as part, zipfile.ZipFile(part, "w", zipfile.ZIP_DEFLATED) as archive:
        named: dict[str, str] = {}
        counts = [0, 0]
        for name, data in _parts(questions, answers, counts, told):
            _put(archive, name, data)
            named[name] = hashlib.sha256(data).hexdigest()
        about = _json(_about(questions, answers[0]) | {"parts": named})
        _put(archive, "bundle.json", about)
    size = path.stat().st_size
    return Bundled(counts[0], counts[1], len(answers), size, hashlib.sha256(about).hexdigest())


def _put(archive: zipfile.ZipFile, name: str, data: bytes) -> None:
    entry = zipfile.ZipInfo(name, _DATE)
    entry.compress_type, entry.external_attr = zipfile.ZIP_DEFLATED, 0o644 << 16
    archive.writestr(entry, data)


def _parts(
    questions: Questions, answers: Sequence[Gathered], counts: list[int], told: Told
) -> Iterator[tuple[str, bytes]]:
    yield "__main__.py", _MAIN.encode()
    yield from _code()
    yield "tables.json", _json([_table(answer) for answer in answers])
    yield "verdicts.parquet", _parquet(pa.concat_tables([_verdicts(answer) for answer in answers]))
    with reading(questions.ledger.engine) as connection:
        for stream, partition in partitions():
            chain = digests(connection, questions, stream, partition)
            yield f"chains/{stream}.{partition}.txt", "".join(f"{digest}\n" for digest in chain).encode()
        places = _places(questions, answers)
        total = sum(map(len, places.values()))
        yield from _events(connection, questions, places=places, counts=counts, told=lambda done: told(done, total))


def _code() -> Iterator[tuple[str, bytes]]:
    """The verifier and replayer as the package `lapbundle`."""
    for module in sorted(files(_OWN).iterdir(), key=lambda one: one.name):
        if module.name.endswith(".py"):
            source = module.read_text().replace(_OWN, "lapbundle").replace(_THEIRS, "lapbundle.canonical")
            yield f"lapbundle/{module.name}", source.encode()
    yield "lapbundle/canonical.py", files("ledger.proof").joinpath("bundle_verifier.py").read_bytes()


def _table(answer: Gathered) -> dict[str, Any]:
    calibration = answer.calibration.calibration_id if answer.calibration else None
    criterion = answer.asked.criterion
    return {
        "name": answer.asked.name,
        "hash": criterion.hash,
        "canonical": criterion.canonical().decode(),
        "calibration": calibration,
        "k": 1,
        "estimates": finite(estimate_rows(answer)),
    }


def _verdicts(answer: Gathered) -> pa.Table:
    table = verdict_table(answer)
    return table.add_column(0, "criterion_hash", pa.array([answer.asked.criterion.hash] * len(table), pa.string()))


def _places(questions: Questions, answers: Sequence[Gathered]) -> Places:
    campaigns = {answer.snapshot.name for answer in answers}
    campaigns |= {answer.calibration.stored.name for answer in answers if answer.calibration}
    parameters: Mapping[str, list[str]] = {
        "campaigns": sorted(campaigns),
        "problems": list(answers[0].snapshot.campaign["problems"]),
        "fits": sorted({answer.calibration.calibration_id for answer in answers if answer.calibration}),
        "criteria": sorted({answer.asked.criterion.hash for answer in answers}),
    }
    places: dict[tuple[str, int], set[int]] = {}
    for table, where in _WANTED.items():
        # Table and condition are constants of this module, never a user's words.
        sql = f"SELECT DISTINCT _stream, _partition, _admission FROM {table} WHERE {where}"  # noqa: S608
        named = {name: value for name, value in parameters.items() if f"${name}" in where}
        for row in questions.rows(sql, **named):
            places.setdefault((row["_stream"], row["_partition"]), set()).add(row["_admission"])
    return places


_FRAME = (
    "stream",
    "partition",
    "admission",
    "type",
    "version",
    "key",
    "epoch",
    "sequence",
    "previous",
    "digest",
    "rows",
)


def _events(
    connection: Connection,
    questions: Questions,
    *,
    places: Places,
    counts: list[int],
    told: Callable[[int], None],
) -> Iterator[tuple[str, bytes]]:
    """One Parquet file an event type and version, and the frames that its rows come from."""
    frames: list[dict[str, Any]] = []
    held: dict[tuple[str, int], list[pa.RecordBatch]] = {}
    for admission, frame in frames_at(questions.ledger, connection, places):
        held.setdefault((frame.declared.name, frame.declared.version), []).append(_placed(frame, len(frames)))
        frames.append(_meta(frame, admission))
        told(len(frames))
    counts[:] = [len(frames), sum(frame["rows"] for frame in frames)]
    yield "frames.parquet", _parquet(pa.Table.from_pylist(frames, schema=_FRAMES))
    for (name, version), batches in sorted(held.items()):
        yield f"events/{name}.v{version}.parquet", _parquet(pa.Table.from_batches(batches))


_FRAMES = pa.schema(
    [
        (name, pa.int64() if name in ("partition", "admission", "version", "sequence", "rows") else pa.string())
        for name in _FRAME
    ]
)


def _meta(frame: Frame, admission: int) -> dict[str, Any]:
    link, declared = frame.link, frame.declared
    values = (link.stream, link.partition, admission, declared.name, declared.version, frame.key, link.epoch)
    return dict(zip(_FRAME, (*values, link.sequence, link.previous, frame.digest, frame.rows), strict=True))


def _placed(frame: Frame, number: int) -> pa.RecordBatch:
    """The rows of a frame with its number and theirs."""
    declared = EVENTS[frame.declared.name, frame.declared.version]
    fields = [*declared.schema, pa.field("_frame", pa.int64()), pa.field("_row", pa.int64())]
    numbers = [pa.array([number] * frame.rows, pa.int64()), pa.array(range(frame.rows), pa.int64())]
    return pa.RecordBatch.from_arrays([*frame.batch.columns, *numbers], schema=pa.schema(fields))


def _about(questions: Questions, answer: Gathered) -> dict[str, Any]:
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
        "campaign": answer.snapshot.name,
        "kernel": KERNEL,
        "fields": {field.name: field.default for field in describe()},
    }


def _parquet(table: pa.Table) -> bytes:
    held = io.BytesIO()
    pq.write_table(table, held, compression="zstd")
    return held.getvalue()


def _json(value: Mapping[str, Any] | Iterable[Any]) -> bytes:
    return (json.dumps(value, indent=1, ensure_ascii=False, allow_nan=False) + "\n").encode()
