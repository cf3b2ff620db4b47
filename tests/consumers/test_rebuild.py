"""A rebuild: segments and manifests alone give the database back, the stream gives the rest, and nothing differs."""

import dataclasses
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import text

import lapledger.consumers.storage.sealer
from lapledger.consumers.ingest.quarantine_retry import retry
from lapledger.consumers.ingest.sink import Drained, drain
from lapledger.consumers.storage.compactor import compact
from lapledger.consumers.storage.garbage_collector import GracePeriod, collect, find_garbage
from lapledger.consumers.storage.rebuild import Now, Rebuilt, rebuild
from lapledger.consumers.storage.sealer import seal
from lapledger.ledger.errors import Fault, UserError
from lapledger.ledger.events import EVENTS, FilterDecided, to_batch
from lapledger.ledger.frames.frame import Frame, Link, Record, encode, genesis, make_frame
from lapledger.ledger.proof import Proof, current_head, verify
from lapledger.ledger.store.location import Location
from lapledger.ledger.store.open_ledger import Ledger, create_ledger, open_ledger
from lapledger.ledger.store.sql.engine import reading
from lapledger.ledger.streams.producer import Producer, partition_of
from tests.support.databases import Kind
from tests.support.lap import lap

NOW = Now("later", 1_000)
LABELS = {
    "ledger": {"created"},
    "stream_position": {"duplicates", "lease_epoch", "lease_holder", "lease_until"},
    "supersession": {"since"},
    "quarantine_retry": {"seen"},
}
"""What is not restored: leases, the count of duplicates, and labels of when something was done."""
TABLES = (
    *("ledger", "stream_position", "frame", "tail", "gap", "segment", "segment_range", "supersession"),
    *("quarantine", "quarantine_retry"),
)


def decision(number: int, problem: str = "p0") -> FilterDecided:
    """A filter decision about test `number`."""
    return FilterDecided(
        problem_id=problem,
        subject="test",
        subject_id=str(number),
        rule="r",
        campaign_id=None,
        kept=True,
        reason="",
        figure=None,
    )


def frames(count: int, epoch: str, problem: str = "p0") -> list[Frame]:
    """A producer's chain of frames of one decision."""
    partition = partition_of("facts", problem)
    previous, made = genesis(epoch, "facts", partition), []
    for n in range(count):
        link = Link(epoch, "facts", partition, n, previous)
        made.append(make_frame(EVENTS["filter.decided", 1], problem, link, to_batch([decision(n, problem)])))
        previous = made[-1].digest
    return made


def append(ledger: Ledger, *records: Frame | Record, problem: str = "p0") -> Drained:
    """Puts records on the stream and admits them."""
    with closing(ledger.stream()) as stream:
        some = [record if isinstance(record, Record) else encode(record) for record in records]
        stream.append("facts", partition_of("facts", problem), some)
        return drain(ledger, stream, seen="then")


def facts(ledger: Ledger, epoch: str, count: int = 6) -> None:
    """Decisions about three problems, admitted."""
    with closing(ledger.stream()) as stream:
        producer = Producer(stream, epoch, "test", "0")
        for start in range(0, count, 3):
            producer.append([decision(n, f"p{n % 3}") for n in range(start, start + 3)])
        producer.close()
        drain(ledger, stream)


def rows(ledger: Ledger, table: str) -> list[dict[str, Any]]:
    """All rows of a table without the labels that are not restored, sorted."""
    with reading(ledger.engine) as connection:
        result = connection.execute(text(f"SELECT * FROM {table}")).mappings().all()
    kept = [{name: value for name, value in row.items() if name not in LABELS.get(table, ())} for row in result]
    return sorted(kept, key=str)


def proven(ledger: Ledger) -> Proof:
    """The proof with the ledger's own stream at hand."""
    with closing(ledger.stream()) as stream:
        return verify(ledger, stream=stream)


def without_sql(kind: Kind, ledger: Ledger) -> Location:
    """Closes a ledger and loses its database: the place with an empty one."""
    ledger.close()
    if kind.server is not None:
        return dataclasses.replace(ledger.location, sql=kind.server.database())
    for path in ledger.root.glob("ledger.sqlite*"):
        path.unlink()
    return ledger.location


