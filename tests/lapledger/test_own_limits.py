"""What a package says about its own judging rules its runs: limits, answer flags and arguments, on the real sandbox."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.lap import lap, sql, well

Contents = dict[str, str]


def package(folder: Path, problem: str, programs: Contents, tests: Contents) -> None:
    """A package with one sample and one secret test, whose input is `5` and whose answer is `2.5`."""
    pairs = {
        f"data/{group}/1.{kind}": text
        for group in ("sample", "secret")
        for kind, text in (("in", "5\n"), ("ans", "2.5\n"))
    }
    for path, text in {"problem.yaml": problem, **pairs, **tests, **programs}.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text)


HALF = "print(int(input()) / 2)\n"


@pytest.fixture(scope="module")
def ledger(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Four packages, each with a setting of its own, run without any flag."""
    folder = tmp_path_factory.mktemp("own")
    long = "print(f'{int(input()) / 2:.8f}')\n"
    factor = "import sys\nprint(int(input()) / int(sys.argv[sys.argv.index('--divide') + 1]))\n"
    package(
        folder / "tolerant",
        "name: a\n",
        {"submissions/accepted/long.py": long, "submissions/wrong_answer/off.py": "print(2.51)\n"},
        {"data/test_group.yaml": "output_validator_args: [float_tolerance, '1E-6']\n"},
    )
    package(
        folder / "arguments",
        "name: b\n",
        {"submissions/accepted/factor.py": factor},
        {f"data/{group}/test_group.yaml": "args: [--divide, '2']\n" for group in ("sample", "secret")},
    )
    package(
        folder / "time",
        "name: c\nlimits: {time_limit: 0.5}\n",
        {
            "submissions/accepted/half.py": HALF,
            "submissions/time_limit_exceeded/slow.py": f"import time\ntime.sleep(0.8)\n{HALF}",
        },
        {},
    )
    package(
        folder / "memory",
        "name: d\nlimits: {memory: 128}\n",
        {
            "submissions/accepted/half.py": HALF,
            "submissions/memory_limit_exceeded/large.py": f"x = bytearray(300 << 20)\n{HALF}",
        },
        {},
    )
    well("ledger", "init", "--ledger", folder / "lap")
    well("import", "icpc", folder, "--ledger", folder / "lap")
    well("run", "--campaign", "own", "--ledger", folder / "lap")
    return folder / "lap"


def outcomes(ledger: Path, campaign: str) -> dict[str, set[str]]:
    """The outcomes of each program over its tests."""
    query = "SELECT name, list(DISTINCT outcome) AS seen FROM execution JOIN program USING (program_id)"
    rows = well("sql", f"{query} WHERE campaign_id = '{campaign}' GROUP BY ALL", "--ledger", ledger, "--json").json[
        "rows"
    ]
    return {name: set(seen) for name, seen in rows}


def test_a_package_s_own_settings_rule_its_runs(ledger: Path) -> None:
    """2.50000000 is within 1e-6 of 2.5, 2.51 is not; 5 / 2 needs the argument; 0.8 s and 300 MiB break the limits."""
    assert outcomes(ledger, "own") == {
        "long.py": {"accepted"},
        "off.py": {"wrong_answer"},
        "factor.py": {"accepted"},
        "half.py": {"accepted"},
        "slow.py": {"time_limit"},
        "large.py": {"memory_limit"},
    }


def test_no_label_is_dropped_under_own_limits(ledger: Path) -> None:
    """Every label holds, so only the duration filter excludes."""
    excluded = well("filter", "--campaign", "own", "--ledger", ledger, "--json").json["excluded"]
    assert {row["rule"] for row in excluded} == {"duration"}


