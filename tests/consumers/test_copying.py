"""Copies of ledgers: the same cut, head and rows on a stream of its own, from and to every kind of place."""

import json
import shutil
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from lapledger.consumers.ingest.admission import Drained
from lapledger.consumers.storage.compactor import compact
from lapledger.consumers.storage.ledger_copy import ROWS, Copied, copy_ledger
from lapledger.consumers.storage.sealer import seal
from lapledger.ledger.errors import DiskFull, Fault, UserError
from lapledger.ledger.failpoint import POINTS
from lapledger.ledger.frames.frame import Record
from lapledger.ledger.proof import Proof, verify
from lapledger.ledger.store.location import Location
from lapledger.ledger.store.open_ledger import Ledger, create_ledger, open_ledger
from lapledger.ledger.streams.kafka.settings import KafkaSettings
from tests.consumers.ledgers import append, complete, decision, feed, killed_at, put_quarantined, rows, tamper
from tests.support.s3_servers import S3Server

KEYS = {"stream_position": "stream, partition, admissions, head, duplicates"}


def silent(_part: str, _done: int, _total: int) -> None:
    """Progress that nobody looks at."""


def copied(source: Ledger, target: Location) -> Copied:
    """The copy in the target."""
    return copy_ledger(source, target, stream_identity=f"stream of {target.root.name}", progress=silent)


def proven(ledger: Ledger) -> Proof:
    """The proof, with the ledger's stream beside it."""
    with closing(ledger.stream()) as stream:
        return verify(ledger, stream=stream)


def content(ledger: Ledger) -> dict[str, Any]:
    """The rows of every table that a copy has in common with its source."""
    return {name: sorted(rows(ledger, f"SELECT {KEYS.get(name, '*')} FROM {name}"), key=str) for name in ROWS}


def check_same(copy: Ledger, source: Ledger) -> None:
    """Every row, cut, head, event and blob are the same, the copy's positions are those of a stream not read yet."""
    assert (copy.identity, copy.cut(), copy.head()) == (source.identity, source.cut(), source.head())
    assert content(copy) == content(source)
    locations = rows(
        copy, "SELECT identity, next_position, moved - admissions, lease_epoch, lease_holder FROM stream_position"
    )
    assert set(locations) == {("", 0, 0, 0, "")}
    moves = "SELECT DISTINCT {} FROM stream_position"
    assert rows(copy, moves.format("moves - 1")) == rows(source, moves.format("moves"))
    last = "SELECT coalesce(max(id), 0) FROM quarantine"
    assert rows(copy, moves.format("moved_id")) == rows(source, last)
    assert complete(copy).equals(complete(source))
    assert list(copy.blobs.digests()) == list(source.blobs.digests())
    assert proven(copy).problems == ()


def check_goes_on(copy: Ledger) -> None:
    """What is appended to the copy's stream is admitted, put aside, sealed and proven."""
    before = complete(copy).num_rows
    assert (
        append(copy, f"epoch-{copy.root.name}", [decision(number, f"p{number % 3}") for number in range(9)]).admitted
        > 0
    )
    put_quarantined(copy, b"broken in the copy")
    assert complete(copy).num_rows == before + 9
    assert proven(copy).problems == ()
    seal(copy)
    assert complete(copy).num_rows == before + 9
    assert proven(copy).problems == ()


@pytest.fixture
def lived(both: Ledger) -> Ledger:
    """A ledger over either database: blobs, sealed and merged segments, quarantine, a gap, a tail."""
    feed(both, "epoch-0")
    seal(both)
    feed(both, "epoch-1")
    put_quarantined(both, b"one", b"two")
    seal(both)
    assert compact(both, 0).segments > 0
    feed(both, "epoch-2", 7)
    put_quarantined(both, b"three")
    both.blobs.put_many([b"text one", b"", b"text two" * 1000])
    return both


def test_a_copy_is_the_same_ledger_and_goes_on(lived: Ledger, tmp_path: Path) -> None:
    """From either database into a plain folder: same rows, cut and head; then it lives on by itself."""
    done = copied(lived, Location(tmp_path / "copy"))
    assert (done.identity, done.cut, done.head) == (lived.identity, str(lived.cut()), lived.head())
    assert (done.blobs, done.rows["quarantine"], done.rows["ledger"]) == (3, 3, 1)
    assert (done.rows["tail"], done.segments) == tuple(
        rows(lived, "SELECT (SELECT count(*) FROM tail), (SELECT count(*) FROM segment)")[0]
    )
    with closing(open_ledger(tmp_path / "copy")) as copy:
        check_same(copy, lived)
        check_goes_on(copy)
    assert proven(lived).problems == ()


