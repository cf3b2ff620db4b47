"""`lap export`: the files of other tools, read back by these where they are at hand, say what `lap replay` says."""

import csv
import io
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import datasets
import pyarrow.parquet as pq
import pytest

from lapledger.ledger.store.open_ledger import open_ledger
from tests.support.lap import lap, well
from tests.support.screen_ledgers import (
    MODELS,
    REFERENCES,
    STEPS,
    Program,
    append,
    make_campaign,
    problem_facts,
    program_id,
)

SIX = tuple(f"export {kind}".split() for kind in ("datasets", "csv", "evalplus", "livecodebench", "inspect", "bundle"))


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A ledger with four references and three programs of one model: one passes top-50, one is wrong, one undecided."""
    home = tmp_path_factory.mktemp("export")
    make_campaign(home / ".lap", [*REFERENCES, *MODELS])
    with closing(open_ledger(home / ".lap")) as ledger:
        ledger.blobs.put_many(program.name.encode() for program in (*REFERENCES, *MODELS))
    return home


HALFWAY, MIDDLE, WRONG = (program_id(STEPS, name) for name in ("halfway", "middle", "wrong"))
"""In the order of their ids. `middle` has q = 4/8 among four references, by hand; `halfway` was never run on a test."""


def written(home: Path, shape: str, tmp_path: Path) -> Any:
    """What an export wrote."""
    path = tmp_path / "out.json"
    done = well("export", shape, path, "--criterion", "top-50", cwd=home)
    assert "1 programs are undecided" in done.err
    assert done.out.startswith("cut ")
    return json.loads(path.read_text())


def verdicts(home: Path) -> dict[str, str]:
    """What `lap replay` says of every program."""
    result = well("replay", "--criterion", "top-50", "--json", cwd=home).json
    return {row["program"]: row["status"] for row in result["criteria"][0]["verdicts"]}


def test_livecodebench_grades_are_the_verdicts(home: Path, tmp_path: Path) -> None:
    """True, false and null as passed, failed and undecided; codes of LiveCodeBench for each test; times in seconds."""
    (row,) = written(home, "livecodebench", tmp_path)
    assert (row["question_id"], row["contest_id"], row["contest_date"]) == ("stonesteps", "", None)
    assert row["code_list"] == ["halfway", "middle", "wrong"]
    assert row["graded_list"] == [None, True, False]
    args = {"undecided": None, "pass": True, "fail": False}
    message = verdicts(home)
    assert row["graded_list"] == [args[message[program]] for program in (HALFWAY, MIDDLE, WRONG)]
    assert row["pass@1"] is None
    halfway, middle, wrong = (json.loads(item) for item in row["metadata"])
    assert (halfway["results"], middle["results"], wrong["results"]) == ([True, None], [True, True], [-2, True])
    assert middle["execution time"] == pytest.approx(0.05)
    assert (wrong["error_code"], wrong["error_message"]) == (-2, "Wrong Answer")


@pytest.mark.realdata
def test_livecodebench_rows_have_the_keys_of_a_published_file(home: Path, tmp_path: Path, real_data: Path) -> None:
    """Every key of LiveCodeBench's own submissions, with lists where they have lists."""
    theirs = json.loads((real_data / "livecodebench" / "o1-mini.2025-01-17_a0c3146_final.json").read_text())[0]
    (ours,) = written(home, "livecodebench", tmp_path)
    assert not theirs.keys() - ours.keys()
    lists = {name for name, value in theirs.items() if isinstance(value, list)}
    assert {name for name in theirs if isinstance(ours[name], list)} == lists
    assert {type(ours[name]) for name in ("metadata", "graded_list", "code_list")} == {list}
    assert isinstance(json.loads(ours["metadata"][0]), dict)


