"""`lap compare` and `lap calibrate --kind`: two models on the same problems by hand, and campaigns that meet."""

import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

from lapledger.ledger.events import TrainingDeclared
from tests.support.compare_ledgers import LATER_MS, PROBLEMS, SLOWER, campaign, programs
from tests.support.lap import lap, sql, well
from tests.support.screen_ledgers import append, problem_facts


def declared(name, reward):
    """A training run that was declared."""
    return TrainingDeclared(
        training_id=name, model="m", data="d", environment="e", reward=reward, seed=1, settings="{}"
    )


@pytest.fixture(scope="module")
def item(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A ledger with campaign `main`, and two training runs declared."""
    root = tmp_path_factory.mktemp("compare") / ".lap"
    facts = [fact for problem in PROBLEMS for fact in problem_facts(problem, list(programs(problem)), 2)]
    append(root, [*facts, *campaign("main"), declared("top-1", "ranked"), declared("top-2", "ranked")])
    return root


@pytest.fixture(scope="module")
def both(item: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same with the campaign `again`: every program once more, 1.25 times slower and 20 ms later."""
    root = tmp_path_factory.mktemp("again") / ".lap"
    shutil.copytree(item, root)
    append(root, campaign("again", lambda ms: SLOWER * ms + LATER_MS))
    return root


def compared(root, *args):
    """JSON of a comparison."""
    return well("compare", *args, "--ledger", root, "--tiers", "none", "--resamples", "500", "--json").json


def test_a_paired_difference_by_hand(item: Path) -> None:
    """p_50: top-1 has 2, 2, 2, 4 of 4, base-1 has 1, 1, 1, 0: 62.5% against 18.75%, paired t by scipy."""
    result = compared(item, "top-1", "base-1", "--tau", "100", "--tau", "50")
    full, half = (row["estimate"] for row in result["differences"])
    a, b = np.array([2, 2, 2, 4]) / 4, np.array([1, 1, 1, 0]) / 4
    assert (half["a"], half["b"], half["difference"]) == (0.625, 0.1875, 0.4375)
    assert half["gain"] == pytest.approx(0.625 / 0.1875 - 1)
    assert half["p"] == pytest.approx(stats.ttest_rel(a, b).pvalue)
    interval = stats.ttest_rel(a, b).confidence_interval()
    assert half["over_problems"] == pytest.approx(list(interval))
    assert (half["problems"], half["samples"], half["excluded"], half["over_runs"]) == (4, [16, 16], [], None)
    assert (full["a"], full["b"]) == (pytest.approx(3.25 / 4), pytest.approx(2.25 / 4))
    assert result["differences"][1]["adjusted_p"] == pytest.approx(min(1, 2 * half["p"]))
    rows = {(row["tau"], row["arm"]): row["estimate"] for row in result["passes"]}
    assert rows["50", "top-1"]["value"] == 0.625
    assert rows["50", "top-1"]["runs"] == ["top-1"]
    assert result["cut"] in well("compare", "top-1", "base-1", "--ledger", item).out


def test_win_rates_best_of_n_and_slow_programs(item: Path) -> None:
    """By the median and the best top-1 wins the three problems where both are right; the worst tie; one is left out."""
    result = compared(item, "top-1", "base-1")
    wins = {row["reading"]: row for row in result["wins"]}
    assert [(wins[r]["wins"], wins[r]["losses"]) for r in ("median", "best", "worst")] == [(3, 0), (3, 0), (0, 0)]
    assert (wins["worst"]["ties"], wins["worst"]["value"]) == ([*PROBLEMS[:3]], None)
    assert wins["median"]["excluded"] == [PROBLEMS[3]]
    best = {(row["run"], row["quality"]["n"]): row for row in result["best"]}
    assert best["top-1", 4]["quality"]["value"] == pytest.approx(0.9)
    assert best["top-1", 1]["quality"]["value"] == pytest.approx((3 * (0.9 + 0.5 + 0.1) / 4 + 0.9) / 4)
    assert best["base-1", 4]["speed"]["value"] == pytest.approx(3 / 4 * 55 / 55)
    assert sorted(best) == [(run, n) for run in ("base-1", "top-1") for n in (1, 2, 3, 4)]
    assert best["top-1", 3]["quality"]["value"] == pytest.approx((3 * (3 * 0.9 + 0.5) / 4 + 0.9) / 4)
    output = well("compare", "top-1", "base-1", "--ledger", item).out
    table = output.split("best of N samples")[1].split("correct programs")[0]
    assert [line.split()[1] for line in table.splitlines() if line.startswith("top-1")] == ["1", "2", "4"]
    assert result["slower"]["top-1"] == {
        "problems": 4, "correct": 13, "slower": 0, "undecided": 0, "value": 0.0
    }  # fmt: skip


def test_training_runs_have_a_column_of_their_own(item: Path) -> None:
    """Two runs an arm: Welch over runs, the paired interval over problems; a declared reward names the same runs."""
    result = compared(item, "top-*", "base-*", "--tau", "50")
    (row,) = (row["estimate"] for row in result["differences"])
    top, base = ((2 + 2 + 2 + 4) / 16, (2 + 2 + 2 + 3) / 16), ((1 + 1 + 1 + 0) / 16, (4 + 4 + 4 + 0) / 16)
    welch = stats.ttest_ind(top, base, equal_var=False).confidence_interval()
    assert row["over_runs"] == pytest.approx(list(welch))
    assert row["difference"] == pytest.approx(np.mean(top) - np.mean(base))
    assert row["a_runs"] == ["top-1", "top-2"]
    assert row["over_problems"] != row["over_runs"]
    for text in ("reward=ranked", "top-{seed}"):
        named = compared(item, text, "base-*", "--tau", "50")
        assert [row["estimate"] for row in named["differences"]] == [row]
    done = lap("compare", "reward=other", "base-1", "--ledger", item)
    assert (done.code, "no program here is of a training run declared with reward=other" in done.err) == (2, True)


def test_tables_report_what_they_leave_out(item: Path) -> None:
    """Ties and left-out problems by name, no A/A figure without a second run, p over all comparisons."""
    done = well("compare", "top-1", "base-1", "--ledger", item, "--tiers", "none", "--resamples", "500")
    assert "ties by the worst: p1.0123456789ab, p2.0123456789ab, p3.0123456789ab" in done.err
    assert "no win or loss, as one arm has no correct sample: p4.0123456789ab" in done.err
    assert "A/A baseline: not available, as no program was run in two campaigns or repeated" in done.out
    assert "Holm p" in done.out
    assert "warning: p_10 needs pools" not in done.err
    (row,) = [line.split() for line in done.out.splitlines() if line.split()[:2] == ["50", "all"]]
    assert row[2:6] == ["4", "62.5", "18.8", "43.8"]


def test_many_comparisons_carry_a_note(item: Path) -> None:
    """Five and more: the note says what chance would find."""
    args = ("compare", "top-1", "base-1", "--ledger", item, "--tiers", "none", "--adjust", "fdr_bh")
    done = well(*args, *(text for tau in (100, 60, 50, 40, 10) for text in ("--tau", tau)))
    assert "warning: 5 comparisons: where nothing differs about 0.25 would still fall below" in done.err
    assert "read the column Benjamini-Hochberg p" in done.err


def test_problems_by_their_tier(tmp_path: Path) -> None:
    """The tier that problems came with: all first, then each; every row names its own problems."""
    tiers = dict(zip(PROBLEMS, ("easy", "easy", "hard", "hard"), strict=True))
    facts = [
        replace(fact, tier=tiers[problem]) if hasattr(fact, "tier") else fact
        for problem in PROBLEMS
        for fact in problem_facts(problem, list(programs(problem)), 2)
    ]
    append(tmp_path / ".lap", [*facts, *campaign("main")])
    args = ("compare", "top-1", "base-1", "--ledger", tmp_path / ".lap", "--tau", "50", "--json")
    rows = well(*args).json["differences"]
    assert [(row["tier"], row["estimate"]["problems"]) for row in rows] == [("all", 4), ("easy", 2), ("hard", 2)]
    assert rows[2]["estimate"]["difference"] == pytest.approx((0.25 + 1) / 2)


def test_the_same_code_in_two_campaigns_is_shown(both: Path) -> None:
    """d against 1.25 d + 20 ms of every correct program: geometric mean over problems, without being asked."""
    (figure,) = compared(both, "top-1", "base-1", "--campaign", "main")["same"]
    logs = []
    for problem in PROBLEMS:
        done = [p.ms[0] for p in programs(problem) if not p.outcomes]
        wrong = [p.ms[0] for p in programs(problem) if p.outcomes]  # their second test passed both times
        logs.append(np.mean([np.log(d / (SLOWER * d + LATER_MS)) for d in done + wrong]))
    assert figure["speedup"] == pytest.approx(np.exp(np.mean(logs)))
    assert figure["between"] == "campaigns again and main"
    assert (figure["programs"], figure["problems"]) == (4 * 26, 4)
    assert figure["p95"] > figure["usual"] > 1.25


def test_two_campaigns_meet_only_through_a_named_calibration(both: Path, tmp_path: Path) -> None:
    """Refused without one and before it is fitted; then said, and win rates left out: no candidate is ever mapped."""
    root = tmp_path / ".lap"
    shutil.copytree(both, root)
    args = ("compare", "top-1", "top-1", "--campaign", "main", "--b-campaign", "again", "--ledger", root)
    done = lap(*args)
    assert done.code == 2
    assert "programs of campaigns main and again meet only through a named calibration" in done.err
    done = lap(*args, "--calibration", "affine")
    assert (done.code, "and none is usable" in done.err) == (2, True)
    fitted = well("calibrate", "--from", "main", "--to", "again", "--kind", "affine", "--ledger", root, "--json").json
    assert (fitted["a"], fitted["b_ns"]) == (pytest.approx(SLOWER), pytest.approx(LATER_MS * 1e6))
    done = well(*args, "--calibration", "affine")
    assert f"two campaigns meet through calibration {fitted['calibration_id'][:12]} (affine) from main" in done.out
    assert "win rates are excluded" in done.err
    result = well(*args, "--calibration", "affine", "--json").json
    assert (result["wins"], result["calibration"]) == ([], fitted["calibration_id"])
    assert {row["estimate"]["difference"] for row in result["differences"]} == {0.0}
    assert [item["between"] for item in result["same"]] == ["campaigns again and main"]


def test_a_calibration_of_all_kinds_is_a_table(both: Path, tmp_path: Path) -> None:
    """Every kind beside no map; the plainest of those that find the line is kept, and one event is stored."""
    root = tmp_path / ".lap"
    shutil.copytree(both, root)
    args = ("calibrate", "--from", "main", "--to", "again", "--ledger", root)
    done = well(*args, "--kind", "all")
    rows = {line.split()[0]: line.rstrip() for line in done.out.splitlines() if line.strip()}
    assert [name for name in rows if name in KINDS] == list(KINDS)
    assert rows["none"].endswith("baseline")
    assert rows["affine"].endswith("stored")
    assert "stored: calibration" in done.err
    assert sql(root, "SELECT kind, refused FROM calibration") == [["affine", ""]]
    attempted = well(*args, "--kind", "all", "--json").json["tried"]
    assert [item["kind"] for item in attempted] == list(KINDS[1:])
    assert well(*args, "--kind", "theil-sen", "--json").json["kind"] == "theil-sen"
    assert sql(root, "SELECT kind FROM calibration ORDER BY kind") == [["affine"], ["theil-sen"]]
    done = lap(*args, "--kind", "cubic")
    assert (done.code, "'cubic' is not one of" in done.err) == (2, True)


def test_what_is_extrapolated_is_stated(both: Path, tmp_path: Path) -> None:
    """References of 10 to 50 ms run again, those of 60 to 100 ms not: all 40 stored durations lie outside.

    They join the pool, so that a program is ranked among ten references again.
    """
    root = tmp_path / ".lap"
    shutil.copytree(both, root)
    append(root, campaign("some", lambda ms: SLOWER * ms + LATER_MS, excluded=[f"h{i}" for i in range(5, 10)]))
    done = well("calibrate", "--from", "main", "--to", "some", "--ledger", root)
    message = "40 of the 40 stored durations that the calibration maps lie outside the 10 to 50 ms it was fitted on"
    assert f"warning: {message}: ranks among them are extrapolated" in done.err
    args = ("compare", "top-1", "base-1", "--campaign", "some", "--ledger", root)
    done = well(*args, "--calibration", "affine")
    assert "stored references joined the pool through calibration" in done.out
    assert "warning: 40 of the 40 stored durations that the calibration maps lie outside the 10 to 50 ms" in done.err
    mapped, bare = (compared(root, *args[1:5], *more)["differences"] for more in (("--calibration", "affine"), ()))
    assert (mapped[1]["estimate"]["a"], mapped[1]["estimate"]["b"]) == (0.625, 0.1875)  # as in `main`
    assert bare[1]["estimate"]["a"] < 0.625


KINDS = ("none", "multiplicative", "affine", "affine-weighted", "theil-sen", "power")


def test_nobody_by_that_name(item: Path) -> None:
    """One line that names who is there, and exit code 2."""
    done = lap("compare", "nobody", "base-1", "--ledger", item)
    assert done.code == 2
    assert done.err.startswith("lap: no model matches 'nobody'; the campaign's models are base-1, base-2, human")
    done = lap("compare", "top-1", "base-1", "--k", "5", "--ledger", item)
    assert (done.code, "has 4 candidates; choose k <= 4" in done.err) == (2, True)