def test_a_ledger_moves_to_servers_and_back(
    lived: Ledger, tmp_path: Path, postgres_database: str, kafka_settings: KafkaSettings
) -> None:
    """Local or not, to PostgreSQL and Kafka; what is appended there comes back with a copy into a folder."""
    servers = Location(tmp_path / "servers", postgres_database, kafka=kafka_settings)
    copied(lived, servers)
    with closing(open_ledger(servers)) as moved:
        check_same(moved, lived)
        check_goes_on(moved)
        copied(moved, Location(tmp_path / "back"))
        with closing(open_ledger(tmp_path / "back")) as back:
            check_same(back, moved)
            check_goes_on(back)


def test_files_go_to_an_object_store_and_back(lived: Ledger, tmp_path: Path, s3: S3Server) -> None:
    """Segments, manifests and blobs, verified on their way."""
    stored = Location(tmp_path / "near", store=s3.url(tmp_path.name))
    done = copied(lived, stored)
    with closing(open_ledger(stored)) as far:
        assert done.files_copied == len(far.blobs.listing()) + len(far.segments.listing())
        assert done.bytes_copied == sum(item.bytes for item in [*far.blobs.listing(), *far.segments.listing()])
        check_same(far, lived)
        copied(far, Location(tmp_path / "back"))
        with closing(open_ledger(tmp_path / "back")) as back:
            check_same(back, far)


MOVED = (
    "DELETE FROM quarantine WHERE id = (SELECT max(id) FROM quarantine)",
    "UPDATE quarantine SET payload = payload || payload WHERE id = (SELECT max(id) FROM quarantine)",
    "UPDATE quarantine SET source_offset = source_offset + 1 WHERE id = (SELECT max(id) FROM quarantine)",
    "UPDATE stream_position SET identity = 'another' WHERE stream = 'requests' AND partition = 3",
    "UPDATE stream_position SET identity = 'another' WHERE stream = 'control'",
    "UPDATE stream_position SET next_position = next_position + 1 WHERE stream = 'facts' AND partition = 0",
    "UPDATE stream_position SET moved_id = moved_id + 1 WHERE stream = 'facts' AND partition = 0",
    "UPDATE stream_position SET moved_id = moved_id + 1",
    "UPDATE stream_position SET moved_id = moved_id - 1",
    "UPDATE stream_position SET moves = moves + 1 WHERE stream = 'control'",
    "UPDATE stream_position SET moves = moves + 1",
    "UPDATE stream_position SET moves = 0, moved = 0, moved_id = 0",
    "UPDATE stream_position SET moved = moved - 1 WHERE moved > 0",
)
"""What a proof without regard to the move might take for a trace of it."""


@pytest.mark.parametrize("sealed", [False, True])
def test_a_moved_ledger_is_proven_as_strictly(lived: Ledger, tmp_path: Path, *, sealed: bool) -> None:
    """What came after the move must lie on the new stream, and what came before is not to be changed either."""
    copied(lived, Location(tmp_path / "copy"))
    with closing(open_ledger(tmp_path / "copy")) as copy:
        check_goes_on(copy)
        put_quarantined(copy, b"after the move")
        if sealed:
            seal(copy)
    for number, change in enumerate(MOVED):
        second = tmp_path / f"changed-{number}"
        shutil.copytree(tmp_path / "copy", second)
        with closing(open_ledger(second)) as changed:
            assert proven(changed).problems == ()
            tamper(changed, change)
            assert proven(changed).problems, change


def test_what_is_admitted_and_sealed_meanwhile_is_not_in_the_copy(lived: Ledger, tmp_path: Path) -> None:
    """The copy is as of the moment when it began, and whole; the source goes on unhindered."""
    before = content(lived), lived.cut(), lived.head()
    fed: list[Drained] = []

    def meanwhile(part: str, _done: int, _total: int) -> None:
        if part in ("blobs", "frame"):
            fed.append(feed(lived, f"epoch-{part}-{len(fed)}", 4))
            seal(lived)

    copy_ledger(lived, Location(tmp_path / "copy"), stream_identity="other", progress=meanwhile)
    assert len(fed) > 1
    with closing(open_ledger(tmp_path / "copy")) as copy:
        assert (content(copy), copy.cut(), copy.head()) == before
        assert proven(copy).problems == ()
        check_goes_on(copy)
    assert lived.cut() != before[1]


def _copy_beside(ledger: Ledger) -> None:
    copied(ledger, Location(ledger.root.parent / "copy"))


