"""Compaction: fewer, larger segments, the same facts; the chain gains a link and nothing before it changes."""

from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import lapledger.consumers.storage.compactor
from lapledger.consumers.storage.compactor import Compacted, compact
from lapledger.consumers.storage.sealer import seal
from lapledger.ledger.errors import Fault
from lapledger.ledger.proof import RecordedHead, verify
from lapledger.ledger.questions.queries import Questions
from lapledger.ledger.store.cuts import Cut
from lapledger.ledger.store.location import Location
from lapledger.ledger.store.open_ledger import Ledger, open_ledger
from lapledger.ledger.store.reader import events
from tests.consumers.ledgers import (
    append,
    complete,
    decision,
    feed,
    killed_at,
    manifests,
    parquet_files,
    put_quarantined,
    rows,
)
from tests.support.databases import Kind

NOW = 1_700_000_000_000


@pytest.fixture
def ledger(both: Ledger) -> Ledger:
    """Four segments of decisions and quarantine, and decisions in the tail; every test runs over both databases."""
    return sealed_often(both, 4)


def sealed_often(ledger: Ledger, times: int) -> Ledger:
    """Sealed so often, each time after some more decisions and a broken record; a few decisions stay in the tail."""
    for number in range(times):
        feed(ledger, f"epoch-{number}", count=10, problems=5)
        put_quarantined(ledger, f"broken {number}".encode())
        seal(ledger)
    feed(ledger, "epoch-last", count=3)
    return ledger


def live(ledger: Ledger, kind: str = "filter.decided") -> list[int]:
    """The ordinals of the segments of a type that hold frames now."""
    query = (
        f"SELECT ordinal FROM segment WHERE type = '{kind}' AND ordinal NOT IN (SELECT ordinal FROM supersession)"
        " ORDER BY ordinal"
    )
    return [ordinal for (ordinal,) in rows(ledger, query)]


def test_small_segments_become_one(ledger: Ledger) -> None:
    """Of each type, the quarantine among them; what they hold is what they held."""
    before = complete(ledger)
    count = len(rows(ledger, "SELECT 1 FROM segment"))
    done = compact(ledger, NOW)
    assert (done.superseded, done.segments) == (count, 3)
    assert [len(live(ledger, kind)) for kind in ("filter.decided", "epoch.opened", "quarantine")] == [1, 1, 1]
    assert rows(ledger, "SELECT DISTINCT since FROM supersession") == [(NOW,)]
    assert complete(ledger).equals(before)
    assert [row["payload"] for row in pq.read_table(parquet_files(ledger, "quarantine.v1")).to_pylist()]
    assert verify(ledger).problems == ()
    assert compact(ledger, NOW) == Compacted()


def test_few_small_segments_wait_for_more(ledger: Ledger) -> None:
    """Whoever compacts again and again asks for more than two; half the target is enough, however few they are."""
    count = len(live(ledger))
    assert compact(ledger, NOW, at_least=count + 1) == Compacted()
    size = sum(size for (size,) in rows(ledger, "SELECT bytes FROM segment WHERE type = 'filter.decided'"))
    done = compact(ledger, NOW, at_least=count + 1, target_bytes=2 * size)
    assert (done.superseded, done.segments, len(live(ledger))) == (count, 1, 1)


