"""The sealer: the tail becomes segments, all at once or not at all."""

import json
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from itertools import pairwise
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from sqlalchemy import event

import lapledger.consumers.storage.sealer
from lapledger.consumers.ingest.quarantine_retry import retry
from lapledger.consumers.storage.sealer import Sealed, seal
from lapledger.ledger import disk
from lapledger.ledger.errors import Fault
from lapledger.ledger.frames.frame import decode
from lapledger.ledger.proof import verify
from lapledger.ledger.store.heads import first_head, next_head
from lapledger.ledger.store.location import Location
from lapledger.ledger.store.open_ledger import Ledger, open_ledger
from lapledger.ledger.store.reader import events
from lapledger.ledger.streams.local import LocalStream
from tests.consumers.ledgers import (
    admit,
    append,
    complete,
    decision,
    feed,
    killed_at,
    manifests,
    older_release,
    parquet_files,
    put,
    put_quarantined,
    rows,
    tamper,
)
from tests.support.databases import Kind


@pytest.fixture
def ledger(both: Ledger) -> Ledger:
    """Thirty decisions about three problems in the tail; every test runs over both databases."""
    feed(both, "epoch-0")
    return both


def test_sealing_moves_the_tail_into_one_file_a_type(ledger: Ledger) -> None:
    """Nothing is left in the tail, and any Parquet reader finds the rows."""
    before = complete(ledger)
    sealed = seal(ledger)
    assert (sealed.segments, sealed.frames, sealed.rows) == (2, 31, 31)
    assert rows(ledger, "SELECT count(*) FROM tail") == [(0,)]
    assert [size for (size,) in rows(ledger, "SELECT sum(bytes) FROM segment")] == [sealed.bytes]
    (path,) = parquet_files(ledger)
    assert pq.read_table(path).sort_by("subject_id").equals(before.sort_by("subject_id"))
    assert complete(ledger).equals(before)
    assert verify(ledger).problems == ()


def test_sealing_an_empty_tail_does_nothing(ledger: Ledger) -> None:
    """No file, no link in the chain."""
    seal(ledger)
    head, files = ledger.head(), sorted((ledger.root / "segments").rglob("*"))
    assert seal(ledger) == Sealed()
    assert (ledger.head(), sorted((ledger.root / "segments").rglob("*"))) == (head, files)


