"""Hostile records: whatever arrives, the sink goes on, keeps every record, and admits what is valid beside it."""

import json
import resource
import sqlite3
import struct
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from sqlalchemy import text

from lapledger.consumers.ingest.quarantine_retry import retry
from lapledger.consumers.ingest.sink import drain
from lapledger.consumers.storage.rebuild import Now, rebuild
from lapledger.consumers.storage.sealer import seal
from lapledger.ledger.events import EVENTS
from lapledger.ledger.frames.frame import Frame, Record, encode
from lapledger.ledger.proof import verify
from lapledger.ledger.store.location import Location
from lapledger.ledger.store.open_ledger import Ledger, open_ledger
from lapledger.ledger.store.sql.engine import reading
from lapledger.ledger.streams.local import LocalStream
from tests.ledger.facts import attempt, chain_frames, decision, new_ledger

MUTATED = 4_000
SEED = 20_260
MANY_BYTES = 700 << 20
"""More than a sink may grow by while it refuses what claims to be larger."""


class House:
    """A ledger and its stream that hostile records are thrown at, and what must be true of it afterwards."""

    def __init__(self, root: Path) -> None:
        self.ledger: Ledger = new_ledger(root)
        self.stream: Any = self.ledger.stream()
        self.valid: dict[str, Frame] = {}
        self.epochs = 0

    def good(self, count: int) -> list[Frame]:
        """Valid frames of a new producer, on one partition."""
        self.epochs += 1
        frames = chain_frames([decision(n) for n in range(count)], epoch=f"good-{self.epochs}")
        self.valid |= {frame.digest: frame for frame in frames}
        return frames

    def bear(self, hostile: Sequence[Record]) -> int:
        """Drains hostile records between valid ones: each record is accounted for. How many were quarantined."""
        frames = self.good(len(hostile) + 1)
        partition = frames[0].link.stream, frames[0].link.partition
        between = [record for pair in zip(map(encode, frames), hostile, strict=False) for record in pair]
        self.stream.append(*partition, [*between, encode(frames[-1])])
        before = self.quarantined()
        done = drain(self.ledger, self.stream, seen="now")
        assert done.admitted + done.duplicates + done.quarantined == 2 * len(hostile) + 1
        assert self.quarantined() - before == done.quarantined
        missing = {frame.digest for frame in frames} - self.admitted(f"good-{self.epochs}")
        assert missing == set()
        return done.quarantined

    def quarantined(self) -> int:
        """Records in the quarantine."""
        with reading(self.ledger.engine) as connection:
            return int(connection.execute(text("SELECT count(*) FROM quarantine")).scalar_one())

    def admitted(self, epoch: str | None = None) -> set[str]:
        """Digests of the admitted frames, of an epoch or all."""
        query = text("SELECT digest FROM frame WHERE epoch = coalesce(:epoch, epoch)")
        with reading(self.ledger.engine) as connection:
            return set(connection.execute(query, {"epoch": epoch}).scalars())

    def close(self) -> None:
        """Nothing but valid frames was admitted, and the ledger is whole, its quarantine sealed too."""
        assert self.admitted() <= self.valid.keys()
        retried = retry(self.ledger, seen="later")
        assert [record for record in retried if record.admission is not None] == []
        seal(self.ledger)
        assert verify(self.ledger).problems == ()
        head, root = self.ledger.head(), self.ledger.root
        self.stream.close()
        self.ledger.close()
        for path in root.glob("ledger.sqlite*"):
            path.unlink()
        rebuild(Location(root), Now("later", 0), stream_identity="fresh")
        with closing(open_ledger(root)) as again:
            assert again.head() == head
            assert verify(again).problems == ()


@pytest.fixture(scope="module")
def house(tmp_path_factory: pytest.TempPathFactory) -> Iterator[House]:
    """One ledger that takes all the hostility of this module."""
    made = House(tmp_path_factory.mktemp("fuzz") / "ledger")
    yield made
    made.close()


@pytest.fixture(scope="module")
def victims(house: House) -> list[Record]:
    """Valid records to mutate: decisions, several rows, and timings with their finish."""
    frames = [*house.good(4), *chain_frames([decision(n) for n in range(40)], epoch="wide", size=40)]
    timings = attempt(1, 3)
    for number, events in enumerate((timings[:-1], timings[-1:])):
        frames += chain_frames(events, epoch=f"timing-{number}", size=3)
    house.valid |= {frame.digest: frame for frame in frames}
    return [encode(frame) for frame in frames]


NUMBERS = (0, 1, 2**31 - 1, 2**31, 2**32 - 1, 2**40, 2**62, 2**63 - 1, 2**64 - 1)


def overwritten(data: bytearray, choice: Random) -> None:
    """A number that claims something else: a size, an offset, a count."""
    width = choice.choice([4, 8])
    if len(data) > width:
        at = choice.randrange(0, len(data) - width) & ~(width - 1)
        number = choice.choice(NUMBERS) % (1 << (8 * width))
        data[at : at + width] = number.to_bytes(width, "little")


