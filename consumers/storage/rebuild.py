"""Rebuilds the SQL database of a ledger from its segments and manifests alone; the streams give the rest.

What comes back: identity, segments with their chain, ranges and supersessions, every sealed frame's row (the dedupe
keys), sealed quarantine, gaps, and the positions up to the last sealing. What was in the tail is read again from the
stream and gets the same admission numbers. Leases, counts of duplicates and time labels are not restored.

Where the stream is another than the one that was sealed (a copy that never sealed, a stream that was lost), it is read
from its beginning, as that of a ledger that was moved there.
"""

import json
from collections.abc import Iterable, Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, column, insert, inspect, table, text

from lapledger.ledger.errors import Fault, UserError
from lapledger.ledger.events import PARTITIONS
from lapledger.ledger.frames.frame import header_number, header_text
from lapledger.ledger.proof import RecordedHead
from lapledger.ledger.proof.candidates import Candidate, find_chain
from lapledger.ledger.proof.manifests import Manifest, Reached, read_manifest
from lapledger.ledger.store.frame_rows import FrameMeta
from lapledger.ledger.store.heads import first_head, next_head
from lapledger.ledger.store.location import SQL_FILE, LedgerPath, Location, location_of
from lapledger.ledger.store.open_ledger import Ledger, create_ledger, open_files
from lapledger.ledger.store.quarantine import NAME, Quarantined
from lapledger.ledger.store.segments import Segment
from lapledger.ledger.store.sql.engine import alone, open_engine, reading, writing
from lapledger.ledger.store.sql.statements import FRAME_DIGESTS, LAST_QUARANTINED, RESTART_QUARANTINE_IDS

_STATEMENT_ROWS = 2000
"""Rows of one statement."""


@dataclass(frozen=True, slots=True)
class Rebuilt:
    """What came back from the segments. `others` are the ends of the chain that were not taken.

    `proven` is true when a head written down decided which chain it is; None when that head covers frames that only
    the stream can give back, so that it must be asked again after a drain. `other_stream`: the stream is another than
    the one that was sealed, so that nothing of that one's tail comes back.
    """

    identity: str
    cut: str
    head: str
    segments: int
    frames: int
    quarantined: int
    rejected_chains: tuple[str, ...]
    proven: bool | None
    other_stream: bool


@dataclass(frozen=True, slots=True)
class Now:
    """The time of a rebuild: as a label, and in milliseconds, when the grace period of superseded files begins anew."""

    label: str
    ms: int


def rebuild(location: LedgerPath, now: Now, written: RecordedHead | None = None, *, stream_identity: str) -> Rebuilt:
    """What was put into the database at a place, which must be empty; a `lap sink` or any writing command goes on.

    `written`, a head written down, says which chain is meant where a sealing that was cut short left several;
    `stream_identity` is a fresh word for a local stream that is lost. UserError when the database holds a ledger, or
    nothing was sealed; Fault when the chain is broken, with its place.
    """
    location = location_of(location)
    _refuse_filled(location)
    _, segments = open_files(location)
    search = find_chain(segments, written)
    identity = search.chain.manifests[0].ledger
    ledger = create_ledger(location, identity, now.label, stream_identity=stream_identity)
    try:
        if ledger.identity != identity:
            raise UserError(
                f"the empty database in {location} was made for another ledger ({ledger.identity}); remove it first"
            )
        with writing(ledger.engine) as connection:
            alone(connection, "rebuild")
            _refuse_rows(location, connection)
            filling = _Filling(ledger, connection, search.chain, now)
            frames, quarantined = filling.fill(_stream_identities(ledger))
        proven = search.proven if written is None or search.proven else None
        counts = len(search.chain.manifests), frames, quarantined
        return Rebuilt(
            identity, str(ledger.cut()), ledger.head(), *counts, search.rejected, proven, filling.other_stream
        )
    finally:
        ledger.close()


_FILLED = {
    "frame": text("SELECT count(*) FROM frame"),
    "segment": text("SELECT count(*) FROM segment"),
    "tail": text("SELECT count(*) FROM tail"),
    "quarantine": text("SELECT count(*) FROM quarantine"),
}


