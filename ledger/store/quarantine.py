"""What was not admitted: each record kept in full with its reason, listed, shown, and sealed like facts.

Quarantined records are no events; in a segment they form a type of their own, which no stream ever carries.
"""

import json
from dataclasses import dataclass

import pyarrow as pa
from sqlalchemy import Connection, text

from lapledger.ledger.codec.canonical import sha256
from lapledger.ledger.errors import UserError
from lapledger.ledger.events import EventType
from lapledger.ledger.frames.frame import Record
from lapledger.ledger.store.frame_rows import FrameMeta

NAME = "quarantine"

PAGE = 8
"""Records in memory at once where all are gone through: a payload may be large."""

SCHEMA = pa.schema(
    [
        pa.field("source_stream", pa.string(), nullable=False),
        pa.field("source_partition", pa.int64(), nullable=False),
        pa.field("source_offset", pa.int64(), nullable=False),
        pa.field("reason", pa.string(), nullable=False),
        pa.field("message", pa.string(), nullable=False),
        pa.field("headers", pa.string(), nullable=False),
        pa.field("payload", pa.binary(), nullable=False),
        pa.field("seen", pa.string(), nullable=False),
    ]
)
QUARANTINE = EventType(NAME, 1, object, NAME, "", "records that were not admitted", (), SCHEMA, {})
"""The form of sealed quarantined records; it is not among the declared events."""


@dataclass(frozen=True, slots=True)
class Quarantined:
    """One record that was not admitted. `admission` is its number once a retry admitted it, else None."""

    id: int
    stream: str
    partition: int
    source_offset: int
    reason: str
    message: str
    headers: str
    payload: bytes
    seen: str
    admission: int | None = None

    @property
    def record(self) -> Record:
        """The record as the stream carried it."""
        return Record(json.loads(self.headers), self.payload)

    @property
    def meta(self) -> FrameMeta:
        """Its line in a manifest: its id stands for an admission number, its digest covers every field."""
        return FrameMeta(NAME, 0, self.id, "", "", self.id, "", self._digest, 1, self.source_offset)

    @property
    def _digest(self) -> str:
        values = (self.stream, self.partition, self.source_offset, self.reason, self.message, self.headers, self.seen)
        return sha256(*(str(value).encode() for value in values), self.payload)

    @property
    def batch(self) -> pa.RecordBatch:
        """Its row in a segment [1]."""
        values = (self.stream, self.partition, self.source_offset, self.reason, self.message, self.headers)
        columns = [[value] for value in (*values, self.payload, self.seen)]
        arrays = [pa.array(column, field.type) for column, field in zip(columns, SCHEMA, strict=True)]
        return pa.RecordBatch.from_arrays(arrays, schema=SCHEMA)

    @classmethod
    def from_sealed(cls, number: int, row: dict[str, object]) -> "Quarantined":
        """The record in a row of a segment."""
        names = (
            "source_stream",
            "source_partition",
            "source_offset",
            "reason",
            "message",
            "headers",
            "payload",
            "seen",
        )
        return cls(number, *(row[name] for name in names))  # type: ignore[arg-type]  # the schema decides the types


_COLUMNS = "q.id, q.stream, q.partition, q.source_offset, q.reason, q.message, q.headers, q.payload, q.seen"
_LIST = text(
    f"SELECT {_COLUMNS}, r.admission FROM quarantine q LEFT JOIN quarantine_retry r ON r.id = q.id"  # noqa: S608
    " WHERE q.reason = coalesce(:reason, q.reason) AND q.id > :after AND q.id = coalesce(:id, q.id)"
    " ORDER BY q.id LIMIT :limit"
)


def quarantined(
    connection: Connection, *, reason: str | None = None, after: int = 0, limit: int = 1000
) -> list[Quarantined]:
    """Quarantined records in the order of their ids, all reasons or one, those with an id above `after`."""
    rows = connection.execute(_LIST, {"reason": reason, "after": after, "id": None, "limit": limit})
    return [Quarantined(*row) for row in rows]


def quarantine_metas(connection: Connection, *, after: int) -> list[FrameMeta]:
    """The lines in a manifest of all records with an id above `after`; payloads are looked at a few at a time."""
    bound = {"reason": None, "after": after, "id": None, "limit": 1 << 40}
    rows = connection.execute(_LIST, bound, execution_options={"yield_per": PAGE})
    return [Quarantined(*row).meta for row in rows]


@dataclass(frozen=True, slots=True)
class ReasonCount:
    """Records quarantined for a reason, and how many of them a retry admitted since."""

    reason: str
    records: int
    admitted: int


@dataclass(frozen=True, slots=True)
class Summary:
    """One record without its headers and payload, with its payload size in `bytes`."""

    id: int
    stream: str
    partition: int
    source_offset: int
    reason: str
    message: str
    bytes: int
    seen: str
    admission: int | None


_REASONS = text(
    "SELECT q.reason, count(*) AS records, count(r.id) AS admitted FROM quarantine q"
    " LEFT JOIN quarantine_retry r ON r.id = q.id GROUP BY q.reason ORDER BY q.reason"
)
_SUMMARIES = text(
    "SELECT q.id, q.stream, q.partition, q.source_offset, q.reason, q.message, length(q.payload), q.seen, r.admission"
    " FROM quarantine q LEFT JOIN quarantine_retry r ON r.id = q.id"
    " WHERE q.reason = coalesce(:reason, q.reason) AND q.id > :after ORDER BY q.id LIMIT :limit"
)


def reason_counts(connection: Connection) -> list[ReasonCount]:
    """Every reason with its counts, sorted."""
    return [ReasonCount(*row) for row in connection.execute(_REASONS)]


def summaries(connection: Connection, *, reason: str | None, after: int, limit: int) -> list[Summary]:
    """Records in the order of their ids, all reasons or one, those with an id above `after`."""
    rows = connection.execute(_SUMMARIES, {"reason": reason, "after": after, "limit": limit})
    return [Summary(*row) for row in rows]


def quarantined_record(connection: Connection, number: int) -> Quarantined:
    """The quarantined record with that id; UserError when there is none."""
    row = connection.execute(_LIST, {"reason": None, "after": 0, "id": number, "limit": 1}).one_or_none()
    if row is None:
        raise UserError(f"no quarantined record {number}; `lap quarantine list` shows them")
    return Quarantined(*row)
