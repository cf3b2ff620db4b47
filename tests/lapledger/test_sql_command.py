"""`lap sql`: bounded in time, memory, disk and rows; its answer is data, whatever it holds."""

import os
import signal
import subprocess
import tempfile
from contextlib import closing
from pathlib import Path

import pytest

import lapledger
from lapledger.ledger.errors import UserError
from lapledger.ledger.questions import queries
from lapledger.ledger.questions.queries import Questions
from lapledger.ledger.store.open_ledger import open_ledger
from tests.support.lap import LAP, environment, lap, well


@pytest.fixture(scope="module")
def ledger(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An empty ledger."""
    folder = tmp_path_factory.mktemp("sql") / "lap"
    well("ledger", "init", "--ledger", folder)
    return folder


def test_rows_are_bounded_and_the_others_counted(ledger: Path) -> None:
    """Of 300 million rows three are printed; the process holds a batch at a time, far below 2 GB."""
    done = well("sql", "SELECT * FROM range(300000000)", "--limit-rows", 3, "--ledger", ledger, "--json")
    assert done.json["rows"] == [[0], [1], [2]]
    assert done.json["more_rows"] == 299_999_997
    assert done.err == "299999997 more rows not shown; --limit-rows raises the limit\n"


@pytest.mark.parametrize(
    ("query", "args", "message"),
    [
        ("SELECT count(*) FROM range(1000000000) a, range(1000) b", ("--timeout", 0.5), "took longer than 0.5 s"),
        ("SELECT i FROM range(1000000000000) t(i)", ("--timeout", 0.5), "took longer than 0.5 s"),
        ("SELECT repeat('x', 150000000)", (), "the answer takes more than 128 MiB"),
        ("SELECT 1; SELECT 2", (), "only one SELECT statement is allowed"),
        ("COPY (SELECT 1) TO 'x'", (), "only one SELECT statement is allowed"),
        ("SELECT * FROM read_text('/etc/hostname')", (), "file system operations are disabled"),
    ],
)
def test_a_question_outside_its_bounds_is_one_line(
    ledger: Path, query: str, args: tuple[object, ...], message: str
) -> None:
    """The user's mistake: exit code 2."""
    done = lap("sql", query, *args, "--ledger", ledger)
    assert (done.code, done.out) == (2, "")
    assert message in done.err
    assert done.err.count("\n") == 1


def test_a_question_without_enough_memory_and_disk_is_refused(ledger: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A sort of 300 MB with 60 MB of memory and 20 MB of disk: UserError, and nothing is killed."""
    monkeypatch.setattr(queries, "MEMORY", "60MB")
    monkeypatch.setattr(queries, "SPILL", "20MB")
    done = lap("sql", "SELECT random() AS r, repeat('x', 100) AS s FROM range(3000000) ORDER BY r", "--ledger", ledger)
    assert (done.code, done.out) == (2, "")
    assert "Out of Memory Error" in done.err


def test_the_api_has_the_same_bounds(ledger: Path) -> None:
    """A question that takes too long is a UserError; the ledger answers the next one."""
    with lapledger.open(ledger) as opening:
        with pytest.raises(UserError, match=r"took longer than 0\.3 s"):
            opening.sql("SELECT count(*) FROM range(1000000000) a, range(1000) b", timeout=0.3)
        assert opening.sql("SELECT 1 AS x").to_arrow().to_pylist() == [{"x": 1}]


def test_what_is_spilled_lies_in_a_private_folder_and_goes(
    ledger: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing in the working folder; only the owner reads it, and it is gone when the question is closed."""
    spill, work = tmp_path / "spill", tmp_path / "work"
    spill.mkdir()
    work.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(spill))
    monkeypatch.setattr(queries, "MEMORY", "100MB")
    monkeypatch.chdir(work)
    with closing(open_ledger(ledger)) as opening, closing(Questions(opening)) as questions:
        sort = "SELECT r FROM (SELECT random() AS r, repeat('x', 100) AS s FROM range(3000000) ORDER BY r)"
        assert questions.query_user(sort, limit_rows=0).more == 3_000_000
        (folder,) = spill.iterdir()
        assert folder.stat().st_mode & 0o777 == 0o700
    assert list(spill.iterdir()) == list(work.iterdir()) == []


def test_what_a_killed_question_left_behind_goes_with_the_next(ledger: Path, tmp_path: Path) -> None:
    """After SIGKILL its folder stays until the next question; that of a question under way is left alone."""
    env = {**environment(), "TMPDIR": str(tmp_path)}
    endless = [LAP, "sql", "SELECT count(*) FROM range(1000000000) a, range(100000) b", "--ledger", str(ledger)]
    killed, living = (subprocess.Popen(endless, env=env) for _ in range(2))
    while len(list(tmp_path.glob("lap-spill-*"))) < 2:
        assert (killed.poll(), living.poll()) == (None, None)
    killed.kill()
    killed.wait()
    assert len(list(tmp_path.iterdir())) == 2
    subprocess.run([LAP, "sql", "SELECT 1", "--ledger", str(ledger)], env=env, check=True, stdout=subprocess.DEVNULL)
    assert len(list(tmp_path.iterdir())) == 1
    living.send_signal(signal.SIGINT)
    living.wait()
    assert list(tmp_path.iterdir()) == []


def test_a_disk_without_room_for_spilling_answers(ledger: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where no folder can be made, what fits into memory is answered."""

    def full(**_: object) -> str:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(tempfile, "mkdtemp", full)
    with closing(open_ledger(ledger)) as opening, closing(Questions(opening)) as questions:
        assert questions.query_user("SELECT 42 AS x").table.to_pylist() == [{"x": 42}]


def test_dates_outside_python_s_range_are_printed(ledger: Path) -> None:
    """As the database writes them, in tables and in JSON."""
    query = "SELECT 'infinity'::DATE a, DATE '200000-01-01' b, INTERVAL 14 MONTH c, '-infinity'::TIMESTAMP d"
    (row,) = well("sql", query, "--ledger", ledger, "--json").json["rows"]
    assert row == ["infinity", "200000-01-01", "1 year 2 months", "-infinity"]
    assert "1 year 2 months" in well("sql", query, "--ledger", ledger).out


def test_no_answer_commands_the_terminal(ledger: Path) -> None:
    """Escape sequences and direction marks of values and aliases are replaced; markup is text; JSON is exact."""
    query = "SELECT chr(27) || '[31mred' || chr(8238) AS \"[bold]\x1b[2J\", '[blink]x[/]' AS y"
    for more in ((), ("--limit-rows", 1)):
        out = well("sql", query, *more, "--ledger", ledger).out
        assert not {"\x1b", "\u202e"} & set(out)
        assert "[bold]\ufffd[2J" in out
        assert "[blink]x[/]" in out
    assert well("sql", query, "--ledger", ledger, "--json").json["rows"] == [["\x1b[31mred\u202e", "[blink]x[/]"]]


@pytest.mark.parametrize("times", [1, 10])
def test_ctrl_c_ends_a_question(ledger: Path, tmp_path: Path, times: int) -> None:
    """With 130 and one line, also when it is pressed ten times; what was spilled is gone."""
    process = subprocess.Popen(
        [LAP, "sql", "SELECT count(*) FROM range(1000000000) a, range(100000) b", "--ledger", str(ledger)],
        env={**environment(), "TMPDIR": str(tmp_path)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    while not list(tmp_path.glob("lap-spill-*")):
        assert process.poll() is None
    for _ in range(times):
        if process.poll() is None:
            os.kill(process.pid, signal.SIGINT)
    out, err = process.communicate()
    assert (process.returncode, out) == (130, "")
    assert err.strip() == "lap: interrupted; rerun the same command to resume"
    assert list(tmp_path.iterdir()) == []
