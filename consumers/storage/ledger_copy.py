"""Copies a ledger, as one reading transaction saw it, into an empty place: files first, then all rows at once.

The copy is the same ledger, with the same cut and head, on a stream of its own. Others may append to the source
meanwhile. A copy that was interrupted has no rows: the same call goes on with the files that are missing.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, TableClause, column, func, insert, inspect, select, table

from lapledger.ledger.disk import refuse_below_reserve
from lapledger.ledger.errors import Fault, UserError
from lapledger.ledger.failpoint import failpoint
from lapledger.ledger.store.cuts import Cut
from lapledger.ledger.store.location import Location
from lapledger.ledger.store.objects.blobs import Blobs
from lapledger.ledger.store.open_ledger import Ledger, cut_now, head_now, holds_nothing, making, open_files, open_stream
from lapledger.ledger.store.reader import segment_rows
from lapledger.ledger.store.segments import Segment, Segments
from lapledger.ledger.store.sql.engine import reading
from lapledger.ledger.store.sql.statements import (
    LAST_QUARANTINED,
    LEDGER_IDENTITIES,
    RESTART_QUARANTINE_IDS,
    SUPERSEDED,
)
from lapledger.ledger.streams.base import Stream

Progress = Callable[[str, int, int], None]
"""Told of a part (`blobs`, `segments`, `rows`), how many of it are done, and how many there are."""

ROWS = {
    "ledger": 1,
    "frame": 4096,
    "gap": 4096,
    "segment": 1024,
    "segment_range": 4096,
    "supersession": 4096,
    "quarantine": 32,
    "quarantine_retry": 4096,
    "tail": 32,
    "stream_position": 4096,
}
"""Every table that is copied, with the rows that go at once: few where they hold payloads. Leases stay behind."""


@dataclass(frozen=True, slots=True)
class Copied:
    """What a copy holds, and of its files how many were missing and copied now, with their bytes."""

    identity: str
    cut: str
    head: str
    rows: dict[str, int]
    blobs: int
    segments: int
    files_copied: int
    bytes_copied: int


@dataclass(frozen=True, slots=True)
class _Copy:
    """One copy under way: the source as its transaction sees it, and the stores of the target."""

    source: Ledger
    seen: Connection
    target: Location
    blobs: Blobs
    segments: Segments
    progress: Progress


def copy_ledger(source: Ledger, target: Location, *, stream_identity: str, progress: Progress) -> Copied:
    """What was copied into a place without a ledger; `stream_identity` is a fresh word for its local stream.

    UserError when the target holds a ledger, shares a part with the source or its stream is not empty; Fault when a
    file of the source was altered, or the copy's head is not that of the source.
    """
    _refuse_shared(source.location, target)
    with making(target, stream_identity) as (connection, fresh):
        _refuse_filled(source, target, connection, fresh=fresh)
    with closing(open_stream(target)) as stream:
        _refuse_records(target, stream)
    failpoint("copy.tables")
    blobs, segments = open_files(target)
    with reading(source.engine) as seen:
        cut, head = cut_now(seen), head_now(seen)  # files are listed after this state: they hold all that it names
        copy = _Copy(source, seen, target, blobs, segments, progress)
        files = [*_copy_blobs(copy), *_copy_segments(copy, segment_rows(seen))]
        failpoint("copy.files")
        rows = _copy_rows(copy, stream_identity, (cut, head))
    failpoint("copy.committed")
    counts = len(list(blobs.digests())), rows["segment"]
    return Copied(source.identity, str(cut), head, rows, *counts, len(files), sum(files))


def _refuse_shared(source: Location, target: Location) -> None:
    """UserError when both would write to one place: neither could be trusted then."""
    shared = {
        "folder": source.root.resolve() == target.root.resolve(),
        "database": bool(source.sql) and source.sql == target.sql,
        "object store": bool(source.store) and source.store.rstrip("/") == target.store.rstrip("/"),
        "Kafka topics": _topics(source) is not None and _topics(source) == _topics(target),
    }
    for name, same in shared.items():
        if same:
            raise UserError(f"the copy would share its {name} with the ledger in {source}; choose another one")


def _topics(location: Location) -> tuple[str, str] | None:
    kafka = location.kafka
    return None if kafka is None else (kafka.address, kafka.prefix)


def _refuse_filled(source: Ledger, target: Location, connection: Connection, *, fresh: bool) -> None:
    if fresh or holds_nothing(connection):
        return
    identities = connection.execute(LEDGER_IDENTITIES).scalars().all()
    what = (
        "a copy of this ledger already"
        if identities == [source.identity]
        else f"another ledger ({', '.join(identities)})"
    )
    raise UserError(f"{target} holds {what}; choose an empty place, one where `lap ledger init` was not run")


def _refuse_records(target: Location, stream: Stream) -> None:
    for (name, partition), end in stream.ends().items():
        if end:
            raise UserError(
                f"the stream of {target} holds records already ({name}/{partition} ends at {end}), which are not of"
                " this copy; choose an empty folder, or another Kafka prefix"
            )


def _copy_blobs(copy: _Copy) -> list[int]:
    """The bytes of each blob that was missing in the target, and is durable there now."""
    source = copy.source.blobs
    kept = {stored.name: stored.bytes for stored in copy.blobs.listing()}
    sizes = {stored.name: stored.bytes for stored in source.listing()}
    wanted = [digest for digest in source.digests() if source.name(digest) in sizes]
    missing = [digest for digest in wanted if kept.get(source.name(digest)) != sizes[source.name(digest)]]
    copy.blobs.put_many(_read_blobs(copy, missing))
    return [sizes[source.name(digest)] for digest in missing]


def _read_blobs(copy: _Copy, digests: Sequence[str]) -> Iterator[bytes]:
    for number, digest in enumerate(digests, start=1):
        yield copy.source.blobs.get(digest)
        copy.progress("blobs", number, len(digests))


def _copy_segments(copy: _Copy, segments: Sequence[Segment]) -> list[int]:
    """The bytes of each segment and manifest that was missing in the target, and is durable there now.

    A superseded segment's file may have been collected; what took its place holds its frames.
    """
    kept = {stored.name: stored.bytes for stored in copy.segments.listing()}
    there = {stored.name: stored.bytes for stored in copy.source.segments.listing()}
    gone = set(copy.seen.execute(SUPERSEDED).scalars())
    copied = []
    for number, segment in enumerate(segments, start=1):
        files = [(copy.segments.name(segment), segment.name), (copy.segments.manifest_name(segment), segment.manifest)]
        for name, digest in files:
            collected = segment.ordinal in gone and name not in there
            if not collected and (name not in there or kept.get(name) != there[name]):
                copied.append(copy.segments.copy_from(copy.source.segments, name, digest))
        copy.progress("segments", number, len(segments))
    for kind in sorted({(segment.type, segment.version) for segment in segments}):
        copy.segments.settle(*kind)
    return copied


def _copy_rows(copy: _Copy, stream_identity: str, due: tuple[Cut, str]) -> dict[str, int]:
    """How many rows of each table were copied, in one transaction; Fault when cut or head differ at its end."""
    with making(copy.target, stream_identity) as (connection, fresh):
        _refuse_filled(copy.source, copy.target, connection, fresh=fresh)
        counts = {name: _copy_table(copy, connection, name) for name in ROWS}
        if connection.dialect.name == "postgresql":
            connection.execute(RESTART_QUARANTINE_IDS)
        if (cut_now(connection), head_now(connection)) != due:
            raise Fault(
                f"the copy in {copy.target} differs from the ledger in {copy.source.location} and was not kept; run"
                " `lap verify` there"
            )
        failpoint("copy.rows")
    return counts


def _copy_table(copy: _Copy, connection: Connection, name: str) -> int:
    """The rows that were copied of a table, in the order of its key."""
    form, keys = _form(copy.seen, name)
    total = int(copy.seen.execute(select(func.count()).select_from(form)).scalar_one())
    rows = select(*form.columns).order_by(*(form.columns[key] for key in keys))
    identities = copy.seen.execute(rows, execution_options={"yield_per": ROWS[name]})
    last = copy.seen.execute(LAST_QUARANTINED).scalar_one()
    done = 0
    for some in identities.mappings().partitions():
        if not copy.target.sql:
            wanted = sum(len(row.get("payload", b"")) for row in some)
            refuse_below_reserve(copy.target.root, copy.target.reserve_bytes, wanted)
        connection.execute(insert(form), [_moved(name, dict(row), last) for row in some])
        done += len(some)
        copy.progress(name, done, total)
    return done


def _form(connection: Connection, name: str) -> tuple[TableClause, list[str]]:
    """A table with the columns that it has in the database, and the names of its key."""
    known = inspect(connection)
    columns = [str(column["name"]) for column in known.get_columns(name)]
    return table(name, *map(column, columns)), list(known.get_pk_constraint(name)["constrained_columns"])


def _moved(name: str, row: dict[str, Any], last: int) -> dict[str, Any]:
    """A row as the copy has it: its positions are on a new stream, of which nothing was read, and nobody's.

    `last` is the id of the last quarantined record, which came from an earlier stream like all before it.
    """
    if name != "stream_position":
        return row
    fresh = {"identity": "", "next_position": 0}
    fresh |= {"moves": row["moves"] + 1, "moved": row["admissions"], "moved_id": last}
    return row | fresh | {"lease_epoch": 0, "lease_holder": "", "lease_until": 0}
