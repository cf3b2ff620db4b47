"""Finds the chain of manifests among the objects of a store, without SQL: for a rebuild of the database.

A sealing that was cut short, or was slower than another, leaves manifests that nobody named: then the chain forks, and
several ends are possible. Every one of them holds true facts; which one was current only SQL knew, or a recorded head.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from lapledger.ledger.errors import Fault, UserError
from lapledger.ledger.proof.chains import PartitionHeads, is_written_head
from lapledger.ledger.proof.heads import RecordedHead
from lapledger.ledger.proof.manifests import Manifest, parse, read_manifest
from lapledger.ledger.store.heads import NO_MANIFEST, first_head, next_head
from lapledger.ledger.store.objects.objects import Stored
from lapledger.ledger.store.segments import Segment, Segments
from lapledger.ledger.streams.base import Partition

_SUFFIX = ".json"
_RESTORE = "restore it from a copy of the ledger"
_OR_GIVE_HEAD = "or give a head that was recorded before it was sealed"


@dataclass(frozen=True, slots=True)
class Candidate:
    """One possible chain: its manifests, without their frames, in order; and when its last one was stored."""

    manifests: tuple[Manifest, ...]
    modified_ms: int

    @property
    def superseded(self) -> dict[str, int]:
        """Manifest of each superseded segment -> the ordinal of the one that took its frames."""
        return {name: manifest.ordinal for manifest in self.manifests for name in manifest.supersedes}

    @property
    def live(self) -> list[Manifest]:
        """The manifests whose segments hold frames now."""
        gone = self.superseded
        return [manifest for manifest in self.manifests if manifest.digest not in gone]

    @property
    def covered(self) -> dict[Partition, tuple[int, int]]:
        """Admissions sealed and next position of each partition."""
        return {
            position[:2]: (position.admissions, position.next_position) for position in self.manifests[-1].positions
        }

    @property
    def description(self) -> str:
        """The chain in messages."""
        frames = sum(admissions for admissions, _ in self.covered.values())
        last = self.manifests[-1]
        return f"the chain of {len(self.manifests)} manifests that ends with {last.digest} and covers {frames} frames"


@dataclass(frozen=True, slots=True)
class ChosenChain:
    """The chain that was chosen, the ends that were not, and whether a recorded head decided."""

    chain: Candidate
    rejected: tuple[str, ...]
    proven: bool


def find_chain(segments: Segments, written: RecordedHead | None) -> ChosenChain:
    """The chain among the stored manifests: the one that gives the head, else the one that covers most.

    Among those that cover the same, one whose segments are all there, then the longest, then the latest. UserError when
    nothing was sealed; Fault when a manifest is damaged or missing, or no chain gives the head.
    """
    listing = segments.listing()
    stored = {candidate.name for candidate in listing}
    read = _read(segments, [candidate for candidate in listing if candidate.name.endswith(_SUFFIX)])
    if not read:
        raise UserError("there are no segments to rebuild from; a ledger that sealed nothing is read from its stream")
    candidates, cut_short = _candidates(read)
    fitting = [candidate for candidate in candidates if _gives(segments, candidate, written)] if written else []
    if not fitting:
        _check_broken(read, candidates)
        if written and not any(_is_unsealed(candidate, written) for candidate in candidates):
            raise Fault(f"no chain of manifests gives the head {written}; one of them is missing; {_RESTORE}")
    ranked = sorted(fitting or candidates, key=lambda candidate: _rank(segments, candidate, stored))
    chosen = ranked[-1]
    _check_complete(segments, chosen, stored)
    _check_agree(chosen, ranked)
    rejected = [candidate.description for candidate in candidates if candidate is not chosen]
    return ChosenChain(chosen, (*rejected, *cut_short), bool(fitting))


@dataclass(frozen=True, slots=True)
class _Read:
    """Every intact manifest, without its frames; when it was stored; and what is wrong with the others."""

    manifests: Mapping[str, Manifest]
    modified_ms: Mapping[str, int]
    damaged: Mapping[str, str]

    def __bool__(self) -> bool:
        return bool(self.manifests or self.damaged)


def _read(segments: Segments, listing: Sequence[Stored]) -> _Read:
    manifests: dict[str, Manifest] = {}
    damaged: dict[str, str] = {}
    for stored_object in listing:
        digest = _digest_of(stored_object.name)
        try:
            manifests[digest] = replace(read_manifest(segments, _named(stored_object.name)), frames=[])
        except Fault as fault:
            damaged[digest] = str(fault)
    return _Read(
        manifests, {_digest_of(stored_object.name): stored_object.modified_ms for stored_object in listing}, damaged
    )


def _digest_of(name: str) -> str:
    return name.rsplit("/", 1)[-1].removesuffix(_SUFFIX)


def _named(name: str) -> Segment:
    """A segment with only what the name of its manifest tells."""
    kind, _, version = name.rsplit("/", 1)[0].rpartition(".v")
    if not version.isdigit():
        raise Fault(f"{name} is no manifest of a ledger; move it away")
    return Segment(0, "", _digest_of(name), kind, int(version), 0, 0, 0, ())


def _candidates(read: _Read) -> tuple[list[Candidate], list[str]]:
    """Every chain from the first manifest to an end where all that was sealed together is there; and the rest."""
    followed = {manifest.previous for manifest in read.manifests.values()}
    paths: dict[tuple[str, ...], Candidate] = {}
    cut_short: list[str] = []
    for digest in sorted(read.manifests.keys() - followed):
        path = _path(read, digest)
        complete = _complete(path)
        names = tuple(manifest.digest for manifest in complete)
        if len(complete) < len(path):
            first, last = path[-1].together
            cut_short.append(
                f"a sealing of positions {first} to {last} that ends with {digest}, at position {len(path)}"
            )
        if complete:
            paths[names] = Candidate(tuple(complete), read.modified_ms[names[-1]])
    ends = [candidate for names, candidate in paths.items() if not any(_begins(longer, names) for longer in paths)]
    return ends, cut_short


def _begins(longer: tuple[str, ...], names: tuple[str, ...]) -> bool:
    return len(longer) > len(names) and longer[: len(names)] == names


def _path(read: _Read, digest: str) -> list[Manifest]:
    """The manifests from the first one to this; empty when the way back breaks off."""
    path: list[Manifest] = []
    while digest != NO_MANIFEST:
        if digest not in read.manifests:
            return []
        path.append(read.manifests[digest])
        digest = path[-1].previous
    return path[::-1]


def _complete(path: list[Manifest]) -> list[Manifest]:
    """The path without manifests at its end whose sealing had not stored all of its own."""
    while path and path[-1].ordinal != path[-1].together[1]:
        path = path[: path[-1].together[0] - 1]
    return path


def _check_broken(read: _Read, candidates: Sequence[Candidate]) -> None:
    """Fault when a chain was longer than is left, or may have been; and when one does not fit together."""
    longest = max((len(manifest.manifests) for manifest in candidates), default=0)
    later = [
        manifest
        for manifest in read.manifests.values()
        if manifest.ordinal > longest and manifest.previous not in read.manifests
    ]
    for manifest in sorted(
        (manifest for manifest in later if manifest.previous != NO_MANIFEST), key=lambda manifest: manifest.ordinal
    )[:1]:
        why = read.damaged.get(manifest.previous, f"manifest {manifest.previous} is missing")
        raise Fault(
            f"the chain of segments is broken at position {manifest.ordinal - 1}: {why}; {_RESTORE}, {_OR_GIVE_HEAD}"
        )
    for why in read.damaged.values():
        raise Fault(f"{why}; {_RESTORE}, {_OR_GIVE_HEAD}")
    if not candidates:
        raise Fault("no sealing has stored all of its manifests; the stream still holds what this ledger admitted")
    for candidate in candidates:
        for ordinal, manifest in enumerate(candidate.manifests, start=1):
            first, last = manifest.together
            if (
                manifest.ordinal != ordinal
                or not first <= ordinal <= last
                or manifest.ledger != candidate.manifests[0].ledger
            ):
                raise Fault(
                    f"manifest {manifest.digest} does not belong at position {ordinal} of its chain; {_RESTORE}"
                )


def _rank(segments: Segments, candidate: Candidate, stored: set[str]) -> tuple[tuple[int, int], bool, int, int, str]:
    covered = candidate.covered.values()
    sums = sum(admissions for admissions, _ in covered), sum(position for _, position in covered)
    complete = next(_missing(segments, candidate, stored), None) is None
    return sums, complete, len(candidate.manifests), candidate.modified_ms, candidate.manifests[-1].digest


def _missing(segments: Segments, candidate: Candidate, stored: set[str]) -> Iterator[str]:
    names = (segments.name(manifest.as_segment) for manifest in candidate.live)
    return (name for name in names if name not in stored)


def _check_complete(segments: Segments, chosen: Candidate, stored: set[str]) -> None:
    for name in _missing(segments, chosen, stored):
        raise Fault(f"segment {segments.where(name)} of {chosen.description} is missing; {_RESTORE}")


def _check_agree(chosen: Candidate, ranked: Sequence[Candidate]) -> None:
    """Fault when another end holds what the chosen one lacks: two plans of one ledger never cover so."""
    for candidate in ranked:
        for partition, (admissions, _) in candidate.covered.items():
            if admissions > chosen.covered.get(partition, (0, 0))[0]:
                raise Fault(
                    f"{chosen.description} and {candidate.description} contradict each other about"
                    f" {partition[0]}/{partition[1]}; choose one with --head"
                )


def _is_unsealed(candidate: Candidate, written: RecordedHead) -> bool:
    """True when the head covers frames that this chain had not sealed, so that only the stream can prove it."""
    return any(written.cut.at(*partition) > admissions for partition, (admissions, _) in candidate.covered.items())


def _gives(segments: Segments, candidate: Candidate, written: RecordedHead) -> bool:
    if _is_unsealed(candidate, written):
        return False
    digests = [manifest.digest for manifest in candidate.manifests]
    return is_written_head(_heads_at(segments, candidate, written), digests, written.head)


def _heads_at(segments: Segments, candidate: Candidate, written: RecordedHead) -> PartitionHeads:
    """The heads of all partitions at the cut of a written head, from the frames that the manifests list."""
    frames: dict[Partition, list[tuple[int, str]]] = {partition: [] for partition in candidate.covered}
    for manifest in candidate.live:
        parsed = parse(segments.manifest(manifest.as_segment), manifest.digest)
        for meta in parsed.frames:
            partition = meta.stream, meta.partition
            if partition in frames and meta.admission <= written.cut.at(*partition):
                frames[partition].append((meta.admission, meta.digest))
    heads: PartitionHeads = {}
    for partition, admitted in frames.items():
        head = first_head(candidate.manifests[0].ledger, *partition)
        for _, digest in sorted(admitted):
            head = next_head(head, digest)
        heads[partition] = len(admitted), head
    return heads
