"""Whether a decoded frame is admitted: the rules of producer chains, as plain decisions on what is known of a chain.

Pure: the sink loads what is known, calls this, and writes the decision.
"""

from dataclasses import dataclass, field

from lapledger.ledger.codec.encodings import occurring
from lapledger.ledger.frames.frame import Frame, FrameError
from lapledger.ledger.streams.producer import partition_of


@dataclass(slots=True)
class Chain:
    """What is known of one producer chain (epoch, stream, partition) while a batch is decided.

    `known` maps the sequences around the batch to (digest, previous digest) of admitted frames; `end` is the sequence
    after the largest admitted one; `gaps` are the open runs (first, last) of missing sequences below it.
    """

    known: dict[int, tuple[str, str]] = field(default_factory=dict)
    end: int = 0
    gaps: list[tuple[int, int]] = field(default_factory=list)

    def is_new(self, sequence: int, previous: str, digest: str) -> bool:
        """True when the frame extends the chain or fills a gap, False when it is a duplicate.

        FrameError "fork" when another frame has this sequence, or an admitted neighbour does not link to this one.
        """
        if sequence in self.known:
            if self.known[sequence][0] == digest:
                return False
            raise FrameError("fork", f"sequence {sequence} was admitted before with another digest")
        before, after = self.known.get(sequence - 1), self.known.get(sequence + 1)
        if before is not None and before[0] != previous:
            raise FrameError("fork", f"sequence {sequence} does not follow the admitted sequence {sequence - 1}")
        if after is not None and after[1] != digest:
            raise FrameError("fork", f"the admitted sequence {sequence + 1} follows another sequence {sequence}")
        return True

    def admit(self, sequence: int, previous: str, digest: str) -> None:
        """Takes a new frame into the chain: opens a gap before it, or fills its slot in one."""
        self.known[sequence] = (digest, previous)
        if sequence >= self.end:
            if sequence > self.end:
                self.gaps.append((self.end, sequence - 1))
            self.end = sequence + 1
            return
        self.gaps = [piece for gap in self.gaps for piece in _without(gap, sequence)]


def _without(gap: tuple[int, int], sequence: int) -> list[tuple[int, int]]:
    first, last = gap
    if not first <= sequence <= last:
        return [gap]
    return [(a, b) for a, b in ((first, sequence - 1), (sequence + 1, last)) if a <= b]


def check_route(frame: Frame, stream: str, partition: int) -> None:
    """FrameError "misrouted" unless the frame belongs on the stream and partition that it came from.

    Its link, its type, its key and the key in each row must all agree with the partition.
    """
    declared, link = frame.declared, frame.link
    if (link.stream, link.partition) != (stream, partition):
        raise FrameError("misrouted", f"its header names {link.stream[:80]}/{link.partition}")
    if declared.stream != stream or partition_of(stream, frame.key) != partition:
        raise FrameError("misrouted", f"{declared.name} with key {frame.key[:80]!r} does not belong here")
    keys = set(occurring(frame.packed[declared.key]).to_pylist()) if declared.key else {""}
    if keys != {frame.key}:
        raise FrameError("misrouted", f"its rows differ from its key {frame.key[:80]!r}")
