"""Retries from the quarantine: admitted after a fix, under new numbers; old cuts never change."""

from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from typing import Any

import pytest

import lapledger.consumers.ingest.quarantine_retry
from lapledger.consumers.ingest.quarantine_retry import Retried, retry
from lapledger.consumers.ingest.sink import drain
from lapledger.consumers.storage.sealer import seal
from lapledger.ledger.errors import UserError
from lapledger.ledger.frames.frame import decode, encode
from lapledger.ledger.proof import verify
from lapledger.ledger.store.location import Location
from lapledger.ledger.store.open_ledger import Ledger, open_ledger
from lapledger.ledger.store.quarantine import Quarantined, quarantined, quarantined_record
from lapledger.ledger.store.reader import events
from lapledger.ledger.store.sql.engine import reading
from tests.consumers.ledgers import admit, append, complete, decision, older_release, put, put_quarantined, rows


@pytest.fixture
def ledger(both: Ledger) -> Ledger:
    """A fresh ledger; every test runs over both databases."""
    return both


def unknown(ledger: Ledger, epoch: str, *numbers: int) -> None:
    """Decisions, a frame each, that an older release put aside."""
    put(ledger, epoch, *([decision(number)] for number in numbers))
    with older_release():
        admit(ledger)


def test_what_a_fix_made_readable_is_admitted_under_new_numbers(ledger: Ledger) -> None:
    """In the order in which it came; the old cut gives the same table, and the chain of its producer holds."""
    append(ledger, "epoch-0", [decision(0)])
    unknown(ledger, "epoch-1", 1, 2)
    append(ledger, "epoch-2", [decision(3)])
    old, before = ledger.cut(), complete(ledger)
    assert before["subject_id"].to_pylist() == ["0", "3"]
    done = retry(ledger, seen="today")
    assert [(item.id, item.reason) for item in done] == [(1, ""), (2, "")]
    assert events(ledger, "filter.decided", 1, old).equals(before)
    assert complete(ledger)["subject_id"].to_pylist() == ["0", "3", "1", "2"]
    assert [item.admission for item in done] == complete(ledger)["_admission"].to_pylist()[2:]
    assert rows(ledger, "SELECT id, seen FROM quarantine_retry ORDER BY id") == [(1, "today"), (2, "today")]
    assert retry(ledger, seen="later") == []
    seal(ledger)
    assert events(ledger, "filter.decided", 1, old).equals(before)
    assert verify(ledger).problems == ()


def test_what_is_still_wrong_stays_with_its_reason(ledger: Ledger) -> None:
    """It can be tried again for ever."""
    put_quarantined(ledger, b"broken")
    for _ in range(2):
        (done,) = retry(ledger, seen="")
        assert (done.id, done.admission) == (1, None)
        assert done.reason.startswith("bad-header: missing or malformed header")
    assert rows(ledger, "SELECT count(*) FROM quarantine_retry") == [(0,)]
    assert verify(ledger).problems == ()


def test_a_fork_stays_a_fork(ledger: Ledger) -> None:
    """The first history was admitted; another under its numbers never is."""
    append(ledger, "epoch-0", [decision(0)])
    append(ledger, "epoch-0", [decision(1)])
    (done,) = retry(ledger, seen="")
    assert (done.admission, done.reason) == (None, "fork: sequence 0 was admitted before with another digest")


def test_a_record_that_came_twice_is_admitted_once(ledger: Ledger) -> None:
    """The second one is settled by the number of the first."""
    unknown(ledger, "epoch-1", 1)
    with older_release(), closing(ledger.stream()) as stream:
        stream.append("facts", item(ledger, 1).partition, [item(ledger, 1).record])
        drain(ledger, stream)
    first, second = retry(ledger, seen="")
    assert (first.reason, second.reason) == ("", "the ledger holds this frame already")
    assert first.admission == second.admission == 1
    assert retry(ledger, seen="") == []
    assert complete(ledger).num_rows == 1
    assert verify(ledger).problems == ()


def item(ledger: Ledger, number: int) -> Quarantined:
    """A quarantined record."""
    with reading(ledger.engine) as connection:
        return quarantined_record(connection, number)


def test_some_are_attempted_by_id_or_by_reason(ledger: Ledger) -> None:
    """Others are left alone; an id that is none is the user's mistake."""
    put_quarantined(ledger, b"broken")
    unknown(ledger, "epoch-1", 1, 2)
    assert [done.id for done in retry(ledger, seen="", reason="bad-header")] == [1]
    assert retry(ledger, seen="", reason="fork") == []
    assert retry(ledger, seen="", id=3) == [Retried(3, 1, "")]
    assert retry(ledger, seen="", id=3) == []
    assert [done.id for done in retry(ledger, seen="", reason="unknown-type")] == [2]
    with pytest.raises(UserError, match="no quarantined record 9"):
        retry(ledger, seen="", id=9)
    assert verify(ledger).problems == ()


def test_listing_shows_all_in_pages_with_what_became_of_them(ledger: Ledger) -> None:
    """By id; headers and payload as they came."""
    unknown(ledger, "epoch-1", *range(12))
    retry(ledger, seen="", id=5)
    with reading(ledger.engine) as connection:
        actual = quarantined(connection, limit=5)
        assert [record.id for record in actual] == [1, 2, 3, 4, 5]
        assert [record.admission for record in actual] == [None, None, None, None, 1]
        assert [record.id for record in quarantined(connection, after=10)] == [11, 12]
        assert quarantined(connection, reason="fork") == []
    with closing(ledger.stream()) as stream:
        (stored,) = stream.read("facts", actual[0].partition, actual[0].source_offset, 1)
    assert actual[0].record == stored.record
    assert actual[0].record.headers == encode(decode(stored.record)).headers


def test_a_sink_that_moves_on_is_waited_for(ledger: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    """The retry decides again where the partition stands then."""
    unknown(ledger, "epoch-1", 1)
    admit = lapledger.consumers.ingest.quarantine_retry.positions

    def late(*args: Any) -> Any:
        monkeypatch.undo()
        actual = admit(*args)
        append(ledger, "epoch-2", [decision(2)])
        return actual

    monkeypatch.setattr(lapledger.consumers.ingest.quarantine_retry, "positions", late)
    assert retry(ledger, seen="") == [Retried(1, 2, "")]
    assert complete(ledger)["subject_id"].to_pylist() == ["2", "1"]
    assert verify(ledger).problems == ()


def test_retries_at_once_admit_each_record_once(location: Location) -> None:
    """Three of them; every record ends under one number."""
    with closing(open_ledger(location)) as ledger:
        unknown(ledger, "epoch-1", *range(10))
        with ThreadPoolExecutor(3) as pool:
            done = [result for some in pool.map(_retry_all, [location] * 3) for result in some]
        assert len([item for item in done if not item.reason]) == 10
        assert len({item.admission for item in done}) == 10
        assert complete(ledger)["subject_id"].to_pylist() == [str(n) for n in range(10)]
        assert verify(ledger).problems == ()


def _retry_all(location: Location) -> list[Retried]:
    with closing(open_ledger(location)) as ledger:
        return retry(ledger, seen="")
