"""`lap sweep`, `matrix`, `robustness` and `curve` on one real ledger: numbers, files, refusals, and an earlier cut."""

import csv
from itertools import pairwise
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from tests.support.lap import lap, well
from tests.support.many_ledgers import MODELS, make_many
from tests.support.screen_ledgers import REFERENCES, Program, append, make_campaign, problem_facts

MS = 1_000_000
MAGIC = {"png": b"\x89PNG\r\n", "svg": b"<?xml", "csv": b"", "parquet": b"PAR1"}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a ledger in `.lap`: three problems, ten references each, three models, one killed program."""
    home = tmp_path_factory.mktemp("many")
    make_many(home / ".lap", killed=True)
    return home


def points(done, **wanted):
    """The points of a sweep that have all these values."""
    return [item for item in done.json["points"] if all(item[name] == value for name, value in wanted.items())]


# sweep


def test_a_sweep_is_what_replay_reports_at_each_location(folder: Path) -> None:
    """Every point of tau x timeout equals `lap replay` with that tau and limit, model by model."""
    swept = well("sweep", "--tau", "50,30", "--optimization-limit", "none,60ms", "--json", cwd=folder)
    for tau in (50, 30):
        for timeout, flag in ((None, ()), (60 * MS, ("--set", "limit_ms=60"))):
            single = well("replay", "--tau", tau, *flag, "--json", cwd=folder).json["criteria"][0]["estimates"]
            result = points(swept, tau=tau, timeout_ns=timeout)
            assert (
                [item["model"] for item in result]
                == [item["model"] for item in single]
                == ["base", "human", "run-1k", "run-2k"]
            )
            for item, second in zip(result, single, strict=True):
                assert item["p_tau"] == pytest.approx(100 * second["value"])
                assert [item["low"], item["high"]] == pytest.approx([100 * end for end in second["interval"]])
                assert (item["method"], item["at_most"]) == (
                    second["method"],
                    pytest.approx(100 * second["upper_bound"]),
                )
                assert (item["undecided"], item["programs"]) == (second["undecided"], second["programs"])


def test_scaled_references_by_hand(folder: Path) -> None:
    """run-1k takes 95, 55, 45 ms (times 1, 2, 3) among references of 10 .. 100 ms: at half their time none passes p_50.

    At their own, 45 and 55 ms stand behind 4 and 5 of ten: both pass. Twice as slow, 95 ms stands behind 4 and passes.
    """
    result = well("sweep", "--tau", "50", "--alpha", "0.5:2:0.5", "--json", cwd=folder)
    assert [item["alpha"] for item in points(result, model="run-1k")] == [0.5, 1.0, 1.5, 2.0]
    assert [item["p_tau"] for item in points(result, model="run-1k", alpha=0.5)] == [0.0]
    assert [item["p_tau"] for item in points(result, model="run-1k", alpha=1.0)] == [50.0]
    assert [item["p_tau"] for item in points(result, model="run-1k", alpha=2.0)] == [75.0]


def test_a_timeout_past_the_cap_is_stated_where_verdicts_hang_on_it(folder: Path, tmp_path: Path) -> None:
    """One program of `base` was killed at 10 s on each problem, on a test that is one of correctness too.

    Strictly it has failed, and 20 s on optimization tests change nothing: no warning beside undecided 0. Where every
    test may take 20 s, all three are open, and the sweep says so.
    """
    args = ("sweep", "--tau", "50", "--optimization-limit", "2s,20s")
    strict = well(*args, "--json", cwd=folder).json
    assert well(*args, cwd=folder).err == ""
    assert (strict["capped"], {item["undecided"] for item in strict["points"]}) == ([], {0})
    late = tmp_path / "late.toml"
    late.write_text("timeout_ms = 20000\n")
    done = well(*args, "--criterion", late, cwd=folder)
    assert done.err == (
        "warning: timeout 20000 ms: the criterion's limit exceeds the executed limit (10000 ms): 3 runs of 3 undecided"
        " candidates were killed below it, and only running them again with the longer limit can decide them\n"
    )
    result = well(*args, "--criterion", late, "--json", cwd=folder).json
    assert result["capped"] == [{"timeout_ns": 20_000 * MS, "runs": 3, "programs": 3}]
    assert sum(item["undecided"] for item in result["points"] if item["timeout_ns"] == 20_000 * MS) == 3


def test_a_sweep_in_every_format(folder: Path, tmp_path: Path) -> None:
    """The same rows in CSV, Parquet and JSON, with the cut in each; pictures by their signatures."""
    outs = [tmp_path / f"sweep.{kind}" for kind in MAGIC]
    args = [text for out in outs for text in ("--out", out)]
    done = well("sweep", "--tau", "50,10", "--beta", "0,20ms", *args, cwd=folder)
    requested = well("sweep", "--tau", "50,10", "--beta", "0,20ms", "--json", cwd=folder).json
    for kind, magic in MAGIC.items():
        assert (tmp_path / f"sweep.{kind}").read_bytes().startswith(magic)
    table = pq.read_table(tmp_path / "sweep.parquet")
    assert table.schema.metadata[b"lap.cut"].decode() == requested["cut"]
    rows = table.to_pylist()
    assert [{name: row[name] for name in requested["points"][0]} for row in rows] == requested["points"]
    with (tmp_path / "sweep.csv").open() as file:
        read = list(csv.DictReader(file))
    assert [float(row["p_tau"]) for row in read] == [row["p_tau"] for row in rows]
    assert {row["cut"] for row in read} == {requested["cut"]}
    assert f"cut {requested['cut']}" in done.out
    assert f"criterion {requested['hash'][:12]}" in done.out
    assert [line for line in done.err.splitlines() if line.startswith("wrote ")] == [f"wrote {o}" for o in outs]


@pytest.mark.parametrize(
    ("args", "seen"),
    [
        (("--tau", "1:100:1", "--alpha", "0.5:1.499:0.001"), "the grid has 100000 replays, above the limit of 20000"),
        (("--alpha", "0:1"), "a range is FIRST:LAST:STEP"),
        (("--alpha", "0.5:1.5:0"), "a range is FIRST:LAST:STEP"),
        (("--alpha", "-1"), "a factor must be above 0"),
        (("--alpha", "1,1.0"), "a value is given twice"),
        (("--alpha", "fast"), "'fast' cannot be read"),
        (("--alpha", "0.00001:1:0.00001"), "more than 1000 values"),
        (("--beta", "20"), "a duration needs its unit, as in 20ms or 20s"),
        (("--beta", "0.5ns"), "less than a nanosecond"),
        (("--optimization-limit", "0s"), "a duration must be above 0"),
        (("--optimization-limit", "500us"), "use whole ms"),
        (("--tau", "0"), "whole percents from 1 to 100"),
        (("--tau", "12.5"), "whole percents from 1 to 100"),
        (("--out", "x.pdf"), "end the name in .csv, .parquet, .png or .svg"),
        (("--out", "nowhere/x.csv"), "no such folder, or a folder itself"),
        (("--out", "x.csv", "--out", "x.csv"), "a file is given twice"),
        (("--clock", "memory", "--alpha", "1,2"), "references are scaled in time"),
    ],
)
def test_what_a_sweep_refuses(folder: Path, args: tuple[str, ...], seen: str) -> None:
    """One line, exit code 2, and nothing written."""
    before = sorted(folder.iterdir())
    done = lap("sweep", *args, cwd=folder)
    assert (done.code, done.err.count("\n"), done.out) == (2, 1, "")
    assert seen in done.err
    assert sorted(folder.iterdir()) == before


def test_five_varying_things_are_no_picture(folder: Path, tmp_path: Path) -> None:
    """The picture is refused, and no half of it stays."""
    grid = ("--tau", "50,30", "--optimization-limit", "none,1s", "--alpha", "1,2", "--beta", "0,1ms")
    done = lap("sweep", *grid, "--out", tmp_path / "x.png", cwd=folder)
    assert (done.code, list(tmp_path.iterdir())) == (2, [])
    assert "five things vary, and a picture shows four" in done.err


# matrix


def test_a_matrix_by_hand(folder: Path) -> None:
    """p_100 of base, run-1k, run-2k: 2/4 (one wrong, one killed), 3/4, 4/4; alike on all problems, so no doubt."""
    args = ("matrix", "--criterion", "rlvr", "--criterion", "top-50", "--criterion", "top-10", "--json")
    result = well(*args, cwd=folder).json
    assert result["runs"] == ["base", "run-1k", "run-2k"]
    cells = {(item["criterion"], item["run"]): item["pass_at_1"] for item in result["cells"]}
    assert [cells["rlvr", run] for run in result["runs"]] == [50, 75, 100]
    assert [cells["top-50", run] for run in result["runs"]] == [0, 50, 75]
    assert [cells["top-10", run] for run in result["runs"]] == [0, 0, 25]
    assert result["spearman"][0] == pytest.approx([1, 1, 3**0.5 / 2])  # ranks 1 2 3 against 1.5 1.5 3
    ranking = result["families"][1]
    assert (ranking["spread"], ranking["half_width"], ranking["decides"]) == (50, 0, True)
    assert ranking["range"] == pytest.approx((0 + 50 + 50) / 3)


def test_a_cell_is_what_replay_reports_of_it(folder: Path) -> None:
    """Interval, method and bound of each cell are those of `lap replay` under that criterion, in percent."""
    result = well("matrix", "--criterion", "top-50", "--criterion", "rlvr", "--json", cwd=folder).json["cells"]
    for name in ("top-50", "rlvr"):
        single = well("replay", "--criterion", name, "--json", cwd=folder).json["criteria"][0]["estimates"]
        expected = {item["model"]: item for item in single}
        for cell in (item for item in result if item["criterion"] == name):
            item = expected[cell["run"]]
            assert [cell["low"], cell["high"]] == pytest.approx([100 * end for end in item["interval"]])
            assert (cell["method"], cell["at_most"]) == (item["method"], pytest.approx(100 * item["upper_bound"]))
            assert (cell["runs_low"], cell["runs_high"]) == (None, None)


def test_a_family_that_decides_nothing_is_reported(folder: Path) -> None:
    """One run alone: no spread, so nothing is decided; the interval over problems is named as such."""
    done = well("matrix", "--run", "base", "--criterion", "rlvr", cwd=folder)
    assert "warning: correctness only: a spread of 0.0 points is within its interval, ±0.0" in done.err
    assert "runs that were not repeated have no interval over trainings" in done.err


def test_runs_of_a_matrix(folder: Path) -> None:
    """A pattern with a step takes the last checkpoint; an unknown model is told with those that are there."""
    result = well("matrix", "--run", "run-{step}", "--run", "b*", "--criterion", "rlvr", "--json", cwd=folder).json
    assert result["runs"] == ["run-2k", "base"]
    done = lap("matrix", "--run", "gpt", cwd=folder)
    assert (done.code, "models are base, human, run-1k, run-2k" in done.err) == (2, True)


def test_humans_alone_are_no_training_runs(tmp_path: Path) -> None:
    """Where only humans made programs the matrix asks to be told who trained; told so, it has one row a run."""
    make_campaign(tmp_path / ".lap", list(REFERENCES))
    done = lap("matrix", cwd=tmp_path)
    assert (done.code, "all programs here are human; use --run human" in done.err) == (2, True)
    result = well("matrix", "--run", "human", "--criterion", "rlvr", "--json", cwd=tmp_path).json
    assert [item["pass_at_1"] for item in result["cells"]] == [100]


def test_criteria_of_a_matrix(folder: Path, tmp_path: Path) -> None:
    """Files beside presets; two criteria of one name, and one that needs a calibration, are refused."""
    mine = tmp_path / "top-50.toml"
    mine.write_text("tau = 40\n")
    assert well("matrix", "--criterion", mine, "--json", cwd=folder).json["criteria"] == ["top-50"]
    done = lap("matrix", "--criterion", mine, "--criterion", "top-50", cwd=folder)
    assert (done.code, "two criteria have this name" in done.err) == (2, True)
    mine.write_text('calibration = "affine"\n')
    assert "asks for a calibration" in lap("matrix", "--criterion", mine, cwd=folder).err


def test_a_matrix_as_files_and_table(folder: Path, tmp_path: Path) -> None:
    """Every environment by default; a CSV row a cell, pair of criteria and family; numbered columns in the table."""
    done = well("matrix", "--out", tmp_path / "m.csv", "--out", tmp_path / "m.svg", cwd=folder)
    with (tmp_path / "m.csv").open() as file:
        rows = list(csv.DictReader(file))
    by_table = {name: [row for row in rows if row["table"] == name] for name in ("cell", "agreement", "family")}
    criteria = list(dict.fromkeys(row["criterion"] for row in by_table["cell"]))
    sizes = [len(part) for part in by_table.values()]
    assert (sizes, sum(sizes)) == ([3 * len(criteria), len(criteria) ** 2, 7], len(rows))
    assert {row["pass_at_1"] for row in by_table["cell"] if row["criterion"] == "pre-2s"} == {""}  # no test takes 2 s
    requested = well("matrix", "--json", cwd=folder).json
    for row, cell in zip(by_table["cell"], requested["cells"], strict=True):
        assert [row[name] for name in ("low", "high", "at_most")] == [
            "" if cell[name] is None else str(cell[name]) for name in ("low", "high", "at_most")
        ]
    agree = [number for line in requested["spearman"] for number in line]
    assert [row["spearman"] for row in by_table["agreement"]] == ["" if n is None else str(n) for n in agree]
    for row, item in zip(by_table["family"], requested["families"], strict=True):
        assert (row["family"], row["decides"]) == (item["family"], str(item["decides"]))
        figures = ("spread", "half_width", "half_width_runs", "range")
        assert [row[name] for name in figures] == ["" if item[name] is None else str(item[name]) for name in figures]
    assert (tmp_path / "m.svg").read_bytes().startswith(MAGIC["svg"])
    assert f"{len(criteria)} {criteria[-1]}" in done.out


# robustness


def test_robustness_by_hand(folder: Path) -> None:
    """With references twice as slow, base passes p_50 with two of four, run-2k with all four: a gain of 100%."""
    args = ("robustness", "--baseline", "base", "--tau", "50", "--alpha", "1,2", "--beta", "0", "--json")
    result = well(*args, cwd=folder).json
    rows = {(item["along"], item["at"], item["model"]): item for item in result["points"]}
    assert {key[2] for key in rows} == {"base", "run-1k", "run-2k"}
    assert rows["alpha", 2, "base"]["p_tau"] == 50
    assert (rows["alpha", 2, "run-2k"]["p_tau"], rows["alpha", 2, "run-2k"]["gain"]) == (100, 100)
    assert rows["alpha", 1, "run-2k"]["gain"] is None  # base passes nowhere
    assert rows["beta", 0, "run-2k"]["p_tau"] == rows["alpha", 1, "run-2k"]["p_tau"] == 75


def test_robustness_as_picture_and_its_refusal(folder: Path, tmp_path: Path) -> None:
    """Four panels; a baseline that made nothing is told with those that did; negative values need no quotes."""
    args = ("--tau", "50", "--alpha", "1,2", "--beta", "-20ms,20ms", "--out", tmp_path / "r.png")
    done = well("robustness", "--baseline", "base", *args, cwd=folder)
    assert (tmp_path / "r.png").read_bytes().startswith(MAGIC["png"])
    assert "-20 ms" in done.out
    wrong = lap("robustness", "--baseline", "bass", cwd=folder)
    assert (wrong.code, "choose one of base, human, run-1k, run-2k" in wrong.err) == (2, True)
    assert lap("robustness", cwd=folder).code == 2


# curve


def test_a_learning_curve_by_hand(folder: Path) -> None:
    """run at 1k and 2k: p_100 3/4 and 4/4, p_50 2/4 and 3/4: gains of a third and a half."""
    result = well(
        "curve", "--checkpoint", "run-{step}", "--tau", "100,50", "--tiers", "none", "--json", cwd=folder
    ).json
    rows = {(item["tau"], item["step"]): item for item in result["points"]}
    assert [rows["100", step]["p_tau"] for step in (1000, 2000)] == [75, 100]
    assert [rows["50", step]["p_tau"] for step in (1000, 2000)] == [50, 75]
    assert rows["100", 2000]["relative"] == pytest.approx(100 / 3)
    assert rows["50", 2000]["relative"] == pytest.approx(50)
    assert {item["run"] for item in result["points"]} == {"run"}


def test_a_curve_falls_with_tau_in_the_table_and_picture(folder: Path, tmp_path: Path) -> None:
    """A range that goes down; the auto tiers say why there are none; files in two formats."""
    outs = ("--out", tmp_path / "c.svg", "--out", tmp_path / "c.parquet")
    done = well("curve", "--checkpoint", "run-{step}", "--tau", "100:10:-30", *outs, cwd=folder)
    assert "no tiers: a problem has no correct reference whose source is stored" in done.out
    rows = pq.read_table(tmp_path / "c.parquet").to_pylist()
    for step in (1000, 2000):
        values = [row["p_tau"] for row in rows if row["step"] == step]
        assert all(a >= b for a, b in pairwise(values))
        assert len(values) == 4


@pytest.mark.parametrize(
    ("args", "seen"),
    [
        ((), 'no rollouts of a training run are stored; give --checkpoint "NAME-{step}"'),
        (("--checkpoint", "run"), "write {step} once"),
        (("--checkpoint", "x-{step}"), "no model matches 'x-{step}'"),
        (("--checkpoint", "run-{step}", "--training", "t"), "use one of them"),
        (("--checkpoint", "run-{step}", "--tiers", "stored"), "names no tier"),
        (("--checkpoint", "run-{step}", "--tiers", "tokens"), "are not in the ledger; use --tiers none"),
    ],
)
def test_what_a_curve_refuses(folder: Path, args: tuple[str, ...], seen: str) -> None:
    """One line that says what to do, exit code 2."""
    done = lap("curve", *args, cwd=folder)
    assert (done.code, done.err.count("\n")) == (2, 1)
    assert seen in done.err


# all of them


@pytest.mark.parametrize(
    "args",
    [
        ("sweep", "--tau", "50"),
        ("matrix", "--criterion", "top-50"),
        ("robustness", "--baseline", "base", "--alpha", "1", "--beta", "0"),
        ("curve", "--checkpoint", "run-{step}", "--tiers", "none"),
    ],
)
def test_an_earlier_cut_gives_the_earlier_answer(folder: Path, args: tuple[str, ...], tmp_path: Path) -> None:
    """Facts that come later change nothing at the old cut, and every answer names its cut."""
    before = well(*args, "--json", cwd=folder).json
    append(folder / ".lap", list(problem_facts(f"later-{args[0]}.0123456789ab", [Program("x", (1,))], 1)))
    assert well(*args, "--at", before["cut"], "--json", cwd=folder).json == before
    assert well(*args, "--json", cwd=folder).json["cut"] != before["cut"]


@pytest.mark.parametrize("name", ["sweep", "matrix", "robustness", "curve", "simulate"])
def test_help_has_an_example(name: str) -> None:
    """Each command's help shows how it is called."""
    assert f"Example:\n    lap {name}" in well(name, "--help").out.replace("      lap", "    lap")


def test_models_of_the_fixture() -> None:
    """What the numbers above rest on."""
    assert MODELS == {"base": (95, 85, 75, None), "run-1k": (95, 55, 45, None), "run-2k": (15, 45, 35, 85)}
