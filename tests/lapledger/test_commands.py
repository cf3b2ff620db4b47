"""The commands on one small campaign that was really run: what they print, at which cut, and that it stays so."""

import json
import shutil
import subprocess
from contextlib import closing
from pathlib import Path

import pytest

from lapledger.consumers.derive.named_replay_reader import find_replay
from lapledger.ledger.events import ReplayCompleted
from lapledger.ledger.questions.queries import Questions
from lapledger.ledger.store.open_ledger import open_ledger
from lapledger.workflows.execution.run_campaign import alone
from tests.support.lap import LAP, environment, lap, process, sql, well
from tests.support.packages import ACCEPTED, PROGRAMS, make_package
from tests.support.screen_ledgers import append


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a ledger in `.lap`: one problem, six programs, campaign `main`, one stale label."""
    home = tmp_path_factory.mktemp("home")
    programs = {**PROGRAMS, "wrong_answer/right_after_all.py": ACCEPTED + "# labelled wrongly\n"}
    programs["accepted/slower.py"] = f"import time\ntime.sleep(0.4)\n{ACCEPTED}"  # far more than a busy machine adds
    well("ledger", "init", cwd=home)
    well("import", "icpc", make_package(home / "sums", programs, large=3), cwd=home)
    well("run", "--campaign", "main", cwd=home)
    return home


@pytest.fixture
def copy(folder: Path, tmp_path: Path) -> Path:
    """A copy of the ledger that a test may write to."""
    shutil.copytree(folder / ".lap", tmp_path / ".lap")
    return tmp_path


def test_replay_states_its_denominators(folder: Path) -> None:
    """Six programs, four of them pass every test: pass@1 is 4/6 by definition; three references, so pools of 2 or 3."""
    result = well("replay", "--tau", "100", "--json", cwd=folder).json
    (criterion,) = result["criteria"]
    (estimate,) = criterion["estimates"]
    assert (estimate["model"], estimate["problems"], estimate["programs"]) == ("human", 1, 6)
    assert (estimate["passed"], estimate["failed"], estimate["undecided"], criterion["missing"]) == (4, 2, 0, 0)
    assert estimate["value"] == pytest.approx(4 / 6)
    assert (estimate["references_min"], estimate["references_max"], estimate["interval"]) == (2, 3, None)
    assert result["problems"][0].startswith("sums.")


def test_the_table_names_cut_and_criterion_and_warns(folder: Path) -> None:
    """A pool of three cannot resolve 10%: 100/3 > 10. The warning is talk, on stderr."""
    done = well("replay", "--tau", "10", cwd=folder)
    cut = well("replay", "--json", cwd=folder).json["cut"]
    assert f"cut {cut}" in done.out
    assert "p_10: criterion " in done.out
    assert done.err == "warning: p_10 needs pools of at least 10 references: 6 of 6 pools are smaller (smallest 2)\n"


def test_two_criteria_count_and_name_their_flips(folder: Path) -> None:
    """From pure correctness to the fastest half: what passes the first alone is a flip, and nothing was run."""
    before = sql(folder / ".lap", "SELECT count(*) FROM execution")
    args = ("replay", "--criterion", "correct", "--against", "top-50")
    result = well(*args, "--json", cwd=folder).json
    first, second = ({v["program"]: v["status"] for v in c["verdicts"]} for c in result["criteria"])
    flipped = {program for program in first if first[program] != second[program]}
    (flips,) = result["flips"]
    assert {row["program"] for row in flips["programs"]} == flipped
    assert flips["count"] == len(flipped) > 0
    shown = well(*args, cwd=folder).out
    noun = "verdict" if len(flipped) == 1 else "verdicts"
    assert f"correct -> top-50: {len(flipped)} {noun} flipped; no programs were re-executed" in shown
    named = well(*args, "--flips", cwd=folder).out
    assert all(program in named for program in flipped)
    assert sql(folder / ".lap", "SELECT count(*) FROM execution") == before


def test_a_criterion_from_a_file_equals_the_same_flags(folder: Path, tmp_path: Path) -> None:
    """One hash for one question, however it is written; defaults do not count."""
    path = tmp_path / "strict.toml"
    path.write_text('tau = 50\nclock = "cpu"\nestimator = "median"\n')
    file = well("replay", "--criterion", path, "--json", cwd=folder).json["criteria"][0]
    flags = well("replay", "--criterion", "top-50", "--clock", "cpu", "--json", cwd=folder).json["criteria"][0]
    assert file["hash"] == flags["hash"]
    assert json.loads(file["canonical"]) == {"schema": 1, "tau": "50", "clock": "cpu"}


@pytest.mark.parametrize(("name", "magic"), [("curve.png", b"\x89PNG\r\n"), ("curve.svg", b"<?xml")])
def test_a_picture_is_drawn(folder: Path, tmp_path: Path, name: str, magic: bytes) -> None:
    """PNG and SVG by the file's ending."""
    well("replay", "--plot", tmp_path / name, cwd=folder)
    assert (tmp_path / name).read_bytes().startswith(magic)


