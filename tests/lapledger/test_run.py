"""`lap run` on real programs in the real sandbox: verdicts, resuming, Ctrl-C, SIGKILL."""

import contextlib
import os
import signal
import subprocess
from collections import Counter
from pathlib import Path

import pytest

from lapledger.consumers.ingest.sink import drain
from lapledger.ledger.events import WorkerStarted
from lapledger.ledger.store.open_ledger import open_ledger
from lapledger.ledger.streams.local import LocalStream
from lapledger.ledger.streams.producer import Producer
from lapledger.workflows.execution import worker_setup
from tests.support.lap import LAP, environment, lap, sql, well
from tests.support.packages import FOREVER, PROGRAMS, make_package

WORKS = 225
OUTCOMES = "SELECT work_id, count(*) FILTER (accepted), count(*) FILTER (surplus) FROM execution GROUP BY work_id"


@pytest.fixture
def ledger(tmp_path: Path) -> Path:
    """A ledger that holds one small problem: five programs, five tests."""
    root = tmp_path / "ledger"
    well("ledger", "init", "--ledger", root)
    well("import", "icpc", make_package(tmp_path / "sums"), "--ledger", root)
    return root


def test_every_pair_runs_once_and_shows_its_folder_s_verdict(ledger: Path) -> None:
    """25 works; the right programs pass all five tests, `zero` fails all, `crash` crashes on all."""
    done = well("run", "--ledger", ledger, "--json").json
    assert (done["works"], done["left"], done["surplus"], done["faults"]) == (25, 0, 0, 0)
    assert done["outcomes"] == {"accepted": 15, "wrong_answer": 5, "run_time_error": 5}
    rows = sql(ledger, "SELECT name, outcome, count(*) FROM execution JOIN program USING (program_id) GROUP BY ALL")
    assert sorted(map(tuple, rows)) == [
        ("crash.py", "run_time_error", 5),
        ("middle.py", "accepted", 5),
        ("quick.py", "accepted", 5),
        ("slower.py", "accepted", 5),
        ("zero.py", "wrong_answer", 5),
    ]


def test_a_timing_carries_what_cannot_be_measured_later(ledger: Path) -> None:
    """Clocks, memory, switches, limits, place, slot, start-up, interpreter, isolation and host are there."""
    well("run", "--ledger", ledger, "--repetitions", 2, "--warmups", 1, "--limit", 3)
    rows = well(
        "sql", "SELECT * FROM timing WHERE accepted AND outcome = 'accepted'", "--ledger", ledger, "--json"
    ).json
    timings = [dict(zip(rows["columns"], row, strict=True)) for row in rows["rows"]]
    assert len(timings) == 15 * 3
    assert Counter((t["repetition"], t["warmup"]) for t in timings) == {(0, True): 15, (1, False): 15, (2, False): 15}
    for t in timings:
        assert t["wall_ns"] > 0
        assert t["user_ns"] + t["system_ns"] > 0
        assert t["peak_memory_bytes"] > 1 << 20
        assert t["voluntary_switches"] >= 0
        assert t["forced_switches"] >= 0
        assert (t["hard_limit_ns"], t["judged_limit_ns"], t["cut"]) == (3_000_000_000, 3_000_000_000, "")
        assert 0 < t["startup_ns"] < 3_000_000_000
        assert len(t["interpreter"]) == 64
        assert t["isolation"] in ("bubblewrap", "plain")
        assert t["host"]
    assert sorted({t["position"] for t in timings}) == sorted(
        position for (position,) in sql(ledger, "SELECT position FROM work WHERE outcome = 'accepted'")
    )


def test_candidates_and_references_are_shuffled_together(ledger: Path) -> None:
    """The order mixes programs: among the first five works are more than two programs, and the seed decides."""
    well("run", "--ledger", ledger, "--campaign", "a", "--seed", 1)
    well("run", "--ledger", ledger, "--campaign", "b", "--seed", 2)
    orders = {campaign: [row[0] for row in sql(ledger, _order(campaign))] for campaign in ("a", "b")}
    assert len(set(orders["a"][:5])) > 2
    assert orders["a"] != orders["b"]
    assert sorted(orders["a"]) == sorted(orders["b"])


def _order(campaign: str) -> str:
    return f"SELECT program_id FROM request WHERE campaign_id = '{campaign}' ORDER BY position"


def test_nothing_is_run_twice(ledger: Path) -> None:
    """A second run of the same plan finds nothing left; a changed plan under the same name is refused."""
    well("run", "--ledger", ledger, "--campaign", "main")
    again = well("run", "--ledger", ledger, "--campaign", "main", "--json").json
    assert (again["left"], again["outcomes"]) == (0, {})
    second = lap("run", "--ledger", ledger, "--campaign", "main", "--limit", 3)
    assert second.code == 2
    assert second.err == (
        "lap: campaign 'main' was opened with hard limit 10 s, not 3 s; name a new one with --campaign\n"
    )


def test_dry_run_counts_what_is_left_and_runs_nothing(ledger: Path) -> None:
    """25 left at 0.3 s each on one slot before; 0 left afterwards."""
    before = well("run", "--ledger", ledger, "--dry-run", "--slots", 1, "--json").json
    assert (before["left"], before["works"], before["without_stored_duration"]) == (25, 25, 25)
    assert before["estimated_seconds"] == pytest.approx(25 * 0.3)
    assert sql(ledger, "SELECT count(*) FROM execution") == [[0]]
    well("run", "--ledger", ledger)
    after = well("run", "--ledger", ledger, "--dry-run", "--json").json
    assert (after["left"], after["estimated_seconds"]) == (0, 0)