def flipped(data: bytearray, choice: Random) -> None:
    """One bit."""
    if data:
        data[choice.randrange(len(data))] ^= 1 << choice.randrange(8)


def cut(data: bytearray, choice: Random) -> None:
    """The end is missing."""
    del data[choice.randrange(len(data) + 1) :]


def holed(data: bytearray, choice: Random) -> None:
    """A piece in the middle is missing."""
    at = choice.randrange(len(data) + 1)
    del data[at : at + choice.randrange(1, 64)]


def stuffed(data: bytearray, choice: Random) -> None:
    """A piece comes twice, or noise is put between."""
    at = choice.randrange(len(data) + 1)
    piece = bytes(data[at : at + 64]) if choice.random() < 0.5 else choice.randbytes(choice.randrange(1, 64))
    data[at:at] = piece


PAYLOADS: Sequence[Callable[[bytearray, Random], None]] = (overwritten, flipped, cut, holed, stuffed)

TEXTS = (
    *("", "\0", "a\0b", "\ud800", "\udfff x", "٣", "-1", "1e3", "0x10", "1.0", " 1", "1 ", "true", "9" * 15, "9" * 16),
    *("9" * 5000, "x" * 1_001, "é" * 1_000, "y" * 100_000, "\n", "../../etc", "'; DROP TABLE frame; --", "\u202e"),
)


def mutated_headers(headers: Mapping[str, str], choice: Random) -> dict[str, str]:
    """Headers with one removed, replaced by a strange word, exchanged with another, or many added."""
    changed = dict(headers)
    name, second = choice.choice(sorted(changed)), choice.choice(sorted(changed))
    fate = choice.randrange(4)
    if fate == 0:
        del changed[name]
    elif fate == 1:
        changed[name] = choice.choice(TEXTS)
    elif fate == 2:
        changed[name], changed[second] = changed[second], changed[name]
    else:
        changed |= {f"x-{n}": choice.choice(TEXTS)[:50] for n in range(choice.randrange(1, 300))}
    return changed


def mutated(record: Record, choice: Random) -> Record:
    """A record that was altered once or a few times, in its headers or its payload."""
    headers, payload = dict(record.headers), bytearray(record.payload)
    for _ in range(choice.choice([1, 1, 1, 2, 5])):
        if choice.random() < 0.25:
            headers = mutated_headers(headers, choice) if headers else {}
        else:
            choice.choice(PAYLOADS)(payload, choice)
    return Record(headers, bytes(payload))


