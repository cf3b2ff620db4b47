"""`lap simulate` on one real ledger: its numbers, its seed, files of training results, and refusals."""

import csv
from pathlib import Path

import pytest

from tests.support.lap import lap, well
from tests.support.many_ledgers import make_many
from tests.support.screen_ledgers import Program, make_campaign

CRITERIA = ("rlvr", "top-50", "top-10", "leaderboard", "raw-duration")
TEXTS = tuple(label for name in CRITERIA for label in ("--criterion", name))


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a ledger in `.lap`: three problems, each with two wrong humans and ten references."""
    home = tmp_path_factory.mktemp("simulated")
    make_many(home / ".lap")
    return home


def test_the_figures_of_a_step(folder: Path) -> None:
    """Correctness alone pays the ten right of twelve humans: f is 0 below u = 1.5/11 and 1 above it.

    Of 21 points 0, 0.05 and 0.1 draw wrong programs only (0 and 1/11), and 0.15 only right ones (2/11): the trapezoid
    over 0.05 steps is 0.85 + 0.025. The ledger is the same on all three problems, so every group is equal.
    """
    (item,) = well("simulate", "--criterion", "rlvr", "--json", cwd=folder).json["simulations"]
    assert item["f"] == [0] * 3 + [1] * 18
    assert item["auc"] == pytest.approx(0.875)
    assert (item["zero_advantage"], item["problems"], item["programs"], item["groups"]) == (1, 3, 36, 63)
    assert item["verdict"] == "steep and balanced"


def test_the_seed_and_the_company(folder: Path) -> None:
    """The same seed gives the same answer; a criterion's curve does not hang on what is simulated beside it."""
    first = well("simulate", *TEXTS, "--json", cwd=folder).json
    assert well("simulate", *TEXTS, "--json", cwd=folder).json == first
    alone = well("simulate", "--criterion", "leaderboard", "--json", cwd=folder).json["simulations"]
    assert alone == [item for item in first["simulations"] if item["criterion"] == "leaderboard"]
    second = well("simulate", *TEXTS, "--seed", 7, "--json", cwd=folder).json
    assert [item["f"] for item in second["simulations"]] != [item["f"] for item in first["simulations"]]
    assert (first["seed"], second["seed"]) == (0, 7)


def test_the_table_reports_verdicts_cut_and_seed(folder: Path) -> None:
    """Thresholds get sparser; the cut and the seed stand there; a filter that keeps nothing is told."""
    done = well("simulate", *TEXTS, "--criterion", "pre-2s", cwd=folder)
    cut = well("simulate", "--criterion", "rlvr", "--json", cwd=folder).json["cut"]
    table = done.out.split("cut ")[0]
    lines = {line.split()[0]: line for line in table.splitlines() if line}
    assert lines["top-10"].rstrip().endswith("sparse")
    assert lines["pre-2s"].rstrip().endswith("undecided")
    assert f"cut {cut}" in done.out
    assert "seed 0" in done.out
    assert "pre-2s: 3 problems excluded" in done.err


def test_every_preset_by_default_and_as_files(folder: Path, tmp_path: Path) -> None:
    """21 rows a criterion, with the figures beside the curve; the picture is a PNG."""
    well("simulate", "--out", tmp_path / "s.csv", "--out", tmp_path / "s.png", cwd=folder)
    with (tmp_path / "s.csv").open() as file:
        rows = list(csv.DictReader(file))
    names = list(dict.fromkeys(row["criterion"] for row in rows))
    assert len(rows) == 21 * len(names)
    assert {"rlvr", "ranked-worst-p80", "multitask", "raw-duration"} <= set(names)
    assert {row["seed"] for row in rows} == {"0"}
    assert (tmp_path / "s.png").read_bytes().startswith(b"\x89PNG")