def test_the_same_cut_gives_the_same_answer_for_ever(copy: Path) -> None:
    """Through sealing, another campaign and rewards: `--at` prints the same JSON, and its own cut."""
    before = well("replay", "--tau", "50", "--json", cwd=copy)
    cut = before.json["cut"]
    well("seal", cwd=copy)
    well("run", "--campaign", "second", "--seed", "7", cwd=copy)
    well("reward", "--criterion", "top-50", "--campaign", "main", cwd=copy)
    assert well("replay", "--tau", "50", "--json", "--at", cut, cwd=copy).out == before.out
    assert well("replay", "--tau", "50", "--json", cwd=copy).json["cut"] != cut


def test_from_reward_to_reason_to_raw_timings(copy: Path) -> None:
    """`reward`, `why`, `trace`, `verify`: one program followed all the way, every figure from the same facts."""
    rewards = well("reward", "--criterion", "top-50", "--json", cwd=copy).json["rewards"]
    assert len(rewards) == 6
    by_program = {row["program_id"].split("/")[1].split(".")[0]: row for row in rewards}
    assert by_program["zero"]["value"] == -1.0
    assert by_program["slower"]["value"] == -1.0
    (seen,) = well("why", "slower", "--json", cwd=copy).json["explanations"]
    assert (seen["criterion"], seen["status"], seen["reward"]["value"]) == ("top-50", "fail", -1.0)
    assert seen["reward"]["id"] == by_program["slower"]["reward_id"]
    assert seen["reason"].startswith("too slow: q ")
    assert seen["distance_q"] == pytest.approx(seen["q_lo"] - 0.5)
    assert "/secret/optimization/" in seen["deciding_test"]
    result = well("trace", seen["reward"]["id"][:16], "--json", cwd=copy).json
    assert (result["differences"], result["recomputed"]) == ([], result["reward"])
    timed = [test for test in result["tests"] if test["percentile"] is not None]
    assert len(timed) == 3
    walls = sql(
        copy / ".lap", "SELECT test_id, wall_ns FROM timing JOIN program USING (program_id) WHERE name = 'slower.py'"
    )
    assert {t["test_id"]: t["timings"][0]["wall_ns"] for t in result["tests"]} == dict(walls)
    assert all(test["duration_ns"] == test["timings"][0]["wall_ns"] for test in result["tests"])
    tree = well("trace", seen["reward"]["id"][:16], cwd=copy).out
    assert "recomputed: reward matches" in tree
    assert tree.count("timing 0: wall ") == len(walls)
    proof = well("verify", "--json", cwd=copy).json
    assert (proof["problems"], proof["rewards"]) == ([], 6)


