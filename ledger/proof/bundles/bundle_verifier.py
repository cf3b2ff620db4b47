"""Checks a bundle that `lap trace REWARD --bundle FILE` wrote, with Python and pyarrow alone.

    python verify.py FILE.zip [HEAD]

HEAD is what `lap verify --print-head` printed and you stored: with it, the reward and what it rests on are proven
to be what the ledger held then. Nothing in the bundle is believed; of trace.json `reward`, `criterion`, `calibration`
and `program` are checked, the rest is for reading. Whoever alters a bundle may alter the verify.py in it too: use the
one of a release. Exit code 1 when anything differs.
"""

import hashlib
import json
import re
import struct
import sys
import zipfile
import zlib
from collections.abc import Iterator, Sequence
from itertools import accumulate, chain
from typing import Any
from uuid import UUID

import pyarrow as pa
import pyarrow.compute as pc

SAMPLE, MOST_WORDS = 64, 48
OCTETS = ((r"[0-9a-f]{64}", 32), (r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", 16))
ROLES = ("test_id", "original", "correctness", "optimization")
SHARED = ("program_id", "executed_program_id", "source_blob")
PARTS = {
    "reward": ("reward.assigned", "reward_id"),
    "criterion": ("criterion.declared", "criterion_hash"),
    "calibration": ("calibration.fitted", "calibration_id"),
    "program": ("program.added", "program_id"),
}
COLUMNS = {
    "aa6d40fe407c52c21bff9f7409ef36fff251b3b52377ad01a3238db61a8099b7": "calibration.fitted",
    "649a26dc72f83235bd7dce58a95d9b589babee9684f57b864f36d984c031b82e": "calibration.fitted",
    "be76404fb2a219035b8892964ede8fa8b1aa4dd1eecd80735ce782fe8ff79c8f": "criterion.declared",
    "6b2d24972dd729a8fa4951386c665a9fb3e8e925cf6a07c268e3d50be175e4b5": "execution.finished",
    "97c09c175abe2e1f321f3cfd82fa1caff5dde72a162c971135438b52e301a9de": "execution.shared",
    "ac0f707cad0b9245720f25fa70352bd492383c0cc9e305cf8c7519b99b978f03": "program.added",
    "97c3d162ac904f6b3bbe21f12d2bb8c7e06592ab3201156c4b667976a4125cc1": "reward.assigned",
    "e3eef8f0fecc9c780f06ffe3e8cd51c5e0e167fca0fc835a27d75f8f69748256": "test.added",
    "85aa4e6c317acd5f6f6844d3a499b62ad2f81655f0b94bdad663f7efe5af2a53": "timing.measured",
    "f8cda6b73ba4b2e5076891a19ca4c7236610dad915584e64a61ec5465d28bfaf": "timing.measured",
}
"""Digest of the names and types of an event's columns, which no frame's digest covers -> the event, if read by name."""

UNREADABLE = (LookupError, ValueError, TypeError, AttributeError, StopIteration, RuntimeError, struct.error, OSError)
BROKEN = (*UNREADABLE, EOFError, zipfile.BadZipFile, zlib.error, pa.ArrowException)


def sha(*words: object) -> str:
    """SHA-256 of words, each behind its length: the form of ids, links and heads."""
    data = [str(word).encode() for word in words]
    return hashlib.sha256(b"".join(len(one).to_bytes(8, "little") + one for one in data)).hexdigest()


def plain(column: Any) -> Any:
    """A column as its event declares it: words for a dictionary, hex digits for octets, integers of 64 bits."""
    if pa.types.is_dictionary(column.type):
        return column.dictionary_decode()
    if pa.types.is_fixed_size_binary(column.type):
        told = (v and (v.hex() if len(v) == 32 else str(UUID(bytes=v))) for v in column.to_pylist())
        return pa.array(told, pa.string())
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
    if pa.types.is_float64(kind):
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
    data = [word.encode() for word in words]
    return struct.pack(f"<{len(data)}i", *accumulate(map(len, data))) + b"".join(data)


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
        self.about, self.trace = json.loads(self.zip.read("bundle.json")), json.loads(self.zip.read("trace.json"))
        names = self.zip.namelist()
        self.chains = {place_of(n): self.zip.read(n).decode().split() for n in names if n.startswith("chains/")}
        self.frames = [name for name in names if name.startswith("frames/") and name.endswith(".arrow")]
        self.blobs = {name.removeprefix("blobs/") for name in names if name.startswith("blobs/")}
        self.tables: dict[str, list[Any]] = {}
        self.evidence = self.about["evidence"] or {"problem": "", "tests": [], "programs": []}
        self.runs = [(program, *cell[1:]) for program, _, *cells in self.evidence["programs"] for cell in cells]

    def check_head(self, word: str) -> Iterator[str]:
        """The head follows from the chains up to its cut, with some length of the chain of manifests."""
        head, _, cut = word.partition("@")
        counts = dict.fromkeys(self.chains, 0)
        for stream, _, numbers in (part.partition("=") for part in cut.split(",")):
            counts |= {(stream, partition): int(n) for partition, n in enumerate(numbers.split("."))}
        words: list[object] = []
        for place, count in sorted(counts.items()):
            running = sha("head", self.about["ledger"], *place)
            self.chains[place] = self.chains[place][:count]
            for digest in self.chains[place]:
                running = sha("head", running, digest)
            words += [*place, count, running]
        if head not in [sha("ledger", n, link, *words) for n, link in enumerate(["", *self.about["manifests"]])]:
            yield f"the head {head} at {cut} does not follow from the chains"

    def check_frames(self) -> Iterator[str]:
        """Each frame gives its digest, has its place in its partition's chain, and the columns of its type."""
        for name in self.frames:
            headers = json.loads(self.zip.read(name.removesuffix("arrow") + "json"))
            batch = pa.ipc.open_stream(self.zip.read(name)).read_next_batch()
            digest, place, admission = frame_digest(headers, batch), place_of(name), int(name.split(".")[-2])
            said = tuple(headers[f"ce_lap{word}"] for word in ("stream", "partition", "digest"))
            if said != (*map(str, place), digest) or self.chains[place][max(admission, 1) - 1 : admission] != [digest]:
                yield f"{name}: its rows do not give the digest in its headers and in the chain up to the head"
            kind, rows = headers["ce_type"], pa.table([plain(c) for c in batch.columns], names=batch.schema.names)
            known = COLUMNS.get(sha(kind, *(f"{field.name} {field.type}" for field in rows.schema)))
            if kind in COLUMNS.values() and kind != known:
                yield f"{name}: its columns are not those of {kind}"
            self.tables.setdefault(kind, []).append(rows)

    def check_trace(self) -> Iterator[str]:
        """The reward, its criterion, calibration and program are told as their events say."""
        ids = self.trace["reward"] | {"reward_id": self.about["reward"]}
        for part, (kind, key) in PARTS.items():
            told, rows = self.trace[part], [row for row in self.events(kind) if row[key] == ids[key]]
            if (told or ids[key]) and not any(row.items() <= told.items() for row in rows):
                yield f"trace.json: its {part} is not what its event says"

    def check_blobs(self) -> Iterator[str]:
        """Each blob gives the digest that it is called by, and none that the evidence needs is missing."""
        for name in self.blobs:
            if name != hashlib.sha256(self.zip.read(f"blobs/{name}")).hexdigest():
                yield f"blobs/{name}: its bytes do not give its name"
        tests = {test[0] for test in self.evidence["tests"]}
        rows = [row for row in self.events("test.added") if row["test_id"] in tests]
        named = {row[name] for row in rows for name in ("input_blob", "answer_blob")}
        named.update(source for _, source, *_ in self.evidence["programs"])
        yield from (f"blobs/{name} is missing, an event names it" for name in named - self.blobs - {None})

    def check_evidence(self) -> Iterator[str]:
        """The reward names the digest of its tests, its pool and itself, all as their events say."""
        problem, tests, programs = (self.evidence[name] for name in ("problem", "tests", "programs"))
        sources = {(row["program_id"], row["source_blob"]) for row in self.events("program.added")}
        roles = {tuple(row[name] for name in ROLES) for row in self.events("test.added")}
        if not all(tuple(test) in roles for test in tests) or not all(tuple(one[:2]) in sources for one in programs):
            yield "evidence: a test or a program is not what its event says"
        words = [f"{original:d}{correctness:d}{ranked:d} {test}" for test, original, correctness, ranked in tests]
        rows = [
            sha(program, source or "", *(w for cell in cells for w in cell)) for program, source, *cells in programs
        ]
        digest = sha("evidence", problem, sha(*words), len(rows) - 1, *rows)
        if digest != self.trace["reward"]["evidence_digest"]:
            yield "the evidence does not give the digest that the reward names"

    def check_runs(self) -> Iterator[str]:
        """Every run is its program's own or shared by a fact, and ended as its event says, with the timings told."""
        ended = ("program_id", "outcome", "attempt_id", "timings_digest", "timings")
        ends = {tuple(row[name] for name in ended) for row in self.events("execution.finished")}
        shared = ([row[n] for n in SHARED] for row in self.events("execution.shared"))
        sources = {(row["program_id"], row["source_blob"]) for row in self.events("program.added")}
        lent = {one: other for one, other, blob in shared if {(one, blob), (other, blob)} <= sources}
        tables = self.tables.get("timing.measured", [])
        for program, outcome, attempt, digest in self.runs:
            parts = [part for table in tables if (part := table.filter(pc.equal(table["attempt_id"], attempt)))]
            count, told = sum(map(len, parts)), digest
            if parts:
                (rows,) = pa.concat_tables(parts).sort_by("repetition").combine_chunks().to_batches()
                told = hashlib.sha256(rows_bytes(rows.columns, count)).hexdigest()
            said = (outcome, attempt, digest, count)
            if told != digest or not {(program, *said), (lent.get(program), *said)} & ends:
                yield f"attempt {attempt}: its outcome or its timings are not those that its end names"

    def events(self, kind: str) -> list[dict[str, Any]]:
        """All rows of an event type in the bundle."""
        return [row for table in self.tables.get(kind, []) for row in table.to_pylist()]

    def wrong(self, word: str) -> Iterator[str]:
        """All checks, one after another."""
        yield from chain(self.check_head(word), self.check_frames(), self.check_trace())
        yield from chain(self.check_blobs(), self.check_evidence(), self.check_runs())


def main(arguments: Sequence[str]) -> int:
    """Checks the bundle and says what was proven; 1 when anything differs."""
    if len(arguments) not in (1, 2):
        sys.stderr.write("usage: python verify.py FILE.zip [HEAD]\n")
        return 2
    wrong: list[str] = []
    told, head = "", "given" if len(arguments) == 2 else "of the bundle"
    try:
        bundle = Bundle(arguments[0])
        wrong += bundle.wrong(arguments[1] if len(arguments) == 2 else bundle.about["head"])
        reward, rows = bundle.trace["reward"], sum(len(table) for tables in bundle.tables.values() for table in tables)
        told = f"reward {reward['value']:+g} of {reward['program_id']}; {len(bundle.frames)} frames with {rows} events,"
        told += f" {len(bundle.blobs)} blobs, {len(bundle.runs)} runs"
    except BROKEN as error:
        wrong.append(f"the bundle cannot be read: {type(error).__name__}: {error}")
    sys.stdout.write("".join(f"WRONG: {line}\n" for line in wrong))
    sys.stdout.write(f"{'damaged' if wrong else 'proven'}: {told}; head {head}\n")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