def _refuse_filled(location: Location) -> None:
    """UserError when there is a database with facts in it."""
    if not location.sql and not (location.root / SQL_FILE).exists():
        return
    engine = open_engine(location.sql_url)
    try:
        with reading(engine) as connection:
            _refuse_rows(location, connection)
    finally:
        engine.dispose()


def _refuse_rows(location: Location, connection: Connection) -> None:
    known = set(inspect(connection).get_table_names())
    for name, count in _FILLED.items():
        if name in known and connection.execute(count).scalar_one():
            raise UserError(f"the database in {location} holds a ledger; move it away: a rebuild fills an empty one")


def _stream_identities(ledger: Ledger) -> Mapping[str, str]:
    """The identity of each stream that is there now."""
    with closing(ledger.stream()) as stream:
        return {name: stream.identity(name) for name in PARTITIONS}


class _Filling:
    """One rebuild under way, in one transaction."""

    def __init__(self, ledger: Ledger, connection: Connection, chain: Candidate, now: Now) -> None:
        self._ledger, self._connection, self._chain, self._now = ledger, connection, chain, now
        self._gone, self._last = chain.superseded, chain.manifests[-1]
        self.other_stream = False
        self._frames = self._quarantined = 0

    def fill(self, identities: Mapping[str, str]) -> tuple[int, int]:
        """(frames, quarantined records) that came back; Fault when they are not those of the positions.

        `identities` are those of the streams that will be read.
        """
        for light in self._chain.manifests:
            manifest = read_manifest(self._ledger.segments, light.as_segment)
            self._add_segment(manifest)
            if manifest.digest not in self._gone:
                self._add_rows(manifest)
        positions = self._last.positions
        self.other_stream = any(at.identity not in ("", identities.get(at.stream)) for at in positions)
        for reached in positions:
            self._add_position(reached)
        self._add_retries()
        _restart_ids(self._connection)
        return self._frames, self._quarantined

    def _add_segment(self, manifest: Manifest) -> None:
        segment = manifest.as_segment
        admissions = json.dumps([list(span) for span in segment.admissions])
        values = {name: getattr(segment, name) for name in Segment.__slots__ if name != "admissions"}
        self._insert("segment", [values | {"admissions": admissions}])
        kind = {"ordinal": segment.ordinal, "type": segment.type, "version": segment.version}
        names = ("stream", "partition", "first", "last")
        self._insert("segment_range", (kind | dict(zip(names, span, strict=True)) for span in segment.admissions))
        if manifest.digest in self._gone:
            row = {"ordinal": segment.ordinal, "by": self._gone[manifest.digest], "since": self._now.ms}
            self._insert("supersession", [row])

    def _add_rows(self, manifest: Manifest) -> None:
        if manifest.type == NAME:
            self._quarantined += self._insert("quarantine", _quarantine_rows(self._ledger, manifest))
            return
        kind = {"type": manifest.type, "version": manifest.version}
        self._frames += self._insert("frame", (meta._asdict() | kind for meta in manifest.frames))

    def _add_position(self, reached: Reached) -> None:
        if reached.partition not in range(PARTITIONS.get(reached.stream, 0)):
            raise Fault(f"the last manifest names {reached.stream}/{reached.partition}, which is no partition here")
        bound = {"stream": reached.stream, "partition": reached.partition}
        head, count = first_head(self._ledger.identity, reached.stream, reached.partition), 0
        for count, row in enumerate(self._connection.execute(FRAME_DIGESTS, bound), start=1):
            if row.admission != count:
                break
            head = next_head(head, row.digest)
        if (count, head) != (reached.admissions, reached.head):
            raise Fault(
                f"the segments hold other frames of {reached.stream}/{reached.partition} than the {reached.admissions}"
                " that the last manifest covers; restore them from a copy of the ledger"
            )
        known = {range_[:2]: range_ for range_ in self._last.moved}
        moves, moved, moved_id = known.get(reached[:2], (*reached[:2], 0, 0, 0))[2:]
        values = reached._asdict() | {"moves": moves, "moved": moved, "moved_id": moved_id}
        if self.other_stream:  # nothing of it was read yet, as after a copy
            last = self._connection.execute(LAST_QUARANTINED).scalar_one()
            values |= {"identity": "", "next_position": 0}
            values |= {"moves": moves + 1, "moved": reached.admissions, "moved_id": last}
        self._connection.execute(_POSITION, values)
        self._insert("gap", _gaps(self._connection, bound))

    def _add_retries(self) -> None:
        """A quarantined record that a frame came from was retried; the frame's link and digest stand in its headers."""
        rows = self._connection.execute(text("SELECT id, stream, partition, source_offset, headers FROM quarantine"))
        search = [(row.id, self._connection.execute(_RETRIED, _link(row)).scalar_one_or_none()) for row in rows.all()]
        self._insert("quarantine_retry", ({"id": i, "admission": a, "seen": ""} for i, a in search if a is not None))

    def _insert(self, name: str, rows: Iterable[dict[str, Any]]) -> int:
        count = 0
        for some in _some(rows):
            self._connection.execute(insert(table(name, *map(column, some[0]))), some)
            count += len(some)
        return count