@pytest.fixture
def both(location: Location) -> Iterator[Ledger]:
    """A ledger with a life behind it: sealed twice, compacted, superseded files gone, quarantine retried and sealed, an
    open gap, a duplicate; and frames in its tail."""
    ledger = open_ledger(location)
    facts(ledger, "epoch-1")
    made = frames(5, "epoch-2")
    assert append(ledger, made[0], made[0], made[2], Record({}, b"broken")).quarantined == 1
    seal(ledger)
    facts(ledger, "epoch-3")
    late = encode(made[3])
    assert append(ledger, Record({**late.headers, "ce_laprows": "9"}, late.payload), made[4]).quarantined == 1
    seal(ledger)
    assert compact(ledger, 0).segments > 0
    removed = collect(ledger, find_garbage(ledger, GracePeriod(now_ms=2**50)))
    assert any(item.name.startswith("filter.decided") for item in removed)
    facts(ledger, "epoch-4")
    append(ledger, frames(3, "epoch-5", "p1")[1], Record({}, b"broken too"), problem="p1")
    yield ledger
    ledger.close()


def test_a_rebuilt_database_goes_on_as_if_nothing_was_lost(kind: Kind, both: Ledger) -> None:
    """After the stream was read again: the same cut, the same head, the same rows in every table, and all is proven."""
    before = {table: rows(both, table) for table in TABLES}
    label, sealed = current_head(both), sum(row["rows"] > 0 for row in rows(both, "segment"))
    assert len(before["gap"]) == 3
    assert len(before["supersession"]) > 1
    position = without_sql(kind, both)
    rebuilt = rebuild(position, NOW, label, stream_identity="fresh")
    assert (rebuilt.identity, rebuilt.segments, rebuilt.rejected_chains) == ("identity-0", sealed, ())
    assert rebuilt.proven is None  # the head covers the tail, which only the stream can give back
    with closing(open_ledger(position)) as again, closing(again.stream()) as stream:
        assert (str(again.cut()), again.head()) == (rebuilt.cut, rebuilt.head)
        assert verify(again).problems == ()
        drained = drain(again, stream, seen="then")
        assert (drained.duplicates, drained.quarantined) == (0, 1)
        assert {table: rows(again, table) for table in TABLES} == before
        assert (current_head(again), proven(again).problems) == (label, ())
        assert verify(again, written=label, stream=stream).problems == ()


def test_what_was_sealed_is_known_again(kind: Kind, both: Ledger) -> None:
    """Sealed frames that are delivered once more are duplicates, though the table of frames was lost."""
    sealed = [frame for frame in frames(5, "epoch-2") if frame.link.sequence in (0, 2, 4)]
    position = without_sql(kind, both)
    rebuild(position, NOW, stream_identity="fresh")
    with closing(open_ledger(position)) as again:
        with closing(again.stream()) as stream:
            drain(again, stream)
        assert append(again, *sealed) == Drained(duplicates=3)
        seal(again)
        assert proven(again).problems == ()


def test_a_retry_is_restored_with_its_admission(kind: Kind, location: Location) -> None:
    """It left no fact of its own: a frame that came from where a quarantined record lies was retried."""
    ledger = open_ledger(location)
    made = frames(3, "epoch-1")
    refused = encode(made[1])
    append(ledger, made[0], Record({**refused.headers, "ce_laprows": "9"}, refused.payload), made[2])
    with pytest.MonkeyPatch.context() as fixed:
        fixed.setattr("lapledger.consumers.ingest.admission.decode", lambda record: made[1])
        (done,) = retry(ledger, seen="now")
    assert done.admission == 3
    seal(ledger)
    before = {table: rows(ledger, table) for table in TABLES}
    assert before["quarantine_retry"] == [{"id": 1, "admission": 3}]
    location = without_sql(kind, ledger)
    assert rebuild(location, NOW, stream_identity="fresh").quarantined == 1
    with closing(open_ledger(location)) as again:
        assert {table: rows(again, table) for table in TABLES} == before
        assert proven(again).problems == ()


def test_a_rebuild_that_was_cut_short_is_begun_again(kind: Kind, both: Ledger) -> None:
    """Its rows come in one transaction; before that there is at most an empty ledger of the same identity."""
    position = without_sql(kind, both)
    create_ledger(position, "identity-0", "now").close()
    assert rebuild(position, NOW, stream_identity="fresh").frames > 0
    with pytest.raises(UserError, match="holds a ledger; move it away"):
        rebuild(position, NOW, stream_identity="fresh")


