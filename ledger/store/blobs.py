"""The content-addressed blob store: big texts, each once, under the SHA-256 of its bytes.

A local folder of read-only files in 256 subfolders. It knows nothing of events; an event names a blob only after `put`.
"""

import re
from collections.abc import Iterable, Iterator
from pathlib import Path

from ledger.digests import blob_digest
from ledger.errors import Fault
from ledger.store.files import PART, make_folder, sync_folder, translated, write_once

_DIGEST = re.compile(r"[0-9a-f]{64}")


class Blobs:
    """Blobs below one folder. Several processes may write at once."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def put(self, data: bytes) -> str:
        """SHA-256 of the bytes as 64 hex digits; returns only when they are durable. Fault when the disk is full."""
        return self.put_many([data])[0]

    def put_many(self, items: Iterable[bytes]) -> list[str]:
        """The digest of each item, in order; returns when all are durable. Each folder is synced once."""
        digests: list[str] = []
        touched: set[Path] = set()
        for data in items:
            digest = blob_digest(data)
            path = self.path(digest)
            if path.parent not in touched:
                make_folder(path.parent)
                touched.add(path.parent)
            write_once(path, data)
            digests.append(digest)
        for folder in touched:
            sync_folder(folder)
        return digests

    def get(self, digest: str) -> bytes:
        """The bytes with this digest; Fault when they are missing or altered."""
        path = self.path(digest)
        try:
            data = path.read_bytes()
        except FileNotFoundError:
            raise Fault(f"blob {digest} is missing from {self.folder}; restore it from a copy of the ledger") from None
        except OSError as error:
            raise Fault(f"cannot read blob {path}: {error.strerror}; check the disk") from error
        if blob_digest(data) != digest:
            raise Fault(f"blob {path} was altered; restore it from a copy of the ledger")
        return data

    def has(self, digest: str) -> bool:
        """True when a blob with this digest is stored."""
        return self.path(digest).exists()

    def path(self, digest: str) -> Path:
        """Where the blob lies, stored or not; ValueError when the word is no digest."""
        if not _DIGEST.fullmatch(digest):
            raise ValueError(f"{digest[:80]!r} is not a SHA-256 of 64 hex digits")
        return self.folder / digest[:2] / digest

    def digests(self) -> Iterator[str]:
        """The names of all stored blobs, sorted; foreign files are passed over (`strays` finds them)."""
        return (path.name for path in self._files() if self._is_blob(path))

    def strays(self) -> Iterator[Path]:
        """Files in the store that are no blobs: unfinished writes and whatever else was put there."""
        return (path for path in self._files() if not self._is_blob(path))

    def _files(self) -> Iterator[Path]:
        with translated(self.folder):
            return iter(sorted(path for path in self.folder.rglob("*") if path.is_file()))

    def _is_blob(self, path: Path) -> bool:
        return path.suffix != PART and bool(_DIGEST.fullmatch(path.name)) and path == self.path(path.name)
