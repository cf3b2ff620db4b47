"""Garbage collection: removes unreferenced files and superseded segments, after proof and a grace period.

What the ledger names is asked after the files were listed, so that a file of a seal under way is never an orphan; the
grace period protects what a producer has put and not named yet; and each file is looked at again right before it goes.
"""

import re
from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow.compute as pc
from sqlalchemy import text

from lapledger.consumers.storage.segment_reader import pieces_of
from lapledger.ledger.errors import Fault
from lapledger.ledger.events import EVENTS
from lapledger.ledger.proof.manifests import read_manifest
from lapledger.ledger.store.frame_rows import FrameMeta
from lapledger.ledger.store.objects.blobs import Blobs
from lapledger.ledger.store.open_ledger import Ledger
from lapledger.ledger.store.quarantine import PAGE
from lapledger.ledger.store.reader import events, segment_rows
from lapledger.ledger.store.segments import Segment, Segments
from lapledger.ledger.store.sql.engine import reading

GRACE_MS = 7 * 24 * 3600 * 1000

_DIGEST = re.compile(r"[0-9a-f]{64}")
_DIGITS = re.compile(rb"(?=([0-9a-f]{64}))")
"""Every offset at which a digest may begin: in Arrow's buffers one text follows another without a gap."""

_START, _OCTETS = 8, 32
"""Octets of a digest by which it is looked for, and all of them."""


@dataclass(frozen=True, slots=True)
class Garbage:
    """One file that may go: its store (`segments` or `blobs`), name, bytes, and why."""

    store: str
    name: str
    bytes: int
    reason: str
    modified_ms: int


@dataclass(frozen=True, slots=True)
class GracePeriod:
    """The time now and the grace period, both in milliseconds."""

    now_ms: int
    grace_ms: int = GRACE_MS

    @property
    def until_ms(self) -> int:
        """What is younger stays."""
        return self.now_ms - self.grace_ms


def find_garbage(ledger: Ledger, grace: GracePeriod, *, with_blobs: bool = True) -> list[Garbage]:
    """The files that may be removed now, superseded segments only where the one that took their place is proven.

    Leave blobs out while the stream holds records that were not admitted: they may name some. Fault when a proof
    fails, or events are of a type that only a newer release knows: nothing is removed from such a ledger.
    """
    _refuse_unknown_types(ledger)
    return [*_segments(ledger, grace), *(_blobs(ledger, grace) if with_blobs else ())]


def collect(ledger: Ledger, garbage: Sequence[Garbage]) -> list[Garbage]:
    """Removes the files; those that were removed. One that was stored again since it was found stays.

    Each is looked at right before it goes; `ledger.store.objects.objects.remove_old` says what can still be lost.
    """
    stores: Mapping[str, Segments | Blobs] = {"segments": ledger.segments, "blobs": ledger.blobs}
    return [file for file in garbage if stores[file.store].remove_old(file.name, file.modified_ms)]


def _refuse_unknown_types(ledger: Ledger) -> None:
    with reading(ledger.engine) as connection:
        held = connection.execute(text("SELECT DISTINCT type, version FROM frame ORDER BY type, version")).all()
    for name, version in held:
        if (name, version) not in EVENTS:
            raise Fault(f"the ledger holds events {name} {version}, unknown here; upgrade first, nothing was removed")


@dataclass(frozen=True, slots=True)
class _Sealed:
    """What SQL says of the segments, asked after their files were listed."""

    rows: list[Segment]
    gone: Mapping[int, tuple[int, int]]
    """Ordinal of a superseded segment -> the one that superseded it, and when."""

    def is_over(self, segment: Segment, until_ms: int) -> bool:
        """True when the segment was superseded no later than `until_ms`."""
        return segment.ordinal in self.gone and self.gone[segment.ordinal][1] <= until_ms

    def heir(self, ordinal: int) -> int:
        """The segment that holds its frames now."""
        while ordinal in self.gone:
            ordinal = self.gone[ordinal][0]
        return ordinal


