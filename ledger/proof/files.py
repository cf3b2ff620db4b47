"""Checks the files beside the database: every blob against its name, every blob that an event names, and strays."""

from functools import partial

import pyarrow as pa
from sqlalchemy import text

from lapledger.ledger.codec.encodings import occurring, strings
from lapledger.ledger.errors import Fault
from lapledger.ledger.events import EventType
from lapledger.ledger.ordered_threads import in_order
from lapledger.ledger.proof.findings import Findings, frame_location
from lapledger.ledger.store.objects.blobs import Blobs
from lapledger.ledger.store.sql.engine import reading

_DELETE = "it may be deleted while nothing writes to the ledger"


class BlobCheck:
    """Recomputes all blobs once, then looks up every blob that an event names (columns whose name ends in `_blob`)."""

    def __init__(self, findings: Findings) -> None:
        self._findings = findings
        self._present = _checked_blobs(findings)

    @property
    def count(self) -> int:
        """Blobs stored, less those that went meanwhile."""
        return len(self._present)

    def take(self, declared: EventType, table: pa.Table) -> None:
        """Problems for blobs that these events name and nobody stored."""
        for name in declared.schema.names:
            if not name.endswith("_blob"):
                continue
            named = set(occurring(table[name].combine_chunks()).to_pylist()) - {None}
            for digest in sorted(named - self._present):
                self._missing(declared, table, name, digest)

    def _missing(self, declared: EventType, table: pa.Table, name: str, digest: str) -> None:
        row = table.slice(strings(table[name].combine_chunks()).index(digest).as_py(), 1)
        where = frame_location(*(row[column][0].as_py() for column in ("_stream", "_partition", "_admission")))
        self._findings.problem(f"blob {digest} is missing: {declared.name} names it in {name} ({where})")


def _checked_blobs(findings: Findings) -> set[str]:
    blobs = findings.ledger.blobs
    names = list(blobs.digests())
    checks = in_order(partial(_wrong, blobs, name) for name in names)
    present: set[str] = set()
    for number, (name, problem) in enumerate(zip(names, checks, strict=True), start=1):
        findings.progress("blobs", number, len(names))
        if problem is not None:
            present.add(name)
        if problem:
            findings.problem(problem)
    if gone := len(names) - len(present):
        findings.notes.append(f"{gone} blobs were removed meanwhile; those that an event names are reported")
    findings.notes += [f"{path} is no blob; {_DELETE}" for path in blobs.strays()]
    return present


def _wrong(blobs: Blobs, name: str, *, again: bool = False) -> str | None:
    """The problem with a listed blob; empty when it is intact, None when it is gone, as it may be if no event names it.

    Checked twice, as a collector may rename it for a moment.
    """
    try:
        if not blobs.is_intact(name):
            return f"blob {blobs.where(name)} was altered: its SHA-256 differs from its name"
    except Fault as fault:
        if not blobs.has(name):
            return None
        return str(fault) if again else _wrong(blobs, name, again=True)
    return ""


def note_orphans(findings: Findings) -> None:
    """Notes objects beside the segments that the ledger does not name: left by a sealing that was cut short, harmless.

    Names are looked up after the files, in a transaction of its own: a sealing may have ended since this one began.
    """
    segments = findings.ledger.segments
    names = [stored.name for stored in segments.listing()]
    with reading(findings.ledger.engine) as now:
        rows = now.execute(_NAMES).all()
    named = {f"{row.type}.v{row.version}/{row.name}.parquet" for row in rows}
    named |= {f"{row.type}.v{row.version}/{row.manifest}.json" for row in rows}
    strays = [segments.where(name) for name in names if name not in named]
    findings.notes += [f"{path} belongs to no segment of this ledger; {_DELETE}" for path in strays]


_NAMES = text("SELECT type, version, name, manifest FROM segment")
