"""A cut: how many frames of each partition a question sees. The same cut gives the same answer permanently.

A value with a text form that people copy; it knows nothing of where frames are kept.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass

from lapledger.ledger.errors import UserError
from lapledger.ledger.events import PARTITIONS
from lapledger.ledger.streams.base import Partition

FORM = ",".join(f"{name}=0" for name in sorted(PARTITIONS))
"""The cut before the first admission, as an example of the form; counts of 0 at the end of a stream are excluded."""

_PART = re.compile(r"([a-z]+)=([0-9]{1,18}(?:\.[0-9]{1,18})*)", re.ASCII)


@dataclass(frozen=True, slots=True)
class Cut:
    """Admission numbers by stream and partition: each the count of frames admitted, 0 for none.

    `a <= b` means that every fact of cut `a` is in cut `b`; two cuts may be ordered neither way.
    """

    counts: tuple[tuple[str, tuple[int, ...]], ...]

    @classmethod
    def of(cls, admissions: Mapping[Partition, int]) -> "Cut":
        """The cut with these admission numbers; a partition that is not named counts 0."""
        return cls(
            tuple(
                (name, tuple(admissions.get((name, partition), 0) for partition in range(PARTITIONS[name])))
                for name in sorted(PARTITIONS)
            )
        )

    @classmethod
    def parse(cls, text: str) -> "Cut":
        """The cut that a text names, for instance `control=12,facts=431.29.0.77,requests=5`; UserError on nonsense."""
        matches = [_PART.fullmatch(part) for part in text.strip().split(",")]
        parts = {match[1]: tuple(map(int, match[2].split("."))) for match in matches if match}
        known = parts.keys() == PARTITIONS.keys() and all(len(parts[name]) <= PARTITIONS[name] for name in parts)
        if len(parts) != len(matches) or not known:
            raise UserError(f"{text[:100]!r} is not a cut; copy one that was printed, in the form {FORM}")
        return cls.of({(name, partition): n for name, counts in parts.items() for partition, n in enumerate(counts)})

    def at(self, stream: str, partition: int) -> int:
        """The admission number of one partition; KeyError or IndexError when there is no such partition."""
        return dict(self.counts)[stream][partition]

    def __str__(self) -> str:
        return ",".join(f"{name}={_joined(counts)}" for name, counts in self.counts)

    def __le__(self, other: "Cut") -> bool:
        pairs = zip(self.counts, other.counts, strict=True)
        return all(a <= b for (_, mine), (_, theirs) in pairs for a, b in zip(mine, theirs, strict=True))


def _joined(counts: tuple[int, ...]) -> str:
    kept = max((partitions for partitions, count in enumerate(counts, start=1) if count), default=1)
    return ".".join(map(str, counts[:kept]))