def test_a_limit_that_the_user_gives_wins_and_the_filter_knows_the_own_one(ledger: Path) -> None:
    """Under 5 s `slow` passes; its label holds under its problem's 0.5 s, and is contradicted under those 5 s."""
    well("run", "time", "--campaign", "loose", "--limit", "5", "--ledger", ledger)
    assert outcomes(ledger, "loose")["slow.py"] == {"accepted"}
    limits = "SELECT DISTINCT hard_limit_ns FROM timing WHERE campaign_id = 'loose'"
    assert well("sql", limits, "--ledger", ledger, "--json").json["rows"] == [[5_000_000_000]]
    held = well("filter", "--campaign", "loose", "--ledger", ledger, "--json").json["excluded"]
    assert {row["rule"] for row in held} == {"duration"}


def test_a_criterion_puts_own_limits_to_what_was_run_without(ledger: Path, tmp_path: Path) -> None:
    """Under 5 s `slow` is right; under its problem's 0.5 s no command takes it for right, nor does a bundle."""
    at = ("--campaign", "loose", "--ledger", ledger)
    if not well("sql", "SELECT * FROM campaign WHERE campaign_id = 'loose'", "--ledger", ledger, "--json").json["rows"]:
        well("run", "time", "--campaign", "loose", "--limit", "5", "--ledger", ledger)
    for limit, status in (("executed", "pass"), ("own", "fail")):
        (why,) = well("why", "slow.py", *at, "--criterion", "correct", "--limit", limit, "--json").json["explanations"]
        assert (limit, why["status"]) == (limit, status)
    assert why["reason"].startswith("time_limit on ")
    well("reward", *at, "--limit", "own")
    assert sql(ledger, "SELECT name, value FROM reward JOIN program USING (program_id) ORDER BY ALL") == [
        ["half.py", 1.0],
        ["slow.py", -1.0],
    ]
    assert well("verify", "--ledger", ledger).code == 0
    well("export", "bundle", tmp_path / "own.zip", *at, "--limit", "own")
    command = [sys.executable, tmp_path / "own.zip", "--json", "--criterion", '{"own_limits":"enforced"}']
    checked = subprocess.run(command, capture_output=True, check=True)
    verdicts = {
        row["program"].split("/")[1][:4]: row["status"] for row in json.loads(checked.stdout)["table"]["verdicts"]
    }
    assert verdicts == {"half": "pass", "slow": "fail"}


def test_studies_put_own_limits_too(ledger: Path, tmp_path: Path) -> None:
    """A sweep by its flag, a matrix by the file of each criterion; criteria that disagree are refused by name."""
    at = ("--campaign", "own", "--ledger", ledger)
    well("sweep", "--tau", "50", *at, "--limit", "own", "--json")
    (tmp_path / "own.toml").write_text('own_limits = "enforced"\n')
    named = ("matrix", "--run", "human", "--criterion", tmp_path / "own.toml", *at)
    well(*named, "--json")
    well("compare", "human", "human", *at, "--limit", "own", "--json")
    well("robustness", "--baseline", "human", "--run", "human", "--tau", "50", *at, "--limit", "own", "--json")
    simulated = lap("simulate", "--criterion", tmp_path / "own.toml", *at)
    assert "no problem has two human programs in order" in simulated.err  # read, and too small to simulate
    done = lap(*named, "--criterion", "correct")
    assert (done.code, "own_limits" in done.err, done.err.count("\n")) == (2, True, 1)


def test_the_duration_filter_counts_the_tests_that_a_reference_passed(tmp_path: Path) -> None:
    """Two optimization tests, and an accepted program that fails both: none has a reference's duration."""
    package(tmp_path / "sums", "name: e\n", {"submissions/accepted/wrong.py": "print(0)\n"}, {})
    well("ledger", "init", "--ledger", tmp_path / "lap")
    well("import", "icpc", tmp_path / "sums", "--ledger", tmp_path / "lap")
    well("run", "--ledger", tmp_path / "lap")
    excluded = well("filter", "--ledger", tmp_path / "lap", "--json").json["excluded"]
    (reason,) = (row["reason"] for row in excluded if row["rule"] == "duration")
    assert reason == "0 optimization tests with reference durations; at least 2 are needed"
