"""Garbage collection: what nobody names goes after a grace period; what is needed, or might be, stays."""

import hashlib
import os
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lapledger.consumers.ingest.quarantine_retry import retry
from lapledger.consumers.storage.compactor import compact
from lapledger.consumers.storage.garbage_collector import (
    Garbage,
    GracePeriod,
    _positions,
    collect,
    find_garbage,
    named_blobs,
)
from lapledger.consumers.storage.sealer import seal
from lapledger.ledger.errors import Fault
from lapledger.ledger.events import ProgramAdded
from lapledger.ledger.proof import verify
from lapledger.ledger.store.location import Location
from lapledger.ledger.store.open_ledger import Ledger, create_ledger
from tests.consumers.ledgers import (
    admit,
    append,
    complete,
    feed,
    older_release,
    parquet_files,
    put,
    put_quarantined,
    rows,
)
from tests.support.s3_servers import S3Server

NOW = 1_700_000_000_000
DAY = 24 * 3600 * 1000


@pytest.fixture
def ledger(both: Ledger) -> Ledger:
    """A ledger whose segments are compacted since NOW; every test runs over both databases."""
    for number in range(2):
        feed(both, f"epoch-{number}", count=6)
        seal(both)
    compact(both, NOW)
    for path in (both.root / "segments").rglob("*"):
        os.utime(path, (NOW / 1000, NOW / 1000))
    return both


def program(blob: str) -> ProgramAdded:
    """A program with this source."""
    return ProgramAdded(
        problem_id="p",
        program_id=f"p/{blob[:12]}",
        name="a.py",
        model="human",
        label="accepted",
        language="python3",
        source_blob=blob,
        source_bytes=1,
        rollout_id=None,
    )


def result(ledger: Ledger, days: float, grace_days: float = 7) -> list[str]:
    """The names of what may go so many days after NOW."""
    requested = GracePeriod(round(NOW + days * DAY), round(grace_days * DAY))
    return sorted(item.name for item in find_garbage(ledger, requested))


def put_aged(ledger: Ledger, path: str, days: float = 0, data: bytes = b"x") -> None:
    """Puts a file into the ledger's folder that was written so many days after NOW."""
    full = ledger.root / path
    full.parent.mkdir(parents=True, exist_ok=True)
    full.write_bytes(data)
    os.utime(full, ((NOW + days * DAY) / 1000,) * 2)


def superseded(ledger: Ledger) -> list[str]:
    """The names of superseded segments."""
    query = "SELECT type, version, name FROM segment WHERE ordinal IN (SELECT ordinal FROM supersession)"
    return sorted(f"{kind}.v{version}/{name}.parquet" for kind, version, name in rows(ledger, query))


def test_nothing_goes_before_the_grace_period_is_over(ledger: Ledger) -> None:
    """Neither superseded segments nor files that nobody names."""
    put_aged(ledger, "segments/filter.decided.v1/stray.parquet")
    assert result(ledger, 6.9) == []
    assert result(ledger, 7) == sorted([*superseded(ledger), "filter.decided.v1/stray.parquet"])


def test_superseded_segments_go_and_every_answer_stays(ledger: Ledger) -> None:
    """Their manifests stay: the chain needs them."""
    before = complete(ledger)
    manifests = sorted((ledger.root / "segments").rglob("*.json"))
    garbage = find_garbage(ledger, GracePeriod(NOW + 7 * DAY))
    assert collect(ledger, garbage) == garbage
    assert sorted((ledger.root / "segments").rglob("*.json")) == manifests
    assert len(parquet_files(ledger)) == 1
    assert complete(ledger).equals(before)
    assert verify(ledger).problems == ()
    assert result(ledger, 365) == []


def test_segments_that_were_superseded_twice_go_in_any_order(ledger: Ledger) -> None:
    """Also when the one between them is gone already."""
    feed(ledger, "epoch-more", count=6)
    seal(ledger)
    compact(ledger, NOW)
    first = find_garbage(ledger, GracePeriod(NOW + 7 * DAY))
    ordinals = dict(rows(ledger, "SELECT name, ordinal FROM segment"))
    between = max(first, key=lambda item: ordinals[Path(item.name).stem])
    assert collect(ledger, [between]) == [between]
    assert result(ledger, 7) == sorted(set(superseded(ledger)) - {between.name})
    collect(ledger, find_garbage(ledger, GracePeriod(NOW + 7 * DAY)))
    assert complete(ledger).num_rows == 18
    assert verify(ledger).problems == ()