def test_evalplus_statuses_are_the_verdicts(home: Path, tmp_path: Path) -> None:
    """Base is the one original test: two of three pass it. Plus is the verdict: one of three, by EvalPlus's rule."""
    result = written(home, "evalplus", tmp_path)
    rows = result["eval"][STEPS]
    assert [(row["base_status"], row["plus_status"]) for row in rows] == [
        ("pass", None),
        ("pass", "pass"),
        ("fail", "fail"),
    ]
    assert [row["solution"] for row in rows] == ["halfway", "middle", "wrong"]
    assert rows[2]["base_fail_tests"] == [f"{STEPS}/t0"]
    both = sum(row["base_status"] == row["plus_status"] == "pass" for row in rows)
    assert result["pass_at_k"] == {
        "base": {"pass@1": pytest.approx(2 / 3)},
        "plus": {"pass@1": pytest.approx(both / 3)},
    }


def test_an_inspect_log_scores_what_is_decided(home: Path, tmp_path: Path) -> None:
    """One for passed, none for undecided; the accuracy is that of the decided ones, 1 of 2. One epoch a sample."""
    log = written(home, "inspect", tmp_path)
    assert (log["version"], log["status"]) == (2, "success")
    scores = [sample["scores"].get("lapledger", {}).get("value") for sample in log["samples"]]
    assert scores == [None, 1, 0]
    assert [sample["epoch"] for sample in log["samples"]] == [1, 2, 3]
    assert log["results"]["scores"][0]["metrics"]["accuracy"]["value"] == 0.5
    assert (log["results"]["scores"][0]["scored_samples"], log["results"]["total_samples"]) == (2, 3)


def test_inspect_reads_its_log(home: Path, tmp_path: Path) -> None:
    """By Inspect's own reader, in a process that has it."""
    written(home, "inspect", tmp_path)
    assert inspect_scores(tmp_path / "out.json") == [None, 1, 0]


def inspect_scores(path: Path) -> list[float | None]:
    """The score of each sample of a log, as inspect-ai reads them."""
    code = (
        "import json, sys; from inspect_ai.log import read_eval_log; log = read_eval_log(sys.argv[1])\n"
        "scores = [sample.scores.get('lapledger') for sample in log.samples]\n"
        "print(json.dumps([None if score is None else score.value for score in scores]))"
    )
    environ = {**os.environ, "PYTHONPATH": str(Path(sys.prefix) / "readers")}
    command = [sys.executable, "-c", code, str(path)]
    done = subprocess.run(command, env=environ, capture_output=True, text=True, check=True)
    values: list[float | None] = json.loads(done.stdout.splitlines()[-1])
    return values