_POSITION = text(
    "UPDATE stream_position SET identity = :identity, next_position = :next_position, admissions = :admissions,"
    " head = :head, moves = :moves, moved = :moved, moved_id = :moved_id"
    " WHERE stream = :stream AND partition = :partition"
)
_CHAINS = text(
    "SELECT epoch, sequence FROM frame WHERE stream = :stream AND partition = :partition ORDER BY epoch, sequence"
)
_RETRIED = text(
    "SELECT admission FROM frame WHERE stream = :stream AND partition = :partition AND epoch = :epoch"
    " AND sequence = :sequence AND digest = :digest AND source_offset = :source_offset"
)


def _gaps(connection: Connection, location: dict[str, object]) -> Iterator[dict[str, Any]]:
    """The runs of sequences that no sealed frame has, below the largest of each producer."""
    epoch, due = "", 0
    for row in connection.execute(_CHAINS, location).all():
        due = due if row.epoch == epoch else 0
        if row.sequence > due:
            yield location | {"epoch": row.epoch, "first_missing": due, "last_missing": row.sequence - 1}
        epoch, due = row.epoch, row.sequence + 1


def _link(row: Any) -> dict[str, object]:
    """Where the frame of a quarantined record would stand, as its headers say."""
    try:
        headers = json.loads(row.headers)
        link = {"epoch": header_text(headers["ce_lapepoch"]), "digest": header_text(headers["ce_lapdigest"])}
        sequence = header_number(headers["ce_lapsequence"])
    except (ValueError, KeyError, TypeError, AttributeError):
        link, sequence = {"epoch": "", "digest": ""}, -1
    location = {"stream": row.stream, "partition": row.partition, "source_offset": row.source_offset}
    return location | link | {"sequence": sequence}


def _quarantine_rows(ledger: Ledger, manifest: Manifest) -> Iterator[dict[str, Any]]:
    """The records of a segment of the quarantine; Fault when one was altered since it was sealed."""
    metas: Iterator[FrameMeta] = iter(manifest.frames)
    with ledger.segments.open(manifest.as_segment) as file:
        for number in range(file.num_row_groups):
            for row in file.read_row_group(number).to_pylist():
                record = Quarantined.from_sealed(row["_admission"], row)
                if record.meta != next(metas, None):
                    raise Fault(f"quarantined record {record.id} was altered in its segment; restore it from a copy")
                yield {name: getattr(record, name) for name in Quarantined.__slots__ if name != "admission"}


def _some(rows: Iterable[dict[str, Any]]) -> Iterator[list[dict[str, Any]]]:
    held: list[dict[str, Any]] = []
    for row in rows:
        held.append(row)
        if len(held) == _STATEMENT_ROWS:
            yield held
            held = []
    if held:
        yield held


def _restart_ids(connection: Connection) -> None:
    """Makes PostgreSQL number what is quarantined next behind what came back; SQLite does so by itself."""
    if connection.dialect.name == "postgresql":
        connection.execute(RESTART_QUARANTINE_IDS)