def test_verify_fails_loudly_on_a_changed_byte(copy: Path) -> None:
    """One flipped bit in a sealed segment: exit code 1, and the problem names the file."""
    well("seal", cwd=copy)
    segment = max((copy / ".lap" / "segments").rglob("*.parquet"), key=lambda path: path.stat().st_size)
    data = bytearray(segment.read_bytes())
    data[len(data) // 2] ^= 1
    segment.chmod(0o644)
    segment.write_bytes(data)
    done = lap("verify", "--json", cwd=copy)
    assert done.code == 1
    assert any(segment.name in problem for problem in done.json["problems"])


def test_verify_requests_named_replays_again(copy: Path) -> None:
    """A stored replay is proven; one that claims other verdicts than its cut gives is named, and nothing is proven."""
    well("replay", "--criterion", "top-50", "--name", "half", "--reason", "r", "--store", cwd=copy)
    assert "proven" in well("verify", cwd=copy).out
    with closing(open_ledger(copy / ".lap")) as ledger, closing(Questions(ledger)) as questions:
        row = find_replay(questions, "half")
        held = json.loads(ledger.blobs.get(row["verdicts_blob"]))
        held["problems"][0]["status"][0] ^= 1
        blob = ledger.blobs.put(json.dumps(held).encode())
    append(copy / ".lap", [ReplayCompleted(**{**row, "name": "forged", "replay_id": "f" * 64, "verdicts_blob": blob})])
    done = lap("verify", cwd=copy)
    assert done.code == 1
    assert "replay 'forged' (ffffffffffff): sums." in done.out
    assert "its id is not that of its question and evidence" in done.out
    assert "FAILED" in done.out


def test_labels_and_durations_are_decided_once(copy: Path) -> None:
    """The stale label is found, 6 labels and 1 problem are decided, and a second pass adds nothing."""
    first = well("filter", "--json", cwd=copy).json
    assert (first["decided"], first["new"]) == (7, 7)
    (stale,) = [row for row in first["excluded"] if row["rule"] == "re-execution"]
    assert "right_after_all" in stale["id"]
    assert stale["reason"] == "labelled wrong_answer, passed all 6 tests"
    assert well("filter", "--json", cwd=copy).json["new"] == 0
    assert sql(copy / ".lap", "SELECT count(*) FROM filter") == [[7]]


def test_importing_twice_adds_nothing(copy: Path, folder: Path) -> None:
    """The ledger knows the problem, its tests and its programs."""
    (row,) = well("import", "icpc", folder / "sums", "--json", cwd=copy).json["imported"]
    assert (row["new problems"], row["new tests"], row["new programs"]) == (0, 0, 0)


def test_status_and_du_add_up(copy: Path) -> None:
    """Admitted frames lie in the tail before sealing and in segments after it; rows are counted by type."""
    before = well("status", "--partitions", "--json", cwd=copy).json
    assert all(p["admitted"] == p["tail"] for p in before["partitions"])
    assert (before["segments"], sum(p["quarantined"] for p in before["partitions"])) == (0, 0)
    well("seal", cwd=copy)
    after = well("status", "--partitions", "--json", cwd=copy).json
    assert after["segments"] > 0
    rows = {kind["name"]: kind["rows"] for kind in well("ledger", "du", "--json", cwd=copy).json["types"]}
    assert (rows["program.added"], rows["test.added"], rows["timing.measured"]) == (6, 6, 36)
    assert sql(copy / ".lap", "SELECT count(*) FROM timing") == [[36]]


def test_problems_shows_spread_after_a_run(folder: Path) -> None:
    """Counts by hand; the robust CV agrees with the duration filter's own figure."""
    (row,) = well("problems", "--json", cwd=folder).json["problems"]
    assert (row["programs"], row["references"], row["tests"], row["optimization_tests"]) == (6, 3, 6, 3)
    assert row["timeable"] == (row["robust_cv"] >= 0.3)


def test_every_setting_shows_its_source(tmp_path: Path) -> None:
    """A flag beats the environment, that beats `lap.toml`, that beats the default."""
    (tmp_path / "lap.toml").write_text('slots = 3\nseed = 5\nledger = "from-file"\n')
    shown = json.loads(process("config", "show", "--json", cwd=tmp_path, LAP_SEED="9").out)
    assert (shown["slots"]["value"], shown["slots"]["source"]) == (3, f"file {tmp_path / 'lap.toml'}")
    assert (shown["seed"]["value"], shown["seed"]["source"]) == (9, "environment LAP_SEED")
    assert (shown["limit"]["value"], shown["limit"]["source"]) == ("own", "default")
    process("ledger", "init", "--ledger", "from-flag", cwd=tmp_path)
    assert (tmp_path / "from-flag" / "ledger.sqlite").is_file()
    process("ledger", "init", cwd=tmp_path)
    assert (tmp_path / "from-file" / "ledger.sqlite").is_file()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("slots = 0", "setting 'slots' from file"),
        ("slotss = 1", "setting 'slotss'"),
        ("slots = ", "lap.toml: not valid TOML"),
    ],
)
def test_a_wrong_setting_names_its_source(tmp_path: Path, text: str, message: str) -> None:
    """One line, exit code 2."""
    (tmp_path / "lap.toml").write_text(text)
    done = lap("config", "show", cwd=tmp_path)
    assert (done.code, len(done.err.splitlines())) == (2, 1)
    assert message in done.err


def test_doctor_names_the_sandbox() -> None:
    """It runs an empty program for real, in the isolation that it names."""
    result = well("doctor", "--json").json
    assert result["sandbox"]["state"] in ("bubblewrap", "plain")
    assert "an empty program takes" in result["interpreter"]["advice"]


def test_views_are_listed(folder: Path) -> None:
    """`lap sql --views` names what can be read, and each view answers."""
    listed = well("sql", "--views", cwd=folder).out
    for view in ("problem", "test", "program", "campaign", "execution", "timing", "work", "reward", "verdict", "epoch"):
        assert f"\n{view} " in listed
        sql(folder / ".lap", f"SELECT count(*) FROM {view}")


