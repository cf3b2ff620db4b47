"""The unit of transport: a frame is a batch of events of one type from one producer, an Arrow IPC stream with headers.

The headers are CloudEvents 1.0 attributes in binary mode, so any Kafka tool can route a frame and `pyarrow.ipc` alone
can read it. Frames are values: no I/O here. Hostile bytes become `FrameError`, never another exception.
"""

import hashlib
import struct
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa

from lapledger.ledger.codec.canonical import canonical, sha256_fields
from lapledger.ledger.codec.messages import WireError
from lapledger.ledger.codec.packing import decoded_string_bytes, holds, packed, plain
from lapledger.ledger.codec.wire import Wire, read_wire
from lapledger.ledger.events import EVENTS, EventType

CONTENT_TYPE = "application/vnd.apache.arrow.stream"
MAX_PAYLOAD_BYTES = 64 << 20
MAX_DECODED_BYTES = 256 << 20
MAX_HEADER_CHARS = 1000


class FrameError(ValueError):
    """A record that cannot be admitted; `reason` is a fixed identifier, the message gives details."""

    def __init__(self, reason: str, message: str) -> None:
        super().__init__(message)
        self.reason = reason


@dataclass(frozen=True, slots=True)
class Record:
    """What a stream carries: CloudEvents headers and the bytes of one frame."""

    headers: Mapping[str, str]
    payload: bytes


@dataclass(frozen=True, slots=True)
class Link:
    """Where a frame stands in its producer's chain: (epoch, stream, partition), sequence and previous digest."""

    epoch: str
    stream: str
    partition: int
    sequence: int
    previous: str


@dataclass(frozen=True, slots=True, eq=False)
class Frame:
    """A decoded frame. `packed` holds its rows as they travel; `digest` covers link, key and every value."""

    declared: EventType
    key: str
    link: Link
    packed: pa.RecordBatch
    digest: str

    @property
    def rows(self) -> int:
        """Events in the frame."""
        return int(self.packed.num_rows)

    @property
    def batch(self) -> pa.RecordBatch:
        """The rows with the exact schema of `declared`; computed at each call."""
        return self.packed if self.packed.schema.equals(self.declared.schema) else plain(self.packed)


def genesis(epoch: str, stream: str, partition: int) -> str:
    """The previous digest of a chain's first frame; it binds the chain to its stream and partition."""
    return sha256_fields("genesis", epoch, stream, partition)


def make_frame(declared: EventType, key: str, link: Link, batch: pa.RecordBatch) -> Frame:
    """A frame around a batch, plain or packed; ValueError when the batch has another schema or no row."""
    if not holds(batch.schema, declared.schema) or batch.num_rows == 0:
        raise ValueError(f"a frame of {declared.name} needs rows of its own schema")
    rows = packed(batch)
    return Frame(declared, key, link, rows, frame_digest(declared, key, link, rows))


def frame_digest(declared: EventType, key: str, link: Link, batch: pa.RecordBatch) -> str:
    """SHA-256 of the frame's canonical form: type, version, key, epoch, sequence, previous digest, then all values.

    Whether the batch is packed makes no difference.
    """
    return _digest(declared, key, link, next(canonical(batch.columns, [0, batch.num_rows])))


def frame_digests(
    declared: EventType, columns: Sequence[pa.Array], bounds: Sequence[int], keyed_links: Sequence[tuple[str, Link]]
) -> Iterator[str]:
    """The digests of many frames, from the columns of all their rows; `keyed_links` [frames] hold (key, link)."""
    for (key, link), values in zip(keyed_links, canonical(columns, bounds), strict=True):
        yield _digest(declared, key, link, values)


def _digest(declared: EventType, key: str, link: Link, values: bytes) -> str:
    head = sha256_fields(declared.name, declared.version, key, link.epoch, link.sequence, link.previous)
    hasher = hashlib.sha256(head.encode())
    hasher.update(values)
    return hasher.hexdigest()


def encode(frame: Frame) -> Record:
    """The frame as headers and an Arrow IPC stream."""
    return Record(_headers(frame.declared, frame.key, frame.link, frame.rows, frame.digest), _stream(frame.packed))


def make_record(declared: EventType, key: str, link: Link, rows: pa.RecordBatch) -> tuple[Record, str]:
    """Packed rows as the record of a frame, and its digest: `encode` of `make_frame`, in one step."""
    payload = _stream(rows)
    digest = payload_digest(declared, key, link, payload)
    return Record(_headers(declared, key, link, rows.num_rows, digest), payload), digest


def payload_digest(declared: EventType, key: str, link: Link, payload: bytes) -> str:
    """The digest of the frame whose rows are in a payload that was admitted before; FrameError when it was altered."""
    try:
        wire = read_wire(payload, declared.name, declared.version)
        values = wire.canonical()
        if values is None:
            values = _read_batch(payload, declared)[1]
    except WireError as error:
        raise FrameError(error.reason, str(error)) from None
    except _BROKEN as error:
        raise FrameError("undecodable", f"not an Arrow stream of one batch: {error}") from None
    return _digest(declared, key, link, values)


def altered_headers(record: Record, frame: Frame) -> list[str]:
    """The names of the headers of a record that are not those of its frame, those that are missing included."""
    due = _headers(frame.declared, frame.key, frame.link, frame.batch.num_rows, frame.digest)
    return [name for name, value in due.items() if record.headers.get(name) != value]


def _stream(rows: pa.RecordBatch) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, rows.schema) as writer:
        writer.write_batch(rows)
    payload: bytes = sink.getvalue().to_pybytes()
    return payload