@pytest.mark.parametrize(
    "point", sorted(point for point in POINTS if point.startswith("copy.") and "committed" not in point)
)
def test_an_interrupted_copy_reports_so_and_goes_on(lived: Ledger, tmp_path: Path, point: str) -> None:
    """It is no ledger that anything could be appended to; the same copy again takes what is missing."""
    assert killed_at(lived.location, point, _copy_beside)
    target = Location(tmp_path / "copy")
    with pytest.raises(UserError, match=r"did not end.*run the same"):
        open_ledger(target)
    with pytest.raises(UserError, match=r"did not end.*run the same"):
        create_ledger(target, "another", "now")
    done = copied(lived, target)
    assert (done.files_copied == 0) == (point != "copy.tables")
    with closing(open_ledger(target)) as copy:
        check_same(copy, lived)
        check_goes_on(copy)


def test_a_filled_target_is_refused_and_stays_as_it_is(lived: Ledger, tmp_path: Path) -> None:
    """Another ledger, even an empty one, and a copy that was made before."""
    with closing(create_ledger(tmp_path / "other", "identity-1", "now")) as second:
        feed(second, "epoch-0", 1)
        head = second.head()
        with pytest.raises(UserError, match=r"holds another ledger \(identity-1\)"):
            copied(lived, second.location)
        assert second.head() == head
    create_ledger(tmp_path / "empty", "identity-2", "now").close()
    with pytest.raises(UserError, match="lap ledger init"):
        copied(lived, Location(tmp_path / "empty"))
    copied(lived, Location(tmp_path / "copy"))
    with pytest.raises(UserError, match="holds a copy of this ledger already"):
        copied(lived, Location(tmp_path / "copy"))


def test_a_stream_with_records_and_a_shared_location_are_refused(lived: Ledger, tmp_path: Path) -> None:
    """What lies on them is not of this copy."""
    with closing(create_ledger(tmp_path / "copy", "identity-1", "now")) as second, closing(second.stream()) as stream:
        stream.append("facts", 2, [Record({}, b"theirs")])
    for path in (tmp_path / "copy").glob("ledger.sqlite*"):
        path.unlink()
    with pytest.raises(UserError, match="holds records already"):
        copied(lived, Location(tmp_path / "copy"))
    with pytest.raises(UserError, match="share its folder"):
        copied(lived, Location(lived.root))


def test_an_altered_file_is_not_copied(lived: Ledger, tmp_path: Path) -> None:
    """Damage is found on the way and named; there is no copy then."""
    (path,) = [lived.root / "segments" / item.name for item in lived.segments.listing() if "filter" in item.name][:1]
    shutil.copy(path, tmp_path / "kept")
    path.chmod(0o644)
    path.write_bytes(path.read_bytes()[:-1] + b"x")
    with pytest.raises(Fault, match=f"{path.name} was altered and is not copied"):
        copied(lived, Location(tmp_path / "copy"))
    with pytest.raises(UserError, match="did not end"):
        open_ledger(tmp_path / "copy")
    shutil.copy(tmp_path / "kept", path)
    copied(lived, Location(tmp_path / "copy"))


def test_rows_that_do_not_give_the_head_are_not_kept(
    both: Ledger, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rows that went missing on the way show in the head: the transaction is undone, and the whole copy goes on."""
    feed(both, "epoch-0", 3)
    seal(both)
    lossy = {name: count for name, count in ROWS.items() if name != "segment"}
    with monkeypatch.context() as patch:
        patch.setattr("lapledger.consumers.storage.ledger_copy.ROWS", lossy)
        with pytest.raises(Fault, match="differs from the ledger"):
            copied(both, Location(tmp_path / "copy"))
    with pytest.raises(UserError, match="did not end"):
        open_ledger(tmp_path / "copy")
    assert copied(both, Location(tmp_path / "copy")).head == both.head()


def test_a_copy_leaves_the_reserve(lived: Ledger, tmp_path: Path) -> None:
    """Nothing counts then, and with room it goes on."""
    free = shutil.disk_usage(tmp_path).free
    with pytest.raises(DiskFull, match="reserve_mb"):
        copied(lived, Location(tmp_path / "copy", reserve_bytes=2 * free))
    assert copied(lived, Location(tmp_path / "copy")).head == lived.head()


def test_numbers_of_the_quarantine_go_on(lived: Ledger, tmp_path: Path, postgres_database: str) -> None:
    """Also where a server counts them by itself."""
    target = Location(tmp_path / "copy", postgres_database)
    copied(lived, target)
    with closing(open_ledger(target)) as copy:
        put_quarantined(copy, b"four")
        assert rows(copy, "SELECT id, headers FROM quarantine ORDER BY id DESC LIMIT 1") == [(4, json.dumps({}))]
