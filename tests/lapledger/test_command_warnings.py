"""Every command that judges says where limits go beyond what was run, and maps beyond what they were fitted on.

On stderr beside a table, in the list `warnings` of JSON.
"""

import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from tests.support.compare_ledgers import LATER_MS, PROBLEMS, SLOWER, campaign, programs
from tests.support.lap import lap, well
from tests.support.many_ledgers import make_many
from tests.support.screen_ledgers import append, problem_facts

CAPPED = (
    "the criterion's limit exceeds the executed limit (10000 ms): {} killed below it, and only running them again with"
    " the longer limit can decide them"
)
THREE = CAPPED.format("3 runs of 3 undecided candidates were")
SINGLE = CAPPED.format("1 run of 1 undecided candidate was")
OUTSIDE = (
    "40 of the 40 stored durations that the calibration maps lie outside the 10 to 50 ms it was fitted on: ranks among"
    " them are extrapolated"
)


@pytest.fixture(scope="module")
def capped(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder in which a program of run-3k was killed at 10 s on three problems; criteria that ask for 20 s and 2."""
    home = tmp_path_factory.mktemp("capped")

    def named(fact):
        return replace(fact, model="run-3k") if getattr(fact, "model", None) == "base" else fact

    make_many(home / ".lap", killed=True, change=named)
    (home / "late.toml").write_text("timeout_ms = 20000\n")
    (home / "soon.toml").write_text("timeout_ms = 2000\n")
    return home


@pytest.fixture(scope="module")
def extrapolated(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """References of 10 to 50 ms were run again in `some`, and those of 60 to 100 ms were not: 40 durations are mapped.

    `other` ran all of them too, so that there can be two calibrations into `some`.
    """
    home = tmp_path_factory.mktemp("extrapolated")
    facts = [fact for problem in PROBLEMS for fact in problem_facts(problem, list(programs(problem)), 2)]

    def slower(ms: float) -> float:
        return SLOWER * ms + LATER_MS

    append(home / ".lap", [*facts, *campaign("main"), *campaign("other", lambda ms: 1.5 * ms + 5)])
    append(home / ".lap", campaign("some", slower, excluded=[f"h{i}" for i in range(5, 10)]))
    well("calibrate", "--from", "main", "--to", "some", cwd=home)
    (home / "mapped.toml").write_text('tau = 50\ncalibration = "affine"\n')
    return home


def logged(args: tuple[object, ...], cwd: Path) -> tuple[list[str], list[str]]:
    """The warnings of a command on stderr, and those of its JSON, however deep."""
    message = [line.removeprefix("warning: ") for line in well(*args, cwd=cwd).err.splitlines()]

    def warnings(value: object) -> list[str]:
        if isinstance(value, list):
            return [item for inner in value for item in warnings(inner)]
        if not isinstance(value, dict):
            return []
        return [*value.get("warnings", []), *(item for inner in value.values() for item in warnings(inner))]

    return message, list(dict.fromkeys(warnings(well(*args, "--json", cwd=cwd).json)))


BASE = f"{'easy.0123456789ab'}/base-0"
LATE = ("--criterion", "late.toml")


@pytest.mark.parametrize(
    ("args", "expected"),
    [
        (("replay", *LATE), THREE),
        (("compare", "run-3k", "run-1k", *LATE), THREE),
        (("sweep", "--tau", "50", *LATE), THREE),
        (("sweep", "--tau", "50", *LATE, "--optimization-limit", "none,1s"), THREE),
        (("robustness", "--baseline", "run-3k", "--alpha", "1", "--beta", "0", *LATE), THREE),
        (("curve", "--checkpoint", "run-{step}", "--tiers", "none", *LATE), THREE),
        (("matrix", "--criterion", "late.toml", "--criterion", "rlvr"), f"late: {THREE}"),
        (("simulate", "--criterion", "late.toml", "--model", "run-3k"), THREE),
        (("diff", "--criterion-a", "late.toml", "--criterion-b", "correct"), THREE),
        (("why", BASE, *LATE), SINGLE),
    ],
    ids=lambda value: value[0] if isinstance(value, tuple) else None,
)
def test_a_limit_past_what_was_run_is_stated(capped: Path, args: tuple[str, ...], expected: str) -> None:
    """Each says how many runs were killed before 20 s, which is counted by hand: one program on each problem."""
    message, kept = logged(args, capped)
    assert expected in message
    assert expected in kept
    soon = tuple(text.replace("late.toml", "soon.toml") for text in args)
    assert not [line for result in logged(soon, capped) for line in result if "executed" in line]


@pytest.mark.parametrize(
    "args",
    [
        ("compare", "run-1k", "run-2k", *LATE),
        ("robustness", "--baseline", "run-1k", "--run", "run-2k", "--alpha", "1", "--beta", "0", *LATE),
        ("matrix", "--run", "run-1k", "--criterion", "late.toml"),
        ("simulate", "--criterion", "late.toml"),
        ("why", f"{BASE[:-1]}1", *LATE),
    ],
    ids=lambda args: args[0],
)
def test_what_others_ran_into_is_not_stated(capped: Path, args: tuple[str, ...]) -> None:
    """Nobody who is asked about was killed: what happened to a program of run-3k is no matter of theirs."""
    assert not [line for result in logged(args, capped) for line in result if "executed" in line]


def test_a_reward_reports_it_too(capped: Path, tmp_path: Path) -> None:
    """In a copy, as rewards are written."""
    shutil.copytree(capped, tmp_path, dirs_exist_ok=True)
    assert f"warning: {THREE}" in well("reward", *LATE, cwd=tmp_path).err
    assert well("reward", *LATE, "--json", cwd=tmp_path).json["warnings"] == [THREE]
    assert well("reward", "--criterion", "soon.toml", "--json", cwd=tmp_path).json["warnings"] == []


def test_named_replays_report_it_when_they_are_compared(capped: Path, tmp_path: Path) -> None:
    """Each stored replay is asked again, and warned of, under its own criterion."""
    shutil.copytree(capped, tmp_path, dirs_exist_ok=True)
    for name in ("late", "soon"):
        well("replay", "--criterion", f"{name}.toml", "--name", name, "--reason", "r", "--store", cwd=tmp_path)
    assert f"warning: {THREE}" in well("diff", "late", "soon", cwd=tmp_path).err
    result = well("diff", "late", "soon", "--json", cwd=tmp_path).json
    assert (result["a"]["warnings"], result["b"]["warnings"]) == ([THREE], [])


MAPPED = ("--campaign", "some", "--criterion", "mapped.toml")


@pytest.mark.parametrize(
    "args",
    [
        ("replay", *MAPPED),
        ("compare", "top-1", "base-1", "--tiers", "none", *MAPPED),
        ("sweep", "--tau", "50", *MAPPED),
        ("robustness", "--baseline", "base-1", "--alpha", "1", "--beta", "0", *MAPPED),
        ("curve", "--checkpoint", "top-{step}", "--tiers", "none", *MAPPED),
        ("diff", "--criterion-a", "mapped.toml", "--criterion-b", "correct", "--campaign", "some"),
        ("why", f"{PROBLEMS[0]}/top-1-0", *MAPPED),
        ("reward", *MAPPED),
        ("calibrate", "--from", "main", "--to", "some"),
    ],
    ids=lambda args: args[0],
)
def test_a_map_past_what_it_was_fitted_on_is_stated(extrapolated: Path, args: tuple[str, ...], tmp_path: Path) -> None:
    """All 40 stored durations lie outside the fitted 10 to 50 ms, and each command says so."""
    shutil.copytree(extrapolated, tmp_path, dirs_exist_ok=True)
    message, kept = logged(args, tmp_path)
    assert OUTSIDE in message
    assert OUTSIDE in kept


def test_why_is_reported_which_calibration(extrapolated: Path, tmp_path: Path) -> None:
    """With fits from two campaigns it refuses until one is named, and then answers by that one's pool."""
    shutil.copytree(extrapolated, tmp_path, dirs_exist_ok=True)
    well("calibrate", "--from", "other", "--to", "some", cwd=tmp_path)
    args = ("why", f"{PROBLEMS[0]}/top-1-1", *MAPPED)
    refused = lap(*args, cwd=tmp_path)
    assert (refused.code, "from main, other; name the campaign of one (--calibration-from" in refused.err) == (2, True)
    for source in ("main", "other"):
        (result,) = well(*args, "--calibration-from", source, "--json", cwd=tmp_path).json["explanations"]
        single = well("replay", *MAPPED, "--calibration-from", source, "--json", cwd=tmp_path).json["criteria"][0]
        (verdict,) = [item for item in single["verdicts"] if item["program"].startswith(args[1])]
        assert result["status"] == verdict["status"]
        assert result["q_lo"] == pytest.approx(verdict["q"][0] / verdict["q"][2])
        assert verdict["references"] == 10
