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
    """Objects below one root. A name says what its content is: one of the right size is kept, and is young again."""

    where: str
    """The root in words, without anything secret; messages add `/` and the name."""

    @property
    def filesystem(self) -> Any:
        """The `pyarrow.fs.FileSystem` that reads the objects, names being its paths."""

    def put(self, items: Iterable[tuple[str, bytes | Path]]) -> None:
        """Stores contents under their names, each whole or not at all; a path is a file of `part`, filled.

        The names are durable after `settle`. UserError, Fault or DiskFull when the store cannot be written.
        """

    def settle(self, names: Iterable[str]) -> None:
        """Returns when what was put under these names is durable."""

    def part(self) -> AbstractContextManager[Path]:
        """A fresh empty local file to fill and put; it is gone afterwards."""

    def local(self, name: str) -> Path | None:
        """The object's own local file, stored or not; None where objects lie elsewhere."""


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
        found = files.filesystem.get_file_info(FileSelector("", recursive=True, allow_not_found=True))
    plain = (info for info in found if info.type == FileType.File)
    return sorted((Stored(i.path, i.size, i.mtime_ns // 1_000_000) for i in plain), key=lambda stored: stored.name)


def remove(files: Files, name: str) -> None:
    """Removes an object; one that is gone already is no mistake."""
    with stored_errors(f"{files.where}/{name}"):
        try:
            files.filesystem.delete_file(name)
        except FileNotFoundError:
            return


def remove_old(files: Files, name: str, modified_ms: int) -> bool:
    """True when an object went that was stored at `modified_ms`, as a listing says; one that was put again stays.

    A local file is looked at, moved aside, looked at again, and moved back if it became young in between: whoever puts
    it either makes it young or finds none and writes it. Only a process that dies between the two moves leaves a young
    file aside, as `.NAME.part`. An object store is asked right before the removal: there an object is lost whose upload
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
    aside = path.with_name(f".{path.name}{PART}")
    path.rename(aside)
    if _modified_ms(aside) != modified_ms:
        aside.rename(path)
        sync_folder(path.parent)
        return False
    aside.unlink()
    return True


def _modified_ms(path: Path) -> int:
    return path.stat().st_mtime_ns // 1_000_000


def _remove_stored(files: Files, name: str, modified_ms: int) -> bool:
    """Of one object a server tells whole seconds, in a listing it may tell more."""
    with stored_errors(f"{files.where}/{name}"):
        found = files.filesystem.get_file_info(name)
        if not found.is_file or abs(found.mtime_ns // 1_000_000 - modified_ms) >= _SECOND_MS:
            return False
        with suppress(FileNotFoundError):
            files.filesystem.delete_file(name)
        return True


def read_object(files: Files, name: str, kind: str) -> bytes:
    """The bytes of an object, in one piece; Fault when it is missing, `kind` says what it is."""
    with _opened(files, name, kind) as file:
        data: bytes = file.read()
        return data


def digest_of(files: Files, name: str, kind: str) -> str:
    """SHA-256 of an object's bytes as 64 hex digits; Fault when it is missing, `kind` says what it is."""
    digest = hashlib.sha256()
    with _opened(files, name, kind) as file:
        while chunk := file.read(_CHUNK):
            digest.update(chunk)
    return digest.hexdigest()


def copy_object(source: Files, target: Files, name: str, digest: str) -> int:
    """Bytes of an object that was put under the same name elsewhere; Fault when they do not give the digest.

    Durable after `settle` of the target.
    """
    found = hashlib.sha256()
    with target.part() as part:
        with _opened(source, name, "object") as file, translated(part), part.open("wb") as copy:
            while chunk := file.read(_CHUNK):
                found.update(chunk)
                copy.write(chunk)
        if found.hexdigest() != digest:
            raise Fault(f"{source.where}/{name} was altered and is not copied; run `lap verify`")
        size = part.stat().st_size
        target.put([(name, part)])
    return size


@contextmanager
def _opened(files: Files, name: str, kind: str) -> Iterator[Any]:
    with stored_errors(f"{kind} {files.where}/{name}"), files.filesystem.open_input_file(name) as file:
        yield file


@contextmanager
def stored_errors(what: str) -> Iterator[None]:
    """Turns what Arrow says about a stored object into one line of ours; `what` names the object or the store."""
    try:
        yield
    except (OSError, pa.ArrowException) as error:
        raise stored_fault(error, what) from error


@contextmanager
def outages_told(what: str) -> Iterator[None]:
    """Raises Unavailable where a store did not answer; what is wrong with an object's bytes passes as it is."""
    try:
        yield
    except OSError as error:
        told = stored_fault(error, what)
        if isinstance(told, Unavailable):
            raise told from error
        raise


def stored_fault(error: Exception, what: str) -> LapError:
    """What tells of a failed access to a stored object; a server's own words are not repeated, only its code."""
    words = " ".join(str(error).split())
    answer = _ANSWER.search(words)
    if answer is not None:
        return _refusal(answer, words, what)
    if isinstance(error, FileNotFoundError):
        return Fault(f"{what} is missing; {_LOST}")
    number = getattr(error, "errno", None)
    return Fault(f"{what} cannot be read: {os.strerror(number) if number else words[:200]}; {_LOST}")


_ANSWER = re.compile(r"AWS Error (?P<code>\w+)(?: \(HTTP status (?P<status>\d+)\))?")
_UNPARSED = re.compile(r"ExceptionName: (\w+)")
_REFUSED = re.compile(r"ACCESSDENIED|.*ACCESSKEYID|.*SIGNATURE.*|.*TOKEN.*|.*USERNOTFOUND|UNRECOGNIZEDCLIENT|401|403")
_ELSEWHERE = re.compile(r"30[1278]|PERMANENTREDIRECT|AUTHORIZATIONHEADERMALFORMED|ILLEGALLOCATION.*")
_FULL = re.compile(r"507|.*STORAGEFULL|.*QUOTAEXCEEDED")
_PASSING = re.compile(r"NETWORKCONNECTION|REQUESTTIMEOUT|SLOWDOWN|THROTTLING|.*INTERNAL.*|SERVICEUNAVAILABLE|429|5\d\d")
KEYS = "AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or ~/.aws/credentials"


def _refusal(answer: re.Match[str], words: str, what: str) -> LapError:
    """The failure behind a server's answer, by its code; by its HTTP status where the code says nothing."""
    unparsed = _UNPARSED.search(words)
    code = unparsed[1] if unparsed else answer["code"]
    if code == "UNKNOWN" and answer["status"]:
        code = answer["status"]
    said = code.replace("_", "").upper()
    if said in ("NOSUCHKEY", "RESOURCENOTFOUND", "404"):
        return Fault(f"{what} is missing; {_LOST}")
    if said == "NOSUCHBUCKET":
        return UserError(f"{what}: there is no such bucket; make it, or correct the setting `store`")
    if _REFUSED.fullmatch(said):
        return UserError(f"{what}: the object store refuses the credentials ({code}); check {KEYS}, and its rights")
    if _ELSEWHERE.fullmatch(said):
        return UserError(f"{what}: the bucket is in another region ({code}); add `?region=...` to the setting `store`")
    if _FULL.fullmatch(said):
        return DiskFull(f"{what}: the object store is full ({code}); free some space there, and run it again")
    told = f"{what}: the object store failed ({code}); check its endpoint and the network, and run it again"
    return Unavailable(told) if _PASSING.fullmatch(said) else Fault(told)
