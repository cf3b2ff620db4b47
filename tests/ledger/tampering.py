"""How tests alter a ledger behind its back, as whoever holds its files can."""

import hashlib
import json
from pathlib import Path
from typing import Any

from sqlalchemy import text

from lapledger.ledger.proof import Proof, verify
from lapledger.ledger.store.open_ledger import Ledger
from lapledger.ledger.store.sql.engine import reading, writing


def drop_guards(ledger: Ledger) -> None:
    """Removes the triggers that refuse changes."""
    with writing(ledger.engine) as connection:
        names = connection.execute(text("SELECT name FROM sqlite_master WHERE type = 'trigger'")).scalars().all()
        for name in names:
            connection.execute(text(f"DROP TRIGGER {name}"))


def change(ledger: Ledger, statement: str, **values: object) -> None:
    """Alters the database behind the ledger's back."""
    drop_guards(ledger)
    with writing(ledger.engine) as connection:
        assert connection.execute(text(statement), values).rowcount > 0


def rows(ledger: Ledger, query: str) -> list[tuple[Any, ...]]:
    """The rows of a query."""
    with reading(ledger.engine) as connection:
        return [tuple(row) for row in connection.execute(text(query))]


def flip(path: Path, at: float = 0.5) -> None:
    """Alters one byte of a file, `at` a share of its length."""
    data = bytearray(path.read_bytes())
    data[int(len(data) * at)] ^= 0x10
    rewrite(path, bytes(data))


def rewrite(path: Path, data: bytes) -> None:
    """Gives a read-only file other bytes."""
    path.chmod(0o644)
    path.write_bytes(data)


def segment_of(ledger: Ledger, name: str, suffix: str) -> Path:
    """The only segment or manifest of a type."""
    (path,) = (ledger.root / "segments" / f"{name}.v1").glob(f"*{suffix}")
    return path


def manifest_path(ledger: Ledger, kind: str, version: int, digest: str) -> Path:
    """Where a manifest lies."""
    return ledger.root / "segments" / f"{kind}.v{version}" / f"{digest}.json"


def relink(ledger: Ledger, old: Path, file: Path) -> None:
    """Puts `file` in the place of a segment, and rewrites all manifests and rows that name it."""
    fresh, size = hashlib.sha256(file.read_bytes()).hexdigest(), file.stat().st_size
    file.rename(old.with_name(f"{fresh}.parquet"))
    named = {"segment": fresh, "bytes": size}
    relinked(ledger, lambda manifest: manifest | (named if manifest["segment"] == old.stem else {}))


def relinked(ledger: Ledger, altered: Any) -> None:
    """Rewrites every manifest as `altered` says, and the chain and the rows that name it."""
    drop_guards(ledger)
    with writing(ledger.engine) as connection:
        segments = connection.execute(text("SELECT ordinal, type, version, manifest FROM segment ORDER BY 1")).all()
        previous, renamed = "", {}
        for row in segments:
            manifest = json.loads(manifest_path(ledger, row.type, row.version, row.manifest).read_text())
            supersedes = [renamed[name] for name in manifest["supersedes"]]
            manifest = altered(manifest) | {"previous": previous, "supersedes": supersedes}
            previous = renamed[row.manifest] = ledger.segments.write_manifest(row.type, row.version, manifest)
            values = {"name": manifest["segment"], "bytes": manifest["bytes"], "manifest": previous}
            update = "UPDATE segment SET name = :name, bytes = :bytes, manifest = :manifest WHERE ordinal = :ordinal"
            connection.execute(text(update), values | {"ordinal": row.ordinal})


def proven(ledger: Ledger) -> Proof:
    """What a verification finds that has the ledger's own stream at hand."""
    stream = ledger.stream()
    try:
        return verify(ledger, stream=stream)
    finally:
        stream.close()
