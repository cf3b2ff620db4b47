"""Samples of a model come in from files of samplers, run as programs, and are judged as the same texts in a package."""

import json
import shlex
import shutil
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.support.lap import lap, sql, well
from tests.support.packages import ACCEPTED, make_package

RIGHT, SLOW = ACCEPTED, "import time\ntime.sleep(0.3)\n" + ACCEPTED
WRONG = "print(-1)\n"
PROBLEMS = ("sums", "totals", "adding")
PACKAGE = {
    "accepted/a.py": RIGHT,
    "accepted/b.py": RIGHT + "# b\n",
    "accepted/c.py": SLOW,
    "accepted/d.py": SLOW + "# d\n",
    "wrong_answer/a.py": WRONG,
    "wrong_answer/b.py": WRONG + "# b\n",
    "wrong_answer/c.py": WRONG + "# c\n",
    "run_time_error/a.py": "raise SystemExit(1)\n",
}
"""Eight programs a problem, of which four are right."""


def block(source: str) -> str:
    """A completion with a program in it, or without one."""
    return f"First read all.\n\n```python\n{source}```\nThat is all.\n" if source else "I cannot do that.\n"


@pytest.fixture(scope="module")
def problems(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A ledger with three problems of eight programs each."""
    root = tmp_path_factory.mktemp("problems")
    for name in PROBLEMS:
        make_package(root / "packages" / name, PACKAGE, small=1, large=1)
    well("ledger", "init", "--ledger", root / "lap")
    well("import", "icpc", root / "packages", "--ledger", root / "lap")
    return root / "lap"


@pytest.fixture
def ledger(problems: Path, tmp_path: Path) -> Path:
    """A copy of it."""
    shutil.copytree(problems, tmp_path / "lap")
    return tmp_path / "lap"


def write(path: Path, *rows: dict[str, Any]) -> Path:
    """A JSON Lines file."""
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def imported(ledger: Path, path: Path, *flags: str) -> dict[str, Any]:
    """What the import of one file reports."""
    (summary,) = well("import", "samples", path, *flags, "--ledger", ledger, "--json").json["imported"]
    return dict(summary)


def programs(ledger: Path) -> list[tuple[str, str, int]]:
    """(problem's slug, model, bytes of the program) of each sample, sorted."""
    query = "SELECT slug, model, source_bytes FROM program JOIN problem USING (problem_id) WHERE model <> 'human'"
    return sorted((slug, model, size) for slug, model, size in sql(ledger, query))


def test_a_file_gives_what_the_same_programs_in_a_package_give(ledger: Path, tmp_path: Path) -> None:
    """Three problems x eight samples, the texts of the packages: the same p_tau.

    By hand: 4 of 8 are right. Of these a fast one is slower than one of three other references at most, a slow one
    than two at least: 2 of 8 pass at tau = 50, whatever the clock says within 0.3 s.
    """
    completions = list(map(block, PACKAGE.values()))
    path = write(tmp_path / "samples.jsonl", *({"task_id": name, "completions": completions} for name in PROBLEMS))
    summary = imported(ledger, path, "--model", "new")
    assert (summary["models"], summary["problems"], summary["samples"]) == ({"new": 24}, 3, 24)
    assert (summary["without_program"], summary["unmatched"], summary["held"]) == (0, {}, False)
    assert programs(ledger) == sorted((name, "new", len(text)) for name in PROBLEMS for text in PACKAGE.values())
    well("run", "--campaign", "main", "--slots", 2, "--ledger", ledger)
    criteria = well("replay", "--tau", "100", "--tau", "50", "--ledger", ledger, "--json").json["criteria"]
    values = [{row["model"]: row["value"] for row in criterion["estimates"]} for criterion in criteria]
    assert values == [{"human": 0.5, "new": 0.5}, {"human": 0.25, "new": 0.25}]
    more = write(tmp_path / "more.jsonl", *({"task_id": name, "completions": completions[:2]} for name in PROBLEMS))
    imported(ledger, more, "--model", "few")
    well("run", "--campaign", "again", "--slots", 2, "--ledger", ledger)
    at = ("--campaign", "again", "--k", 3, "--ledger", ledger)
    assert "few: problem" in lap("replay", *at).err  # which has two samples on each
    (criterion,) = well("replay", *at, "--model", "new", "--json").json["criteria"]
    ((model, value),) = ((row["model"], row["value"]) for row in criterion["estimates"])
    assert (model, value) == ("new", pytest.approx(1 - 4 / 56))  # 1 - C(4, 3) / C(8, 3) on each problem
    assert {row["program"].split("/")[0].split(".")[0] for row in criterion["verdicts"]} == set(PROBLEMS)
    assert len(criterion["verdicts"]) == 24


def test_a_completion_without_a_program_counts_as_one(ledger: Path, tmp_path: Path) -> None:
    """An empty program, said in a warning that names the way out."""
    path = write(tmp_path / "s.jsonl", {"task_id": "sums", "completion": RIGHT})
    done = well("import", "samples", path, "--ledger", ledger)
    assert "1 completion without a Python block count as empty programs" in done.err
    assert "--map source=FIELD" in done.err
    assert programs(ledger) == [("sums", "s", 0)]


def test_each_sampler_s_form_gives_the_same_programs(problems: Path, tmp_path: Path) -> None:
    """Two samples each, in the field names of each tool; what a user maps, and Parquet, too."""
    a, b = block(RIGHT), block(WRONG)
    conversation = [{"role": "user", "content": "Add."}, {"role": "assistant", "content": a}]
    forms = {
        "evalplus": [{"task_id": "sums", "solution": RIGHT}, {"task_id": "sums", "solution": WRONG}],
        "livecodebench": [{"question_id": "sums", "output_list": [a, b], "code_list": ["x", "y"]}],
        "lm_eval": [{"doc_id": 0, "doc": {"task_id": "sums"}, "resps": [[a, b]]}],
        "verifiers": [{"task_id": "sums", "completion": conversation}, {"task_id": "sums", "completion": b}],
        "mapped": [{"id": "sums", "answers": {"all": [a, b]}, "completion": "something else"}],
    }
    due = [("sums", "m", len(RIGHT)), ("sums", "m", len(WRONG))]
    for form, rows in forms.items():
        shutil.copytree(problems, tmp_path / form)
        flags = ("--map", "problem=id,text=answers.all") if form == "mapped" else ()
        imported(tmp_path / form, write(tmp_path / f"{form}.jsonl", *rows), "--model", "m", *flags)
        assert programs(tmp_path / form) == sorted(due), form
    shutil.copytree(problems, tmp_path / "trl")
    table = {"step": [5, 5], "task": ["sums"] * 2, "prompt": ["Add."] * 2, "completion": [a, b]}
    pq.write_table(pa.table(table), tmp_path / "completions.parquet")
    imported(tmp_path / "trl", tmp_path / "completions.parquet", "--model", "run", "--map", "problem=task")
    assert programs(tmp_path / "trl") == sorted((slug, "run-5", size) for slug, _, size in due)


def test_what_a_file_states_of_its_samples_is_kept(ledger: Path, tmp_path: Path) -> None:
    """Groups, tokens, reasons, log-probabilities in float32, temperature, and where the samples come from."""
    row = {"problem_id": "sums", "model": "m", "completions": [block(RIGHT), block(WRONG)]}
    row |= {"completion_tokens": [7, 9], "finish_reason": ["stop", "length"], "logprobs": [[-0.5, -0.25], [-1.0]]}
    path = write(tmp_path / "s.jsonl", row | {"group": "g1"}, row | {"group": "g2"})
    imported(ledger, path, "--temperature", "0.8", "--source", "mine", "--license", "MIT")
    rollouts = sql(
        ledger,
        "SELECT ordinal, completion_tokens, finish_reason, temperature, log_probabilities_blob"
        " FROM rollout_sampled ORDER BY completion_tokens, group_id",
    )
    assert [(n, t, r, f) for n, t, r, f, _ in rollouts] == [(0, 7, "stop", 0.8)] * 2 + [(1, 9, "length", 0.8)] * 2
    blob = rollouts[0][4]
    (file,) = (ledger / "blobs").rglob(f"{blob}*")
    assert len(rollouts[0][4]) == 64
    assert file.exists()
    assert sql(ledger, "SELECT size FROM group_opened") == [[2], [2]]
    assert sql(ledger, "SELECT format, model, records, original_id, license FROM imported") == [
        ["samples", "m", 4, "mine", "MIT"]
    ]


def test_the_same_file_twice_adds_nothing_and_a_second_of_its_model_is_refused(ledger: Path, tmp_path: Path) -> None:
    """--extend adds to a model that has programs."""
    path = write(tmp_path / "a.jsonl", {"task_id": "sums", "solution": RIGHT})
    assert imported(ledger, path, "--model", "m")["held"] is False
    assert imported(ledger, path, "--model", "m")["held"] is True
    assert len(programs(ledger)) == 1
    more = write(tmp_path / "b.jsonl", {"task_id": "sums", "solution": WRONG})
    done = lap("import", "samples", more, "--model", "m", "--ledger", ledger)
    assert (done.code, "--extend" in done.err, done.err.count("\n")) == (2, True, 1)
    assert len(programs(ledger)) == 1
    imported(ledger, more, "--model", "m", "--extend")
    assert len(programs(ledger)) == 2


def test_an_import_that_was_cut_short_goes_on(ledger: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is there is not appended again: each rollout and program once."""
    rows = [{"task_id": p, "completions": [block(RIGHT)] * 3} for p in PROBLEMS]
    path = write(tmp_path / "a.jsonl", *rows)
    monkeypatch.setattr("lapledger.workflows.data.sample_files.AT_ONCE", 3)

    with monkeypatch.context() as patch:
        patch.setattr("lapledger.workflows.data.import_samples._provenance", lambda *_: _Broken())
        assert lap("import", "samples", path, "--model", "m", "--ledger", ledger).code != 0
    assert sql(ledger, "SELECT count(*) FROM program WHERE model = 'm'") == [[9]]
    assert imported(ledger, path, "--model", "m")["held"] is False
    assert sql(ledger, "SELECT count(*) FROM rollout_sampled") == [[9]]
    assert sql(ledger, "SELECT count(*) FROM group_closed") == [[3]]
    assert sql(ledger, "SELECT count(*) FROM program_added WHERE model = 'm'") == [[9]]


class _Broken:
    """A fact that cannot be appended."""

    import_id = "none"


ROW = {"task_id": "sums", "completion": block(RIGHT)}
MISTAKES = {
    "unknown": ([ROW, ROW | {"task_id": "other\x1b[31m"}], (), "1 problem is not in the ledger: 'other [31m'"),
    "nothing": ([], (), "holds no row"),
    "no-completion": ([{"task_id": "sums", "completions": []}], (), "holds no completion"),
    "no-problem": ([{"completion": "x"}], (), "row 1: no field names the problem; add --map problem=FIELD"),
    "no-text": ([{"task_id": "sums"}], (), "row 1: no field holds a completion"),
    "odd-text": ([ROW | {"completion": 5}], (), "is neither a text nor a conversation"),
    "map-column": ([ROW], ("--map", "text=reply"), "no field 'reply', which --map names; it has 'task_id'"),
    "map-name": ([ROW], ("--map", "txt=reply"), "'txt' is nothing that a sample states; did you mean 'text'?"),
    "map-twice": ([ROW], ("--map", "text=a,text=b"), "'text' is mapped twice"),
    "human": ([ROW], ("--model", "human"), "'human' is no model's name"),
    "counts": ([ROW | {"tokens": [1, 2]}], (), "2 'tokens' for 1 completions"),
    "token": ([ROW | {"tokens": -1}], (), "expected a whole number from 0"),
    "group": ([ROW | {"group": g} for g in ("a", "b", "a")], (), "group 'a' began in an earlier row; sort the file"),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_a_mistake_is_one_line_and_adds_nothing(name: str, problems: Path, tmp_path: Path) -> None:
    """Each named by its row, before anything is written."""
    rows, flags, line = MISTAKES[name]
    path = write(tmp_path / "s.jsonl", *rows)
    done = lap("import", "samples", path, *flags, "--ledger", problems)
    assert (done.code, done.out) == (2, "")
    assert line in done.err
    assert "\x1b" not in done.err
    assert programs(problems) == []


def test_what_does_not_match_is_skipped_on_request(ledger: Path, tmp_path: Path) -> None:
    """The others come in, and the provenance says how many did not."""
    path = write(tmp_path / "s.jsonl", ROW, ROW | {"task_id": "other"})
    assert imported(ledger, path, "--skip-unmatched")["unmatched"] == {"other": 1}
    assert [model for _, model, _ in programs(ledger)] == ["s"]
    assert sql(ledger, "SELECT records, excluded FROM imported") == [[2, ["1 samples of other: no such problem"]]]


def test_two_files_of_one_name_are_refused(ledger: Path, tmp_path: Path) -> None:
    """Which model wrote which would be lost."""
    (tmp_path / "x").mkdir()
    paths = write(tmp_path / "s.jsonl", ROW), write(tmp_path / "x" / "s.jsonl", ROW)
    done = lap("import", "samples", *paths, "--ledger", ledger)
    assert (done.code, "two files hold samples of 's'" in done.err) == (2, True)
    assert programs(ledger) == []


def test_the_page_s_five_commands_lead_to_a_table(tmp_path: Path) -> None:
    """As they stand on the page, over small packages of the same names: 2 of 4 and 4 of 4 are right."""
    page = (Path(__file__).resolve().parents[2] / "docs" / "samples.md").read_text()
    commands = page.split("```sh\n")[1].split("```")[0].splitlines()
    assert len(commands) == 5
    rows = []
    for problem in ("pairsums", "stonegame"):
        make_package(tmp_path / "corpus" / problem, PACKAGE, small=1, large=1)
        for model, texts in (("tuned-0", (SLOW, WRONG)), ("tuned-100", (RIGHT, RIGHT + "# e\n"))):
            rows.append({"problem": problem, "model": model, "completions": list(map(block, texts))})
    write(tmp_path / "corpus" / "samples.jsonl", *rows, rows[0] | {"problem": "recurrence"})
    outs = [well(*shlex.split(command)[1:], cwd=tmp_path).out for command in commands]
    table = [line.split() for line in outs[-1].splitlines()]
    assert [row[:6] for row in table if row[:1] == ["100"]][:2] == [
        ["100", "tuned-0", "1", "2", "4", "50.0"],
        ["100", "tuned-100", "1", "2", "4", "100.0"],
    ]
