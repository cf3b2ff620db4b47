"""Stored objects: immutable bytes under names below one root, in a local folder or in an object store.

Writing is each store's own business (`LocalFiles`, `S3Files`); reading goes through Arrow's filesystems, here. What the
bytes mean is decided by who calls.
"""

import hashlib
import os
import re
from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import pyarrow as pa

from lapledger.ledger.disk import PART, sync_folder, translated
from lapledger.ledger.errors import DiskFull, Fault, LapError, Unavailable, UserError, io_fault

_CHUNK = 8 << 20
_SECOND_MS = 1000
_LOST = "run `lap verify`, restore it from a copy of the ledger"


class Files(Protocol):
    """Objects below one root. A name identifies its content: one of the right size is kept, its time refreshed."""

    where: str
    """The root as shown in messages, without secrets; messages add `/` and the name."""

    @property
    def filesystem(self) -> Any:
        """The `pyarrow.fs.FileSystem` that reads the objects, names being its paths."""

    def put(self, items: Iterable[tuple[str, bytes | Path]]) -> None:
        """Stores contents under their names, each completely or not at all; a path is a file of `part`, filled.

        The names are durable after `settle`. UserError, Fault or DiskFull when the store cannot be written.
        """

    def settle(self, names: Iterable[str]) -> None:
        """Returns when what was put under these names is durable."""

    def part(self) -> AbstractContextManager[Path]:
        """A fresh empty local file to fill and put; it is gone afterwards."""

    def local(self, name: str) -> Path | None:
        """The object's own local file, stored or not; None where objects are stored elsewhere."""


@dataclass(frozen=True, slots=True)
class Stored:
    """One object of a listing; it was stored at `modified_ms` by the store's own clock, milliseconds since 1970."""

    name: str
    bytes: int
    modified_ms: int


def size_of(files: Files, name: str) -> int | None:
    """Bytes of an object, None when there is none."""
    with stored_errors(f"{files.where}/{name}"):
        size: int | None = files.filesystem.get_file_info(name).size
        return size


