"""`lap quarantine`: every record that was put aside is kept, counted, shown, and tried again after a fix."""

import base64
from contextlib import closing
from pathlib import Path

import pytest

from lapledger.consumers.ingest.sink import drain
from lapledger.ledger.events import EVENTS, FilterDecided
from lapledger.ledger.frames.frame import Record
from lapledger.ledger.store.open_ledger import open_ledger
from lapledger.ledger.streams.producer import Producer
from tests.support.lap import lap, process, sql, well
from tests.support.screen_ledgers import append, program_id

STEPS = "stonesteps.0123456789ab"


def decision(number: int) -> FilterDecided:
    """A filter decision about a program."""
    return FilterDecided(
        problem_id=STEPS,
        subject="program",
        subject_id=program_id(STEPS, str(number)),
        rule="r",
        campaign_id=None,
        kept=True,
        reason="",
        figure=None,
    )


@pytest.fixture
def ledger(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Two records of a type that an older release did not know, and a broken one with half a page of payload."""
    root = tmp_path / "ledger"
    append(root, [])
    with closing(open_ledger(root)) as opening, closing(opening.stream()) as stream:
        for number in (1, 2):
            Producer(stream, f"epoch-{number}", "test", "0").append([decision(number)])
        with monkeypatch.context() as older:
            older.delitem(EVENTS, ("filter.decided", 1))
            drain(opening, stream)
        stream.append("facts", 0, [Record({"ce_type": "\x1b[31mred"}, b"\x1b[0m" + bytes(range(256)) * 2)])
        drain(opening, stream, seen="2026-01-01T00:00:00.000+00:00")
    return root


def test_every_record_is_listed_and_counted(ledger: Path) -> None:
    """With its reason; all of them, those of one reason, or a page."""
    result = well("quarantine", "list", "--ledger", ledger, "--json").json
    assert result["reasons"] == [
        {"reason": "bad-header", "records": 1, "admitted": 0},
        {"reason": "unknown-type", "records": 2, "admitted": 0},
    ]
    assert [(item["id"], item["reason"], item["admission"]) for item in result["records"]] == [
        (1, "unknown-type", None),
        (2, "unknown-type", None),
        (3, "bad-header", None),
    ]
    assert (result["records"][2]["bytes"], result["records"][2]["seen"]) == (516, "2026-01-01T00:00:00.000+00:00")
    assert result["cut"] == well("status", "--partitions", "--ledger", ledger, "--json").json["cut"]
    item = well("quarantine", "list", "--reason", "bad-header", "--ledger", ledger, "--json").json
    assert [line["id"] for line in item["records"]] == [3]
    page = well("quarantine", "list", "--limit-rows", 1, "--after", 1, "--ledger", ledger)
    assert "no event type filter.decided version 1 is known here" in page.out
    assert "lap quarantine list --after 2" in page.err
    assert "\x1b" not in well("quarantine", "list", "--ledger", ledger).out


def test_a_record_is_shown_complete(ledger: Path) -> None:
    """Headers, message and the head of its bytes, which cannot command a terminal; or the bytes themselves."""
    shown = well("quarantine", "show", 3, "--ledger", ledger)
    assert "bad-header" in shown.out
    assert "00000000  1b 5b 30 6d 00 01 02 03" in shown.out
    assert "000000f0" in shown.out
    assert "00000100" not in shown.out
    assert "260 more bytes; --raw writes all" in shown.err
    assert "\x1b" not in shown.out
    payload = b"\x1b[0m" + bytes(range(256)) * 2
    result = well("quarantine", "show", 3, "--ledger", ledger, "--json").json
    assert base64.b64decode(result["payload_base64"]) == payload
    assert (result["payload_bytes"], result["headers"]) == (516, {"ce_type": "\x1b[31mred"})


def test_raw_writes_the_payload_and_nothing_else(ledger: Path, tmp_path: Path) -> None:
    """For other tools: the Arrow stream that any of them reads."""
    import subprocess

    import pyarrow as pa

    from tests.support.lap import LAP, environment

    args = [LAP, "quarantine", "show", "1", "--raw", "--ledger", str(ledger)]
    data = subprocess.run(args, env=environment(), capture_output=True, check=True).stdout
    with pa.ipc.open_stream(data) as reader:
        assert reader.read_all()["subject_id"].to_pylist() == [program_id(STEPS, "1")]


def test_a_retry_after_a_fix_reports_the_new_admissions(ledger: Path) -> None:
    """The records that the new release knows are admitted; the old cut answers as before."""
    old = well("status", "--partitions", "--ledger", ledger, "--json").json["cut"]
    count = "SELECT count(*) AS n FROM filter"
    assert sql(ledger, count) == [[0]]
    done = lap("quarantine", "retry", "--ledger", ledger, "--json")
    assert (done.code, done.json["admitted"], done.json["kept"]) == (1, 2, 1)
    assert [(item["id"], item["reason"][:10]) for item in done.json["records"]] == [(1, ""), (2, ""), (3, "bad-header")]
    numbers = [item["admission"] for item in done.json["records"]]
    assert (numbers[1], numbers[2]) == (numbers[0] + 1, None)
    assert sql(ledger, "SELECT _admission FROM filter_decided ORDER BY 1") == [[number] for number in numbers[:2]]
    assert well("sql", count, "--at", old, "--ledger", ledger, "--json").json["rows"] == [[0]]
    listed = well("quarantine", "list", "--ledger", ledger, "--json").json
    assert listed["reasons"][1] == {"reason": "unknown-type", "records": 2, "admitted": 2}
    assert [item["admission"] for item in listed["records"]] == numbers
    well("verify", "--skip-rewards", "--ledger", ledger)
    head = well("verify", "--print-head", "--ledger", ledger).out
    for part in ledger.glob("ledger.sqlite*"):
        part.unlink()
    well("ledger", "rebuild", "--ledger", ledger)
    assert well("verify", "--print-head", "--ledger", ledger).out == head  # a retry is on no stream, but it was sealed


def test_one_record_or_one_reason_is_retried(ledger: Path) -> None:
    """What was admitted before is passed over; exit code 0 when nothing stays."""
    done = well("quarantine", "retry", 2, "--ledger", ledger)
    assert "1 record admitted, 0 still quarantined" in done.err
    assert "nothing to retry" in well("quarantine", "retry", 2, "--ledger", ledger).err
    well("quarantine", "retry", "--reason", "unknown-type", "--ledger", ledger)
    assert lap("quarantine", "retry", "--reason", "bad-header", "--ledger", ledger).code == 1


def test_mistakes_are_the_users(ledger: Path, tmp_path: Path) -> None:
    """An id that is none, both ways to choose at once, and no ledger."""
    for args, message in (
        (("quarantine", "show", "9"), "no quarantined record 9; `lap quarantine list` shows them"),
        (("quarantine", "retry", "9"), "no quarantined record 9; `lap quarantine list` shows them"),
        (("quarantine", "retry", "1", "--reason", "fork"), "give an ID or --reason, not both"),
        (("quarantine", "retry", "x"), "is not a valid integer"),
    ):
        done = lap(*args, "--ledger", ledger)
        assert (done.code, message in done.err) == (2, True), done.err
    done = lap("quarantine", "list", "--ledger", tmp_path / "none")
    assert (done.code, "make one with `lap ledger init`" in done.err) == (2, True)


@pytest.mark.parametrize("text", ["", "list", "show", "retry"])
def test_help_has_an_example(text: str) -> None:
    """For the group and each command."""
    done = well("quarantine", *([text] if text else []), "--help")
    assert f"lap quarantine {text}" in done.out.partition("Example:")[2]


def test_the_command_starts_like_the_others(tmp_path: Path) -> None:
    """As a process of its own, with an empty quarantine."""
    append(tmp_path / "ledger", [])
    done = process("quarantine", "list", "--ledger", tmp_path / "ledger", "--json")
    assert (done.code, done.json["reasons"], done.json["records"]) == (0, [], [])
