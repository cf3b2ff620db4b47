"""Writes a bundle: frames, blobs and all that proves them, in one zip file that needs no ledger to be checked.

`ledger.proof.bundles.bundle_verifier` checks it and travels in it, as `verify.py`.
"""

import io
import json
import zipfile
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from importlib.resources import files
from typing import Any

from sqlalchemy import Connection, text

from lapledger.ledger.errors import UserError
from lapledger.ledger.events import PARTITIONS
from lapledger.ledger.frames.frame import encode
from lapledger.ledger.proof.bundles.extract import Places, frames_at
from lapledger.ledger.proof.heads import RecordedHead
from lapledger.ledger.store.open_ledger import Ledger, cut_now, head_now
from lapledger.ledger.store.sql.engine import reading

_DIGESTS = text("SELECT digest FROM frame WHERE stream = :stream AND partition = :partition ORDER BY admission")
_MANIFESTS = text("SELECT manifest FROM segment ORDER BY ordinal")
_DATE = (1980, 1, 1, 0, 0, 0)
"""A bundle of the same ledger has the same bytes, whenever it is written."""


@dataclass(frozen=True, slots=True)
class Evidence:
    """What a reward's digest of evidence is made of, to be recomputed.

    `tests` hold [id, original, correctness, optimization]; `programs` [id, source's digest, then for each test its
    number, the outcome, the attempt and the digest of its timings], the pool first, the rewarded one last.
    """

    problem: str
    tests: Sequence[Sequence[Any]]
    programs: Sequence[Sequence[Any]]


@dataclass(frozen=True, slots=True)
class Rests:
    """What one reward rests on: the places of its frames, its blobs, and its evidence in words.

    `evidence` is None where this release cannot say what the digest in the reward is made of.
    """

    reward: str
    places: Places
    blobs: Collection[str]
    evidence: Evidence | None
    trace: Mapping[str, Any]


def bundle(ledger: Ledger, rests: Rests) -> bytes:
    """The zip file, proven on the way; Fault when a frame or a blob is missing or altered.

    UserError when the evidence is not known, without which a bundle proves nothing.
    """
    if rests.evidence is None:
        raise UserError(
            f"this release cannot say what the evidence of the reward {rests.reward} is made of; write its bundle with"
            " the release that assigned it"
        )
    held = io.BytesIO()
    with zipfile.ZipFile(held, "w", zipfile.ZIP_DEFLATED) as archive, reading(ledger.engine) as connection:
        for name, data in _parts(ledger, connection, rests, rests.evidence):
            entry = zipfile.ZipInfo(name, _DATE)
            entry.compress_type, entry.external_attr = zipfile.ZIP_DEFLATED, 0o644 << 16
            archive.writestr(entry, data)
    return held.getvalue()


def _parts(ledger: Ledger, connection: Connection, rests: Rests, evidence: Evidence) -> Iterator[tuple[str, bytes]]:
    about = {
        "ledger": ledger.identity,
        "head": str(RecordedHead(cut_now(connection), head_now(connection))),
        "manifests": list(connection.execute(_MANIFESTS).scalars()),
        "reward": rests.reward,
        "evidence": asdict(evidence),
    }
    yield "bundle.json", _json(about)
    yield "trace.json", _json(rests.trace)
    yield "verify.py", files("lapledger.ledger.proof.bundles").joinpath("bundle_verifier.py").read_bytes()
    for admission, frame in frames_at(ledger, connection, rests.places):
        record = encode(frame)
        name = f"frames/{frame.link.stream}.{frame.link.partition}.{admission}"
        yield f"{name}.arrow", record.payload
        yield f"{name}.json", _json(record.headers)
    for stream, partition in ((name, number) for name, count in PARTITIONS.items() for number in range(count)):
        digests = connection.execute(_DIGESTS, {"stream": stream, "partition": partition}).scalars()
        yield f"chains/{stream}.{partition}.txt", "".join(f"{digest}\n" for digest in digests).encode()
    for digest in sorted(rests.blobs):
        yield f"blobs/{digest}", ledger.blobs.get(digest)


def _json(value: Mapping[str, Any]) -> bytes:
    return (json.dumps(value, indent=1, ensure_ascii=False, default=str) + "\n").encode()
