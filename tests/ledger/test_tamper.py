"""Tampering by whoever holds the files: every byte and every row that matters, altered in turn, is found.

Seeded, so that a miss can be made again. What cannot be proven is listed with the reason.
"""

import shutil
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from random import Random

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from sqlalchemy import text

from lapledger.consumers.ingest.quarantine_retry import retry
from lapledger.consumers.ingest.sink import drain
from lapledger.consumers.storage.compactor import compact
from lapledger.consumers.storage.sealer import seal
from lapledger.ledger.errors import LapError
from lapledger.ledger.events import EVENTS, to_batch
from lapledger.ledger.frames.frame import Frame, Link, Record, encode, genesis, make_frame
from lapledger.ledger.proof import current_head, verify
from lapledger.ledger.store.heads import first_head, next_head
from lapledger.ledger.store.open_ledger import Ledger, open_ledger
from lapledger.ledger.store.sql.engine import writing
from lapledger.ledger.streams.producer import Producer, partition_of
from tests.ledger.facts import attempt, decision, new_ledger, sample_fact
from tests.ledger.tampering import drop_guards, proven, relink, relinked, rewrite, rows

UNPROVABLE = {
    ("ledger", "created"): "a label of when it was made",
    ("stream_position", "lease_epoch"): "leases give progress, never correctness",
    ("stream_position", "lease_holder"): "leases give progress, never correctness",
    ("stream_position", "lease_until"): "leases give progress, never correctness",
    ("stream_position", "duplicates"): "counts records that left no trace; fewer than the stream shows are found",
    ("supersession", "since"): "a label: files are proven again before they are removed",
    ("quarantine_retry", "seen"): "a label of when it was retried",
}
"""Columns whose change no problem can tell of."""
UNTIL_SEALED = {"id", "reason", "message", "seen"}
"""The number and labels of a quarantined record: nothing else says them, until a segment does."""
TABLES = ("ledger", "stream_position", "frame", "tail", "gap", "segment", "segment_range", "supersession")
TABLES = (*TABLES, "quarantine", "quarantine_retry", "alembic_version")
"""All but `lease`, which holds leases only."""


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A ledger with rows in every table and files of every kind, its guards dropped; sound, and opened by nobody."""
    ledger = new_ledger(tmp_path_factory.mktemp("sound") / "ledger")
    with closing(ledger), closing(ledger.stream()) as stream:
        producer = Producer(stream, "epoch", "test", "0")
        for round_ in range(2):
            blob = ledger.blobs.put(b"print(%d)\n" % round_)
            program = replace(sample_fact("program.added"), source_blob=blob)
            more = [decision(round_ * 9 + n, f"p{n % 3}") for n in range(9)]
            producer.append([program, *more, *attempt(2 * round_, 3), *attempt(2 * round_ + 1, 2)])
            irregular(ledger, f"odd-{round_}")
            seal(ledger)
        compact(ledger, 0)
        retried(ledger)
        irregular(ledger, "odd-3")
        producer.append(attempt(9, 2))
        for number in (90, 91, 92):
            producer.append([decision(number, "p0")])
        drain(ledger, stream)
        drop_guards(ledger)
        assert proven(ledger).problems == ()
        for table in TABLES:
            assert rows(ledger, f"SELECT * FROM {table}"), table
    return ledger.root


def irregular(ledger: Ledger, epoch: str) -> None:
    """A gap, a duplicate, and two records for the quarantine, one of which could be retried."""
    made = chain(epoch)
    refused = encode(made[3])
    with closing(ledger.stream()) as stream:
        records = [encode(made[0]), encode(made[0]), encode(made[2]), Record({"a": "b"}, b"no frame")]
        records.append(Record({**refused.headers, "ce_laprows": "9"}, refused.payload))
        stream.append("facts", partition_of("facts", "p0"), records)
        drain(ledger, stream, seen="2026-01-01")


def chain(epoch: str) -> list[Frame]:
    """A producer's chain of frames of one decision about `p0`."""
    partition = partition_of("facts", "p0")
    previous, made = genesis(epoch, "facts", partition), []
    for n in range(4):
        link = Link(epoch, "facts", partition, n, previous)
        made.append(make_frame(EVENTS["filter.decided", 1], "p0", link, to_batch([decision(50 + n, "p0")])))
        previous = made[-1].digest
    return made


def retried(ledger: Ledger) -> None:
    """A retry of a quarantined record, as after a fix."""
    with pytest.MonkeyPatch.context() as fixed:
        fixed.setattr("lapledger.consumers.ingest.admission.decode", lambda record: chain("odd-0")[3])
        (done,) = retry(ledger, seen="2026-01-02", id=2)
    assert done.admission