def test_results_of_training(folder: Path, tmp_path: Path) -> None:
    """Published p_30 at 7B beside the figures: Spearman over the criteria that have one, with a heading or without."""
    online = tmp_path / "online.csv"
    online.write_text("criterion,p_30\nrlvr,7.7\ntop-50,17.0\nleaderboard,15.5\nunknown,1\n")
    result = well("simulate", *TEXTS, "--training-results", online, "--json", cwd=folder).json
    by_figure = {item["figure"]: item for item in result["online"]}
    assert by_figure["deviation"]["criteria"] == 3
    figures = {item["criterion"]: item["deviation"] for item in result["simulations"]}
    order = sorted(("rlvr", "top-50", "leaderboard"), key=lambda name: figures[name])
    ranks = {"rlvr": 1, "top-50": 3, "leaderboard": 2}
    d2 = sum((ranks[name] - location) ** 2 for location, name in enumerate(order, start=1))
    assert by_figure["deviation"]["correlation"] == pytest.approx(1 - 6 * d2 / (3 * 8))
    assert "Spearman with training" in well("simulate", *TEXTS, "--training-results", online, cwd=folder).out


@pytest.mark.parametrize(
    ("text", "seen"),
    [
        ("rlvr,7.7\n", "1 of the simulated criteria have one; name 3 or more of rlvr, top-50"),
        ("rlvr,7.7\nrlvr,8\n", "line 2: write criterion,value, each criterion once"),
        ("rlvr,7.7\ntop-50,fast\n", "line 2: write criterion,value"),
        ("rlvr,7.7\ntop-50,nan\n", "line 2: write criterion,value"),
        ("rlvr,7.7,2\n", "line 1: write criterion,value"),
        ("x" * 1_000_001, "larger than 1000000 bytes"),
        ("\udcff", "give a CSV file"),
        ("", "holds no result; give lines of criterion,value"),
        ("criterion,p_30\n\n", "holds no result"),
    ],
)
def test_files_of_results_that_cannot_be_read(folder: Path, tmp_path: Path, text: str, seen: str) -> None:
    """One line, exit code 2."""
    online = tmp_path / "online.csv"
    online.write_bytes(text.encode(errors="surrogateescape"))
    done = lap("simulate", *TEXTS, "--training-results", online, cwd=folder)
    assert (done.code, done.err.count("\n")) == (2, 1)
    assert seen in done.err
    assert "No such file" in lap("simulate", "--training-results", tmp_path / "none.csv", cwd=folder).err


def test_what_was_never_drawn_is_reported(tmp_path: Path) -> None:
    """One human was not run on a test: no place. Two were killed at 10 s, and 20 s is asked for: no reward is known.

    The weakest two of the six in order are those, so nothing is drawn at u = 0 to 0.25 (the third stands at 0.4, and
    at 0.3 it is as near as the second).
    """
    references = [Program(f"ref{ms}", (ms, ms), reference=True) for ms in (10, 20, 30, 40)]
    late = [Program(f"late{i}", (5, 10_000), outcomes={1: "time_limit"}) for i in range(2)]
    make_campaign(tmp_path / ".lap", [*references, *late, Program("halfway", (5, 5), outcomes={1: None})])
    wanted = tmp_path / "late.toml"
    wanted.write_text('timeouts = "tolerated"\nin_time = "required"\nreading = "over-limit"\nlimit_ms = 20000\n')
    done = well("simulate", "--criterion", wanted, cwd=tmp_path)
    assert "1 program not ranked: correctness or quality is undecided" in done.err
    assert "late: no reward is known at 6 values of u, where nothing was drawn" in done.err
    (item,) = well("simulate", "--criterion", wanted, "--json", cwd=tmp_path).json["simulations"]
    assert (item["f"][:6], item["f"][6:]) == ([None] * 6, [1.0] * 15)
    assert (item["undecided"], item["verdict"]) == (2, "undecided")


def test_a_model_without_programs(folder: Path) -> None:
    """Nobody of that name: nothing to draw. A model's programs can be drawn like a human's."""
    done = lap("simulate", "--model", "nobody", cwd=folder)
    assert (done.code, done.err) == (
        2,
        "lap: --model nobody: no such model in this campaign; choose one of base, human, run-1k, run-2k\n",
    )
    (item,) = well("simulate", "--model", "run-2k", "--criterion", "rlvr", "--json", cwd=folder).json["simulations"]
    assert item["programs"] == 12