def _headers(declared: EventType, key: str, link: Link, rows: int, digest: str) -> dict[str, str]:
    return {
        "ce_specversion": "1.0",
        "ce_id": f"{link.epoch}.{link.stream}.{link.partition}.{link.sequence}",
        "ce_source": f"/lapledger/{link.epoch}",
        "ce_type": declared.name,
        "ce_subject": key,
        "ce_dataschema": f"urn:lapledger:{declared.name}:{declared.version}",
        "content-type": CONTENT_TYPE,
        "ce_lapversion": str(declared.version),
        "ce_lapepoch": link.epoch,
        "ce_lapstream": link.stream,
        "ce_lappartition": str(link.partition),
        "ce_lapsequence": str(link.sequence),
        "ce_lapprevious": link.previous,
        "ce_lapdigest": digest,
        "ce_laprows": str(rows),
    }


def decode(record: Record) -> Frame:
    """The frame in a record, fully validated; FrameError with a reason when anything is off."""
    declared, key, link = _read_headers(record.headers)
    batch, values = _read_batch(record.payload, declared)
    if str(batch.num_rows) != record.headers.get("ce_laprows"):
        raise FrameError(
            "header-mismatch", f"header has {record.headers.get('ce_laprows')} rows, payload has {batch.num_rows}"
        )
    digest = _digest(declared, key, link, values)
    if digest != record.headers.get("ce_lapdigest"):
        raise FrameError("digest-mismatch", "the values do not give the digest in the header")
    return Frame(declared, key, link, batch, digest)


def _read_headers(headers: Mapping[str, str]) -> tuple[EventType, str, Link]:
    try:
        name, version = headers["ce_type"], header_number(headers["ce_lapversion"])
        partition, sequence = header_number(headers["ce_lappartition"]), header_number(headers["ce_lapsequence"])
        key, epoch = header_text(headers["ce_subject"]), header_text(headers["ce_lapepoch"])
        stream, previous = header_text(headers["ce_lapstream"]), header_text(headers["ce_lapprevious"])
        link = Link(epoch, stream, partition, sequence, previous)
    except (KeyError, ValueError) as error:
        raise FrameError("bad-header", f"missing or malformed header: {error}") from None
    if (name, version) not in EVENTS:
        raise FrameError("unknown-type", f"no event type {name} version {version} is known here")
    if sequence == 0 and link.previous != genesis(epoch, link.stream, partition):
        raise FrameError("bad-header", f"sequence {sequence} does not start its chain")
    return EVENTS[name, version], key, link


def header_number(text: str) -> int:
    """A count as headers hold it, small enough for every database and for canonical JSON; ValueError for another."""
    if not (text.isascii() and text.isdigit() and len(text) <= 15):
        raise ValueError(f"{text[:40]!r} is not a count")
    return int(text)


def header_text(text: str) -> str:
    """A text that every database can store: short, valid Unicode, without NUL; ValueError for any other."""
    if len(text) > MAX_HEADER_CHARS or "\0" in text:
        raise ValueError(f"{text[:40]!r} is too long or holds NUL")
    text.encode()  # UnicodeEncodeError is a ValueError
    return text


def _read_batch(payload: bytes, declared: EventType) -> tuple[pa.RecordBatch, bytes]:
    """The rows of a payload, packed or plain, and their canonical bytes."""
    if len(payload) > MAX_PAYLOAD_BYTES:
        raise FrameError("too-large", f"payload of {len(payload)} bytes, the limit is {MAX_PAYLOAD_BYTES}")
    try:
        wire = read_wire(payload, declared.name, declared.version)
        batch = pa.ipc.open_stream(payload).read_next_batch()
        batch.validate(full=True)
        _check_batch(batch, wire, declared)
        return batch, _canonical(wire, batch)
    except WireError as error:
        raise FrameError(error.reason, str(error)) from None
    except FrameError:
        raise
    except (pa.ArrowException, StopIteration, EOFError, OSError, *_BROKEN) as error:
        cause = " ".join(str(error).split())[:200]
        raise FrameError("undecodable", f"not an Arrow stream of one batch: {cause}") from None


_BROKEN = (ValueError, MemoryError, OverflowError, IndexError, KeyError, struct.error)


def _canonical(wire: Wire, batch: pa.RecordBatch) -> bytes:
    return wire.canonical() or next(canonical(batch.columns, [0, batch.num_rows]))


def _check_batch(batch: pa.RecordBatch, wire: Wire, declared: EventType) -> None:
    if batch.num_rows == 0:
        raise FrameError("bad-schema", "a frame holds at least one event")
    size = _decoded_bytes(batch, len(wire.payload))
    if size > MAX_DECODED_BYTES:
        raise FrameError("too-large", f"decoded to {size} bytes, the limit is {MAX_DECODED_BYTES}")
    if wire.columns is not None and not any(nulls for _, nulls in wire.nodes):
        return
    for column, array in zip(declared.columns, batch.columns, strict=True):
        items = array.flatten().null_count if pa.types.is_list(column.arrow) else 0
        if items or (array.null_count and not column.nullable):
            raise FrameError("bad-schema", f"null in column {column.name}, which must have a value")


def _decoded_bytes(batch: pa.RecordBatch, payload: int) -> int:
    """Bytes of the rows once they are plain; an upper bound where even that is allowed.

    Buffers may share bytes of the payload, and a dictionary value may occur in every row.
    """
    bound = payload * max(int(batch.num_rows), 8 * int(batch.num_columns))
    if bound <= MAX_DECODED_BYTES:
        return bound
    return 8 * int(batch.nbytes) + sum(
        decoded_string_bytes(array) for array in batch.columns if pa.types.is_dictionary(array.type)
    )