@pytest.fixture
def tampered(sound: Path, tmp_path: Path) -> Callable[[Callable[[Ledger], object]], tuple[str, ...]]:
    """Copies the sound ledger, lets a function alter the copy, and says what a verification finds there."""
    numbers = iter(range(10**6))

    def result(alter: Callable[[Ledger], object]) -> tuple[str, ...]:
        root = Path(shutil.copytree(sound, tmp_path / str(next(numbers))))
        try:
            with closing(open_ledger(root)) as ledger:
                alter(ledger)
            with closing(open_ledger(root)) as ledger:
                problems = proven(ledger).problems
        except LapError as error:
            problems = (str(error),)
        shutil.rmtree(root)
        assert all("\n" not in problem for problem in problems)
        return problems

    return result


Result = Callable[[Callable[[Ledger], object]], tuple[str, ...]]


def seeded(text: str) -> Random:
    """Choices that can be made again."""
    return Random(text)  # noqa: S311  (nothing secret)


def run(statement: str, **values: object) -> Callable[[Ledger], None]:
    """Alters rows by one statement."""

    def alter(ledger: Ledger) -> None:
        with writing(ledger.engine) as connection:
            assert connection.execute(text(statement), values).rowcount > 0

    return alter


def columns(ledger: Ledger, table: str) -> dict[str, str]:
    """The columns of a table with their SQL types."""
    return {name: kind for _, name, kind, *_ in rows(ledger, f"PRAGMA table_info({table})")}


def second(value: object, choice: Random) -> object:
    """Another value of the same kind."""
    if isinstance(value, int):
        return value + choice.choice([-1, 1, 1000])
    if isinstance(value, bytes):
        return flipped(value, choice)
    args = str(value)
    at = choice.randrange(len(args) + 1)
    return args[:at] + choice.choice("0z,") + args[at + choice.randrange(2) :] if args else "x"


def flipped(data: bytes, choice: Random) -> bytes:
    """The bytes with one bit flipped."""
    at = choice.randrange(len(data))
    return data[:at] + bytes([data[at] ^ 1 << choice.randrange(8)]) + data[at + 1 :]


def check(kind: str, cases: list[tuple[object, tuple[str, ...]]]) -> None:
    """Every one of some changes was found; tells how many."""
    missed = [what for what, problems in cases if not problems]
    print(f"{kind}: {len(cases)} changes, {len(cases) - len(missed)} found")
    assert cases
    assert missed == []


def test_every_column_of_every_table_is_proven(sound: Path, tampered: Result) -> None:
    """A value of each column became another of its kind, and where it was a number, a word."""
    cases = []
    with closing(open_ledger(sound)) as ledger:
        for table in TABLES:
            for name, kind in columns(ledger, table).items():
                if (table, name) in UNPROVABLE:
                    continue
                for value, fresh, rowid in altered_values(ledger, table, name, kind):
                    change = run(f'UPDATE {table} SET "{name}" = :fresh WHERE rowid = :rowid', fresh=fresh, rowid=rowid)
                    cases.append(((table, name, value, fresh), tampered(change)))
    check("values", cases)


def altered_values(ledger: Ledger, table: str, name: str, kind: str) -> Iterator[tuple[object, object, int]]:
    """Changes of a column: what stands there, what shall, and the row."""
    choice = seeded(f"{table}.{name}")
    held = rows(ledger, f'SELECT rowid, "{name}" FROM {table} ORDER BY rowid')
    taken = {value for _, value in held}
    if table == "quarantine" and name in UNTIL_SEALED:
        held = held[:4]
    for rowid, value in choice.sample(held, 1):
        fresh = second(value, choice)
        while fresh in taken:
            fresh = second(fresh, choice)
        yield value, fresh, rowid
    if kind in ("BIGINT", "INTEGER") and name != "id":
        yield held[0][1], "x", held[0][0]


def test_every_lost_and_added_row_is_found(sound: Path, tampered: Result) -> None:
    """Each row of every table removed in turn, up to four, and a copy of one added under another key."""
    cases = []
    with closing(open_ledger(sound)) as ledger:
        for table in TABLES:
            held = [row[0] for row in rows(ledger, f"SELECT rowid FROM {table} ORDER BY rowid")]
            some = seeded(table).sample(held, min(4, len(held)))
            cases += [((table, row), tampered(run(f"DELETE FROM {table} WHERE rowid = {row}"))) for row in some]
            if table != "alembic_version":
                cases.append(((table, "added"), tampered(run(added(ledger, table)))))
    check("rows", cases)