def test_a_database_of_another_ledger_is_refused(kind: Kind, both: Ledger) -> None:
    """Even an empty one: every head is bound to the identity."""
    position = without_sql(kind, both)
    create_ledger(position, "identity-1", "now").close()
    with pytest.raises(UserError, match="made for another ledger"):
        rebuild(position, NOW, stream_identity="fresh")


@pytest.fixture
def ledger(tmp_path: Path) -> Iterator[Ledger]:
    """A fresh ledger in a folder."""
    opening = create_ledger(tmp_path / "ledger", "identity-0", "now")
    yield opening
    opening.close()


def rebuilt(ledger: Ledger, label: Any = None) -> Rebuilt:
    """A rebuild of a ledger in a folder that lost its database."""
    ledger.close()
    for path in ledger.root.glob("ledger.sqlite*"):
        path.unlink()
    return rebuild(ledger.root, NOW, label, stream_identity="fresh")


def test_a_ledger_that_sealed_nothing_has_nothing_to_rebuild_from(ledger: Ledger) -> None:
    """The stream still holds all that it admitted."""
    facts(ledger, "epoch-1")
    with pytest.raises(UserError, match="no segments to rebuild from"):
        rebuilt(ledger)


def manifest(ledger: Ledger, ordinal: int) -> Path:
    """Where the manifest at a place of the chain lies."""
    (row,) = (row for row in rows(ledger, "segment") if row["ordinal"] == ordinal)
    return ledger.root / "segments" / f"{row['type']}.v{row['version']}" / f"{row['manifest']}.json"


def sealed_thrice(ledger: Ledger) -> None:
    """Three sealings of two segments each."""
    for number in range(3):
        facts(ledger, f"epoch-{number}")
        seal(ledger)


@pytest.mark.parametrize("ordinal", [1, 2, 4])
@pytest.mark.parametrize("harm", ["removed", "altered"])
def test_a_broken_chain_is_reported_with_its_location(ledger: Ledger, ordinal: int, harm: str) -> None:
    """Whether a manifest is gone or altered, in one line; and no database is left behind."""
    sealed_thrice(ledger)
    path = manifest(ledger, ordinal)
    if harm == "removed":
        path.unlink()
    else:
        path.chmod(0o644)
        path.write_bytes(path.read_bytes().replace(b'"p0"', b'"p9"', 1).replace(b"epoch", b"epoxh", 1))
    with pytest.raises(
        Fault, match=rf"broken at position {ordinal}: manifest \S*{path.stem}\S* (is missing|was altered)"
    ):
        rebuilt(ledger)
    assert not (ledger.root / "ledger.sqlite").exists()


def test_an_altered_last_manifest_is_not_passed_over(ledger: Ledger) -> None:
    """It may be an end that counted. A head that was written down before it can say that the rest is enough."""
    facts(ledger, "epoch-1")
    seal(ledger)
    label = current_head(ledger)
    facts(ledger, "epoch-2")
    seal(ledger)
    path = manifest(ledger, len(rows(ledger, "segment")))
    path.chmod(0o644)
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(Fault, match=rf"{path.stem}\S* was altered.*or give a head"):
        rebuilt(ledger)
    assert rebuilt(ledger, label).proven is True


def test_a_missing_segment_is_reported(ledger: Ledger) -> None:
    """A superseded one may be gone, any other not."""
    sealed_thrice(ledger)
    (path,) = list((ledger.root / "segments").glob("filter.decided.v1/*.parquet"))[:1]
    path.unlink()
    with pytest.raises(Fault, match=rf"segment \S*{path.stem}.parquet of the chain .* is missing"):
        rebuilt(ledger)


def uncommitted(monkeypatch: pytest.MonkeyPatch, ledger: Ledger) -> None:
    """A sealing that stores its files and dies before they count."""
    with monkeypatch.context() as killed:
        killed.setattr(lapledger.consumers.storage.sealer, "_commit", _killed)
        with pytest.raises(KilledError):
            seal(ledger)


class KilledError(Exception):
    """Stands for the death of the process."""


def _killed(*_: object) -> bool:
    raise KilledError


