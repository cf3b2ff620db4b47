"""Running hashes: a head for each partition, extended at every admission, and one head over the ledger.

A head stored elsewhere proves everything up to it. Pure: no database here.
"""

from collections.abc import Mapping, Sequence

from lapledger.ledger.codec.canonical import sha256_fields
from lapledger.ledger.streams.base import Partition

NO_MANIFEST = ""
"""The link before the first manifest of the chain of segments."""


def first_head(ledger_identity: str, stream: str, partition: int) -> str:
    """The head of a partition before its first admission; it binds the partition to its ledger."""
    return sha256_fields("head", ledger_identity, stream, partition)


def next_head(head: str, frame_digest: str) -> str:
    """The head after one more admitted frame."""
    return sha256_fields("head", head, frame_digest)


def ledger_head(heads: Mapping[Partition, tuple[int, str]], manifests: Sequence[str]) -> str:
    """The head over all partitions (admissions and head of each) and the last link of the chain of manifests."""
    fields: list[str | int] = ["ledger", len(manifests), manifests[-1] if manifests else NO_MANIFEST]
    for (stream, partition), (admissions, head) in sorted(heads.items()):
        fields += [stream, partition, admissions, head]
    return sha256_fields(*fields)
