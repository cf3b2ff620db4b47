"""`lap ledger compact` and `lap ledger gc`: what they say, what they ask, and that answers stay."""

import os
import time
from pathlib import Path

import pytest

from tests.support.lap import lap, process, sql, well
from tests.support.screen_ledgers import MODELS, REFERENCES, make_campaign

COUNT = "SELECT count(*) AS n FROM timing"
DAYS = 24 * 3600


@pytest.fixture
def ledger(tmp_path: Path) -> Path:
    """Two campaigns, each sealed, and a file that nobody names."""
    root = tmp_path / "ledger"
    for campaign in ("one", "two"):
        make_campaign(root, [*REFERENCES, *MODELS], campaign=campaign)
        well("seal", "--ledger", root)
    (root / "blobs" / "ab").mkdir()
    (root / "blobs" / "ab" / "stray").write_bytes(b"12345")
    return root


def age(ledger: Path, days: float) -> None:
    """Makes every file of the segments and blobs so much older."""
    then = time.time() - days * DAYS
    for folder in ("segments", "blobs"):
        for path in (ledger / folder).rglob("*"):
            os.utime(path, (then, then))


def test_compaction_reports_what_it_merged_and_changes_no_answer(ledger: Path) -> None:
    """In words and as JSON; a second one finds nothing to do."""
    before, cut = sql(ledger, COUNT), well("status", "--partitions", "--ledger", ledger, "--json").json["cut"]
    done = well("ledger", "compact", "--ledger", ledger, "--json").json
    assert (done["cut"], done["superseded"] >= 2 * done["segments"] > 0) == (cut, True)
    assert done["bytes_before"] > done["bytes_after"] > 0
    assert sql(ledger, COUNT) == before
    assert "merged 0 segments" in well("ledger", "compact", "--ledger", ledger).err


def test_nothing_goes_before_its_time(ledger: Path) -> None:
    """Seven days by default, at least an hour."""
    age(ledger, 6.9)
    result = well("ledger", "gc", "--dry-run", "--ledger", ledger, "--json").json
    assert (result["found"], result["removed"]) == ([], 0)
    done = lap("ledger", "gc", "--grace", 0, "--ledger", ledger)
    assert (done.code, "is not in the range" in done.err) == (2, True)


def test_a_dry_run_only_looks_and_a_real_one_requests(ledger: Path) -> None:
    """Without a terminal to ask it wants --yes."""
    age(ledger, 8)
    seen = well("ledger", "gc", "--dry-run", "--ledger", ledger)
    assert "no event names it" in seen.out
    assert "0 of 1 files removed" in seen.err
    done = process("ledger", "gc", "--ledger", ledger)
    assert (done.code, "add --yes, or preview with --dry-run" in done.err) == (2, True)
    assert (ledger / "blobs" / "ab" / "stray").exists()
    assert "1 of 1 files removed, 5 bytes" in well("ledger", "gc", "--yes", "--ledger", ledger).err
    assert not (ledger / "blobs" / "ab" / "stray").exists()


def test_superseded_segments_go_after_a_grace_period(ledger: Path) -> None:
    """Counted from the compaction, not from the age of the files."""
    well("ledger", "compact", "--ledger", ledger)
    age(ledger, 400)
    result = well("ledger", "gc", "--yes", "--ledger", ledger, "--json").json
    assert [item["name"] for item in result["found"]] == ["ab/stray"]
    assert result["removed"] == 1


def test_the_stream_forgets_what_is_sealed(ledger: Path) -> None:
    """Only when it is asked to; work goes on."""
    shown = well("ledger", "gc", "--dry-run", "--truncate-stream", "--ledger", ledger, "--json").json
    assert {trim["stream"] for trim in shown["trims"]} == {"control", "facts"}
    well("ledger", "gc", "--yes", "--truncate-stream", "--ledger", ledger)
    make_campaign(ledger, [*REFERENCES, *MODELS], campaign="three")
    assert len(sql(ledger, "SELECT campaign_id FROM campaign")) == 3


def test_a_damaged_ledger_loses_nothing(ledger: Path) -> None:
    """One line says what is wrong."""
    path = next((ledger / "segments").rglob("*.parquet"))
    path.unlink()
    done = lap("ledger", "gc", "--truncate-stream", "--yes", "--ledger", ledger)
    assert (done.code, len(done.err.strip().splitlines())) == (1, 1)
    assert f"{path.name} is missing" in done.err


@pytest.mark.parametrize("text", ["compact", "gc", "rebuild"])
def test_commands_of_other_modules_are_listed_and_explained(text: str) -> None:
    """With an example each."""
    assert text in well("ledger", "--help").out
    assert f"lap ledger {text}" in well("ledger", text, "--help").out.partition("Example:")[2]


def test_an_object_store_requests_for_a_longer_grace(ledger: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A put there makes an object young only when it is a day old: a shorter grace could take what is wanted."""
    monkeypatch.setenv("LAP_STORE", "s3://bucket/lap")
    done = lap("ledger", "gc", "--grace", 1, "--ledger", ledger)
    assert (done.code, done.out) == (2, "")
    assert "--grace 1: on an object store the minimum is 2 days" in done.err
