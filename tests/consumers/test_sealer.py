"""The sealer: the tail becomes segments, all at once or not at all."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from sqlalchemy import event, text

import consumers.sealer
from consumers.sealer import Sealed, seal
from consumers.sink import drain
from ledger.errors import Fault
from ledger.events import FilterDecided
from ledger.proof import verify
from ledger.store import files
from ledger.store.engine import reading, writing
from ledger.store.opened import Ledger, create_ledger, open_ledger
from ledger.store.reader import events
from ledger.streams.producer import Producer


@pytest.fixture
def ledger(tmp_path: Path) -> Iterator[Ledger]:
    """Thirty decisions about three problems in the tail."""
    made = create_ledger(tmp_path / "ledger", "identity-0", "now")
    stream = made.stream()
    feed(made, "epoch-0")
    stream.close()
    yield made
    made.close()


def feed(ledger: Ledger, epoch: str) -> None:
    """Appends and admits thirty decisions."""
    stream = ledger.stream()
    producer = Producer(stream, epoch, "test", "0")
    producer.append(
        FilterDecided(
            problem_id=f"p{n % 3}",
            subject="t",
            subject_id=str(n),
            rule="r",
            campaign_id=None,
            kept=True,
            reason="",
            figure=n / 2,
        )
        for n in range(30)
    )
    drain(ledger, stream)
    stream.close()


def whole(ledger: Ledger) -> pa.Table:
    """All decisions at the cut of now."""
    return events(ledger, "filter.decided", 1, ledger.cut())


def test_sealing_moves_the_tail_into_one_file_a_type(ledger: Ledger) -> None:
    """Nothing is left in the tail, and any Parquet reader finds the rows."""
    before = whole(ledger)
    sealed = seal(ledger)
    assert (sealed.segments, sealed.rows) == (2, 31)
    with reading(ledger.engine) as connection:
        assert connection.execute(text("SELECT count(*) FROM tail")).scalar_one() == 0
        assert connection.execute(text("SELECT sum(bytes) FROM segment")).scalar_one() == sealed.bytes
    (path,) = ledger.segments.folder.glob("filter.decided.v1/*.parquet")
    assert pq.read_table(path).sort_by("subject_id").equals(before.sort_by("subject_id"))
    assert whole(ledger).equals(before)
    assert verify(ledger).problems == ()


def test_sealing_an_empty_tail_does_nothing(ledger: Ledger) -> None:
    """No file, no link in the chain."""
    seal(ledger)
    head, files = ledger.head(), sorted(ledger.segments.folder.rglob("*"))
    assert seal(ledger) == Sealed()
    assert (ledger.head(), sorted(ledger.segments.folder.rglob("*"))) == (head, files)


def test_row_groups_hold_whole_frames_of_one_partition(ledger: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    """A group ends with the frame that fills it; verification relies on it."""
    monkeypatch.setattr("consumers.sealer.GROUP_ROWS", 4)
    seal(ledger)
    (path,) = ledger.segments.folder.glob("filter.decided.v1/*.parquet")
    file = pq.ParquetFile(path)
    groups = [
        file.read_row_group(n).select(["_partition", "_admission"]).to_pylist() for n in range(file.num_row_groups)
    ]
    frames = [{(row["_partition"], row["_admission"]) for row in group} for group in groups]
    assert all(len({partition for partition, _ in group}) == 1 for group in frames)
    assert sum(len(group) for group in frames) == len(set().union(*frames))
    for group in groups:
        assert sum(row["_admission"] != group[-1]["_admission"] for row in group) < 4
    assert verify(ledger).problems == ()


def test_an_altered_tail_is_not_sealed(ledger: Ledger) -> None:
    """Damage does not get a manifest of its own; the tail stays for whoever repairs it."""
    with writing(ledger.engine) as connection:
        connection.execute(text("UPDATE frame SET key = 'p9' WHERE admission = 1 AND type = 'filter.decided'"))
    with pytest.raises(Fault, match="was altered in the tail and is not sealed"):
        seal(ledger)
    assert list(ledger.segments.folder.rglob("*.part")) == []
    with reading(ledger.engine) as connection:
        assert connection.execute(text("SELECT count(*) FROM segment")).scalar_one() == 0


def test_the_slower_of_two_sealers_changes_nothing(ledger: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another process seals and admits more between its reading and its commit."""
    commit = consumers.sealer._commit

    def late(*args: Any) -> bool:
        monkeypatch.undo()
        assert seal(ledger).rows == 31
        feed(ledger, "epoch-1")
        return commit(*args)

    monkeypatch.setattr(consumers.sealer, "_commit", late)
    assert seal(ledger) == Sealed()
    assert seal(ledger).rows == 31
    assert whole(ledger).num_rows == 60
    assert verify(ledger).problems == ()


class KilledError(Exception):
    """Stands for the death of the process."""


def test_a_sealer_killed_anywhere_leaves_the_old_state_or_the_new(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Killed before its 1st, 2nd, ... statement, commit, rename or sync: same facts, no problem, and sealing works."""
    before, cut, kills, finished = whole(ledger), ledger.cut(), 0, False
    while not finished:
        finished = _seal_until(ledger, kills, monkeypatch)
        again = open_ledger(ledger.root)
        assert events(again, "filter.decided", 1, cut).equals(before)
        assert verify(again).problems == ()
        again.close()
        kills += 1
    assert kills > 12
    assert sum(path.suffix == ".parquet" for path in ledger.segments.folder.rglob("*")) == 2


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
        patch.setattr(files.Path, "rename", counted(Path.rename))
        patch.setattr(files.os, "fsync", counted(files.os.fsync))
        try:
            seal(ledger)
        except KilledError:
            return False
        finally:
            event.remove(ledger.engine, "before_cursor_execute", count)
            event.remove(ledger.engine, "commit", count)
    return True