def test_mutated_frames_are_kept_or_are_still_the_same(house: House, victims: list[Record]) -> None:
    """Thousands of alterations by a seed: what was admitted has the digest of a frame that we made."""
    choice = Random(SEED)  # noqa: S311  (a seed that reproduces)
    quarantined = 0
    for _ in range(MUTATED // 500):
        quarantined += house.bear([mutated(choice.choice(victims), choice) for _ in range(500)])
    assert quarantined > MUTATED * 0.8
    assert house.admitted() <= house.valid.keys()


def forged(victim: Record, batch: pa.RecordBatch, options: pa.ipc.IpcWriteOptions | None = None) -> Record:
    """A record with the headers of a valid one around another batch."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, batch.schema, options=options) as writer:
        writer.write_batch(batch)
    return Record({**victim.headers, "ce_laprows": str(batch.num_rows)}, sink.getvalue().to_pybytes())


def columns_of(rows: int, make: Callable[[pa.Field], pa.Array], *, named: bool = True) -> pa.RecordBatch:
    """A batch of decisions with columns of our making; with `named` only their names are those of the type."""
    schema = EVENTS["filter.decided", 1].schema
    arrays = [make(field) for field in schema]
    if named:
        return pa.RecordBatch.from_arrays(arrays, names=schema.names)
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


ROWS = 5_000_000


def bombs(victim: Record) -> Iterator[Record]:
    """Small records that would be large once decoded, and batches of other forms than their type has."""

    def zeros(field: pa.Field) -> pa.Array:
        empty = {pa.string(): "", pa.bool_(): False, pa.float64(): 0.0}
        return pa.repeat(pa.scalar(empty[field.type], field.type), ROWS)

    def texts(_: pa.Field) -> pa.Array:
        return pa.DictionaryArray.from_arrays(pa.array([0] * 1000, pa.int8()), pa.array(["x" * 1_000_000]))

    for codec in ("zstd", "lz4"):
        packed = pa.ipc.IpcWriteOptions(compression=codec)
        yield forged(victim, columns_of(ROWS, zeros, named=False), packed)
        yield forged(victim, columns_of(3, lambda field: pa.nulls(3, field.type)), packed)
    yield forged(victim, columns_of(1000, texts))
    yield forged(victim, columns_of(1 << 20, lambda _: pa.nulls(1 << 20)))  # rows without buffers
    yield forged(victim, columns_of(3, lambda field: pa.nulls(3, field.type), named=False))
    yield forged(victim, columns_of(3, lambda _: pa.array([b"\xff\xfe"] * 3, pa.binary())))
    yield forged(victim, columns_of(3, lambda _: pa.array([[[[1]]]] * 3)))
    yield forged(victim, columns_of(0, lambda field: pa.nulls(0, field.type), named=False))
    yield forged(victim, pa.RecordBatch.from_arrays([], names=[]))
    yield forged(victim, pa.record_batch({f"c{n}": [1] for n in range(5_000)}))


def streams(victim: Record) -> Iterator[Record]:
    """Arrow streams that hold more, or less, than one batch, or claim sizes that are not there."""
    payload = victim.payload
    yield Record(victim.headers, payload + payload)
    yield Record(victim.headers, b"ARROW1\0\0" + payload)
    yield Record(victim.headers, b"\xff\xff\xff\xff" + struct.pack("<i", 2**31 - 1) + payload[8:])
    yield Record(victim.headers, b"\xff\xff\xff\xff" + struct.pack("<i", -1) + payload[8:])
    yield Record(victim.headers, payload[:8])
    yield Record(victim.headers, b"\0" * 4096)
    yield Record(victim.headers, b"\xff" * 4096)
    yield Record(victim.headers, b"")
    for size in (8, 64, 1024):
        yield Record(victim.headers, bytes(range(256)) * size)
    yield Record(victim.headers, b"\0" * ((64 << 20) - 10_000))


def test_bombs_are_refused_without_being_decoded(house: House, victims: list[Record]) -> None:
    """Dictionaries, compression, columns without buffers and false sizes cost no more memory than they weigh."""
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    hostile = [*bombs(victims[0]), *streams(victims[0])]
    grown_here = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    assert house.bear(hostile) == len(hostile)
    after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    assert (after - max(before, grown_here)) << 10 < MANY_BYTES


@pytest.mark.parametrize("text", TEXTS, ids=range(len(TEXTS)))
def test_no_text_in_any_header_stops_the_sink(house: House, victims: list[Record], text: str) -> None:
    """In place of each value, and as a header of its own."""
    names = [*victims[0].headers, "x-other"]
    house.bear([Record({**victims[0].headers, name: text}, victims[0].payload) for name in names])
    house.bear([Record({text: text}, text.encode(errors="surrogatepass"))])


def test_giant_headers_are_kept_in_full(house: House, victims: list[Record]) -> None:
    """Megabytes of them, in one word or in very many."""
    giant = Record({**victims[0].headers, "ce_subject": "x" * (8 << 20)}, victims[0].payload)
    numerous = Record({f"header-{n}": str(n) for n in range(100_000)}, b"")
    assert house.bear([giant, numerous]) == 2


HEADERS = st.dictionaries(st.text(max_size=20), st.text(st.characters(), max_size=50), max_size=6)


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(headers=HEADERS, payload=st.binary(max_size=400), keep=st.booleans())
@example(headers={}, payload=b"", keep=False)
@example(headers={"ce_lapepoch": "\ud800"}, payload=b"\xff\xff\xff\xff", keep=True)
def test_any_headers_and_bytes_are_kept(
    house: House, victims: list[Record], headers: dict[str, str], payload: bytes, keep: bool
) -> None:
    """With nothing of a frame about them, or in place of some of a valid frame's headers."""
    house.bear([Record({**victims[1].headers, **headers} if keep else headers, payload)])


RAW: Sequence[tuple[Any, Any]] = (
    ("", b""),
    ("null", b"x"),
    ("[1, 2]", b"x"),
    ('{"a": 1}', b"x"),
    ('{"a": ', b"x"),
    ("[" * 100_000, b"x"),
    (b"\xff\xfe", b"x"),
    (7, b"x"),
    ("{}", "text"),
    ("{}", 7),
    ("{}", 0.5),
)
"""Headers and payload as somebody may write them into the stream's file with SQL."""


def test_what_others_wrote_into_the_file_is_kept(house: House, victims: list[Record]) -> None:
    """Values of any kind, where the local stream expects JSON and bytes."""
    stream: LocalStream = house.stream
    rows = [*RAW, *((json.dumps(dict(victims[0].headers)), payload) for payload in ("text", 7))]
    connection = sqlite3.connect(stream.path)
    before = house.quarantined()
    with connection:
        connection.executemany(
            "INSERT INTO record (stream, partition, headers, payload) VALUES ('facts', 0, ?, ?)", rows
        )
    connection.close()
    assert drain(house.ledger, stream, seen="now").quarantined == len(rows)
    assert house.quarantined() - before == len(rows)