def listing(files: Files) -> list[Stored]:
    """All objects, sorted by name; unfinished local files among them."""
    from pyarrow.fs import FileSelector, FileType

    with stored_errors(files.where):
        files_found = files.filesystem.get_file_info(FileSelector("", recursive=True, allow_not_found=True))
    plain = (info for info in files_found if info.type == FileType.File)
    return sorted((Stored(i.path, i.size, i.mtime_ns // 1_000_000) for i in plain), key=lambda stored: stored.name)


def remove(files: Files, name: str) -> None:
    """Removes an object; one that is gone already is no mistake."""
    with stored_errors(f"{files.where}/{name}"):
        try:
            files.filesystem.delete_file(name)
        except FileNotFoundError:
            return


def remove_old(files: Files, name: str, modified_ms: int) -> bool:
    """True when an object stored at `modified_ms`, as listed, was removed; one that was put again since stays.

    A local file is checked, renamed, checked again, and renamed back if it was refreshed in between: a concurrent `put`
    either refreshes it or finds none and writes it. Only a process that dies between the two moves leaves a fresh
    file renamed, as `.NAME.part`. An object store is queried right before the removal: an object is lost if its upload
    ends between that answer and the removal, two or three requests later; nothing but a grace period longer than any
    producer's work covers that.
    """
    path = files.local(name)
    try:
        return _remove_stored(files, name, modified_ms) if path is None else _remove_local(path, modified_ms)
    except FileNotFoundError:
        return False
    except OSError as error:
        raise io_fault(error, f"cannot remove {files.where}/{name}") from error


def _remove_local(path: Path, modified_ms: int) -> bool:
    if _modified_ms(path) != modified_ms:
        return False
    hidden = path.with_name(f".{path.name}{PART}")
    path.rename(hidden)
    if _modified_ms(hidden) != modified_ms:
        hidden.rename(path)
        sync_folder(path.parent)
        return False
    hidden.unlink()
    return True


def _modified_ms(path: Path) -> int:
    return path.stat().st_mtime_ns // 1_000_000


def _remove_stored(files: Files, name: str, modified_ms: int) -> bool:
    """For one object a server reports whole seconds; in a listing it may report more digits."""
    with stored_errors(f"{files.where}/{name}"):
        info = files.filesystem.get_file_info(name)
        if not info.is_file or abs(info.mtime_ns // 1_000_000 - modified_ms) >= _SECOND_MS:
            return False
        with suppress(FileNotFoundError):
            files.filesystem.delete_file(name)
        return True


def read_object(files: Files, name: str, kind: str) -> bytes:
    """The bytes of an object, in one piece; Fault when it is missing, `kind` names it in messages."""
    with _open_object(files, name, kind) as file:
        data: bytes = file.read()
        return data


def digest_of(files: Files, name: str, kind: str) -> str:
    """SHA-256 of an object's bytes as 64 hex digits; Fault when it is missing, `kind` names it in messages."""
    digest = hashlib.sha256()
    with _open_object(files, name, kind) as file:
        while chunk := file.read(_CHUNK):
            digest.update(chunk)
    return digest.hexdigest()


def copy_object(source: Files, target: Files, name: str, digest: str) -> int:
    """Bytes of an object that was put under the same name elsewhere; Fault when they do not give the digest.

    Durable after `settle` of the target.
    """
    digest_read = hashlib.sha256()
    with target.part() as part:
        with _open_object(source, name, "object") as file, translated(part), part.open("wb") as copy:
            while chunk := file.read(_CHUNK):
                digest_read.update(chunk)
                copy.write(chunk)
        if digest_read.hexdigest() != digest:
            raise Fault(f"{source.where}/{name} was altered and is not copied; run `lap verify`")
        size = part.stat().st_size
        target.put([(name, part)])
    return size


@contextmanager
def _open_object(files: Files, name: str, kind: str) -> Iterator[Any]:
    with stored_errors(f"{kind} {files.where}/{name}"), files.filesystem.open_input_file(name) as file:
        yield file


@contextmanager
def stored_errors(what: str) -> Iterator[None]:
    """Turn Arrow's error about a stored object into one of ours; `what` names the object or the store."""
    try:
        yield
    except (OSError, pa.ArrowException) as error:
        raise stored_fault(error, what) from error


@contextmanager
def raise_outages(what: str) -> Iterator[None]:
    """Raise Unavailable where a store did not answer; errors about an object's bytes pass unchanged."""
    try:
        yield
    except OSError as error:
        fault = stored_fault(error, what)
        if isinstance(fault, Unavailable):
            raise fault from error
        raise


def stored_fault(error: Exception, what: str) -> LapError:
    """The one-line error for a failed access to a stored object; of a server's message only the code is repeated."""
    text = " ".join(str(error).split())
    answer = _ANSWER.search(text)
    if answer is not None:
        return _refusal(answer, text, what)
    if isinstance(error, FileNotFoundError):
        return Fault(f"{what} is missing; {_LOST}")
    number = getattr(error, "errno", None)
    return Fault(f"{what} cannot be read: {os.strerror(number) if number else text[:200]}; {_LOST}")


_ANSWER = re.compile(r"AWS Error (?P<code>\w+)(?: \(HTTP status (?P<status>\d+)\))?")
_UNPARSED = re.compile(r"ExceptionName: (\w+)")
_REFUSED = re.compile(r"ACCESSDENIED|.*ACCESSKEYID|.*SIGNATURE.*|.*TOKEN.*|.*USERNOTFOUND|UNRECOGNIZEDCLIENT|401|403")
_ELSEWHERE = re.compile(r"30[1278]|PERMANENTREDIRECT|AUTHORIZATIONHEADERMALFORMED|ILLEGALLOCATION.*")
_FULL = re.compile(r"507|.*STORAGEFULL|.*QUOTAEXCEEDED")
_PASSING = re.compile(r"NETWORKCONNECTION|REQUESTTIMEOUT|SLOWDOWN|THROTTLING|.*INTERNAL.*|SERVICEUNAVAILABLE|429|5\d\d")
KEYS = "AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or ~/.aws/credentials"


def _refusal(answer: re.Match[str], text: str, what: str) -> LapError:
    """The failure behind a server's answer, by its code; by its HTTP status where the code is unknown."""
    unparsed = _UNPARSED.search(text)
    code = unparsed[1] if unparsed else answer["code"]
    if code == "UNKNOWN" and answer["status"]:
        code = answer["status"]
    name = code.replace("_", "").upper()
    if name in ("NOSUCHKEY", "RESOURCENOTFOUND", "404"):
        return Fault(f"{what} is missing; {_LOST}")
    if name == "NOSUCHBUCKET":
        return UserError(f"{what}: there is no such bucket; make it, or correct the setting `store`")
    if _REFUSED.fullmatch(name):
        return UserError(f"{what}: the object store refuses the credentials ({code}); check {KEYS}, and its rights")
    if _ELSEWHERE.fullmatch(name):
        return UserError(f"{what}: the bucket is in another region ({code}); add `?region=...` to the setting `store`")
    if _FULL.fullmatch(name):
        return DiskFull(f"{what}: the object store is full ({code}); free some space there, and run it again")
    message = f"{what}: the object store failed ({code}); check its endpoint and the network, and run it again"
    return Unavailable(message) if _PASSING.fullmatch(name) else Fault(message)
