"""Follows the chain of manifests: each against its position, its SQL rows, the frames it lists, and what it supersedes.

The rows in the segments themselves are recomputed in `ledger.proof.sealed`.
"""

import json
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from sqlalchemy import Row, text

from lapledger.ledger.codec.canonical import blob_digest
from lapledger.ledger.errors import Fault
from lapledger.ledger.events import EVENTS
from lapledger.ledger.proof.findings import Findings
from lapledger.ledger.proof.manifests import Manifest, Moved, Reached, parse, read_manifest
from lapledger.ledger.store.frame_rows import FRAME_SELECTION, FrameMeta, ranges_of
from lapledger.ledger.store.heads import NO_MANIFEST
from lapledger.ledger.store.quarantine import NAME
from lapledger.ledger.store.segments import Segment
from lapledger.ledger.store.sql.statements import SEGMENTS

_RANGES = text(
    "SELECT ordinal, stream, partition, type, version, first, last FROM segment_range"
    " ORDER BY ordinal, stream, partition"
)
_SUPERSEDED = text('SELECT ordinal, "by" FROM supersession ORDER BY ordinal')
_FRAMES = text(
    f"SELECT {FRAME_SELECTION} FROM frame f WHERE f.type = :type AND f.version = :version"  # noqa: S608
    " AND f.stream = :stream AND f.partition = :partition"
    " AND f.admission BETWEEN :first AND :last ORDER BY f.admission"
)


@dataclass(slots=True)
class Links:
    """The contents of the chain: its manifests' digests, and how far each (by digest) had come with every partition.

    `moved` is what each of them records of earlier streams, by (digest, stream, partition); `superseded` are ordinals
    of segments whose frames are in another one now.
    """

    digests: list[str] = field(default_factory=list)
    reached: list[tuple[str, Reached]] = field(default_factory=list)
    moved: dict[tuple[str, str, int], Moved] = field(default_factory=dict)
    segments: list[Segment] = field(default_factory=list)
    superseded: set[int] = field(default_factory=set)


def check_links(findings: Findings) -> Links:
    """The chain of segments according to SQL; problems where its rows contradict themselves. Reads no manifest."""
    links = Links()
    rows = findings.connection.execute(SEGMENTS, {"type": None, "version": None}).all()
    links.digests = [str(row.manifest) for row in rows]
    for number, row in enumerate(rows, start=1):
        with findings.guarded(f"row {number} of the list of segments"):
            segment = Segment.from_row(tuple(row))
            if row.admissions != json.dumps([list(span) for span in segment.admissions]):
                findings.problem(f"segment {segment.name}: its admissions are not written as the ledger writes them")
            if (segment.type, segment.version) not in EVENTS and (segment.type, segment.version) != (NAME, 1):
                findings.problem(f"segment {segment.name} is of the unknown type {segment.type} {segment.version}")
                continue
            if segment.ordinal != number:
                findings.problem(
                    f"segment {segment.name} has ordinal {segment.ordinal} in the chain, expected {number}"
                )
            links.segments.append(segment)
    links.superseded = {row.ordinal for row in findings.connection.execute(_SUPERSEDED)}
    return links


def manifests(findings: Findings, links: Links) -> Iterator[Manifest]:
    """Every manifest that could be read, compared with SQL and with those before it; fills `links`."""
    link = NO_MANIFEST
    by: dict[int, int] = {}
    ranges: list[tuple[object, ...]] = []
    for segment in links.segments:
        manifest = _read(findings, segment)
        kind = segment.type, segment.version
        ranges += [(segment.ordinal, *span[:2], *kind, *span[2:]) for span in segment.admissions]
        if manifest is not None:
            _check_manifest(findings, segment, manifest, link)
            links.reached += [(manifest.digest, reached) for reached in manifest.positions]
            links.moved |= {(manifest.digest, *reached[:2]): reached for reached in manifest.moved}
            by |= _check_superseded(findings, links, segment, manifest)
            yield manifest
        link = segment.manifest
    _compare_rows(findings, "segment_range", ranges, findings.connection.execute(_RANGES).all())
    _compare_rows(findings, "supersession", list(by.items()), findings.connection.execute(_SUPERSEDED).all())


def _read(findings: Findings, segment: Segment) -> Manifest | None:
    segments = findings.ledger.segments
    try:
        data = segments.manifest(segment)
        if blob_digest(data) != segment.manifest:
            where = segments.where(segments.manifest_name(segment))
            findings.problem(f"manifest {where} was altered: its SHA-256 differs from its name")
        return parse(data, segment.manifest)
    except Fault as fault:
        spans = ", ".join(f"{stream}/{part} {first} to {last}" for stream, part, first, last in segment.admissions)
        findings.problem(f"{fault} (its segment holds {segment.frames} frames of {segment.type}: {spans})")
        return None