def added(ledger: Ledger, table: str) -> str:
    """The statement that adds a copy of a row under another key."""
    texts = {"identity", "name", "manifest", "epoch"}
    numbers = {"ordinal", "admission", "first_missing", "id"} | ({"partition"} if table == "stream_position" else set())
    names = columns(ledger, table)
    fresh = [f"{n} || 'x'" if n in texts else f"{n} + 100" if n in numbers else f'"{n}"' for n in names]
    listed = ", ".join(f'"{name}"' for name in names)
    return f"INSERT INTO {table} ({listed}) SELECT {', '.join(fresh)} FROM {table} ORDER BY rowid DESC LIMIT 1"


def test_exchanged_rows_are_found(sound: Path, tampered: Result) -> None:
    """Two rows of a table that exchange the values of one column, key or not."""
    cases = []
    with closing(open_ledger(sound)) as ledger:
        for table in TABLES:
            for name in columns(ledger, table):
                held = rows(ledger, f'SELECT rowid, "{name}" FROM {table} ORDER BY rowid')
                pairs = [(a, b) for a in held for b in held if a[0] < b[0] and a[1] != b[1]]
                if (table, name) in UNPROVABLE or name == "id" or (table, name) in KEYS or not pairs:
                    continue
                if table == "quarantine" and name in UNTIL_SEALED:
                    pairs = [(a, b) for a, b in pairs if a[0] <= 4]
                (a, x), (b, y) = seeded(f"{table}/{name}").choice(pairs)
                cases.append(((table, name, x, y), tampered(exchange(table, name, {a: y, b: x}))))
    check("exchanged values", cases)


KEYS = {
    ("segment", "ordinal"),
    ("segment", "name"),
    ("segment", "manifest"),
    ("frame", "admission"),
    ("tail", "admission"),
}
"""Unique columns: exchanging them is exchanging all others."""


def exchange(table: str, name: str, values: dict[int, object]) -> Callable[[Ledger], None]:
    """Gives rows other values."""

    def alter(ledger: Ledger) -> None:
        for rowid, value in values.items():
            run(f'UPDATE {table} SET "{name}" = :value WHERE rowid = :rowid', value=value, rowid=rowid)(ledger)

    return alter


FILES = ("*.v*/*.parquet", "*.v*/*.json", "??/*")


@pytest.mark.parametrize("pattern", FILES)
def test_altered_files_are_found(sound: Path, tampered: Result, pattern: str) -> None:
    """Segments, superseded ones too, manifests and blobs: a bit flipped, cut short, made longer, removed, exchanged."""
    folder = "blobs" if pattern == "??/*" else "segments"
    names = sorted(path.relative_to(sound) for path in (sound / folder).glob(pattern))
    choice = seeded(pattern)
    cases = []
    for name in choice.sample(names, min(8, len(names))):
        data = (sound / name).read_bytes()
        another = choice.choice([name_of for name_of in names if name_of != name])
        changes = {
            "flipped": flipped(data, choice),
            "cut short": data[: choice.randrange(len(data))],
            "longer": data + b"\0",
            "exchanged": (sound / another).read_bytes(),
        }
        for what, fresh in changes.items():
            if fresh != data:
                cases.append(((str(name), what), tampered(lambda ledger, p=name, d=fresh: rewrite(ledger.root / p, d))))
        if not superseded(sound, name):
            cases.append(((str(name), "removed"), tampered(lambda ledger, p=name: (ledger.root / p).unlink())))
    check(f"{folder} {pattern}", cases)


def superseded(root: Path, name: Path) -> bool:
    """True for a segment that a compaction replaced: the garbage collector may have removed it."""
    with closing(open_ledger(root)) as ledger:
        result = rows(ledger, "SELECT name FROM segment WHERE ordinal IN (SELECT ordinal FROM supersession)")
    return name.suffix == ".parquet" and (name.stem,) in result


@pytest.mark.parametrize("table", ["tail", "quarantine"])
def test_altered_payloads_are_found(sound: Path, tampered: Result, table: str) -> None:
    """Any bit of a stored record, even where no value hangs on it: the stream holds the record as it came."""
    choice = seeded(table)
    cases = []
    with closing(open_ledger(sound)) as ledger:
        held = rows(ledger, f"SELECT rowid, payload FROM {table} ORDER BY rowid")
    for rowid, payload in [choice.choice(held) for _ in range(15)]:
        at = choice.randrange(len(payload))
        for fresh in (flipped(payload, choice), payload[:at]):
            change = run(f"UPDATE {table} SET payload = :fresh WHERE rowid = :rowid", fresh=fresh, rowid=rowid)
            cases.append(((table, rowid, at), tampered(change)))
    check(f"payloads of the {table}", cases)


