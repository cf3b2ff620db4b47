"""Finds the chain of manifests among the objects of a store, without SQL: for a rebuild of the database.

A sealing that was cut short, or was slower than another, leaves manifests that nobody named: then the chain forks, and
several ends are possible. Every one of them holds true facts; which was named only SQL knew, or a head written down.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from lapledger.ledger.errors import Fault, UserError
from lapledger.ledger.proof.chains import PartitionHeads, is_written_head
from lapledger.ledger.proof.heads import Written
from lapledger.ledger.proof.manifests import Manifest, parse, read_manifest
from lapledger.ledger.store.heads import NO_MANIFEST, first_head, next_head
from lapledger.ledger.store.objects.objects import Stored
from lapledger.ledger.store.segments import Segment, Segments

_SUFFIX = ".json"
_RESTORE = "restore it from a copy of the ledger"
_OR_SAY = "or give a head that was written down while it did not count"


@dataclass(frozen=True, slots=True)
class Candidate:
    """One possible chain: its manifests, without their frames, in order; and when its last one was stored."""

    manifests: tuple[Manifest, ...]
    modified_ms: int

    @property
    def superseded(self) -> dict[str, int]:
        """Manifest of each superseded segment -> the place of the one that took its frames."""
        return {name: manifest.ordinal for manifest in self.manifests for name in manifest.supersedes}

    @property
    def live(self) -> list[Manifest]:
        """The manifests whose segments hold frames now."""
        gone = self.superseded
        return [manifest for manifest in self.manifests if manifest.digest not in gone]

    @property
    def covered(self) -> dict[tuple[str, int], tuple[int, int]]:
        """Admissions sealed and next position of each partition."""
        return {one[:2]: (one.admissions, one.next_position) for one in self.manifests[-1].positions}

    @property
    def words(self) -> str:
        """How a message names it."""
        frames = sum(admissions for admissions, _ in self.covered.values())
        last = self.manifests[-1]
        return f"the chain of {len(self.manifests)} manifests that ends with {last.digest} and covers {frames} frames"


@dataclass(frozen=True, slots=True)
class Found:
    """The chain that was chosen, the ends that were not, and whether a head written down decided."""

    chain: Candidate
    others: tuple[str, ...]
    proven: bool


def find_chain(segments: Segments, written: Written | None) -> Found:
    """The chain among the stored manifests: the one that gives the head, else the one that covers most.

    Among those that cover the same, one whose segments are all there, then the longest, then the latest. UserError when
    nothing was sealed; Fault when a manifest is damaged or missing, or no chain gives the head.
    """
    listing = segments.listing()
    stored = {one.name for one in listing}
    read = _read(segments, [one for one in listing if one.name.endswith(_SUFFIX)])
    if not read:
        raise UserError("there are no segments to rebuild from; a ledger that sealed nothing is read from its stream")
    candidates, cut_short = _candidates(read)
    fitting = [one for one in candidates if _gives(segments, one, written)] if written else []
    if not fitting:
        _check_broken(read, candidates)
        if written and not any(_is_beyond(one, written) for one in candidates):
            raise Fault(f"no chain of manifests gives the head {written}; one of them is missing; {_RESTORE}")
    ranked = sorted(fitting or candidates, key=lambda one: _rank(segments, one, stored))
    chosen = ranked[-1]
    _check_whole(segments, chosen, stored)
    _check_agree(chosen, ranked)
    others = [one.words for one in candidates if one is not chosen]
    return Found(chosen, (*others, *cut_short), bool(fitting))


@dataclass(frozen=True, slots=True)
class _Read:
    """Every manifest that is whole, without its frames; when it was stored; and what is wrong with the others."""

    manifests: Mapping[str, Manifest]
    modified_ms: Mapping[str, int]
    damaged: Mapping[str, str]

    def __bool__(self) -> bool:
        return bool(self.manifests or self.damaged)


def _read(segments: Segments, listing: Sequence[Stored]) -> _Read:
    manifests: dict[str, Manifest] = {}
    damaged: dict[str, str] = {}
    for one in listing:
        digest = _digest_of(one.name)
        try:
            manifests[digest] = replace(read_manifest(segments, _named(one.name)), frames=[])
        except Fault as fault:
            damaged[digest] = str(fault)
    return _Read(manifests, {_digest_of(one.name): one.modified_ms for one in listing}, damaged)


def _digest_of(name: str) -> str:
    return name.rsplit("/", 1)[-1].removesuffix(_SUFFIX)


def _named(name: str) -> Segment:
    """A segment that has only what the name of its manifest says."""
    kind, _, version = name.rsplit("/", 1)[0].rpartition(".v")
    if not version.isdigit():
        raise Fault(f"{name} is no manifest of a ledger; move it away")
    return Segment(0, "", _digest_of(name), kind, int(version), 0, 0, 0, ())


def _candidates(read: _Read) -> tuple[list[Candidate], list[str]]:
    """Every chain from the first manifest to an end where all that was sealed together is there; words for the rest."""
    followed = {manifest.previous for manifest in read.manifests.values()}
    paths: dict[tuple[str, ...], Candidate] = {}
    cut_short: list[str] = []
    for digest in sorted(read.manifests.keys() - followed):
        path = _path(read, digest)
        whole = _complete(path)
        names = tuple(manifest.digest for manifest in whole)
        if len(whole) < len(path):
            first, last = path[-1].together
            cut_short.append(f"a sealing of places {first} to {last} that ends with {digest}, at place {len(path)}")
        if whole:
            paths[names] = Candidate(tuple(whole), read.modified_ms[names[-1]])
    ends = [one for names, one in paths.items() if not any(_begins(other, names) for other in paths)]
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
    longest = max((len(one.manifests) for one in candidates), default=0)
    beyond = [one for one in read.manifests.values() if one.ordinal > longest and one.previous not in read.manifests]
    for one in sorted((one for one in beyond if one.previous != NO_MANIFEST), key=lambda one: one.ordinal)[:1]:
        why = read.damaged.get(one.previous, f"manifest {one.previous} is missing")
        raise Fault(f"the chain of segments is broken at place {one.ordinal - 1}: {why}; {_RESTORE}, {_OR_SAY}")
    for why in read.damaged.values():
        raise Fault(f"{why}; {_RESTORE}, {_OR_SAY}")
    if not candidates:
        raise Fault("no sealing has stored all of its manifests; the stream still holds what this ledger admitted")
    for candidate in candidates:
        for place, one in enumerate(candidate.manifests, start=1):
            first, last = one.together
            if one.ordinal != place or not first <= place <= last or one.ledger != candidate.manifests[0].ledger:
                raise Fault(f"manifest {one.digest} does not belong at place {place} of its chain; {_RESTORE}")


def _rank(segments: Segments, one: Candidate, stored: set[str]) -> tuple[tuple[int, int], bool, int, int, str]:
    covered = one.covered.values()
    sums = sum(admissions for admissions, _ in covered), sum(position for _, position in covered)
    whole = next(_missing(segments, one, stored), None) is None
    return sums, whole, len(one.manifests), one.modified_ms, one.manifests[-1].digest


def _missing(segments: Segments, one: Candidate, stored: set[str]) -> Iterator[str]:
    names = (segments.name(manifest.as_segment) for manifest in one.live)
    return (name for name in names if name not in stored)


def _check_whole(segments: Segments, chosen: Candidate, stored: set[str]) -> None:
    for name in _missing(segments, chosen, stored):
        raise Fault(f"segment {segments.where(name)} of {chosen.words} is missing; {_RESTORE}")


def _check_agree(chosen: Candidate, ranked: Sequence[Candidate]) -> None:
    """Fault when another end holds what the chosen one lacks: two plans of one ledger never cover so."""
    for other in ranked:
        for place, (admissions, _) in other.covered.items():
            if admissions > chosen.covered.get(place, (0, 0))[0]:
                raise Fault(
                    f"{chosen.words} and {other.words} contradict each other about {place[0]}/{place[1]}; say with"
                    " --head which one is meant"
                )


def _is_beyond(one: Candidate, written: Written) -> bool:
    """True when the head covers frames that this chain had not sealed, so that only the stream can prove it."""
    return any(written.cut.at(*place) > admissions for place, (admissions, _) in one.covered.items())


def _gives(segments: Segments, one: Candidate, written: Written) -> bool:
    if _is_beyond(one, written):
        return False
    digests = [manifest.digest for manifest in one.manifests]
    return is_written_head(_heads_at(segments, one, written), digests, written.head)


def _heads_at(segments: Segments, one: Candidate, written: Written) -> PartitionHeads:
    """The heads of all partitions at the cut of a written head, from the frames that the manifests list."""
    frames: dict[tuple[str, int], list[tuple[int, str]]] = {place: [] for place in one.covered}
    for manifest in one.live:
        whole = parse(segments.manifest(manifest.as_segment), manifest.digest)
        for meta in whole.frames:
            place = meta.stream, meta.partition
            if place in frames and meta.admission <= written.cut.at(*place):
                frames[place].append((meta.admission, meta.digest))
    heads: PartitionHeads = {}
    for place, found in frames.items():
        head = first_head(one.manifests[0].ledger, *place)
        for _, digest in sorted(found):
            head = next_head(head, digest)
        heads[place] = len(found), head
    return heads
