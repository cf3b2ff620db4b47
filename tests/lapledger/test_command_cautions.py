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
ONE = CAPPED.format("1 run of 1 undecided candidate was")
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
    append(home / ".lap", campaign("some", slower, left_out=[f"h{i}" for i in range(5, 10)]))
    well("calibrate", "--from", "main", "--to", "some", cwd=home)
    (home / "mapped.toml").write_text('tau = 50\ncalibration = "affine"\n')
    return home


def told(words: tuple[object, ...], cwd: Path) -> tuple[list[str], list[str]]:
    """The warnings of a command on stderr, and those of its JSON, however deep."""
    said = [line.removeprefix("warning: ") for line in well(*words, cwd=cwd).err.splitlines()]

    def warnings(value: object) -> list[str]:
        if isinstance(value, list):
            return [one for inner in value for one in warnings(inner)]
        if not isinstance(value, dict):
            return []
        return [*value.get("warnings", []), *(one for inner in value.values() for one in warnings(inner))]

    return said, list(dict.fromkeys(warnings(well(*words, "--json", cwd=cwd).json)))


BASE = f"{'easy.0123456789ab'}/base-0"
LATE = ("--criterion", "late.toml")


@pytest.mark.parametrize(
    ("words", "expected"),
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
        (("why", BASE, *LATE), ONE),
    ],
    ids=lambda value: value[0] if isinstance(value, tuple) else None,
)
def test_a_limit_beyond_what_was_run_is_said(capped: Path, words: tuple[str, ...], expected: str) -> None:
    """Each says how many runs were killed before 20 s, which is counted by hand: one program on each problem."""
    said, kept = told(words, capped)
    assert expected in said
    assert expected in kept
    soon = tuple(word.replace("late.toml", "soon.toml") for word in words)
    assert not [line for found in told(soon, capped) for line in found if "executed" in line]


@pytest.mark.parametrize(
    "words",
    [
        ("compare", "run-1k", "run-2k", *LATE),
        ("robustness", "--baseline", "run-1k", "--run", "run-2k", "--alpha", "1", "--beta", "0", *LATE),
        ("matrix", "--run", "run-1k", "--criterion", "late.toml"),
        ("simulate", "--criterion", "late.toml"),
        ("why", f"{BASE[:-1]}1", *LATE),
    ],
    ids=lambda words: words[0],
)
def test_what_others_ran_into_is_not_said(capped: Path, words: tuple[str, ...]) -> None:
    """Nobody who is asked about was killed: what happened to a program of run-3k is no matter of theirs."""
    assert not [line for found in told(words, capped) for line in found if "executed" in line]


def test_a_reward_says_it_too(capped: Path, tmp_path: Path) -> None:
    """In a copy, as rewards are written."""
    shutil.copytree(capped, tmp_path, dirs_exist_ok=True)
    assert f"warning: {THREE}" in well("reward", *LATE, cwd=tmp_path).err
    assert well("reward", *LATE, "--json", cwd=tmp_path).json["warnings"] == [THREE]
    assert well("reward", "--criterion", "soon.toml", "--json", cwd=tmp_path).json["warnings"] == []


def test_named_replays_say_it_when_they_are_compared(capped: Path, tmp_path: Path) -> None:
    """Each stored replay is asked again, and warned of, under its own criterion."""
    shutil.copytree(capped, tmp_path, dirs_exist_ok=True)
    for name in ("late", "soon"):
        well("replay", "--criterion", f"{name}.toml", "--name", name, "--reason", "r", "--store", cwd=tmp_path)
    assert f"warning: {THREE}" in well("diff", "late", "soon", cwd=tmp_path).err
    found = well("diff", "late", "soon", "--json", cwd=tmp_path).json
    assert (found["a"]["warnings"], found["b"]["warnings"]) == ([THREE], [])


MAPPED = ("--campaign", "some", "--criterion", "mapped.toml")


@pytest.mark.parametrize(
    "words",
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
    ids=lambda words: words[0],
)
def test_a_map_beyond_what_it_was_fitted_on_is_said(extrapolated: Path, words: tuple[str, ...], tmp_path: Path) -> None:
    """All 40 stored durations lie outside the fitted 10 to 50 ms, and each command says so."""
    shutil.copytree(extrapolated, tmp_path, dirs_exist_ok=True)
    said, kept = told(words, tmp_path)
    assert OUTSIDE in said
    assert OUTSIDE in kept


def test_why_is_told_which_calibration(extrapolated: Path, tmp_path: Path) -> None:
    """With fits from two campaigns it refuses until one is named, and then answers by that one's pool."""
    shutil.copytree(extrapolated, tmp_path, dirs_exist_ok=True)
    well("calibrate", "--from", "other", "--to", "some", cwd=tmp_path)
    words = ("why", f"{PROBLEMS[0]}/top-1-1", *MAPPED)
    refused = lap(*words, cwd=tmp_path)
    assert (refused.code, "from main, other; give --calibration-from" in refused.err) == (2, True)
    for source in ("main", "other"):
        (found,) = well(*words, "--calibration-from", source, "--json", cwd=tmp_path).json["explanations"]
        single = well("replay", *MAPPED, "--calibration-from", source, "--json", cwd=tmp_path).json["criteria"][0]
        (verdict,) = [one for one in single["verdicts"] if one["program"].startswith(words[1])]
        assert found["status"] == verdict["status"]
        assert found["q_lo"] == pytest.approx(verdict["q"][0] / verdict["q"][2])
        assert verdict["references"] == 10