def test_datasets_loads_the_folder(home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """By the `datasets` library, from the folder and from one Parquet file: verdicts as `lap replay` says them."""
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    well("export", "datasets", tmp_path / "out", "--criterion", "top-50", cwd=home)
    cache = str(tmp_path / "cache")
    result = datasets.load_dataset(str(tmp_path / "out"), "verdicts", split="train", cache_dir=cache)
    assert {row["program_id"]: row["verdict"] for row in result} == verdicts(home)
    middle = next(row for row in result if row["program_id"] == MIDDLE)
    assert (middle["q_lo"], middle["q_hi"], middle["q_den"], middle["references"]) == (4, 4, 8, 4)
    path = str(tmp_path / "out" / "data" / "timings" / "train.parquet")
    timings = datasets.load_dataset("parquet", data_files=path, split="train", cache_dir=cache)
    assert sorted(row["wall_ns"] for row in timings if row["program_id"] == MIDDLE) == [25_000_000] * 2


@pytest.fixture
def untimed(tmp_path: Path) -> Path:
    """A ledger with an imported campaign that has verdicts and no timing."""
    question = {
        "question_title": "q",
        "question_content": "Add.",
        "platform": "atcoder",
        "question_id": "abc1_a",
        "contest_id": "abc1",
        "contest_date": "2024-01-01T00:00:00",
        "starter_code": "",
        "difficulty": "easy",
        "output_list": ["x"],
        "code_list": ["print(1)"],
        "graded_list": [True],
        "pass@1": 1.0,
        "metadata": ["{}"],
    }
    (tmp_path / "m_eval_all.json").write_text(json.dumps([question]))
    well("ledger", "init", "--ledger", tmp_path / ".lap")
    file = tmp_path / "m_eval_all.json"
    well("import", "livecodebench", file, "--model", "m", "--campaign", "main", "--ledger", tmp_path / ".lap")
    return tmp_path


@pytest.mark.parametrize("timed", [True, False])
def test_datasets_loads_every_table_of_the_card(
    home: Path, untimed: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, timed: bool
) -> None:
    """What the card lists loads, whether there are timings or not; a table without rows is on neither side."""
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    criterion = "top-50" if timed else "rlvr"
    done = well(
        "export", "datasets", tmp_path / "out", "--criterion", criterion, "--json", cwd=home if timed else untimed
    )
    filled = {name for name, rows in done.json["rows"].items() if rows}
    out, cache = str(tmp_path / "out"), str(tmp_path / "cache")
    assert set(datasets.get_dataset_config_names(out)) == filled
    assert ("timings" in filled) == timed
    for name in sorted(filled):
        table = datasets.load_dataset(out, name, split="train", cache_dir=cache)
        assert len(table) == done.json["rows"][name]


def test_what_has_no_timing_goes_out_in_every_shape(untimed: Path, tmp_path: Path) -> None:
    """Each file is read back by its reader: CSV with its header, JSON with the one right sample, an intact bundle."""
    for _, shape in SIX[1:]:
        model = () if shape in ("csv", "bundle") else ("--model", "m")
        well("export", shape, tmp_path / shape, "--criterion", "rlvr", *model, cwd=untimed)
    with (tmp_path / "csv" / "timings.csv").open() as file:
        assert list(csv.DictReader(file)) == []
    (task,) = json.loads((tmp_path / "evalplus").read_text())["eval"].values()
    assert [row["base_status"] for row in task] == ["pass"]
    assert [row["graded_list"] for row in json.loads((tmp_path / "livecodebench").read_text())] == [[True]]
    (tmp_path / "inspect").rename(tmp_path / "log.json")
    assert inspect_scores(tmp_path / "log.json") == [1]
    assert well("export", "check", tmp_path / "bundle").out.splitlines()[-1] == "proven and replayed"


@pytest.mark.parametrize("head", ["12", "abc@control=1", "--json"])
def test_a_wrong_head_is_no_damage(untimed: Path, tmp_path: Path, head: str) -> None:
    """What is no head is the user's slip, exit code 2; the bundle is not blamed."""
    well("export", "bundle", tmp_path / "bundle", "--criterion", "rlvr", cwd=untimed)
    done = lap("export", "check", tmp_path / "bundle", "--head", head)
    assert (done.code, "damaged" in done.out) == (2, False)
    bundled = subprocess.run(
        [sys.executable, tmp_path / "bundle", "--head", head], capture_output=True, text=True, check=False
    )
    assert (bundled.returncode, bundled.stdout) == (2, "")


def test_a_bundle_names_the_packages_that_it_needs(untimed: Path, tmp_path: Path) -> None:
    """By an interpreter without them: one line that says how to install them, and no traceback."""
    well("export", "bundle", tmp_path / "bundle", "--criterion", "rlvr", cwd=untimed)
    bare = subprocess.run([sys.executable, "-S", tmp_path / "bundle"], capture_output=True, text=True, check=False)
    assert bare.returncode == 1
    assert bare.stderr.startswith("this bundle needs pyarrow and numpy (")
    assert bare.stderr.endswith("install them with: pip install pyarrow numpy\n")


def test_csv_files_hold_every_table(home: Path, tmp_path: Path) -> None:
    """Rows by hand: 7 programs, 2 tests, 13 runs; null is an empty cell."""
    done = well("export", "csv", tmp_path / "out", "--criterion", "top-50", "--json", cwd=home).json
    assert done["rows"] == {
        "problems": 1,
        "tests": 2,
        "programs": 7,
        "outcomes": 13,
        "timings": 13,
        "verdicts": 7,
        "estimates": 2,
    }
    with (tmp_path / "out" / "verdicts.csv").open() as file:
        rows = {row["program_id"]: row for row in csv.DictReader(file)}
    assert (rows[HALFWAY]["verdict"], rows[HALFWAY]["c"], rows[MIDDLE]["c"]) == ("undecided", "", "true")
    assert json.loads((tmp_path / "out" / "about.json").read_text())["cut"] == done["cut"]


@pytest.mark.parametrize("exact", [False, True])
def test_a_spreadsheet_runs_no_name(tmp_path: Path, *, exact: bool) -> None:
    """Models named like formulas: a text cell begins with an apostrophe unless --exact; numbers are numbers."""
    names = ("=1+1", "+1", "-1", "@SUM(A1)")
    programs = [replace(MODELS[0], name=f"p{number}", model=name) for number, name in enumerate(names)]
    make_campaign(tmp_path / ".lap", [*REFERENCES, *programs])
    with closing(open_ledger(tmp_path / ".lap")) as ledger:
        ledger.blobs.put_many(program.name.encode() for program in REFERENCES)
        ledger.blobs.put_many(program.name.encode() for program in programs)
    well("export", "csv", tmp_path / "out", "--criterion", "top-50", *(["--exact"] if exact else []), cwd=tmp_path)
    with (tmp_path / "out" / "verdicts.csv").open() as file:
        models = {row["model"] for row in csv.DictReader(file)}
    assert models == {"human", *(name if exact else f"'{name}" for name in names)}
    with (tmp_path / "out" / "timings.csv").open() as file:
        assert all(int(row["wall_ns"]) > 0 for row in csv.DictReader(file))
    study = ("matrix", "--run", names[0], "--criterion", "top-50", "--out", tmp_path / "m.csv")
    well(*study, *(["--exact"] if exact else []), cwd=tmp_path)
    with (tmp_path / "m.csv").open() as file:
        assert (names[0] if exact else f"'{names[0]}") in {row["run"] for row in csv.DictReader(file)}


def test_the_same_cut_gives_the_same_bytes(home: Path, tmp_path: Path) -> None:
    """Of every shape, though the ledger grew since."""
    shutil.copytree(home / ".lap", tmp_path / ".lap")
    cut = cut_of(tmp_path)
    before = {label: everything(tmp_path, label, "before", cut) for _, label in SIX}
    append(tmp_path / ".lap", problem_facts("more.0123456789ab", [Program("late", (1,))], 1))
    for _, label in SIX:
        assert everything(tmp_path, label, "after", cut) == before[label], label


def cut_of(home: Path) -> str:
    """Everything that the ledger holds now."""
    with closing(open_ledger(home / ".lap")) as ledger:
        return str(ledger.cut())


def everything(home: Path, label: str, name: str, cut: str) -> dict[str, bytes]:
    """All bytes of an export."""
    path = home / f"{name}-{label}"
    well("export", label, path, "--criterion", "top-50", "--campaign", "nightly", "--at", cut, cwd=home)
    files: Iterator[Path] = (p for p in path.rglob("*") if p.is_file()) if path.is_dir() else iter([path])
    return {str(file.relative_to(path)): file.read_bytes() for file in files}


@pytest.mark.parametrize(("export", "label"), SIX)
def test_no_path_of_this_machine_and_nothing_half_written(export: str, label: str, home: Path, tmp_path: Path) -> None:
    """No byte names the folder; a place that cannot be written is one line, and leaves nothing."""
    cut = cut_of(home)
    shutil.copytree(home / ".lap", tmp_path / ".lap")
    for name, data in everything(tmp_path, label, "once", cut).items():
        text = str(pq.read_table(io.BytesIO(data)).to_pylist()) if name.endswith(".parquet") else str(data)
        assert str(tmp_path) not in text
        assert f"{Path.home()}/" not in text
    done = lap(export, label, tmp_path / "absent" / "out", cwd=home)
    assert (done.code, len(done.err.splitlines())) == (2, 1)
    assert not (tmp_path / "absent").exists()
    assert not list(tmp_path.glob(".*part*"))


def test_mistakes(home: Path, tmp_path: Path) -> None:
    """A folder that exists, a model and a campaign that do not."""
    done = lap("export", "csv", tmp_path, cwd=home)
    assert (done.code, "exists; choose a new folder" in done.err) == (2, True)
    done = lap("export", "evalplus", tmp_path / "x", "--model", "nobody", cwd=home)
    assert (done.code, "known: human, model" in done.err) == (2, True)
    done = lap("export", "inspect", tmp_path / "x", "--campaign", "none", cwd=home)
    assert (done.code, len(done.err.splitlines())) == (2, 1)
    assert not (tmp_path / "x").exists()