def test_every_cut_answers_as_before(ledger: Ledger) -> None:
    """Old cuts that end within a compacted segment too, by Arrow and by SQL."""
    last = ledger.cut()
    cuts = [Cut.of({("facts", p): last.at("facts", p) * n // 7 for p in range(4)}) for n in range(8)]

    def answers() -> list[tuple[pa.Table, list[dict[str, Any]]]]:
        actual = []
        for cut in cuts:
            with closing(Questions(ledger, cut)) as questions:
                counted = questions.rows("SELECT problem_id, count(*) AS n FROM filter GROUP BY 1 ORDER BY 1")
            actual.append((events(ledger, "filter.decided", 1, cut), counted))
        return actual

    before = answers()
    assert len({table.num_rows for table, _ in before}) == 8
    compact(ledger, NOW)
    for (table, counted), (old_table, old_counted) in zip(answers(), before, strict=True):
        assert table.equals(old_table)
        assert counted == old_counted


def test_the_chain_goes_on_and_old_heads_stay_proven(ledger: Ledger) -> None:
    """The cut is the same, the head differs by its links alone; each new link says what it supersedes."""
    written = RecordedHead(ledger.cut(), ledger.head())
    before = manifests(ledger)
    compact(ledger, NOW)
    after = manifests(ledger)
    assert after[: len(before)] == before
    assert ledger.cut() == written.cut
    assert ledger.head() != written.head
    assert verify(ledger, written=written).problems == ()
    for manifest in after[len(before) :]:
        replaced = [item for name, item in zip(_names(ledger), after, strict=True) if name in manifest["supersedes"]]
        assert sorted(manifest["frames"]) == sorted(frame for item in replaced for frame in item["frames"])
        assert manifest["positions"] == before[-1]["positions"]
    feed(ledger, "epoch-more")
    seal(ledger)
    assert verify(ledger, written=written).problems == ()


def _names(ledger: Ledger) -> list[str]:
    return [name for (name,) in rows(ledger, "SELECT manifest FROM segment ORDER BY ordinal")]


def test_rows_of_one_problem_lie_together_again(ledger: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    """The merged segment is in replay order: each problem's rows follow one another."""
    monkeypatch.setattr("lapledger.consumers.storage.segment_writer.GROUP_ROWS", 4)
    compact(ledger, NOW)
    name = rows(ledger, f"SELECT name FROM segment WHERE ordinal = {live(ledger)[0]}")[0][0]
    (path,) = (path for path in parquet_files(ledger) if path.stem == name)
    order = [(row["_partition"], row["problem_id"], row["_admission"]) for row in pq.read_table(path).to_pylist()]
    assert order == sorted(order)
    assert pq.ParquetFile(path).num_row_groups > 5


def test_large_segments_are_left_alone(ledger: Ledger) -> None:
    """One of half the target or more, and what would exceed it."""
    sizes = [size for (size,) in rows(ledger, "SELECT bytes FROM segment WHERE type = 'filter.decided'")]
    before = live(ledger)
    assert compact(ledger, NOW, target_bytes=min(sizes)).superseded + len(live(ledger)) >= len(before)
    assert live(ledger) == before
    compact(ledger, NOW, target_bytes=2 * max(sizes) + 1)
    assert all(
        size <= 2 * max(sizes) + 1
        for (size,) in rows(ledger, "SELECT bytes FROM segment WHERE type = 'filter.decided'")
    )
    assert 1 < len(live(ledger)) < len(before)


def test_segments_that_were_sealed_in_the_order_of_admission_are_sorted(
    both: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As the first release sealed."""
    monkeypatch.setattr(
        "lapledger.consumers.storage.sealer._chunks", lambda actual: [sorted(meta for meta, _ in actual)]
    )
    ledger = sealed_often(both, 3)
    monkeypatch.undo()
    before = complete(ledger)
    compact(ledger, NOW)
    frames = [tuple(frame[:4]) for frame in manifests(ledger)[live(ledger)[0] - 1]["frames"]]
    assert frames == sorted(frames, key=lambda frame: (frame[0], frame[1], frame[3], frame[2]))
    assert complete(ledger).equals(before)
    assert verify(ledger).problems == ()


def test_a_damaged_segment_is_not_merged(ledger: Ledger) -> None:
    """Another value in a row, a spoilt file, a missing one: a Fault, and nothing changes."""
    path = parquet_files(ledger)[0]
    path.chmod(0o644)
    good = path.read_bytes()
    table = pq.read_table(path)
    position = table.schema.names.index("subject_id")
    second = table.set_column(position, table.schema.field("subject_id"), pa.array(["x"] * table.num_rows))
    before = rows(ledger, "SELECT ordinal, name FROM segment")

    def spoil(data: bytes | None) -> None:
        path.unlink() if data is None else path.write_bytes(data)
        with pytest.raises(Fault):
            compact(ledger, NOW)
        assert [row for row in rows(ledger, "SELECT ordinal, name FROM segment") if row in before] == before
        assert [item for item in live(ledger) if item in {ordinal for ordinal, _ in before}] == live(ledger)

    pq.write_table(second, path)
    spoil(path.read_bytes())
    spoil(good[: len(good) // 2])
    spoil(None)
    path.write_bytes(good)
    compact(ledger, NOW)
    assert verify(ledger).problems == ()


def test_sealing_goes_on_beside_a_compaction(ledger: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    """A seal between the merge and its commit: the link goes behind it, the merged segment is kept."""
    write = lapledger.consumers.storage.compactor.write_manifest

    def late(*args: Any) -> None:
        monkeypatch.undo()
        write(*args)
        feed(ledger, "epoch-between")
        assert seal(ledger).frames == 3 + 1 + 31

    monkeypatch.setattr(lapledger.consumers.storage.compactor, "write_manifest", late)
    before = len(parquet_files(ledger))
    done = compact(ledger, NOW)
    assert done.superseded > 4
    assert len(parquet_files(ledger)) <= before + 3
    assert complete(ledger).num_rows == 40 + 3 + 30
    assert verify(ledger).problems == ()


def test_the_slower_of_two_compactors_changes_nothing(ledger: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    """What it merged was superseded meanwhile."""
    write = lapledger.consumers.storage.compactor.write_manifest

    def late(*args: Any) -> None:
        monkeypatch.undo()
        write(*args)
        assert compact(ledger, NOW).segments == 3

    monkeypatch.setattr(lapledger.consumers.storage.compactor, "write_manifest", late)
    assert compact(ledger, NOW) == Compacted()
    assert verify(ledger).problems == ()


def test_compactors_and_sealers_at_once(location: Location) -> None:
    """Every fact is there once in the end, and the chain holds."""
    with closing(open_ledger(location)) as ledger, ThreadPoolExecutor(4) as pool:
        sealed_often(ledger, 2)
        working = [pool.submit(work, location, n) for n, work in enumerate((_feed_and_seal, _feed_and_seal, _compact))]
        for item in working:
            item.result()
        compact(ledger, NOW)
        assert complete(ledger).num_rows == 20 + 3 + 2 * 4 * 6
        assert verify(ledger).problems == ()


def _feed_and_seal(location: Location, worker: int) -> None:
    with closing(open_ledger(location)) as ledger:
        for number in range(4):
            feed(ledger, f"epoch-{worker}-{number}", count=6)
            seal(ledger)


def _compact(location: Location, _worker: int) -> None:
    with closing(open_ledger(location)) as ledger:
        for _ in range(8):
            compact(ledger, NOW)


@pytest.mark.parametrize("point", ["segment.placed", "compact.segment", "compact.manifest", "compact.committed"])
def test_a_compactor_killed_at_a_named_location_loses_nothing(kind: Kind, empty_ledger: Location, point: str) -> None:
    """SIGKILL; the next one finishes."""
    position = kind.copy(empty_ledger, "ledger")
    with closing(open_ledger(position)) as ledger:
        for number in range(2):
            append(ledger, f"epoch-{number}", [decision(number)])
            seal(ledger)
        before = complete(ledger)
        assert killed_at(position, point, _compact_all)
        assert complete(ledger).equals(before)
        assert verify(ledger).problems == ()
        compact(ledger, NOW)
        assert len(live(ledger)) == 1
        assert complete(ledger).equals(before)
        assert verify(ledger).problems == ()


def _compact_all(ledger: Ledger) -> None:
    compact(ledger, NOW)