def test_row_groups_hold_complete_frames_of_one_partition(ledger: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    """A group ends with the frame that fills it; verification relies on it."""
    monkeypatch.setattr("lapledger.consumers.storage.segment_writer.GROUP_ROWS", 4)
    append(ledger, "epoch-1", [decision(n, f"p{n % 5}") for n in range(40)])
    seal(ledger)
    (path,) = parquet_files(ledger)
    file = pq.ParquetFile(path)
    groups = [
        file.read_row_group(n).select(["_partition", "_admission"]).to_pylist() for n in range(file.num_row_groups)
    ]
    frames = [{(row["_partition"], row["_admission"]) for row in group} for group in groups]
    assert len(groups) > 4
    assert all(len({partition for partition, _ in group}) == 1 for group in frames)
    assert sum(len(group) for group in frames) == len(set().union(*frames))
    for group in groups:
        assert sum(row["_admission"] != group[-1]["_admission"] for row in group) < 4
    assert verify(ledger).problems == ()


def test_a_row_group_ends_by_its_bytes_too(ledger: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    """However few rows they are: memory stays bounded."""
    monkeypatch.setattr("lapledger.consumers.storage.segment_writer.GROUP_BYTES", 1)
    seal(ledger)
    (path,) = parquet_files(ledger)
    assert pq.ParquetFile(path).num_row_groups == 30


def test_rows_of_one_problem_lie_together(ledger: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    """Sorted for replay: the problems of one row group follow those of the group before, as its statistics tell."""
    monkeypatch.setattr("lapledger.consumers.storage.segment_writer.GROUP_ROWS", 8)
    feed(ledger, "epoch-1", count=200, problems=20)
    seal(ledger)
    (path,) = parquet_files(ledger)
    metadata = pq.ParquetFile(path).metadata
    bounds: dict[int, list[tuple[str, str]]] = {}
    for number in range(metadata.num_row_groups):
        columns = [metadata.row_group(number).column(n) for n in range(metadata.num_columns)]
        actual = {column.path_in_schema: column.statistics for column in columns}
        problem = actual["problem_id"]
        bounds.setdefault(actual["_partition"].min, []).append((problem.min, problem.max))
    assert len(bounds) == 4
    for groups in bounds.values():
        assert all(before[1] <= after[0] for before, after in pairwise(groups))
        assert sum(low == high for low, high in groups) >= len(groups) // 2


def test_a_large_type_is_sealed_in_several_segments(ledger: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each about as large as the target; together they hold every frame once."""
    before = complete(ledger)
    ((size,),) = rows(ledger, "SELECT max(length(payload)) FROM tail WHERE type = 'filter.decided'")
    monkeypatch.setattr("lapledger.consumers.storage.sealer.SEGMENT_BYTES", 7 * size)
    assert seal(ledger).segments == 1 + 5
    frames = rows(ledger, "SELECT frames FROM segment WHERE type = 'filter.decided' ORDER BY ordinal")
    assert frames == [(7,), (7,), (7,), (7,), (2,)]
    assert complete(ledger).equals(before)
    assert verify(ledger).problems == ()


def test_an_altered_tail_is_not_sealed(ledger: Ledger) -> None:
    """Damage does not get a manifest of its own; the tail stays for whoever repairs it."""
    tamper(ledger, "UPDATE frame SET key = 'p9' WHERE admission = 1 AND type = 'filter.decided'")
    with pytest.raises(Fault, match="was altered in the tail and is not sealed"):
        seal(ledger)
    assert list((ledger.root / "segments").rglob("*.part")) == []
    assert rows(ledger, "SELECT count(*) FROM segment") == [(0,)]
    assert rows(ledger, "SELECT count(*) FROM tail") == [(31,)]


def test_the_quarantine_is_sealed_too(ledger: Ledger) -> None:
    """Every field of each record, once; it stays in SQL, where it can be retried."""
    put_quarantined(ledger, b"one", b"two")
    assert seal(ledger).rows == 31
    put_quarantined(ledger, b"three")
    assert seal(ledger).segments == 1
    tables = [pq.read_table(path).to_pylist() for path in parquet_files(ledger, "quarantine.v1")]
    assert sorted(map(len, tables)) == [1, 2]
    sealed = sorted((row for table in tables for row in table), key=lambda row: row["_admission"])
    kept = rows(ledger, "SELECT id, source_offset, reason, message, headers, payload, seen FROM quarantine ORDER BY id")
    names = ("_admission", "source_offset", "reason", "message", "headers", "payload", "seen")
    assert [tuple(row[name] for name in names) for row in sealed] == kept
    assert [row["payload"] for row in sealed] == [b"one", b"two", b"three"]
    assert seal(ledger) == Sealed()
    assert verify(ledger).problems == ()


def test_many_frames_are_sealed_in_rounds(ledger: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each round a prefix of every partition, so that memory stays bounded; nothing is left behind."""
    monkeypatch.setattr("lapledger.consumers.storage.sealer.ROUND_FRAMES", 4)
    before = complete(ledger)
    assert seal(ledger).frames == 31
    assert rows(ledger, "SELECT count(*) FROM tail") == [(0,)]
    assert complete(ledger).equals(before)
    assert verify(ledger).problems == ()


def test_manifests_report_where_the_sealed_prefix_ends(ledger: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    """In the middle of a sealing too: from there the stream gives exactly the frames that are not sealed.

    Broken records, duplicates and a frame that came from the quarantine lie among them.
    """
    put(ledger, "epoch-later", [decision(100, "p0")])
    with older_release():
        admit(ledger)
    for number in range(3):
        put_quarantined(ledger, b"broken")
        feed(ledger, f"epoch-{number + 1}", count=9)
    assert [done.admission is not None for done in retry(ledger, seen="") if done.id == 1] == [True]
    feed(ledger, "epoch-9", count=9)
    monkeypatch.setattr("lapledger.consumers.storage.sealer.ROUND_FRAMES", 3)
    seal(ledger)
    chain = manifests(ledger)
    assert len({json.dumps(manifest["positions"]) for manifest in chain}) > 4
    with closing(ledger.stream()) as stream:
        for manifest in chain:
            for position in manifest["positions"]:
                _check_position(ledger, stream, position)
    asides = [manifest for manifest in chain if manifest["type"] == "quarantine"]
    assert asides
    for manifest in asides:  # what a rebuild reads again is not sealed as put aside
        behind = {(stream, partition): service_run for stream, partition, _, service_run, *_ in manifest["positions"]}
        first, last = manifest["admissions"][0][2:]
        query = f"SELECT stream, partition, source_offset FROM quarantine WHERE id BETWEEN {first} AND {last}"
        assert all(offset < behind[stream, partition] for stream, partition, offset in rows(ledger, query))


def _check_position(ledger: Ledger, stream: LocalStream, position: list[Any]) -> None:
    name, partition, identity, service_run, admissions, head = position
    index = f"stream = '{name}' AND partition = {partition}"
    frames = rows(ledger, f"SELECT digest, admission FROM frame WHERE {index} ORDER BY admission")
    again = f"SELECT r.admission FROM quarantine_retry r JOIN quarantine q ON q.id = r.id WHERE {index}"
    retried = {number for (number,) in rows(ledger, again)}
    due = first_head(ledger.identity, name, partition)
    for digest, _ in frames[:admissions]:
        due = next_head(due, digest)
    assert head == due
    assert identity in ("", "identity-0")
    quarantined = {offset for (offset,) in rows(ledger, f"SELECT source_offset FROM quarantine WHERE {index}")}
    records = stream.read(name, partition, service_run, 10_000)
    behind = [decode(stored.record).digest for stored in records if stored.offset not in quarantined]
    assert behind == [digest for digest, number in frames[admissions:] if number not in retried]


def test_the_slower_of_two_sealers_goes_on_where_the_faster_ended(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another process seals and admits more between its reading and its commit; what it wrote counts for nothing."""
    commit = lapledger.consumers.storage.sealer._commit

    def late(*args: Any) -> bool:
        monkeypatch.undo()
        assert seal(ledger).rows == 31
        feed(ledger, "epoch-1")
        return commit(*args)

    monkeypatch.setattr(lapledger.consumers.storage.sealer, "_commit", late)
    assert seal(ledger).rows == 31
    assert complete(ledger).num_rows == 60
    assert verify(ledger).problems == ()


def test_sealers_at_once_seal_each_frame_once(location: Location) -> None:
    """Three of them, while a sink admits more."""
    with closing(open_ledger(location)) as ledger:
        feed(ledger, "epoch-0", count=60)
        with ThreadPoolExecutor(4) as pool:
            feeding = pool.submit(_feed_often, location)
            sealed = [pool.submit(_seal_often, location) for _ in range(3)]
            feeding.result()
        total = sum((item.result().frames for item in sealed), seal(ledger).frames)
        assert total == len(rows(ledger, "SELECT 1 FROM frame")) == 61 + 5 * 11
        assert rows(ledger, "SELECT count(*) FROM tail") == [(0,)]
        assert verify(ledger).problems == ()


def _feed_often(location: Location) -> None:
    with closing(open_ledger(location)) as ledger:
        for number in range(5):
            feed(ledger, f"epoch-{number + 1}", count=10)


def _seal_often(location: Location) -> Sealed:
    with closing(open_ledger(location)) as ledger:
        return sum((seal(ledger) for _ in range(5)), start=Sealed())


class KilledError(Exception):
    """Stands for the death of the process."""


def test_a_sealer_that_fails_anywhere_leaves_the_old_state_or_the_new(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It ends before its 1st, 2nd, ... statement, commit, rename or sync: same facts, no problem; sealing works."""
    before, cut, kills, finished = complete(ledger), ledger.cut(), 0, False
    while not finished:
        finished = _seal_until(ledger, kills, monkeypatch)
        again = open_ledger(ledger.location)
        assert events(again, "filter.decided", 1, cut).equals(before)
        assert verify(again).problems == ()
        again.close()
        kills += 1
    assert kills > 12
    assert sum(path.suffix == ".parquet" for path in (ledger.root / "segments").rglob("*")) == 2


def _seal_until(ledger: Ledger, left: int, monkeypatch: pytest.MonkeyPatch) -> bool:
    """Seals, dying before effect number `left`; true when it finished earlier."""

    def count(*_args: object) -> None:
        nonlocal left
        if left == 0:
            raise KilledError
        left -= 1

    def counted(function: Any) -> Any:
        return lambda *args: (count(), function(*args))[1]

    event.listen(ledger.engine, "before_cursor_execute", count)
    event.listen(ledger.engine, "commit", count)
    with monkeypatch.context() as patch:
        patch.setattr(disk.Path, "rename", counted(Path.rename))
        patch.setattr(disk.os, "fsync", counted(disk.os.fsync))
        try:
            seal(ledger)
        except KilledError:
            return False
        finally:
            event.remove(ledger.engine, "before_cursor_execute", count)
            event.remove(ledger.engine, "commit", count)
    return True


@pytest.mark.parametrize(
    "point",
    [
        "segment.written",
        "segment.placed",
        "seal.segment",
        "seal.manifest",
        "seal.settled",
        "seal.deleted",
        "seal.committed",
    ],
)
def test_a_sealer_killed_at_a_named_location_loses_nothing(kind: Kind, empty_ledger: Location, point: str) -> None:
    """SIGKILL; the next sealer finishes, and the head is that of a ledger whose sealer was never killed."""
    location = kind.copy(empty_ledger, "ledger")
    with closing(open_ledger(location)) as ledger:
        feed(ledger, "epoch-0", count=5)
        before = complete(ledger)
        assert killed_at(location, point, seal)
        assert complete(ledger).equals(before)
        assert verify(ledger).problems == ()
        seal(ledger)
        assert rows(ledger, "SELECT count(*) FROM segment") == [(2,)]
        assert complete(ledger).equals(before)
        assert verify(ledger).problems == ()