def test_a_head_written_down_is_checked_later(copy: Path) -> None:
    """The word still holds after more facts and sealing; another head, or a cut beyond the ledger, is a problem."""
    label = well("verify", "--print-head", cwd=copy).out.strip()
    shown = well("verify", "--print-head", "--json", cwd=copy).json
    proven = well("verify", "--json", cwd=copy).json
    assert label == shown["token"] == f"{proven['head']}@{proven['cut']}" == f"{shown['head']}@{shown['cut']}"
    well("run", "--campaign", "second", cwd=copy)
    well("seal", cwd=copy)
    assert well("verify", "--head", label, "--json", cwd=copy).json["problems"] == []
    for wrong in (f"{'0' * 64}@{shown['cut']}", label.replace("@control=", "@control=9")):
        done = lap("verify", "--head", wrong, "--json", cwd=copy)
        assert done.code == 1
        assert len(done.json["problems"]) == 1


@pytest.mark.parametrize(
    "args", [("--against", "nonsense"), ("--against", f"{'0' * 64}@here"), ("--head", "--against", "x")]
)
def test_a_head_that_is_none_is_the_users_mistake(folder: Path, args: tuple[str, ...]) -> None:
    """One line on stderr, exit code 2, nothing on stdout."""
    done = lap("verify", *args, cwd=folder)
    assert (done.code, done.out, len(done.err.splitlines())) == (2, "", 1)


def test_a_read_only_copy_can_be_audited(copy: Path) -> None:
    """On a disk that cannot be written, reading commands give what the original gives."""
    if subprocess.run(["unshare", "--user", "--map-root-user", "--mount", "true"], check=False).returncode:
        pytest.skip("this machine refuses mount namespaces, so no read-only disk can be made")
    wanted = well("replay", "--tau", "50", "--json", cwd=copy).out
    steps = ('mount --bind "$2" "$2"', 'mount -o remount,bind,ro "$2"', 'cd "$2"')
    script = " && ".join((*steps, '"$1" replay --tau 50 --json', '"$1" verify'))
    command = ["unshare", "--user", "--map-root-user", "--mount", "sh", "-c", script, "sh", LAP, str(copy)]
    done = subprocess.run(command, env=environment(), capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith(wanted)
    assert "proven: " in done.stdout


def test_two_runs_at_once_are_refused(copy: Path) -> None:
    """While one `lap run` holds the ledger, a second one says so and runs nothing."""
    with alone(copy / ".lap"):
        done = lap("run", "--campaign", "second", cwd=copy)
    assert (done.code, len(done.err.splitlines())) == (2, 1)
    assert "another `lap run` works on the ledger" in done.err
    assert sql(copy / ".lap", "SELECT count(*) FROM campaign") == [[1]]


def test_commands_that_change_nothing_leave_no_trace(copy: Path) -> None:
    """Sealing twice, a complete run, a second pass of rewards: the cut stays where it was."""
    well("reward", "--criterion", "top-50", cwd=copy)
    well("seal", cwd=copy)
    before = well("status", "--partitions", "--json", cwd=copy).json
    well("seal", cwd=copy)
    well("run", "--campaign", "main", cwd=copy)
    well("reward", "--criterion", "top-50", cwd=copy)
    after = well("status", "--partitions", "--json", cwd=copy).json
    assert (after["cut"], after["segments"], after["head"]) == (before["cut"], before["segments"], before["head"])


def test_the_demo_deletes_nothing_but_a_demo(copy: Path) -> None:
    """A real ledger, or any other folder, is refused and stays as it is."""
    before = well("status", "--partitions", "--json", cwd=copy).json["partitions"]
    done = lap("demo", "--into", ".lap", cwd=copy)
    assert (done.code, len(done.err.splitlines())) == (2, 1)
    assert "was not made by `lap demo`" in done.err
    assert well("status", "--partitions", "--json", cwd=copy).json["partitions"] == before


def test_an_earlier_demo_is_deleted_only_by_replace(tmp_path: Path) -> None:
    """Without --replace it stays as it is, with all that was added to it."""
    (tmp_path / "demo").mkdir()
    (tmp_path / "demo" / "made-by-lap-demo").write_text("")
    done = lap("demo", "--into", "demo", cwd=tmp_path)
    assert (done.code, done.err) == (
        2,
        "lap: demo holds an earlier demo; add --replace to delete it, or choose another folder with --into\n",
    )
    assert (tmp_path / "demo" / "made-by-lap-demo").is_file()


def test_json_is_json(copy: Path) -> None:
    """nan and infinity are null, which every reader of JSON takes."""
    result = well("sql", "SELECT 'nan'::DOUBLE AS a, 'inf'::DOUBLE AS b, 1.5 AS c", "--json", cwd=copy)
    assert json.loads(result.out, parse_constant=pytest.fail)["rows"][0][:2] == [None, None]


def test_two_columns_of_one_name_are_both_shown(copy: Path) -> None:
    """As a join gives them."""
    result = well("sql", "SELECT 1 AS a, 2 AS a", "--json", cwd=copy).json
    assert (result["columns"], result["rows"]) == (["a", "a"], [[1, 2]])