def _check_manifest(findings: Findings, segment: Segment, manifest: Manifest, link: str) -> None:
    """Problems where a manifest contradicts its row, its position in the chain, or itself."""
    where = f"manifest {findings.ledger.segments.where(findings.ledger.segments.manifest_name(segment))}"
    first, last = manifest.together
    if manifest.as_segment != segment or manifest.previous != link or not first <= manifest.ordinal <= last:
        findings.problem(f"{where} does not match its position in the ledger's chain of segments")
    if manifest.ledger != findings.ledger.identity:
        findings.problem(f"{where} belongs to the ledger {manifest.ledger!r}")
    rows = sum(meta.rows for meta in manifest.frames)
    if manifest.admissions != tuple(ranges_of(manifest.frames)) or manifest.rows != rows:
        findings.problem(f"{where}: its admissions or rows are not those of the frames that it lists")
    order = [meta.replay_order for meta in manifest.frames]
    admitted = [meta[:3] for meta in manifest.frames]
    if any(a >= b for a, b in pairwise(order)) and any(a >= b for a, b in pairwise(admitted)):
        findings.problem(f"{where} lists its frames neither in replay order nor in order of admission")


def compare_frames(findings: Findings, manifest: Manifest) -> None:
    """Problems where the table `frame` lacks or contradicts a frame that a manifest lists."""
    metas = sorted(manifest.frames)
    at = 0
    for stream, partition, first, last in manifest.admissions:
        bound = {"stream": stream, "partition": partition, "first": first, "last": last}
        rows = findings.connection.execute(_FRAMES, bound | {"type": manifest.type, "version": manifest.version})
        for row in rows:
            while at < len(metas) and metas[at][:3] < tuple(row[:3]):
                _lost(findings, manifest, metas[at])
                at += 1
            if at < len(metas) and metas[at][:3] == tuple(row[:3]):
                if metas[at] != tuple(row):
                    where, difference = findings.describe_frame(*metas[at][:3]), _differing(metas[at], row)
                    findings.problem(
                        f"{where} differs between its manifest {manifest.digest} and the SQL database: {difference}"
                    )
                at += 1
    for meta in metas[at:]:
        _lost(findings, manifest, meta)


def _lost(findings: Findings, manifest: Manifest, meta: FrameMeta) -> None:
    findings.problem(
        f"{meta.location} ({manifest.type} of {meta.key!r}, {meta.rows} events) is listed in the manifest of segment"
        f" {manifest.segment}, the SQL database holds no frame of that type there"
    )


def _differing(meta: FrameMeta, row: Row[tuple[object, ...]]) -> str:
    pairs = zip(FrameMeta._fields, meta, row, strict=True)
    return ", ".join(f"{name} {mine!r} against {theirs!r}"[:200] for name, mine, theirs in pairs if mine != theirs)


def _check_superseded(findings: Findings, links: Links, segment: Segment, manifest: Manifest) -> dict[int, int]:
    """Superseded ordinal -> this ordinal; a problem unless it holds exactly the frames of what it supersedes."""
    older = {
        older_segment.manifest: older_segment
        for older_segment in links.segments
        if older_segment.ordinal < segment.ordinal
    }
    missing = {meta[:3]: meta for meta in manifest.frames} if manifest.supersedes else {}
    extra: list[FrameMeta] = []
    by: dict[int, int] = {}
    for name in manifest.supersedes:
        if name not in older:
            findings.problem(f"segment {segment.name} supersedes {name}, which is no segment before it")
            continue
        by[older[name].ordinal] = segment.ordinal
        try:
            frames = read_manifest(findings.ledger.segments, older[name]).frames
        except Fault as fault:
            findings.problem(f"what segment {segment.name} supersedes cannot be compared: {fault}")
            continue
        extra += [meta for meta in frames if missing.pop(meta[:3], None) != meta]
    differing = [*((meta, "lacks or changed it") for meta in extra), *((meta, "adds it") for meta in missing.values())]
    for meta, change in differing[:1]:
        findings.problem(
            f"{meta.location}: segment {segment.name} {change}, compared with the segments that it supersedes"
        )
    return by


def _compare_rows(
    findings: Findings, table: str, due: Sequence[tuple[object, ...]], held: Sequence[Row[tuple[object, ...]]]
) -> None:
    """A problem for every row that a table has too many or too few, compared with the manifests."""
    wanted: Counter[tuple[object, ...]] = Counter(due)
    stored: Counter[tuple[object, ...]] = Counter(tuple(row) for row in held)
    for row in wanted - stored:
        findings.problem(f"table {table}: the row {row} is missing, although a manifest lists it")
    for row in stored - wanted:
        findings.problem(f"table {table}: no manifest lists the row {row}")