@pytest.mark.parametrize("damage", ["flipped", "missing", "other"])
def test_damage_in_what_took_their_location_keeps_everything(ledger: Ledger, damage: str) -> None:
    """A flipped byte, a missing file, another segment under its name: nothing is removed at all."""
    put_aged(ledger, "segments/filter.decided.v1/stray.parquet")
    name = rows(ledger, "SELECT name FROM segment WHERE type = 'filter.decided' ORDER BY ordinal DESC LIMIT 1")[0][0]
    (heir,) = (path for path in parquet_files(ledger) if path.stem == name)
    heir.chmod(0o644)
    data = bytearray(heir.read_bytes())
    if damage == "flipped":
        data[len(data) // 3] ^= 1
        heir.write_bytes(data)
    elif damage == "missing":
        heir.unlink()
    else:
        (second, *_) = (path for path in parquet_files(ledger) if path.stem not in (name, "stray"))
        heir.write_bytes(second.read_bytes())
    with pytest.raises(Fault):
        find_garbage(ledger, GracePeriod(NOW + 7 * DAY))


def test_an_altered_manifest_keeps_everything(ledger: Ledger) -> None:
    """It could claim fewer frames than the segment that it describes had."""
    manifest = rows(ledger, "SELECT manifest FROM segment WHERE type = 'filter.decided' ORDER BY ordinal LIMIT 1")[0][0]
    path = ledger.root / "segments" / "filter.decided.v1" / f"{manifest}.json"
    path.chmod(0o644)
    path.write_bytes(path.read_bytes().replace(b'"p1"', b'"p0"'))
    with pytest.raises(Fault, match="was altered"):
        find_garbage(ledger, GracePeriod(NOW + 7 * DAY))


def test_unfinished_files_go(ledger: Ledger) -> None:
    """Of segments and of blobs, whoever left them."""
    parts = ["segments/.a.part", "segments/filter.decided.v1/.b.part", "blobs/.c.part", "blobs/ab/.d.part"]
    for path in parts:
        put_aged(ledger, path)
    assert set(result(ledger, 7)) - set(superseded(ledger)) == {path.partition("/")[2] for path in parts}


def test_blobs_stay_while_an_event_names_them(ledger: Ledger) -> None:
    """Sealed or in the tail; others go after the grace period."""
    sealed, tail, orphan = (ledger.blobs.put(text) for text in (b"sealed", b"tail", b"orphan"))
    append(ledger, "epoch-a", [program(sealed)])
    seal(ledger)
    append(ledger, "epoch-b", [program(tail)])
    for path in (ledger.root / "blobs").rglob("*"):
        os.utime(path, (NOW / 1000, NOW / 1000))
    assert named_blobs(ledger, {sealed, tail, orphan}) == {sealed, tail}
    assert result(ledger, 6.9) == []
    assert set(result(ledger, 7)) - set(superseded(ledger)) == {ledger.blobs.name(orphan)}
    collect(ledger, find_garbage(ledger, GracePeriod(NOW + 7 * DAY)))
    assert list(ledger.blobs.digests()) == sorted([sealed, tail])
    assert verify(ledger).problems == ()


def test_blobs_stay_while_a_quarantined_record_may_name_them(ledger: Ledger) -> None:
    """A type that is not known yet: a retry after the upgrade still finds its source."""
    digests = [ledger.blobs.put(text) for text in (b"one", b"two")]
    put(ledger, "epoch-later", [program(digest) for digest in digests])
    with older_release("program.added"):
        admit(ledger)
    put_quarantined(ledger, b"a" + digests[0].encode())
    for path in (ledger.root / "blobs").rglob("*"):
        os.utime(path, (NOW / 1000, NOW / 1000))
    assert named_blobs(ledger, {*digests, "0" * 64}) == set(digests)
    assert retry(ledger, seen="", id=1)[0].admission
    assert named_blobs(ledger, {*digests, "0" * 64}) == set(digests)
    assert set(result(ledger, 7)) == set(superseded(ledger))


def test_blobs_stay_while_a_quarantined_frame_of_many_rows_names_them(ledger: Ledger) -> None:
    """From 64 rows on a frame carries digests as 32 octets: every one of 100 different ones is found."""
    digests = ledger.blobs.put_many(f"source {number}".encode() for number in range(100))
    put(ledger, "epoch-later", [program(digest) for digest in digests])
    with older_release("program.added"):
        admit(ledger)
    for path in (ledger.root / "blobs").rglob("*"):
        os.utime(path, (NOW / 1000, NOW / 1000))
    ((payload,),) = rows(ledger, "SELECT payload FROM quarantine")
    assert digests[0].encode() not in payload
    assert bytes.fromhex(digests[0]) in payload
    assert set(result(ledger, 7)) == set(superseded(ledger))


@given(st.binary(max_size=40), st.binary(max_size=40), st.lists(st.binary(min_size=32, max_size=32), max_size=4))
def test_octets_are_found_wherever_they_stand(before: bytes, after: bytes, rest: list[bytes]) -> None:
    """Every place of eight octets that some digest starts with, as a search byte by byte finds them."""
    wanted = hashlib.sha256(before).digest()
    payload = before + wanted + after + b"".join(rest)
    starts = {item[:8] for item in (wanted, *rest[:2])}
    sorted_starts = np.array(sorted(int.from_bytes(start) for start in starts), dtype=">u8")
    due = [at for at in range(len(payload) - 7) if payload[at : at + 8] in starts]
    assert sorted(_positions(payload, sorted_starts)) == due
    assert list(_positions(payload[:7], sorted_starts)) == []


def test_a_newer_ledger_loses_nothing_to_an_older_release(ledger: Ledger) -> None:
    """Blobs of admitted events of a type that it lacks are not seen: neither they nor anything else goes."""
    blob = ledger.blobs.put(b"named")
    append(ledger, "epoch-new", [program(blob)])
    os.utime(ledger.root / "blobs" / ledger.blobs.name(blob), (NOW / 1000, NOW / 1000))
    with older_release("program.added"), pytest.raises(Fault, match="upgrade first, nothing was removed"):
        find_garbage(ledger, GracePeriod(NOW + 7 * DAY))
    assert set(result(ledger, 7)) == set(superseded(ledger))


def test_a_blob_that_is_put_again_while_others_go_stays(ledger: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    """Between any two steps of its removal: it is whole afterwards, young, and nothing lies aside."""
    name = ledger.blobs.name(ledger.blobs.put(b"again"))
    path = ledger.root / "blobs" / name
    real = {step: getattr(Path, step) for step in ("stat", "rename", "unlink")}
    for step, at in (("stat", path), ("rename", path), ("unlink", path.with_name(f".{path.name}.part"))):
        os.utime(path, (NOW / 1000, NOW / 1000))
        garbage = [item for item in find_garbage(ledger, GracePeriod(NOW + 7 * DAY)) if item.store == "blobs"]
        assert [item.name for item in garbage] == [name]

        def put_first(self: Path, *args: object, step: str = step, at: Path = at, **more: object) -> object:
            if self == at:
                monkeypatch.setattr(Path, step, real[step])
                ledger.blobs.put(b"again")
            return real[step](self, *args, **more)

        monkeypatch.setattr(Path, step, put_first)
        removed = collect(ledger, garbage)
        assert getattr(Path, step) is real[step], "it was put in between"
        assert removed == (garbage if step == "unlink" else [])
        assert ledger.blobs.get(name.rpartition("/")[2]) == b"again"
        assert list(path.parent.iterdir()) == [path]
        assert [item for item in find_garbage(ledger, GracePeriod(NOW + 7 * DAY)) if item.store == "blobs"] == []


def test_an_object_that_is_put_again_stays(s3: S3Server, tmp_path: Path) -> None:
    """On a real server, whose listing and whose answer about one object may tell its age in other units."""
    made = create_ledger(Location(tmp_path / "ledger", store=s3.url(tmp_path.name)), "identity", "now")
    made.blobs.put_many([b"one", b"two"])
    (item, two) = find_garbage(made, GracePeriod(made.blobs.listing()[-1].modified_ms + DAY, grace_ms=0))
    before = replace(item, modified_ms=item.modified_ms - DAY)
    assert collect(made, [before, two]) == [two]
    assert [stored.name for stored in made.blobs.listing()] == [item.name]
    assert collect(made, [two, item]) == [item]
    assert made.blobs.listing() == []
    made.close()


def test_a_blob_that_is_put_again_is_young_again(ledger: Ledger) -> None:
    """Its event may come now: neither found nor, when it was found before, removed."""
    name = ledger.blobs.name(ledger.blobs.put(b"again"))
    os.utime(ledger.root / "blobs" / name, (NOW / 1000, NOW / 1000))
    garbage = [item for item in find_garbage(ledger, GracePeriod(NOW + 7 * DAY)) if item.store == "blobs"]
    assert [item.name for item in garbage] == [name]
    ledger.blobs.put(b"again")
    assert [item for item in find_garbage(ledger, GracePeriod(NOW + 7 * DAY)) if item.store == "blobs"] == []
    assert collect(ledger, garbage) == []
    assert ledger.blobs.get(name.rpartition("/")[2]) == b"again"


def test_what_is_result_reports_why(ledger: Ledger) -> None:
    """For whoever reads the list before it goes."""
    put_aged(ledger, "blobs/ab/stray", data=b"12345")
    reasons = {item.name: item for item in find_garbage(ledger, GracePeriod(NOW + 7 * DAY))}
    assert reasons["ab/stray"] == Garbage("blobs", "ab/stray", 5, "no event names it", NOW)
    (segment, *_) = superseded(ledger)
    assert reasons[segment].reason.startswith("its frames lie in segment ")