def test_a_timeout_is_killed_and_recorded_as_censored(tmp_path: Path) -> None:
    """A program that never ends is cut at the hard limit: outcome, reason and a wall time of at least the limit."""
    root = tmp_path / "ledger"
    well("ledger", "init", "--ledger", root)
    programs = {**PROGRAMS, "time_limit_exceeded/forever.py": FOREVER}
    well("import", "icpc", make_package(tmp_path / "sums", programs, small=0, large=1), "--ledger", root)
    well("run", "--ledger", root, "--limit", 0.5)
    rows = sql(
        root, "SELECT outcome, cut, wall_ns FROM timing JOIN program USING (program_id) WHERE name = 'forever.py'"
    )
    assert {(outcome, cut) for outcome, cut, _ in rows} == {("time_limit", "wall")}
    assert all(wall >= 500_000_000 for *_, wall in rows)


def start(ledger: Path, *args: str) -> subprocess.Popen[str]:
    """`lap run` in a session of its own."""
    command = [LAP, "run", "--ledger", str(ledger), "--campaign", "main", "--slots", "2", *args]
    return subprocess.Popen(
        command, env=environment(), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
    )


def end_of(ledger: Path) -> int:
    """The stream's last position."""
    with contextlib.closing(LocalStream(ledger / "stream.sqlite")) as stream:
        return max(stream.ends().values())


def wait_for_records(ledger: Path, process: subprocess.Popen[str], end: int) -> None:
    """Waits until the stream has grown to `end`, or the process ended."""
    with contextlib.closing(LocalStream(ledger / "stream.sqlite")) as stream:
        while process.poll() is None and max(stream.ends().values()) < end:
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(0.01)


@pytest.fixture
def long(tmp_path: Path) -> Path:
    """A ledger with 225 works: far more than are done by the time that a test interrupts them."""
    root = tmp_path / "long-ledger"
    well("ledger", "init", "--ledger", root)
    well("import", "icpc", make_package(tmp_path / "long", small=30, large=14), "--ledger", root)
    return root


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_ctrl_c_stops_cleanly_and_the_same_command_goes_on(long: Path, number: signal.Signals) -> None:
    """After SIGINT, or a supervisor's SIGTERM, the exit code is 130, and a second run does just the rest."""
    end = end_of(long) + 30
    process = start(long)
    wait_for_records(long, process, end)
    if number == signal.SIGINT:
        os.killpg(process.pid, number)  # as a terminal does
    else:
        process.send_signal(number)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 130, err
    assert "Traceback" not in err
    done = sql(long, "SELECT count(*) FROM execution WHERE accepted")[0][0]
    assert 0 < done < WORKS
    rest = well("run", "--ledger", long, "--campaign", "main", "--slots", "2", "--json").json
    assert sum(rest["outcomes"].values()) == WORKS - done
    assert (rest["left"], rest["surplus"]) == (0, 0)


def test_sigkill_at_any_moment_loses_nothing(long: Path) -> None:
    """Killed again and again and started anew: the same works have an outcome, surplus at most one a slot and kill."""
    kills = 0
    for more in (1, 6, 13, 20, 35):
        end = end_of(long) + more
        process = start(long)
        wait_for_records(long, process, end)
        if process.poll() is None:
            kills += 1
            os.killpg(process.pid, signal.SIGKILL)
        process.communicate(timeout=60)
    assert kills == 5
    done = well("run", "--ledger", long, "--campaign", "main", "--slots", "2", "--json").json
    assert done["left"] == 0
    rows = sql(long, OUTCOMES)
    wanted = {work for (work,) in sql(long, "SELECT work_id FROM request")}
    assert {work for work, accepted, _ in rows if accepted == 1} == wanted
    assert len(wanted) == WORKS
    assert sum(surplus for *_, surplus in rows) <= 2 * kills
    assert well("verify", "--ledger", long, "--json").json["problems"] == []


@pytest.mark.parametrize("second", ["isolation", "host", "interpreter"])
def test_a_campaign_goes_on_only_where_it_was_begun(ledger: Path, second: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Timings of another isolation, host or interpreter are another class: the run is refused and nothing is run."""
    monkeypatch.setattr(worker_setup, "host_fingerprint", lambda: ("elsewhere", "words"))
    begun = {"isolation": "other", "host": "elsewhere", "interpreter": "0"} if second != "host" else {"host": "before"}
    with contextlib.closing(open_ledger(ledger)) as opening, contextlib.closing(opening.stream()) as stream:
        worker = WorkerStarted(
            worker_id="w",
            campaign_id="main",
            host=begun["host"],
            host_description="",
            interpreter=begun.get("interpreter", ""),
            interpreter_version="",
            isolation=begun.get("isolation", ""),
            slots=1,
            startup_ns=1,
            started_at="",
        )
        Producer(stream, "epoch-w", "test", "0").append([worker])
        drain(opening, stream)
    done = lap("run", "--ledger", ledger, "--campaign", "main")
    assert done.code == 2
    assert second in done.err
    assert "do not mix with these" in done.err
    assert sql(ledger, "SELECT count(*) FROM campaign") == [[0]]
