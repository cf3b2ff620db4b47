"""Checks the files beside the database: every blob against its name, every blob that an event names, and strays."""

import pyarrow as pa
import pyarrow.compute as pc

from ledger.errors import Fault
from ledger.events import EventType
from ledger.proof.findings import Findings, place
from ledger.store.engine import reading
from ledger.store.reader import segment_rows
from ledger.store.segments import file_digest

_DELETE = "it may be deleted while nothing writes to the ledger"


class BlobCheck:
    """Recomputes all blobs once, then looks up every blob that an event names (columns whose name ends in `_blob`)."""

    def __init__(self, found: Findings) -> None:
        self._found = found
        self._present = _checked_blobs(found)

    @property
    def count(self) -> int:
        """Blobs stored."""
        return len(self._present)

    def take(self, declared: EventType, table: pa.Table) -> None:
        """Problems for blobs that these events name and nobody stored."""
        for name in declared.schema.names:
            if not name.endswith("_blob"):
                continue
            for digest in pc.unique(table[name]).drop_null().to_pylist():
                if digest not in self._present:
                    self._missing(declared, table, name, digest)

    def _missing(self, declared: EventType, table: pa.Table, name: str, digest: str) -> None:
        row = table.slice(pc.index(table[name], digest).as_py(), 1)
        where = place(*(row[column][0].as_py() for column in ("_stream", "_partition", "_admission")))
        self._found.problem(f"blob {digest} is missing: {declared.name} names it in {name} ({where})")


def _checked_blobs(found: Findings) -> set[str]:
    blobs = found.ledger.blobs
    names = list(blobs.digests())
    for number, name in enumerate(names, start=1):
        found.progress("blobs", number, len(names))
        try:
            altered = file_digest(blobs.path(name)) != name
        except Fault as fault:
            found.problem(str(fault))
            continue
        if altered:
            found.problem(f"blob {blobs.path(name)} was altered: its SHA-256 differs from its name")
    found.notes += [f"{path} is no blob; {_DELETE}" for path in blobs.strays()]
    return set(names)


def note_orphans(found: Findings) -> None:
    """Notes segment files that the ledger does not name: left by a sealing that was cut short, harmless.

    Names are looked up after the files, in a transaction of its own: a sealing may have ended since this one began.
    """
    segments = found.ledger.segments
    files = sorted(path for path in segments.folder.rglob("*") if path.is_file())
    with reading(found.ledger.engine) as now:
        sealed = segment_rows(now)
    named = {segments.path(one.type, one.version, one.name) for one in sealed}
    named |= {segments.manifest_path(one.type, one.version, one.manifest) for one in sealed}
    strays = [path for path in files if path not in named]
    found.notes += [f"{path} belongs to no segment of this ledger; {_DELETE}" for path in strays]
