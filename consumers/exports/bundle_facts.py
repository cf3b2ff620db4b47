"""The facts of a bundle: which frames and blobs it takes, and each event type as one Parquet file.

Frames are taken whole, as digests cover whole frames; they are proven on the way. Rows are written as they come: no
more than a row group of each type is in memory.
"""

import io
import json
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import pyarrow as pa
import pyarrow.parquet as pq
from sqlalchemy import Connection

from lapledger.consumers.derive.named_replay_reader import named
from lapledger.consumers.exports.judged_export import JudgedExport
from lapledger.ledger.events import EVENTS
from lapledger.ledger.frames.frame import Frame
from lapledger.ledger.proof.bundles.extract import Places, frames_at
from lapledger.ledger.questions.queries import Questions

ROWS = 1 << 16
"""Rows of an event type from which on a row group of them is written."""
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
    "replay_completed": "list_contains($replays, replay_id)",
}
"""The events of a bundle: raw table, and which of its rows."""


@dataclass(frozen=True, slots=True)
class LeftOut:
    """A declared criterion that has no answer in a bundle, and why."""

    hash: str
    canonical: str
    why: str


@dataclass(frozen=True, slots=True, eq=False)
class Contents:
    """What a bundle answers: tables of a campaign at one cut, and the named replays of it up to there."""

    answers: Sequence[JudgedExport]
    replays: Sequence[Mapping[str, Any]]
    left_out: Sequence[LeftOut] = ()

    @classmethod
    def of(cls, questions: Questions, answers: Sequence[JudgedExport], *, left_out: Sequence[LeftOut]) -> "Contents":
        """The answers with every named replay of their campaign."""
        campaign = answers[0].judged.campaign
        return cls(answers, [row for row in named(questions) if row["campaign_id"] == campaign], left_out)

    @property
    def fits(self) -> list[str]:
        """The calibrations that answers and replays rest on."""
        own = {answer.judged.calibration_id for answer in self.answers if answer.judged.calibration_id}
        return sorted(own | {row["calibration_id"] for row in self.replays if row["calibration_id"]})

    @property
    def criteria(self) -> list[str]:
        """The hashes of all criteria that are answered."""
        own = {answer.judged.criterion.hash for answer in self.answers}
        return sorted(own | {row["criterion_hash"] for row in self.replays})

    def campaigns(self, questions: Questions) -> list[str]:
        """The campaign, and those that its calibrations map from."""
        of_fits = "SELECT source_campaign FROM calibration WHERE list_contains($fits, calibration_id)"
        stored = {row["source_campaign"] for row in questions.rows(of_fits, fits=self.fits)}
        return sorted({answer.judged.campaign for answer in self.answers} | stored)


def places(questions: Questions, contents: Contents) -> Places:
    """Where the frames of a bundle lie."""
    parameters: Mapping[str, list[str]] = {
        "campaigns": contents.campaigns(questions),
        "problems": list(contents.answers[0].judged.snapshot.campaign["problems"]),
        "fits": contents.fits,
        "criteria": [*contents.criteria, *(one.hash for one in contents.left_out)],
        "replays": [row["replay_id"] for row in contents.replays],
    }
    found: dict[tuple[str, int], set[int]] = {}
    for table, where in _WANTED.items():
        # Table and condition are constants of this module, never a user's words.
        sql = f"SELECT DISTINCT _stream, _partition, _admission FROM {table} WHERE {where}"  # noqa: S608
        own = {name: value for name, value in parameters.items() if f"${name}" in where}
        for row in questions.rows(sql, **own):
            found.setdefault((row["_stream"], row["_partition"]), set()).add(row["_admission"])
    return found


def blobs(questions: Questions, contents: Contents) -> Iterator[tuple[str, bytes]]:
    """The verdicts and flips of the named replays, and the sources where a criterion looks at interfaces, by SHA-256.

    Fault when one is missing.
    """
    digests = {row[name] for row in contents.replays for name in ("verdicts_blob", "flips_blob") if row[name]}
    declared = questions.rows(_CANONICAL, hashes=contents.criteria)
    looks = {"interface": "required"}.items()
    if any(answer.judged.criterion.interface == "required" for answer in contents.answers) or any(
        looks <= json.loads(row["canonical"]).items() for row in declared
    ):
        rows = questions.rows(_SOURCES, campaigns=contents.campaigns(questions))
        digests |= {row["source_blob"] for row in rows}
    for digest in sorted(digests):
        yield f"blobs/{digest}", questions.ledger.blobs.get(digest)


