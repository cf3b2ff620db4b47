"""What a mistake looks like: one line on stderr that says what, where and what to do; exit code 2; nothing written."""

import contextlib
import shutil
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.lap import LAP, Done, environment, lap, sql, well
from tests.support.packages import PROGRAMS, make_package


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A ledger with one small problem that was run, in campaign `main`."""
    folder = tmp_path_factory.mktemp("filled")
    well("ledger", "init", "--ledger", folder / "ledger")
    well("import", "icpc", make_package(folder / "sums"), "--ledger", folder / "ledger")
    well("run", "--ledger", folder / "ledger", "--campaign", "main")
    return folder / "ledger"


def check(done: Done, *args: str, code: int = 2) -> None:
    """One line that holds all the words, nothing on stdout, and the exit code."""
    assert done.code == code, done
    assert len(done.err.splitlines()) == 1, done.err
    assert done.err.startswith("lap: ")
    assert "Traceback" not in done.err
    for label in args:
        assert label in done.err
    assert done.out == ""


AHEAD = "control=999,facts=9.9.9.9,requests=9"


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (("replay", "--criterion", "nofile.toml"), ("nofile.toml", "No such file", "give a TOML file")),
        (("replay", "--criterion", "topp-30"), ("'topp-30'", "did you mean 'top-30'")),
        (("replay", "--tau", "300"), ("'tau'", "0 < tau <= 100")),
        (("replay", "--clock", "sundial"), ("'clock'", "'sundial'", "wall | cpu")),
        (("replay", "--at", "nonsense"), ("'nonsense' is not a cut", "in the form")),
        (("replay", "--at", AHEAD), (AHEAD, "is ahead of", "copy a cut that it printed")),
        (("replay", "--campaign", "other"), ("no campaign 'other'", "main")),
        (("replay", "--k", "50"), ("pass@50", "has 5 candidates", "choose k <= 5")),
        (("replay", "--plot", "x.gif"), ("x.gif", ".png or .svg")),
        (("replay", "--plot", "no/such/folder.png"), ("no/such/folder.png", "No such file")),
        (("replay", "--criterion", "top-30", "--calibration", "affine"), ("no usable calibration", "lap calibrate")),
        (("calibrate", "--from", "main", "--to", "nope"), ("no campaign 'nope'",)),
        (("trace", "zzz"), ("no reward 'zzz'", "verdict")),
        (("why", "nobody"), ("no program 'nobody'", "lap sql")),
        (("why", "sums"), ("names 5 programs", "name one")),
        (("sql", "DROP TABLE x"), ("only one SELECT",)),
        (("sql", "SELECT 1; SELECT 2"), ("only one SELECT",)),
        (("sql", "COPY (SELECT 1) TO 'x'"), ("only one SELECT",)),
        (("sql", "SELECT * FROM read_text('/etc/passwd')"), ("/etc/passwd", "disabled")),
        (("sql", "SELECT * FROM 'https://example.org/x.parquet'"), ("lap sql --views",)),
        (("sql", "SELECT * FROM nothing"), ("nothing", "lap sql --views")),
        (("run", "--limit", "-3"), ("'limit'", "flag --limit", "greater than or equal to 0.001")),
        (("run", "nosuch"), ("no problem 'nosuch'", "Known: sums")),
        (("run", "sum"), ("no problem 'sum' in the ledger; did you mean 'sums'?",)),
        (("replay", "--campaign", "mian"), ("no campaign 'mian' at this cut; did you mean 'main'?",)),
        (("compare", "human", "humna"), ("no model matches 'humna'; did you mean 'human'?",)),
        (("why", "sums/crsh"), ("no program 'sums/crsh' at this cut; did you mean 'sums/crash'?",)),
        (("sql", "FROM timings"), ("no view 'timings'; did you mean 'timing'?", "lap sql --views")),
        (
            ("run", "--campaign", "main", "--repetitions", "3", "--limit", "5"),
            ("campaign 'main' was opened with hard limit 10 s, not 5 s; repetitions 1, not 3; name a new one",),
        ),
        (("import", "icpc", "nowhere"), ("nowhere", "does not exist")),
        (("frobnicate",), ("no such command 'frobnicate'", "lap --help")),
    ],
)
def test_one_line_reports_what_is_wrong(
    filled: Path, tmp_path: Path, args: tuple[str, ...], message: tuple[str, ...]
) -> None:
    """Every wrong word of a user, with what to do about it; the ledger holds what it held."""
    before = sql(filled, "SELECT count(*) FROM epoch_opened")
    location = () if args[0] == "frobnicate" else ("--ledger", filled)
    check(lap(*args, *location, cwd=tmp_path), *message)
    assert list(tmp_path.iterdir()) == []
    after = sql(filled, "SELECT count(*) FROM problem")
    assert (after, len(before)) == ([[1]], 1)


def test_a_wrong_criterion_key_names_its_nearest(filled: Path, tmp_path: Path) -> None:
    """`taau` is told to be `tau`; broken TOML tells its line."""
    (tmp_path / "c.toml").write_text("taau = 30\n")
    check(lap("replay", "--criterion", "c.toml", "--ledger", filled, cwd=tmp_path), "'taau'", "did you mean 'tau'")
    (tmp_path / "c.toml").write_text("tau = \n")
    check(lap("replay", "--criterion", "c.toml", "--ledger", filled, cwd=tmp_path), "not valid TOML", "line 1")


def test_a_ledger_that_is_not_there(tmp_path: Path) -> None:
    """A missing folder, a file in its place, and a file that is no database."""
    check(lap("replay", "--ledger", tmp_path / "no"), "there is no ledger", "lap ledger init")
    (tmp_path / "file").write_text("x")
    check(lap("ledger", "init", "--ledger", tmp_path / "file"), "File exists", "choose another path")
    (tmp_path / "odd").mkdir()
    (tmp_path / "odd" / "ledger.sqlite").write_text("this is no database, it is a text of some length" * 50)
    check(lap("status", "--partitions", "--ledger", tmp_path / "odd"), "is no database")


def test_a_ledger_of_a_newer_version_is_refused(filled: Path, tmp_path: Path) -> None:
    """Reading, writing and `init` say which schema it has and leave every byte alone."""
    newer = tmp_path / "newer"
    shutil.copytree(filled, newer)
    with contextlib.closing(sqlite3.connect(newer / "ledger.sqlite")) as connection, connection:
        connection.execute("UPDATE alembic_version SET version_num = '9999'")
    for args in (("replay",), ("run",), ("ledger", "init"), ("seal",)):
        check(lap(*args, "--ledger", newer), "made by a newer lapledger", "9999", "upgrade lapledger")
    with contextlib.closing(sqlite3.connect(newer / "ledger.sqlite")) as connection:
        assert connection.execute("SELECT version_num FROM alembic_version").fetchall() == [("9999",)]


@pytest.mark.parametrize("damage", ["no tests", "no answer", "no input", "nul byte", "no yaml", "no submissions"])
def test_half_a_package_leaves_nothing(tmp_path: Path, damage: str) -> None:
    """A good package beside a broken one: neither is imported, and the line names the broken place."""
    root = tmp_path / "ledger"
    well("ledger", "init", "--ledger", root)
    make_package(tmp_path / "packages" / "good")
    bad = make_package(tmp_path / "packages" / "zbad", PROGRAMS)
    message = {
        "no tests": lambda: shutil.rmtree(bad / "data"),
        "no answer": lambda: (bad / "data" / "sample" / "1.ans").unlink(),
        "no input": lambda: (bad / "data" / "sample" / "1.in").unlink(),
        "nul byte": lambda: (bad / "submissions" / "accepted" / "quick.py").write_bytes(b"print(1)\0\n"),
        "no yaml": lambda: (bad / "problem.yaml").unlink(),
        "no submissions": lambda: shutil.rmtree(bad / "submissions"),
    }
    message[damage]()
    done = lap("import", "icpc", tmp_path / "packages", "--ledger", root)
    check(done, "zbad", "NUL" if damage == "nul byte" else "")
    assert sql(root, "SELECT count(*) FROM problem") == [[0]]
    assert sql(root, "SELECT count(*) FROM program") == [[0]]
    assert [path for path in (root / "blobs").rglob("*") if path.is_file()] == []


TMPFS = 'mount -t tmpfs -o size="$1" tmpfs "$2" && shift 2 && exec "$@"'


def on_small_disk(folder: Path, size: str, script: str) -> subprocess.CompletedProcess[str]:
    """A shell script run in a mount namespace of its own where `folder` is a disk of `size`."""
    folder.mkdir()
    command = ["unshare", "--user", "--map-root-user", "--mount", "sh", "-c", TMPFS, "sh", size, str(folder)]
    return subprocess.run(
        [*command, "sh", "-c", script, "sh", LAP, str(folder), sys.executable],
        env=environment(),
        capture_output=True,
        text=True,
        check=False,
    )


def test_a_full_disk_is_one_line_and_nothing_half_written(tmp_path: Path) -> None:
    """On a disk too small for a package the import fails with 2; with room again the same command ends well."""
    if subprocess.run(["unshare", "--user", "--map-root-user", "--mount", "true"], check=False).returncode:
        pytest.skip("this machine refuses mount namespaces, so no small disk can be made")
    big = make_package(tmp_path / "big")
    for number in range(3):
        (big / "data" / "sample" / f"big{number}.in").write_text(f"{number} " * 1_500_000)
        (big / "data" / "sample" / f"big{number}.ans").write_text(f"{number * 1_500_000}\n")
    script = f"""
    export LAP_RESERVE_MB=0  # the disk itself must fill up
    "$1" ledger init --ledger "$2/ledger" || exit 90
    "$1" import icpc {big} --ledger "$2/ledger"; echo "import ended with $?" >&2
    "$1" sql "SELECT count(*) AS n FROM problem" --ledger "$2/ledger" --json || exit 91
    find "$2/ledger" -name '*.part' >&2
    mount -o remount,size=64m "$2" || exit 92
    "$1" import icpc {big} --ledger "$2/ledger" --json >/dev/null || exit 93
    "$1" sql "SELECT count(*) AS n FROM problem" --ledger "$2/ledger" --json || exit 94
    "$1" verify --ledger "$2/ledger" || exit 95
    """
    done = on_small_disk(tmp_path / "disk", "6m", script)
    assert done.returncode == 0, f"{done.returncode}\n{done.stdout}\n{done.stderr}"
    failed = [
        line for line in done.stderr.splitlines() if line.startswith(("lap: ", "import ended")) or ".part" in line
    ]
    assert len(failed) == 2, done.stderr
    assert failed[0].startswith("lap: ")
    assert "the disk is full; free some space" in failed[0]
    assert failed[1] == "import ended with 2"
    assert [line for line in done.stdout.split("\n") if line.strip() in ("0", "1")] == ["      0", "      1"]


@pytest.mark.parametrize("args", [("replay", "--tau", "50"), ("docs", "--help"), ("problems", "--json")])
def test_a_closed_pager_is_no_mistake(filled: Path, args: tuple[str, ...]) -> None:
    """Whoever reads has closed the pipe before the first word: exit code 0, and nothing on stderr."""
    extra = [] if "--help" in args else ["--ledger", str(filled)]
    process = subprocess.Popen(
        [LAP, *args, *extra], env=environment(), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    assert process.stderr is not None
    process.stdout.close()
    assert (process.wait(timeout=60), process.stderr.read()) == (0, "")


def test_a_terminal_without_a_sign_shows_its_number(tmp_path: Path) -> None:
    """A ± is written as \\xb1 where the terminal knows ASCII only, and as JSON's own escape in JSON."""
    code = (
        "import click; from lapledger.cli import main; from lapledger.render.output import print_json, stdout\n"
        "show = lambda: (stdout().print('±'), print_json({'é': '±'}))\n"
        "main.LapGroup.get_command = lambda *a: click.Command('status', callback=show)\n"
        "raise SystemExit(main.run(['status']))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        env=environment(PYTHONIOENCODING="ascii"),
        capture_output=True,
        text=True,
        check=False,
        cwd=Path(__file__).parents[2],
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == '\\xb1\n{\n  "\\u00e9": "\\u00b1"\n}\n'