def decided(ledger: Ledger, alter: Callable[[pa.Table], list[pa.Table]]) -> None:
    """Writes the live segment of decisions anew from other row groups, under all the names that it needs."""
    ((name,),) = rows(
        ledger,
        "SELECT name FROM segment WHERE type = 'filter.decided' AND ordinal NOT IN (SELECT ordinal FROM supersession)",
    )
    path = ledger.root / "segments" / "filter.decided.v1" / f"{name}.parquet"
    file = pq.ParquetFile(path)
    groups = [file.read_row_group(number) for number in range(file.num_row_groups)]
    with pq.ParquetWriter(path.with_name("fresh"), file.schema_arrow) as writer:
        for group in alter(groups):
            writer.write_table(group)
    relink(ledger, path, path.with_name("fresh"))


def middle(groups: list[pa.Table]) -> tuple[pa.Table, pa.Table, pa.Table]:
    """The first group apart: its first row, its second, and the others."""
    return groups[0].slice(0, 1), groups[0].slice(1, 1), groups[0].slice(2)


@pytest.mark.parametrize(
    "alter",
    [
        lambda groups: [pa.concat_tables([middle(groups)[1], middle(groups)[0], middle(groups)[2]]), *groups[1:]],
        lambda groups: [pa.concat_tables([*middle(groups)[:2], *middle(groups)[1:]]), *groups[1:]],
        lambda groups: [pa.concat_tables(middle(groups)[1:]), *groups[1:]],
        lambda groups: groups[::-1],
        lambda groups: [*groups, groups[-1]],
        lambda groups: [pa.concat_tables(groups)],
    ],
    ids=["rows exchanged", "row doubled", "row lost", "groups exchanged", "group doubled", "groups joined"],
)
def test_segments_rewritten_with_all_care_are_found(
    tampered: Result, alter: Callable[[pa.Table], list[pa.Table]]
) -> None:
    """Valid Parquet with the same values in another order or number; its name, manifest, chain and rows say the new
    file. The problem names frames or rows."""
    problems = tampered(lambda ledger: decided(ledger, alter))
    assert any("frame" in problem and "filter.decided" in problem for problem in problems), problems


def cut_off(ledger: Ledger, stream: str, partition: int, kept: int) -> None:
    """Removes all frames of a partition behind an admission, and makes the position what it was then."""
    partition_is = f"stream = '{stream}' AND partition = {partition}"
    frames = rows(ledger, f"SELECT digest, source_offset FROM frame WHERE {partition_is} ORDER BY admission")[:kept]
    head = first_head(ledger.identity, stream, partition)
    for digest, _ in frames:
        head = next_head(head, digest)
    for table in ("frame", "tail"):
        run(f"DELETE FROM {table} WHERE {partition_is} AND admission > {kept}")(ledger)
    moved = "UPDATE stream_position SET admissions = :kept, head = :head, next_position = :next"
    run(f"{moved} WHERE {partition_is}", kept=kept, head=head, next=frames[-1][1] + 1)(ledger)


ENDS = """
SELECT (SELECT max(admission) FROM frame WHERE stream = 'facts' AND partition = 1),
  (SELECT max(last) FROM segment_range WHERE stream = 'facts' AND partition = 1)
"""


def test_a_tail_cut_off_is_found(sound: Path, tampered: Result, tmp_path: Path) -> None:
    """Payloads alone, rows alone, or all with a position that fits: that goes back before what was sealed is found.

    What leaves the ledger exactly as it was at an earlier time, only a head written down can tell from that time.
    """
    with closing(open_ledger(sound)) as ledger:
        ((last, sealed),) = rows(ledger, ENDS)
    assert last > sealed + 1
    end = f"stream = 'facts' AND partition = 1 AND admission = {last}"
    for table in ("tail", "frame"):
        assert tampered(run(f"DELETE FROM {table} WHERE {end}"))
    assert any("were sealed before" in p for p in tampered(lambda ledger: cut_off(ledger, "facts", 1, sealed - 1)))
    root = Path(shutil.copytree(sound, tmp_path / "earlier"))
    with closing(open_ledger(root)) as ledger:
        recorded = current_head(ledger)
        cut_off(ledger, "facts", 1, last - 1)
        assert proven(ledger).problems == ()
        (problem,) = verify(ledger, written=recorded).problems
    assert "it was cut off" in problem
    assert f"covers {recorded.cut}" in problem


def test_a_chain_rewritten_with_all_care_needs_a_head(sound: Path, tmp_path: Path) -> None:
    """Frames forged with new digests, links, heads and manifests are a ledger of their own: sound in itself, and proven
    to be another by the head that was written down."""
    root = Path(shutil.copytree(sound, tmp_path / "forged"))
    with closing(open_ledger(root)) as ledger:
        recorded = current_head(ledger)
        relinked(ledger, lambda manifest: manifest | {"forged": True})
        assert proven(ledger).problems == ()
        assert str(current_head(ledger)) != str(recorded)
        (problem,) = verify(ledger, written=recorded).problems
    assert "what it proved was changed" in problem
