"""Frames' records as Kafka messages and back: CloudEvents in binary mode. Values only: no client, no I/O.

What other producers may write into headers becomes a record that the ledger will quarantine, never an exception.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from lapledger.ledger.frames.frame import Record
from lapledger.ledger.streams.base import Stored

MAX_MESSAGE_BYTES = 1 << 20
"""The largest batch of messages that brokers accept by default (message.max.bytes is 12 bytes more)."""

MAX_RECORD_BYTES = MAX_MESSAGE_BYTES - (8 << 10)
"""The largest payload with headers: a message repeats its subject as its key, and counts every length."""

Headers = Sequence[tuple[str, bytes | None]]


class Message(NamedTuple):
    """What kafka-python sends."""

    key: bytes | None
    value: bytes
    headers: list[tuple[str, bytes]]


def to_message(record: Record) -> Message:
    """A record as a message: headers one to one, the frame as value, the subject as key."""
    headers = [
        (name.encode(errors="backslashreplace").decode(), value.encode(errors="surrogatepass"))
        for name, value in record.headers.items()
    ]
    return Message(record.headers.get("ce_subject", "").encode(errors="surrogatepass") or None, record.payload, headers)


def to_record(headers: Headers, value: bytes | None) -> Record:
    """A message as a record. A name that comes twice and a value that is null stand under names that no frame has."""
    texts = {name: _decoded(value) for name, value in headers if value is not None}
    return Record(texts if len(texts) == len(headers) else _strange(headers), value or b"")


def _strange(headers: Headers) -> dict[str, str]:
    times = Counter(name for name, _ in headers)
    texts = {}
    for index, (name, value) in enumerate(headers):
        odd = times[name] > 1 or value is None
        texts[f"malformed {index} {name}" if odd else name] = "null" if value is None else _decoded(value)
    return texts


def _decoded(data: bytes) -> str:
    try:
        return data.decode()
    except UnicodeDecodeError:
        pass
    try:
        return data.decode(errors="surrogatepass")  # half a character, as `to_message` writes it
    except UnicodeDecodeError:
        return data.decode(errors="backslashreplace")


def together(records: Iterable[Record]) -> Iterator[list[Message]]:
    """Records in order, as many in a list as surely fit one batch, which a broker stores atomically."""
    chunk: list[Message] = []
    room = MAX_MESSAGE_BYTES - 100  # the batch's own header
    for record in records:
        message = to_message(record)
        size = 40 + len(message.key or b"") + len(message.value)
        size += sum(10 + 4 * len(name) + len(value) for name, value in message.headers)
        if chunk and size > room:
            yield chunk
            chunk, room = [], MAX_MESSAGE_BYTES - 100
        chunk.append(message)
        room -= size
    if chunk:
        yield chunk


def salvaged(data: bytes, position: int) -> list[Stored] | None:
    """Records from `position` on of the batch that holds it, when kafka-python cannot read the batch.

    What has the form of a record but is none keeps its bytes, under the header `malformed`. None when the batch's
    checksum is wrong: then not a producer but a disk or a wire altered it.
    """
    from kafka.record import MemoryRecords

    batches = MemoryRecords(data)
    while (batch := batches.next_batch()) is not None and (batch.next_offset <= position or batch.is_control_batch):
        pass  # control batches end other producers' transactions
    if batch is None or not batch.validate_crc():
        return None
    batch._maybe_uncompress()
    records = _split(batch, memoryview(batch._buffer)[batch._pos :])
    kept = [stored for stored in records if stored.offset >= position]
    return kept or [Stored(batch.last_offset, _malformed("a batch without records", data))]


def _split(batch: Any, data: memoryview) -> list[Stored]:
    from kafka.record.util import decode_varint

    records, at = [], 0
    for index in range(batch.records_count):
        start = at
        try:
            length, start = decode_varint(data, at)
            at = start + length
            records.append(_parsed(batch.base_offset, data[start:at]))
        except (ValueError, IndexError) as error:
            records.append(Stored(batch.base_offset + index, _malformed(str(error), bytes(data[start:at]))))
    return records


def _parsed(base: int, data: memoryview) -> Stored:
    from kafka.record.util import decode_varint

    at = 1  # the attributes carry nothing
    _, at = decode_varint(data, at)
    delta, at = decode_varint(data, at)
    _, at = _sized(data, at)
    value, at = _sized(data, at)
    count, at = decode_varint(data, at)
    headers = []
    for _ in range(count):
        name, at = _sized(data, at)
        text, at = _sized(data, at)
        headers.append(((name or b"").decode(errors="backslashreplace"), text))
    if at != len(data):
        raise ValueError("a record with bytes after its end")
    return Stored(base + delta, to_record(headers, value))


def _sized(data: memoryview, at: int) -> tuple[bytes | None, int]:
    from kafka.record.util import decode_varint

    length, at = decode_varint(data, at)
    if at + length > len(data):
        raise ValueError("a field longer than its record")
    return (None, at) if length < 0 else (bytes(data[at : at + length]), at + length)


def _malformed(why: str, data: bytes) -> Record:
    return Record({"malformed": why}, data)
