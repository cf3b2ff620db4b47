"""How facts travel: a frame is a batch of events of one type from one producer, as an Arrow IPC stream with headers.

The headers are CloudEvents 1.0 attributes in binary mode, so any Kafka tool can route a frame and `pyarrow.ipc` alone
can read it. Frames are values: no I/O here. Hostile bytes become `FrameError`, never another exception.
"""

import hashlib
import struct
from collections.abc import Mapping
from dataclasses import dataclass

import pyarrow as pa

from ledger.digests import canonical_columns, sha256_words
from ledger.events import EVENTS, EventType

CONTENT_TYPE = "application/vnd.apache.arrow.stream"
MAX_PAYLOAD_BYTES = 64 << 20
MAX_DECODED_BYTES = 256 << 20
MAX_WORD = 1000


class FrameError(ValueError):
    """A record that cannot be admitted; `reason` is one fixed word, the message says more."""

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
    """A decoded frame. `batch` has the exact schema of `declared`; `digest` covers link, key and every value."""

    declared: EventType
    key: str
    link: Link
    batch: pa.RecordBatch
    digest: str


def genesis(epoch: str, stream: str, partition: int) -> str:
    """The previous digest of a chain's first frame; it binds the chain to its stream and partition."""
    return sha256_words("genesis", epoch, stream, partition)


def make_frame(declared: EventType, key: str, link: Link, batch: pa.RecordBatch) -> Frame:
    """A frame around a batch, its digest computed; ValueError when the batch has another schema or no row."""
    if not batch.schema.equals(declared.schema) or batch.num_rows == 0:
        raise ValueError(f"a frame of {declared.name} needs rows of its own schema")
    return Frame(declared, key, link, batch, frame_digest(declared, key, link, batch))


def frame_digest(declared: EventType, key: str, link: Link, batch: pa.RecordBatch) -> str:
    """SHA-256 of the frame's canonical form: type, version, key, epoch, sequence, previous digest, then all values."""
    head = sha256_words(declared.name, declared.version, key, link.epoch, link.sequence, link.previous)
    hasher = hashlib.sha256(head.encode())
    for part in canonical_columns(batch):
        hasher.update(part)
    return hasher.hexdigest()


