"""Writes a bundle: frames, blobs, chains and head in one zip file, with the program that checks it.

`python BUNDLE.zip` runs the program. It needs pyarrow and numpy, no ledger and no network. A bundle of the same facts
has the same bytes, whenever it is written.
"""

import hashlib
import io
import json
import shutil
import zipfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from importlib.resources import files
from pathlib import Path
from typing import IO, Any

from sqlalchemy import Connection, text

from lapledger.ledger.atomic_write import atomic_write
from lapledger.ledger.events import PARTITIONS
from lapledger.ledger.proof.bundles.frame_reader import FrameAdmissions
from lapledger.ledger.proof.bundles.frame_tables import FrameTables
from lapledger.ledger.proof.bundles.verifier.known import FORMAT
from lapledger.ledger.proof.heads import RecordedHead
from lapledger.ledger.store.cuts import Cut
from lapledger.ledger.store.heads import first_head, ledger_head, next_head
from lapledger.ledger.store.open_ledger import Ledger

VERIFIER = "lapledger.ledger.proof.bundles.verifier"
_DIGESTS = text(
    "SELECT digest FROM frame WHERE stream = :stream AND partition = :partition AND admission <= :last"
    " ORDER BY admission"
)
_MANIFESTS = text("SELECT manifest FROM segment ORDER BY ordinal")
_DATE = (1980, 1, 1, 0, 0, 0)
_MAIN = """import os
import sys

try:
    from {entry} import main
except ImportError as error:
    sys.exit(f"this bundle needs pyarrow and numpy ({{error}}); install them with: pip install pyarrow numpy")

code = main(sys.argv[1:], sys.path[0])
sys.stdout.flush()
sys.stderr.flush()
os._exit(code)  # threads of pyarrow that end while the interpreter does abort it now and then, with another exit code
"""


@dataclass(frozen=True, slots=True)
class Program:
    """The code that travels: packages and modules with their names in the bundle, and the module there with `main`."""

    entry: str
    packages: Mapping[str, str] = field(default_factory=dict)  # beside the verifier
    modules: Mapping[str, str] = field(default_factory=dict)

    def files(self) -> Iterator[tuple[str, bytes]]:
        """`__main__.py` and the modules, with imports of each other by their names in the bundle."""
        packages = {VERIFIER: "lapbundle.verifier", **self.packages}
        names = {**packages, **self.modules}
        yield "__main__.py", _MAIN.format(entry=self.entry).encode()
        yield "lapbundle/__init__.py", b'"""The program of a bundle."""\n'
        sources = {
            f"{name}.{module.name.removesuffix('.py')}": module.read_text()
            for package, name in packages.items()
            for module in files(package).iterdir()
            if module.name.endswith(".py")
        }
        for module, name in self.modules.items():
            package, _, stem = module.rpartition(".")
            sources[name] = files(package).joinpath(f"{stem}.py").read_text()
        for name, source in sorted(sources.items()):
            for imported, travelling in names.items():
                source = source.replace(imported, travelling)
            yield f"{name.replace('.', '/')}.py", source.encode()


@dataclass(frozen=True, slots=True)
class Contents:
    """What one kind of bundle holds: values of bundle.json, small parts, frames, and its program."""

    about: Mapping[str, Any]
    parts: Iterable[tuple[str, bytes]]
    frames: FrameAdmissions
    program: Program


@dataclass(frozen=True, slots=True)
class WrittenBundle:
    """The size of a bundle, and the SHA-256 of its bundle.json: written down, it stands for the whole bundle."""

    frames: int
    events: int
    bytes: int
    digest: str


def write_bundle(
    path: Path,
    ledger: Ledger,
    connection: Connection,
    *,
    cut: Cut,
    contents: Contents,
    on_progress: Callable[[int, int], None] = lambda _done, _total: None,
) -> WrittenBundle:
    """Writes a bundle of the ledger at a cut; every frame is verified on the way.

    `on_progress` is called with (frames written, frames in all). Fault when a frame or a blob is missing or altered;
    UserError when the file cannot be written, and nothing is left then.
    """
    with atomic_write(path) as part, zipfile.ZipFile(part, "w", zipfile.ZIP_DEFLATED) as archive:
        digests = {name: _put(archive, name, io.BytesIO(data)) for name, data in contents.program.files()}
        digests |= {name: _put(archive, name, io.BytesIO(data)) for name, data in contents.parts}
        heads: dict[tuple[str, int], tuple[int, str]] = {}
        for partition in [(stream, number) for stream, count in PARTITIONS.items() for number in range(count)]:
            chain = _chain(connection, cut, partition)
            heads[partition] = len(chain), _head(ledger.identity, partition, chain)
            name = f"chains/{partition[0]}.{partition[1]}.txt"
            digests[name] = _put(archive, name, io.BytesIO("".join(f"{digest}\n" for digest in chain).encode()))
        tables, total = FrameTables(part.parent), sum(map(len, contents.frames.values()))
        written = tables.parts(ledger, connection, contents.frames, lambda done: on_progress(done, total))
        digests |= {name: _put(archive, name, data) for name, data in written}
        manifests = list(connection.execute(_MANIFESTS).scalars())
        head = {"cut": str(cut), "head": str(RecordedHead(cut, ledger_head(heads, manifests))), "manifests": manifests}
        about = {"format": FORMAT, "ledger": ledger.identity, **head, **contents.about, "parts": digests}
        digest = _put(archive, "bundle.json", io.BytesIO(as_json(about)))
    return WrittenBundle(len(tables.frames), tables.events, path.stat().st_size, digest)


def _chain(connection: Connection, cut: Cut, partition: tuple[str, int]) -> list[str]:
    """The digests of a partition's frames up to a cut, in the order of admission."""
    stream, number = partition
    parameters = {"stream": stream, "partition": number, "last": cut.at(stream, number)}
    return list(connection.execute(_DIGESTS, parameters).scalars())


def _head(identity: str, partition: tuple[str, int], chain: Iterable[str]) -> str:
    head = first_head(identity, *partition)
    for digest in chain:
        head = next_head(head, digest)
    return head


def _put(archive: zipfile.ZipFile, name: str, data: IO[bytes]) -> str:
    """Copies a part into the bundle in pieces; its SHA-256."""
    entry = zipfile.ZipInfo(name, _DATE)
    entry.compress_type, entry.external_attr = zipfile.ZIP_DEFLATED, 0o644 << 16
    entry.file_size = data.seek(0, io.SEEK_END)
    data.seek(0)
    digest = hashlib.file_digest(data, "sha256").hexdigest()  # type: ignore[arg-type]  # any file that reads into
    data.seek(0)
    with archive.open(entry, "w") as out:
        shutil.copyfileobj(data, out)
    return digest


def as_json(value: Any) -> bytes:
    """A JSON part; numbers are finite."""
    return (json.dumps(value, indent=1, ensure_ascii=False, allow_nan=False, default=str) + "\n").encode()