def test_the_end_that_covers_most_is_taken_and_the_others_are_reported(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A sealing that was cut short left manifests; the one after it began at the same place and holds more."""
    facts(ledger, "epoch-1")
    seal(ledger)
    facts(ledger, "epoch-2")
    uncommitted(monkeypatch, ledger)
    facts(ledger, "epoch-3")
    seal(ledger)
    before, label = {table: rows(ledger, table) for table in TABLES}, current_head(ledger)
    done = rebuilt(ledger)
    assert len(done.rejected_chains) == 1
    assert done.rejected_chains[0].startswith("the chain of 6 manifests that ends with ")
    with closing(open_ledger(ledger.root)) as again:
        assert {table: rows(again, table) for table in TABLES} == before
        assert verify(again, written=label).problems == ()


def test_an_end_that_never_counted_still_holds_true_facts(ledger: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing came after a sealing that was cut short: taken, its frames are those that the tail had."""
    facts(ledger, "epoch-1")
    seal(ledger)
    label = current_head(ledger)
    facts(ledger, "epoch-2")
    cut = str(ledger.cut())
    uncommitted(monkeypatch, ledger)
    done = rebuilt(ledger)
    assert (done.cut, done.rejected_chains) == (cut, ())
    with closing(open_ledger(ledger.root)) as again:
        assert verify(again, written=label).problems == ()
        assert proven(again).problems == ()


@pytest.mark.parametrize("lost", [4, 6])
def test_a_sealing_that_stored_half_of_its_manifests_never_counted(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch, lost: int
) -> None:
    """Its positions speak of frames that no manifest lists: the chain ends before it, and it is told. Where the first
    of them is gone, only a head can say that nothing was lost."""
    facts(ledger, "epoch-1")
    seal(ledger)
    label = current_head(ledger)
    facts(ledger, "epoch-2")
    uncommitted(monkeypatch, ledger)
    paths = (ledger.root / "segments").rglob("*.json")
    next(path for path in paths if b'"ordinal":%d,' % lost in path.read_bytes()).unlink()
    if lost == 4:
        with pytest.raises(Fault, match="broken at position 4"):
            rebuilt(ledger)
        assert rebuilt(ledger, label).cut == str(label.cut)
        return
    done = rebuilt(ledger)
    assert (done.cut, done.proven) == (str(label.cut), False)
    assert done.rejected_chains[0].startswith("a sealing of positions 4 to 6 that ends with ")


def test_a_head_decides_between_two_ends(ledger: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two sealings of the same frames differ in nothing but the order of time: the head says which one counted."""
    facts(ledger, "epoch-1")
    uncommitted(monkeypatch, ledger)
    with monkeypatch.context() as larger:
        larger.setattr("lapledger.consumers.storage.sealer.SEGMENT_BYTES", 1)
        seal(ledger)
    label, segments = current_head(ledger), len(rows(ledger, "segment"))
    assert segments > 2
    short = dataclasses.replace(label, head="0" * 64)
    with pytest.raises(Fault, match="no chain of manifests gives the head"):
        rebuilt(ledger, short)
    done = rebuilt(ledger, label)
    assert (done.proven, done.segments, len(done.rejected_chains)) == (True, segments, 1)


def test_the_command_rebuilds_and_reports_what_it_left_out(ledger: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    """Head and cut on stdout, ends that were not taken on stderr; a mistake of the user is one line and exit code 2."""
    facts(ledger, "epoch-1")
    uncommitted(monkeypatch, ledger)
    facts(ledger, "epoch-2")
    seal(ledger)
    label, position = str(current_head(ledger)), ("--ledger", ledger.root)
    filled = lap("ledger", "rebuild", *position)
    assert (filled.code, len(filled.err.splitlines())) == (2, 1)
    ledger.close()
    for path in ledger.root.glob("ledger.sqlite*"):
        path.unlink()
    assert lap("ledger", "rebuild", *position, "--head", "nonsense").code == 2
    done = lap("ledger", "rebuild", *position, "--head", label)
    assert done.code == 0
    assert done.out.splitlines()[1:] == [f"head {label.split('@')[0]}", f"cut {label.split('@')[1]}"]
    assert "excluded, as it covers no more: the chain of 3 manifests" in done.err
    assert lap("verify", *position, "--head", label).code == 0