def encode(frame: Frame) -> Record:
    """The frame as headers and an Arrow IPC stream."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, frame.batch.schema) as writer:
        writer.write_batch(frame.batch)
    return Record(_headers(frame), sink.getvalue().to_pybytes())


def _headers(frame: Frame) -> dict[str, str]:
    link = frame.link
    return {
        "ce_specversion": "1.0",
        "ce_id": f"{link.epoch}.{link.stream}.{link.partition}.{link.sequence}",
        "ce_source": f"/lapledger/{link.epoch}",
        "ce_type": frame.declared.name,
        "ce_subject": frame.key,
        "ce_dataschema": f"urn:lapledger:{frame.declared.name}:{frame.declared.version}",
        "content-type": CONTENT_TYPE,
        "ce_lapversion": str(frame.declared.version),
        "ce_lapepoch": link.epoch,
        "ce_lapstream": link.stream,
        "ce_lappartition": str(link.partition),
        "ce_lapsequence": str(link.sequence),
        "ce_lapprevious": link.previous,
        "ce_lapdigest": frame.digest,
        "ce_laprows": str(frame.batch.num_rows),
    }


def decode(record: Record) -> Frame:
    """The frame in a record, fully validated; FrameError with a reason when anything is off."""
    declared, key, link = _read_headers(record.headers)
    batch = _read_batch(record.payload, declared)
    if str(batch.num_rows) != record.headers.get("ce_laprows"):
        raise FrameError(
            "header-mismatch", f"header says {record.headers.get('ce_laprows')} rows, payload has {batch.num_rows}"
        )
    frame = Frame(declared, key, link, batch, frame_digest(declared, key, link, batch))
    if frame.digest != record.headers.get("ce_lapdigest"):
        raise FrameError("digest-mismatch", "the values do not give the digest in the header")
    return frame


def _read_headers(headers: Mapping[str, str]) -> tuple[EventType, str, Link]:
    try:
        name, version = headers["ce_type"], _number(headers["ce_lapversion"])
        partition, sequence = _number(headers["ce_lappartition"]), _number(headers["ce_lapsequence"])
        key, epoch = _word(headers["ce_subject"]), _word(headers["ce_lapepoch"])
        link = Link(epoch, _word(headers["ce_lapstream"]), partition, sequence, _word(headers["ce_lapprevious"]))
    except (KeyError, ValueError) as error:
        raise FrameError("bad-header", f"missing or malformed header: {error}") from None
    if (name, version) not in EVENTS:
        raise FrameError("unknown-type", f"no event type {name} version {version} is known here")
    if sequence == 0 and link.previous != genesis(epoch, link.stream, partition):
        raise FrameError("bad-header", f"sequence {sequence} does not start its chain")
    return EVENTS[name, version], key, link


def _number(text: str) -> int:
    """A count as `_headers` writes it, small enough for every database and for canonical JSON."""
    if not (text.isascii() and text.isdigit() and len(text) <= 15):
        raise ValueError(f"{text[:40]!r} is not a count")
    return int(text)


def _word(text: str) -> str:
    """A word that every database can keep: short, valid Unicode, without NUL."""
    if len(text) > MAX_WORD or "\0" in text:
        raise ValueError(f"{text[:40]!r} is too long or holds NUL")
    text.encode()  # UnicodeEncodeError is a ValueError
    return text


def _read_batch(payload: bytes, declared: EventType) -> pa.RecordBatch:
    if len(payload) > MAX_PAYLOAD_BYTES:
        raise FrameError("too-large", f"payload of {len(payload)} bytes, the limit is {MAX_PAYLOAD_BYTES}")
    try:
        with pa.ipc.open_stream(payload) as reader:
            _check_messages(reader.schema, payload, declared)
            batch = reader.read_next_batch()
        batch.validate(full=True)
    except FrameError:
        raise
    except (pa.ArrowException, StopIteration, EOFError, OSError, ValueError, MemoryError, struct.error) as error:
        words = " ".join(str(error).split())[:200]
        raise FrameError("undecodable", f"not an Arrow stream of one batch: {words}") from None
    _check_batch(batch, declared)
    return batch


def _check_messages(schema: pa.Schema, payload: bytes, declared: EventType) -> None:
    """FrameError unless the schema is the type's own and one plain record batch follows; nothing is decoded yet.

    A dictionary or a compressed batch never stands in a frame, and a small one could decode to any size. In the Arrow
    format's flatbuffers Message.header is the third field and RecordBatch.compression the fourth.
    """
    if not schema.equals(declared.schema):
        raise FrameError("bad-schema", f"columns differ from {declared.name} version {declared.version}")
    messages = pa.ipc.MessageReader.open_stream(payload)
    messages.read_next_message()  # the schema
    found = list(messages)
    if [message.type for message in found] != ["record batch"]:
        raise FrameError("bad-schema", "a frame holds one record batch and nothing else")
    data = found[0].metadata.to_pybytes()
    root = _flat_u32(data, 0)
    header = root + _flat_field(data, root, 2)
    if _flat_field(data, header + _flat_u32(data, header), 3):
        raise FrameError("undecodable", "its buffers are compressed, which no frame's are")


def _flat_u32(data: bytes, at: int) -> int:
    return int(struct.unpack_from("<I", data, at)[0])


def _flat_field(data: bytes, table: int, field: int) -> int:
    """Where a field of a flatbuffer table lies, relative to the table; 0 when it is absent."""
    vtable = table - int(struct.unpack_from("<i", data, table)[0])
    at = 4 + 2 * field
    if vtable < 0 or at >= int(struct.unpack_from("<H", data, vtable)[0]):
        return 0
    return int(struct.unpack_from("<H", data, vtable + at)[0])


def _check_batch(batch: pa.RecordBatch, declared: EventType) -> None:
    if batch.num_rows == 0:
        raise FrameError("bad-schema", "a frame holds at least one event")
    if batch.nbytes > MAX_DECODED_BYTES:
        raise FrameError("too-large", f"decoded to {batch.nbytes} bytes, the limit is {MAX_DECODED_BYTES}")
    for column, array in zip(declared.columns, batch.columns, strict=True):
        items = array.flatten().null_count if pa.types.is_list(column.arrow) else 0
        if items or (array.null_count and not column.nullable):
            raise FrameError("bad-schema", f"null in column {column.name}, which must have a value")
