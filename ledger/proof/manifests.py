"""Manifests as values: parsed with every field type-checked, so that later code need not.

Whether their contents are true is checked in `ledger.proof.links`.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from lapledger.ledger.codec.canonical import blob_digest
from lapledger.ledger.errors import Fault
from lapledger.ledger.store.frame_rows import FRAME_COLUMNS, FrameMeta, Range
from lapledger.ledger.store.segments import Segment, Segments


class Reached(NamedTuple):
    """How far one partition was sealed, and where its stream was read on from then."""

    stream: str
    partition: int
    identity: str
    next_position: int
    admissions: int
    head: str


class Moved(NamedTuple):
    """What of one partition came from an earlier stream: admissions, and quarantined records up to an id.

    `moves` counts how often the ledger was moved to another stream.
    """

    stream: str
    partition: int
    moves: int
    admissions: int
    quarantined: int


@dataclass(frozen=True, slots=True)
class Manifest:
    """The manifest of a segment. `digest` is that of its bytes; `together` the first and last ordinal of its sealing.

    `moved` holds every partition once the ledger was moved to another stream.
    """

    digest: str
    ledger: str
    ordinal: int
    previous: str
    together: tuple[int, int]
    supersedes: tuple[str, ...]
    segment: str
    type: str
    version: int
    rows: int
    bytes: int
    admissions: tuple[Range, ...]
    positions: tuple[Reached, ...]
    moved: tuple[Moved, ...]
    frames: list[FrameMeta]

    @property
    def as_segment(self) -> Segment:
        """The segment beside it, as its SQL row must describe it."""
        sizes = len(self.frames), self.rows, self.bytes
        return Segment(self.ordinal, self.segment, self.digest, self.type, self.version, *sizes, self.admissions)


def parse(data: bytes, digest: str) -> Manifest:
    """The manifest of that digest in these bytes; Fault when they are none. The digest is not checked."""
    try:
        return _parsed(data, digest)
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise Fault(f"manifest {digest} is no manifest: {error}; restore it from a copy of the ledger") from None


def _parsed(data: bytes, digest: str) -> Manifest:
    stored = json.loads(data)
    if stored["format"] != 1 or stored["frame_columns"] != list(FRAME_COLUMNS):
        raise ValueError("another release wrote it in a form that is not known here")
    return Manifest(
        digest=digest,
        ledger=_of(str, stored["ledger"]),
        ordinal=_of(int, stored["ordinal"]),
        previous=_of(str, stored["previous"]),
        together=_tuple((int, int), stored["seal"]),
        supersedes=tuple(_of(str, name) for name in stored["supersedes"]),
        segment=_of(str, stored["segment"]),
        type=_of(str, stored["type"]),
        version=_of(int, stored["version"]),
        rows=_of(int, stored["rows"]),
        bytes=_of(int, stored["bytes"]),
        admissions=tuple(_tuple(_RANGE, span) for span in stored["admissions"]),
        positions=tuple(Reached(*_tuple(_REACHED, row)) for row in stored["positions"]),
        moved=tuple(Moved(*_tuple(_MOVED, row)) for row in stored.get("moved", [])),
        frames=_frames(stored["frames"]),
    )


def read_manifest(segments: Segments, segment: Segment) -> Manifest:
    """A segment's manifest with its frames; Fault when it is missing, altered or no manifest."""
    data = segments.manifest(segment)
    if blob_digest(data) != segment.manifest:
        where = segments.where(segments.manifest_name(segment))
        raise Fault(f"manifest {where} was altered: its SHA-256 differs from its name; restore it from a copy")
    return parse(data, segment.manifest)


_RANGE = (str, int, int, int)
_MOVED = (str, int, int, int, int)
_REACHED = (str, int, str, int, int, str)
_FRAME = (str, int, int, str, str, int, str, str, int, int)


def _of(kind: type, value: Any) -> Any:
    if type(value) is not kind:
        raise TypeError(f"{value!r} is no {kind.__name__}"[:200])
    return value


def _tuple(kinds: Sequence[type], values: Any) -> Any:
    if type(values) is not list or tuple(map(type, values)) != tuple(kinds):
        raise TypeError(f"{values!r} has not the parts that it must have"[:200])
    return tuple(values)


def _frames(rows: list[Any]) -> list[FrameMeta]:
    """The frames; repeated texts are kept once, as many frames share their stream, key and epoch."""
    shared_texts: dict[str, str] = {}
    shared = shared_texts.setdefault
    metas = []
    for row in rows:
        if type(row) is not list or tuple(map(type, row)) != _FRAME or row[-2] < 1:
            raise TypeError(f"{row!r} is no frame"[:200])
        stream, partition, admission, key, epoch, *rest = row
        head = shared(stream, stream), partition, admission, shared(key, key), shared(epoch, epoch)
        metas.append(FrameMeta(*head, *rest))
    return metas