def _segments(ledger: Ledger, grace: GracePeriod) -> Iterator[Garbage]:
    listing = ledger.segments.listing()
    with reading(ledger.engine) as connection:
        gone = connection.execute(text('SELECT ordinal, "by", since FROM supersession')).all()
        sealed = _Sealed(segment_rows(connection), {row.ordinal: (row.by, row.since) for row in gone})
    files = {ledger.segments.name(segment): segment for segment in sealed.rows}
    named = {*files, *(ledger.segments.manifest_name(segment) for segment in sealed.rows)}
    for stored in listing:
        if stored.name not in named and stored.modified_ms <= grace.until_ms:
            yield Garbage("segments", stored.name, stored.bytes, "no segment of this ledger", stored.modified_ms)
    superseded = [
        stored for stored in listing if stored.name in files and sealed.is_over(files[stored.name], grace.until_ms)
    ]
    _prove(ledger, sealed, [files[stored.name] for stored in superseded])
    for stored in superseded:
        heir = sealed.heir(files[stored.name].ordinal)
        reason = f"its frames lie in segment {heir}, which was proven"
        yield Garbage("segments", stored.name, stored.bytes, reason, stored.modified_ms)


def _prove(ledger: Ledger, sealed: _Sealed, superseded: Sequence[Segment]) -> None:
    """Returns when the heirs of these segments are whole and hold all their frames, each with its digest recomputed."""
    by_ordinal = {segment.ordinal: segment for segment in sealed.rows}
    held: dict[int, set[FrameMeta]] = {}
    for segment in superseded:
        heir = sealed.heir(segment.ordinal)
        if heir not in held:
            held[heir] = {meta for meta, _ in pieces_of(ledger, by_ordinal[heir])}
            if not ledger.segments.is_intact(by_ordinal[heir]):
                raise Fault(f"segment {by_ordinal[heir].name} was altered; nothing was removed; run `lap verify`")
        if not held[heir].issuperset(read_manifest(ledger.segments, segment).frames):
            raise Fault(
                f"segment {by_ordinal[heir].name} does not hold what it supersedes; nothing was removed;"
                " run `lap verify`"
            )


def _blobs(ledger: Ledger, grace: GracePeriod) -> Iterator[Garbage]:
    listing = [file for file in ledger.blobs.listing() if file.modified_ms <= grace.until_ms]
    if not listing:
        return
    digests = {stored.name: stored.name.rpartition("/")[2] for stored in listing}
    named = named_blobs(ledger, {digest for digest in digests.values() if _DIGEST.fullmatch(digest)})
    for stored in listing:
        if digests[stored.name] not in named:
            yield Garbage("blobs", stored.name, stored.bytes, "no event names it", stored.modified_ms)


def named_blobs(ledger: Ledger, among: Set[str]) -> set[str]:
    """Those of some digests that an admitted event names, or that stand anywhere in the quarantine.

    A retry may admit what is quarantined, and it may be of a type that is not known yet: its bytes are searched.
    """
    named: set[str] = set()
    cut = ledger.cut()
    for (name, version), declared in EVENTS.items():
        columns = [column.name for column in declared.columns if column.name.endswith("_blob")]
        if columns:
            table = events(ledger, name, version, cut, columns=columns, in_order=False)
            for column in columns:
                named.update(pc.unique(table[column]).drop_null().to_pylist())
    return (named & among) | _quarantined(ledger, among)


def _quarantined(ledger: Ledger, among: Set[str]) -> set[str]:
    """Those that stand in a payload in either form that a frame has for them: as digits, or as octets.

    The octets of all are looked for at once, by the first eight.
    """
    if not among:
        return set()
    waiting = text("SELECT payload FROM quarantine WHERE id NOT IN (SELECT id FROM quarantine_retry)")
    starts = np.unique(np.array([int(digest[: 2 * _START], 16) for digest in among], dtype=">u8"))
    named: set[str] = set()
    with reading(ledger.engine) as connection:
        for payload in connection.execute(waiting, execution_options={"yield_per": PAGE}).scalars():
            named.update(among & {bytes(payload[at : at + _OCTETS]).hex() for at in _positions(payload, starts)})
            named.update(digest for match in _DIGITS.finditer(payload) if (digest := match[1].decode()) in among)
    return named


def _positions(payload: bytes, starts: npt.NDArray[np.uint64]) -> Iterator[int]:
    """Where eight octets stand that are among `starts` [sorted], at any alignment."""
    for shift in range(min(_START, len(payload) - _START + 1)):
        octets = np.frombuffer(payload, ">u8", (len(payload) - shift) // _START, shift)
        near = np.minimum(np.searchsorted(starts, octets), len(starts) - 1)
        yield from (shift + _START * np.flatnonzero(starts[near] == octets)).tolist()
