"""The content-addressed blob store: large texts, each stored once under the SHA-256 of its bytes.

Names `xx/<digest>` in 256 subfolders. It knows nothing of events; an event names a blob only after `put`.
"""

import re
from collections.abc import Iterable, Iterator
from pathlib import Path

from lapledger.ledger.codec.canonical import blob_digest
from lapledger.ledger.disk import LocalFiles
from lapledger.ledger.errors import Fault
from lapledger.ledger.failpoint import failpoint
from lapledger.ledger.store.objects.objects import (
    Files,
    Stored,
    digest_of,
    listing,
    read_object,
    remove,
    remove_old,
    size_of,
)

_DIGEST = re.compile(r"[0-9a-f]{64}")


class Blobs:
    """Blobs among the objects of a store. Several processes may write at once."""

    def __init__(self, files: Files) -> None:
        self._files = files

    def put(self, data: bytes) -> str:
        """SHA-256 of the bytes as 64 hex digits; returns only when they are durable. Fault when the disk is full."""
        return self.put_many([data])[0]

    def put_many(self, items: Iterable[bytes]) -> list[str]:
        """The digest of each item, in order; returns when all are durable. Each folder is synced once."""
        digests: list[str] = []
        self._files.put(self._named(items, digests))
        self._files.settle({self.name(digest) for digest in digests})
        return digests

    def _named(self, items: Iterable[bytes], digests: list[str]) -> Iterator[tuple[str, bytes]]:
        for data in items:
            digests.append(blob_digest(data))
            yield self.name(digests[-1]), data
            failpoint("blob.put.placed")

    def get(self, digest: str) -> bytes:
        """The bytes with this digest; Fault when they are missing or altered."""
        name = self.name(digest)
        data = read_object(self._files, name, "blob")
        if blob_digest(data) != digest:
            raise Fault(f"blob {self._files.where}/{name} was altered; restore it from a copy of the ledger")
        return data

    def has(self, digest: str) -> bool:
        """True when a blob with this digest is stored."""
        return size_of(self._files, self.name(digest)) is not None

    def is_intact(self, digest: str) -> bool:
        """True when the stored bytes give their name; Fault when they cannot be read."""
        return digest_of(self._files, self.name(digest), "blob") == digest

    def local(self, digest: str, scratch: Path) -> Path:
        """A read-only local file with the bytes: the stored one, or a copy in `scratch` that was fetched once."""
        stored_file = self._files.local(self.name(digest))
        if stored_file is not None:
            return stored_file
        if not (scratch / digest).exists():
            LocalFiles(scratch).put([(digest, self.get(digest))])
        return scratch / digest

    def name(self, digest: str) -> str:
        """The name of the blob's object; ValueError when the text is not a digest."""
        if not _DIGEST.fullmatch(digest):
            raise ValueError(f"{digest[:80]!r} is not a SHA-256 of 64 hex digits")
        return f"{digest[:2]}/{digest}"

    def where(self, digest: str) -> str:
        """The address of a blob in messages."""
        return f"{self._files.where}/{self.name(digest)}"

    def digests(self) -> Iterator[str]:
        """The digests of all stored blobs, sorted; foreign objects are passed over (`strays` finds them)."""
        return (stored.name[3:] for stored in self.listing() if self._is_blob(stored.name))

    def strays(self) -> Iterator[str]:
        """Addresses of objects that are no blobs: unfinished writes and whatever else was put there."""
        return (f"{self._files.where}/{s.name}" for s in self.listing() if not self._is_blob(s.name))

    def listing(self) -> list[Stored]:
        """All objects of the store, blobs and strays, sorted by name."""
        return listing(self._files)

    def remove(self, name: str) -> None:
        """Removes an object of the listing."""
        remove(self._files, name)

    def remove_old(self, name: str, modified_ms: int) -> bool:
        """True when an object of the listing was removed; one that was put again since `modified_ms` stays."""
        return remove_old(self._files, name, modified_ms)

    def _is_blob(self, name: str) -> bool:
        return bool(_DIGEST.fullmatch(name[3:])) and name == self.name(name[3:])
