"""Checks a bundle that `lap trace REWARD --bundle FILE` wrote, with Python and pyarrow alone.

    python verify.py FILE.zip [HEAD]

HEAD is a word that `lap verify --head` printed and that you kept: with it, the frames are proven to be those that the
ledger held then. Everything is recomputed, nothing in the bundle is believed. Exit code 1 when anything differs.
"""

import hashlib
import json
import re
import struct
import sys
import zipfile
import zlib
from collections.abc import Iterator, Sequence
from typing import Any

import pyarrow as pa

SAMPLE, MOST_WORDS = 64, 48
UUID = r"^(.{8})(.{4})(.{4})(.{4})"
OCTETS = ((r"[0-9a-f]{64}", 32), (r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", 16))


NONSENSE = (LookupError, ValueError, TypeError, AttributeError, StopIteration, RuntimeError, struct.error)
BROKEN = (*NONSENSE, OSError, EOFError, zipfile.BadZipFile, zlib.error, pa.ArrowException)


def sha(*words: object) -> str:
    """SHA-256 of words, each behind its length: the form of ids, links and heads."""
    data = [str(word).encode() for word in words]
    return hashlib.sha256(b"".join(len(one).to_bytes(8, "little") + one for one in data)).hexdigest()


def plain(column: Any) -> Any:
    """A column as its event declares it: words for a dictionary, hex digits for octets, integers of 64 bits."""
    if pa.types.is_dictionary(column.type):
        return column.dictionary_decode()
    if pa.types.is_fixed_size_binary(column.type):
        digits = [None if value is None else value.hex() for value in column.to_pylist()]
        dashed = (word if word is None or len(word) == 64 else re.sub(UUID, r"\1-\2-\3-\4-", word) for word in digits)
        return pa.array(dashed, pa.string())
    return column.cast(pa.int64()) if pa.types.is_integer(column.type) else column


def canonical(column: Any) -> bytes:
    """What digests cover of a plain column: its kind, where it has values, and the values; a null counts as zero."""
    rows, kind, values = len(column), column.type, column.to_pylist()
    bits = sum(1 << row for row, value in enumerate(values) if value is not None)
    nulls = b"\1" + bits.to_bytes((rows + 7) // 8, "little") if column.null_count else b"\0"
    if pa.types.is_list(kind):
        lengths = struct.pack(f"<{rows}q", *(len(value or ()) for value in values))
        return b"list" + nulls + lengths + canonical(column.flatten())
    if pa.types.is_string(kind):
        return b"string" + nulls + strings([value or "" for value in values], bool(column.null_count))
    if pa.types.is_boolean(kind):
        return b"bool" + nulls + bytes(bool(value) for value in values)
    if pa.types.is_floating(kind):
        filled = pa.concat_arrays([column.fill_null(0.0)])
        return b"double" + nulls + bytes(filled.buffers()[1])[8 * filled.offset :][: 8 * rows]
    numbers = [value or 0 for value in values]
    largest = max((max(number, ~number) for number in numbers), default=0)
    size = 8 if rows < SAMPLE else next(size for size in (1, 2, 4, 8) if largest < 1 << (8 * size - 1))
    return b"int%d" % (8 * size) + nulls + b"".join(number.to_bytes(size, "little", signed=True) for number in numbers)


def strings(words: list[str], has_nulls: bool) -> bytes:
    """Words that repeat by number, digests and UUIDs as octets, others one after another."""
    if len(words) >= SAMPLE and len(set(words[:SAMPLE])) <= MOST_WORDS:
        numbers = {word: number for number, word in enumerate(dict.fromkeys(words))}
        width = "B" if len(numbers) <= 1 << 8 else "H" if len(numbers) <= 1 << 16 else "I"
        told = struct.pack(f"<{len(words)}{width}", *(numbers[word] for word in words))
        return b"words" + len(numbers).to_bytes(4, "little") + texts(list(numbers)) + told
    for form, octets in OCTETS:
        if len(words) >= SAMPLE and not has_nulls and all(re.fullmatch(form, word) for word in words):
            return b"octets" + bytes([octets]) + b"".join(bytes.fromhex(word.replace("-", "")) for word in words)
    return b"texts" + texts(words)


def texts(words: list[str]) -> bytes:
    """Where each word ends, then the bytes of all."""
    data, end, ends = [word.encode() for word in words], 0, []
    for word in data:
        end += len(word)
        ends.append(end)
    return struct.pack(f"<{len(ends)}i", *ends) + b"".join(data)


def rows_bytes(columns: Sequence[Any], rows: int) -> bytes:
    """The canonical bytes of some rows."""
    return rows.to_bytes(8, "little") + b"".join(canonical(plain(column)) for column in columns)


def frame_digest(headers: dict[str, str], batch: Any) -> str:
    """The digest of a frame: the words of its headers, then its rows."""
    names = ("ce_type", "ce_lapversion", "ce_subject", "ce_lapepoch", "ce_lapsequence", "ce_lapprevious")
    words = sha(*(headers[name] for name in names)).encode()
    return hashlib.sha256(words + rows_bytes(batch.columns, batch.num_rows)).hexdigest()


def place_of(name: str) -> tuple[str, int]:
    """Stream and partition in a name like `chains/facts.2.txt` or `frames/facts.2.17.arrow`."""
    stream, partition, *_ = name.split("/")[1].split(".")
    return stream, int(partition)


class Bundle:
    """The bundle's parts. Each check yields one line for everything that does not hold."""

    def __init__(self, path: str) -> None:
        self.zip = zipfile.ZipFile(path)
        self.about = json.loads(self.zip.read("bundle.json"))
        names = self.zip.namelist()
        self.chains = {place_of(n): self.zip.read(n).decode().split() for n in names if n.startswith("chains/")}
        self.frames = [name for name in names if name.startswith("frames/") and name.endswith(".arrow")]
        self.blobs = [name for name in names if name.startswith("blobs/")]
        self.tables: dict[str, list[Any]] = {}

    def check_frames(self) -> Iterator[str]:
        """Each frame gives its digest, has its place in its partition's chain, and may start a producer's."""
        for name in self.frames:
            headers = json.loads(self.zip.read(name.removesuffix("arrow") + "json"))
            batch = pa.ipc.open_stream(self.zip.read(name)).read_next_batch()
            digest, place, admission = frame_digest(headers, batch), place_of(name), int(name.split(".")[-2])
            if digest != headers["ce_lapdigest"] or self.chains[place][admission - 1 : admission] != [digest]:
                yield f"{name}: its rows do not give the digest in its headers and in the chain"
            if place != (headers["ce_lapstream"], int(headers["ce_lappartition"])):
                yield f"{name}: its headers name another partition"
            start = sha("genesis", headers["ce_lapepoch"], *place)
            if headers["ce_lapsequence"] == "0" and headers["ce_lapprevious"] != start:
                yield f"{name}: it does not start its producer's chain"
            rows = pa.table([plain(column) for column in batch.columns], names=batch.schema.names)
            self.tables.setdefault(headers["ce_type"], []).append(rows)

    def check_head(self, word: str) -> Iterator[str]:
        """The head follows from the chains at its cut, with some length of the chain of manifests."""
        head, _, cut = word.partition("@")
        counts = dict.fromkeys(self.chains, 0)
        for stream, _, numbers in (part.partition("=") for part in cut.split(",")):
            counts |= {(stream, partition): int(n) for partition, n in enumerate(numbers.split("."))}
        words: list[object] = []
        for place, count in sorted(counts.items()):
            running = sha("head", self.about["ledger"], *place)
            for digest in self.chains[place][:count]:
                running = sha("head", running, digest)
            words += [*place, count, running]
        links = ["", *self.about["manifests"]]
        if head not in [sha("ledger", number, link, *words) for number, link in enumerate(links)]:
            yield f"the head {head} at {cut} does not follow from the chains"
        for name in self.frames:
            if int(name.split(".")[-2]) > counts[place_of(name)]:
                yield f"{name}: it was admitted after the head"

    def check_blobs(self) -> Iterator[str]:
        """Each blob gives the digest that it is called by."""
        for name in self.blobs:
            if name != f"blobs/{hashlib.sha256(self.zip.read(name)).hexdigest()}":
                yield f"{name}: its bytes do not give its name"

    def check_timings(self) -> Iterator[str]:
        """Every attempt that the reward rests on has exactly the timings that its end names."""
        ends = {row["attempt_id"]: row for row in self.events("execution.finished")}
        timings = pa.concat_tables(self.tables["timing.measured"]).combine_chunks()
        places: dict[str, list[int]] = {}
        for place, attempt in enumerate(timings["attempt_id"].to_pylist()):
            places.setdefault(attempt, []).append(place)
        for attempt in self.about["attempts"]:
            end, mine = ends.get(attempt, {}), places.get(attempt, [])
            rows = timings.take(mine).sort_by("repetition").combine_chunks()
            digest = hashlib.sha256(rows_bytes([c.combine_chunks() for c in rows.columns], len(mine))).hexdigest()
            if end.get("timings") != len(mine) or (mine and end["timings_digest"] != digest):
                yield f"attempt {attempt}: its timings are not those that its end names"

    def check_evidence(self) -> Iterator[str]:
        """The reward names the digest of its tests, its pool and itself: outcomes and digests of timings."""
        told, reward = self.about["evidence"], self.about["reward"]
        named = {row["reward_id"]: row["evidence_digest"] for row in self.events("reward.assigned")}
        ends = {(row["outcome"], row["attempt_id"], row["timings_digest"]) for row in self.events("execution.finished")}
        sources = {(row["program_id"], row["source_blob"]) for row in self.events("program.added")}
        roles = ("test_id", "original", "correctness", "optimization")
        tests = {tuple(row[name] for name in roles) for row in self.events("test.added")}
        if not all(tuple(test) in tests for test in told["tests"]):
            yield "evidence: a test is not what its event says"
        for program, source, *cells in told["programs"]:
            if (program, source) not in sources or not all(tuple(cell[1:]) in ends for cell in cells):
                yield f"evidence: {program} or a run of it is not what its event says"
        words = [
            f"{original:d}{correctness:d}{ranked:d} {test}" for test, original, correctness, ranked in told["tests"]
        ]
        rows = [sha(p, source, *(w for cell in cells for w in cell)) for p, source, *cells in told["programs"]]
        if named.get(reward) != sha("evidence", told["problem"], sha(*words), len(rows) - 1, *rows):
            yield "the evidence does not give the digest that the reward names"

    def events(self, kind: str) -> list[dict[str, Any]]:
        """All rows of an event type in the bundle."""
        return [row for table in self.tables.get(kind, []) for row in table.to_pylist()]

    def wrong(self, word: str) -> Iterator[str]:
        """All checks, one after another."""
        yield from self.check_frames()
        yield from self.check_head(word)
        yield from self.check_blobs()
        yield from self.check_timings()
        if self.about["evidence"] is not None:
            yield from self.check_evidence()


def main(arguments: Sequence[str]) -> int:
    """Checks the bundle and says what was proven; 1 when anything differs."""
    if len(arguments) not in (1, 2):
        sys.stderr.write("usage: python verify.py FILE.zip [HEAD]\n")
        return 2
    wrong: list[str] = []
    told = ""
    try:
        bundle = Bundle(arguments[0])
        wrong += bundle.wrong(arguments[1] if len(arguments) == 2 else bundle.about["head"])
        rows = sum(table.num_rows for tables in bundle.tables.values() for table in tables)
        told = f"{len(bundle.frames)} frames with {rows} events, {len(bundle.blobs)} blobs, timings of"
        told += f" {len(bundle.about['attempts'])} attempts; head {'given' if len(arguments) == 2 else 'of the bundle'}"
    except BROKEN as error:
        wrong.append(f"the bundle cannot be read: {type(error).__name__}: {error}")
    sys.stdout.write("".join(f"WRONG: {line}\n" for line in wrong))
    sys.stdout.write(f"{'damaged' if wrong else 'proven'}: {told}\n")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
