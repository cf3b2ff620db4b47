"""The SQL tables, for migrations to be made from. Nothing else imports this module: reads and writes use plain SQL.

Each frame has a row in `frame` permanently (position, chain link, digest); its payload is in `tail` until it is sealed.
"""

from sqlalchemy import BigInteger, Column, Index, Integer, LargeBinary, Text, UniqueConstraint
from sqlmodel import Field, SQLModel

_SERIAL = BigInteger().with_variant(Integer, "sqlite")  # SQLite numbers rows by itself only in an INTEGER key


class LedgerRow(SQLModel, table=True):
    """The ledger itself: one row."""

    __tablename__ = "ledger"
    identity: str = Field(sa_type=Text, primary_key=True)
    created: str = Field(sa_type=Text)


class PositionRow(SQLModel, table=True):
    """How far one stream partition was admitted, and who may admit.

    `moves` counts how often the ledger was moved to another stream, with all its partitions; `moved` are the admissions
    that came from an earlier one, as did quarantined records up to the id `moved_id`.
    """

    __tablename__ = "stream_position"
    stream: str = Field(sa_type=Text, primary_key=True)
    partition: int = Field(primary_key=True)
    identity: str = Field(sa_type=Text)
    next_position: int = Field(sa_type=BigInteger)
    admissions: int = Field(sa_type=BigInteger)
    head: str = Field(sa_type=Text)
    duplicates: int = Field(sa_type=BigInteger)
    lease_epoch: int = Field(sa_type=BigInteger)
    lease_holder: str = Field(sa_type=Text, sa_column_kwargs={"server_default": ""})
    lease_until: int = Field(sa_type=BigInteger, sa_column_kwargs={"server_default": "0"})
    moves: int = Field(sa_type=BigInteger, sa_column_kwargs={"server_default": "0"})
    moved: int = Field(sa_type=BigInteger, sa_column_kwargs={"server_default": "0"})
    moved_id: int = Field(sa_type=BigInteger, sa_column_kwargs={"server_default": "0"})


class LeaseRow(SQLModel, table=True):
    """Who may do a thing that one process does at a time, until when (milliseconds), and how often it changed hands."""

    __tablename__ = "lease"
    name: str = Field(sa_type=Text, primary_key=True)
    epoch: int = Field(sa_type=BigInteger)
    holder: str = Field(sa_type=Text)
    until: int = Field(sa_type=BigInteger)


class FrameRow(SQLModel, table=True):
    """An admitted frame: its admission number and its link in the producer's chain."""

    __tablename__ = "frame"
    __table_args__ = (UniqueConstraint("stream", "partition", "epoch", "sequence", name="frame_link"),)
    stream: str = Field(sa_type=Text, primary_key=True)
    partition: int = Field(primary_key=True)
    admission: int = Field(sa_type=BigInteger, primary_key=True)
    type: str = Field(sa_type=Text)
    version: int
    key: str = Field(sa_type=Text)
    epoch: str = Field(sa_type=Text)
    sequence: int = Field(sa_type=BigInteger)
    previous: str = Field(sa_type=Text)
    digest: str = Field(sa_type=Text)
    rows: int
    source_offset: int = Field(sa_type=BigInteger)


class TailRow(SQLModel, table=True):
    """The payload of a frame that is not sealed yet: an Arrow IPC stream."""

    __tablename__ = "tail"
    __table_args__ = (Index("tail_type", "type", "version", "stream", "partition", "admission"),)
    stream: str = Field(sa_type=Text, primary_key=True)
    partition: int = Field(primary_key=True)
    admission: int = Field(sa_type=BigInteger, primary_key=True)
    type: str = Field(sa_type=Text)
    version: int
    payload: bytes = Field(sa_type=LargeBinary)


class GapRow(SQLModel, table=True):
    """A run of sequence numbers that were skipped and have not come yet."""

    __tablename__ = "gap"
    stream: str = Field(sa_type=Text, primary_key=True)
    partition: int = Field(primary_key=True)
    epoch: str = Field(sa_type=Text, primary_key=True)
    first_missing: int = Field(sa_type=BigInteger, primary_key=True)
    last_missing: int = Field(sa_type=BigInteger)


class SegmentRow(SQLModel, table=True):
    """A sealed segment, named by its digest; `ordinal` is its position in the chain of manifests."""

    __tablename__ = "segment"
    ordinal: int = Field(sa_column=Column(BigInteger, primary_key=True, autoincrement=False))
    name: str = Field(sa_type=Text, unique=True)
    manifest: str = Field(sa_type=Text, unique=True)
    type: str = Field(sa_type=Text)
    version: int
    frames: int = Field(sa_type=BigInteger)
    rows: int = Field(sa_type=BigInteger)
    bytes: int = Field(sa_type=BigInteger)
    admissions: str = Field(sa_type=Text)


class SegmentRangeRow(SQLModel, table=True):
    """The admissions (first to last, of the segment's type) that a segment holds of one partition."""

    __tablename__ = "segment_range"
    __table_args__ = (Index("segment_range_place", "type", "version", "stream", "partition", "last"),)
    ordinal: int = Field(sa_type=BigInteger, primary_key=True)
    stream: str = Field(sa_type=Text, primary_key=True)
    partition: int = Field(primary_key=True)
    type: str = Field(sa_type=Text)
    version: int
    first: int = Field(sa_type=BigInteger)
    last: int = Field(sa_type=BigInteger)


class SupersessionRow(SQLModel, table=True):
    """A segment whose frames are in a compacted one now; its file may be removed after a grace period."""

    __tablename__ = "supersession"
    ordinal: int = Field(sa_column=Column(BigInteger, primary_key=True, autoincrement=False))
    by: int = Field(sa_type=BigInteger)
    since: int = Field(sa_type=BigInteger)


class QuarantineRow(SQLModel, table=True):
    """A record that was not admitted, kept in full with its reason."""

    __tablename__ = "quarantine"
    id: int = Field(sa_column=Column(_SERIAL, primary_key=True))
    stream: str = Field(sa_type=Text)
    partition: int
    source_offset: int = Field(sa_type=BigInteger)
    reason: str = Field(sa_type=Text)
    message: str = Field(sa_type=Text)
    headers: str = Field(sa_type=Text)
    payload: bytes = Field(sa_type=LargeBinary)
    seen: str = Field(sa_type=Text)


class QuarantineRetryRow(SQLModel, table=True):
    """A quarantined record that a retry admitted, with its new admission number."""

    __tablename__ = "quarantine_retry"
    id: int = Field(sa_column=Column(BigInteger, primary_key=True, autoincrement=False))
    admission: int = Field(sa_type=BigInteger)
    seen: str = Field(sa_type=Text)