_CANONICAL = "SELECT canonical FROM criterion WHERE list_contains($hashes, criterion_hash)"
_SOURCES = """
SELECT DISTINCT p.source_blob FROM campaign c JOIN program p ON list_contains(c.programs, p.program_id)
WHERE list_contains($campaigns, c.campaign_id) AND p.source_blob IS NOT NULL
"""
_FRAME = (
    *("stream", "partition", "admission", "type", "version", "key"),
    *("epoch", "sequence", "previous", "digest", "rows"),
)
_NUMBERS = ("partition", "admission", "version", "sequence", "rows")
_FRAMES = pa.schema([(name, pa.int64() if name in _NUMBERS else pa.string()) for name in _FRAME])


class Facts:
    """The events of a bundle on their way into it: each type in a nameless file beside the bundle, gone at the end."""

    def __init__(self, folder: Path) -> None:
        """Nothing is written yet."""
        self.frames: list[dict[str, Any]] = []
        self._folder = folder
        self._files: dict[tuple[str, int], _Kind] = {}
        self._open = ExitStack()

    @property
    def events(self) -> int:
        """How many rows there are."""
        return sum(frame["rows"] for frame in self.frames)

    def take(
        self, questions: Questions, connection: Connection, *, at: Places, told: Callable[[int], None]
    ) -> Iterator[tuple[str, IO[bytes]]]:
        """The Parquet files of frames and event types by their names, to be read from their beginnings.

        `told` hears how many frames were taken. Fault when one is missing or altered.
        """
        with self._open:
            for admission, frame in frames_at(questions.ledger, connection, at):
                self._kind(frame.declared.name, frame.declared.version).add(_placed(frame, len(self.frames)))
                self.frames.append(_meta(frame, admission))
                told(len(self.frames))
            yield "frames.parquet", io.BytesIO(parquet(pa.Table.from_pylist(self.frames, schema=_FRAMES)))
            for (name, version), kind in sorted(self._files.items()):
                yield f"events/{name}.v{version}.parquet", kind.close()

    def _kind(self, name: str, version: int) -> "_Kind":
        if (name, version) not in self._files:
            file = tempfile.TemporaryFile(dir=self._folder)  # noqa: SIM115  (closed by the stack, when all is copied)
            self._open.enter_context(file)
            self._files[name, version] = _Kind(file, EVENTS[name, version].schema)
        return self._files[name, version]


class _Kind:
    """The rows of one event type in a Parquet file, a row group at a time."""

    def __init__(self, file: IO[bytes], schema: pa.Schema) -> None:
        self.schema = _with_places(schema)
        self._file = file
        self._writer = pq.ParquetWriter(file, self.schema, compression="zstd")
        self._waiting: list[pa.RecordBatch] = []

    def add(self, batch: pa.RecordBatch) -> None:
        self._waiting.append(batch)
        if sum(map(len, self._waiting)) >= ROWS:
            self._write()

    def _write(self) -> None:
        self._writer.write_table(pa.Table.from_batches(self._waiting, schema=self.schema))
        self._waiting = []

    def close(self) -> IO[bytes]:
        if self._waiting:
            self._write()
        self._writer.close()
        self._file.seek(0)
        return self._file


def _meta(frame: Frame, admission: int) -> dict[str, Any]:
    link, declared = frame.link, frame.declared
    values = (link.stream, link.partition, admission, declared.name, declared.version, frame.key, link.epoch)
    return dict(zip(_FRAME, (*values, link.sequence, link.previous, frame.digest, frame.rows), strict=True))


def _placed(frame: Frame, number: int) -> pa.RecordBatch:
    """The rows of a frame with its number and theirs."""
    numbers = [pa.array([number] * frame.rows, pa.int64()), pa.array(range(frame.rows), pa.int64())]
    schema = _with_places(EVENTS[frame.declared.name, frame.declared.version].schema)
    return pa.RecordBatch.from_arrays([*frame.batch.columns, *numbers], schema=schema)


def _with_places(schema: pa.Schema) -> pa.Schema:
    return schema.append(pa.field("_frame", pa.int64())).append(pa.field("_row", pa.int64()))


def parquet(table: pa.Table) -> bytes:
    """A table as a Parquet file."""
    held = io.BytesIO()
    pq.write_table(table, held, compression="zstd")
    return held.getvalue()
