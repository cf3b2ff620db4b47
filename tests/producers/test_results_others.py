"""EvalPerf, Code Contests and ICPC packages: small files made by hand in the published formats, on the real path.

No real file of the first two was at hand: what is checked is that we read what evalplus 0.3.1's own code writes, and
rows as the card of the data set on Hugging Face shows them.
"""

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lapledger.ledger.errors import UserError
from lapledger.producers.importers import code_contests, evalperf, files
from tests.producers.results_files import contest, imported, new_ledger, perf_task, write
from tests.support.lap import lap, sql, well
from tests.support.packages import make_package

REFERENCES = [(40.0, 100.0), (70.0, 80.0), (90.0, 40.0), (100.0, 10.0)]
PROGRAMS = "SELECT name, model, label, language, source_bytes > 0 FROM program ORDER BY 1, 2"


def perf_file(folder: Path, **tasks: Any) -> Path:
    """A finished file of EvalPerf."""
    message = {"date": "2026-01-01 10:00", "n_samples": 4, "temperature": 1.0, "min_correct": 2, "max_profile": 4}
    named = {name.replace("_", "/"): task for name, task in tasks.items()}
    return write(folder / "m_evalperf_results.json", {**message, "eval": named})


def test_evalperf_scores_are_those_that_the_file_stores(tmp_path: Path) -> None:
    """DPS and DPS_norm of a task with enough correct samples; a task with too few has none, and pass@1 takes both."""
    tasks = {"HumanEval_1": perf_task([5.0, 50.0, 99.0], 1, REFERENCES)}
    few = perf_task([], 3, [(100.0, None)], untried=1)
    results = evalperf.read(perf_file(tmp_path, **tasks, Mbpp_2=few))
    assert results.figures["DPS"] == results.figures["DPS as stored"] == pytest.approx((100 + 70 + 40) / 3)
    assert results.figures["DPS_norm"] == pytest.approx((100 + 50 + 25) / 3)
    assert results.figures["pass@1, %"] == pytest.approx((75 + 25) / 2)
    assert results.figures["tasks scored"] == 1
    assert results.excluded == ()


def test_evalperf_scores_stand_on_the_profiled_samples(tmp_path: Path) -> None:
    """The tool profiles the first few that passed: 5 of 7 here, one of them broken, which scores 0."""
    task = perf_task([5.0, 50.0, 99.0, None, 9.0], 1, REFERENCES, untried=2)
    results = evalperf.read(perf_file(tmp_path, HumanEval_1=task))
    assert results.figures["DPS"] == results.figures["DPS as stored"] == pytest.approx((100 + 70 + 40 + 0 + 100) / 5)
    assert results.figures["DPS_norm"] == pytest.approx((100 + 50 + 25 + 0 + 100) / 5)
    assert results.figures["pass@1, %"] == pytest.approx(100 * 7 / 8)
    assert results.excluded == (
        "HumanEval/1: 1 runs on the large input whose profile broke, and it is not said how",
        "HumanEval/1: 2 runs on the large input, not profiled",
    )
    earlier = {**task, "results": [{k: v for k, v in item.items() if k != "profiled"} for item in task["results"][:5]]}
    assert evalperf.read(perf_file(tmp_path, HumanEval_1=earlier)).figures["DPS"] == pytest.approx(310 / 5)


def test_what_evalperf_does_not_report_is_undecided_and_a_failure_is_one(tmp_path: Path) -> None:
    """Four samples, two of them profiled, one with a broken profile, one failed: pass@1 from 50 to 75%, by hand."""
    ledger = new_ledger(tmp_path)
    task = perf_task([5.0, 50.0, None], 1, REFERENCES)
    imported(ledger, "evalperf", perf_file(tmp_path, HumanEval_1=task))
    (row,) = well("replay", "--criterion", "rlvr-added-tests", "--ledger", ledger, "--json").json["criteria"]
    (result,) = (item for item in row["estimates"] if item["model"] == "m")
    figures = [result[name] for name in ("passed", "failed", "undecided", "value", "upper_bound")]
    assert figures == [2, 1, 1, 0.5, 0.75]
    ((test,),) = sql(ledger, "SELECT test_id FROM test WHERE correctness")
    mine = [item for item in row["verdicts"] if "/m-" in item["program"]]
    reasons = [item["reason"] for item in mine if item["status"] != "pass"]
    assert sorted(reasons) == [f"failed on {test}", "missing 1 test"]


def test_evalperf_counts_instructions_and_no_time(tmp_path: Path) -> None:
    """Two tests a task; a sample that failed has no performance run, a reference without a count none at all."""
    ledger = new_ledger(tmp_path)
    references = [(40.0, None), *REFERENCES[1:]]
    (seen,) = imported(ledger, "evalperf", perf_file(tmp_path, HumanEval_1=perf_task([5.0, 50.4, None], 1, references)))
    rows = sql(
        ledger,
        "SELECT p.name, split_part(e.test_id, '/', 2), e.outcome, t.instructions, t.wall_ns FROM execution e"
        " JOIN program p USING (program_id) LEFT JOIN timing t ON t.attempt_id = e.attempt_id",
    )
    runs = [(name, test, outcome, count) for name, test, outcome, count, _ in rows]
    assert all(row[4] is None for row in rows)
    assert sorted(runs, key=str) == sorted(
        [
            *[("m-0", "correctness", "accepted", None)] * 3,
            ("m-0", "correctness", "failed", None),
            ("m-0", "performance", "accepted", 5),
            ("m-0", "performance", "accepted", 50),
            ("reference-001", "performance", "accepted", 80),
            ("reference-002", "performance", "accepted", 40),
            ("reference-003", "performance", "accepted", 10),
        ],
        key=str,
    )
    kinds = "SELECT split_part(test_id, '/', 2), correctness, optimization FROM test ORDER BY 1"
    assert sql(ledger, kinds) == [["correctness", True, False], ["performance", False, True]]
    assert sql(ledger, "SELECT slug, name FROM problem") == [["HumanEval-1", "HumanEval/1"]]
    ((message,),) = sql(ledger, "SELECT source_metadata FROM imported")
    assert json.loads(message)["n_samples"] == 4
    assert json.loads(message)["cumulative shares of the references, slow to fast, %"] == {
        "HumanEval/1": [40, 70, 90, 100]
    }
    assert seen["executions"] == 9
    assert sql(ledger, "SELECT importer FROM imported") == [["evalperf 2"]]
    assert well("verify", "--ledger", ledger, "--json").json["problems"] == []


def test_evalperf_names_follow_from_the_text_not_from_the_order(tmp_path: Path) -> None:
    """Its samples come in the order in which they ended: equal texts are told apart by number, others by their text."""
    task = perf_task([1.0, 2.0], 0, REFERENCES)
    task["results"].append(dict(task["results"][0]))
    item = evalperf.read(write(tmp_path / "m.json", {"a": task}))
    task["results"].reverse()
    second = evalperf.read(write(tmp_path / "m.json", {"a": task}))
    names = [{program.id_in("p") for program in results.problems[0].programs} for results in (item, second)]
    assert names[0] == names[1]
    assert len(names[0]) == 3 + len(REFERENCES)


def as_lines(path: Path, *rows: Any) -> Path:
    """A file of JSON Lines."""
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def as_parquet(path: Path, *rows: Any) -> Path:
    """The same rows as Parquet."""
    pq.write_table(pa.Table.from_pylist(list(rows)), path)
    return path


WRITERS = {"jsonl": as_lines, "parquet": as_parquet}


@pytest.mark.parametrize("form", WRITERS)
def test_code_contests_become_problems_that_can_be_run(tmp_path: Path, form: str) -> None:
    """Tests by kind, Python 3 programs alone, limits, contest and level; then `lap run` gives their verdicts."""
    ledger = new_ledger(tmp_path)
    path = WRITERS[form](tmp_path / f"test.{form}", contest("1575_A. Doubles"))
    (seen,) = imported(ledger, "code-contests", path, "--license", "CC BY 4.0")
    assert (seen["problems"], seen["programs"], seen["figures"]) == (
        1,
        3,
        {"records": 1, "new tests": 4, "with float tolerance": 0},
    )
    assert seen["excluded"] == ["1575_A. Doubles: 1 programs accepted in CPP"]
    columns = "slug, name, source, license, tier, time_limit_ns, importer"
    assert sql(ledger, f"SELECT {columns} FROM problem") == [
        [
            "1575_A.-Doubles",
            "1575_A. Doubles",
            "CODEFORCES, contest 1575, problem A",
            "CC BY 4.0",
            "A",
            2_500_000_000,
            "code-contests 2",
        ]
    ]
    tests = (
        "SELECT split_part(test_id, '/', 2), \"group\", original, correctness, optimization FROM test ORDER BY test_id"
    )
    assert sql(ledger, tests) == [
        ["generated", "generated", False, True, True],
        ["generated", "generated", False, True, True],
        ["private", "private", True, True, True],
        ["sample", "sample", True, True, False],
    ]
    assert sql(ledger, PROGRAMS) == [
        ["accepted.py", "human", "accepted", "python3", True],
        ["accepted.py", "human", "accepted", "python3", True],
        ["incorrect.py", "human", "incorrect", "python3", True],
    ]
    well("run", "--limit", 10, "--slots", 2, "--ledger", ledger)
    outcome = (
        "SELECT p.label, e.outcome, count(*) FROM execution e JOIN program p USING (program_id) GROUP BY ALL ORDER BY 1"
    )
    assert sql(ledger, outcome) == [["accepted", "accepted", 8], ["incorrect", "wrong_answer", 4]]


@pytest.mark.parametrize(
    ("answer", "flags", "stored"),
    [
        ("3.500000000000\n", (), "float_tolerance 1e-6"),
        ("3\n-0.5 x\n", (), "float_tolerance 1e-6"),
        ("v1.2.3 3. .5 1e5\n", (), ""),
        ("7\n", ("--validator-flags", "float_tolerance 1e-9"), "float_tolerance 1e-9"),
        ("3.5\n", ("--validator-flags", ""), ""),
    ],
)
def test_fractions_in_answers_bring_a_tolerance(
    tmp_path: Path, answer: str, flags: tuple[str, ...], stored: str
) -> None:
    """The customary 1e-6 where an answer holds a decimal fraction and nobody states flags; the report counts it."""
    problem = contest("half")
    problem["private_tests"]["output"][0] = answer
    problem["memory_limit_bytes"] = 256_000_000
    ledger = new_ledger(tmp_path)
    (seen,) = imported(ledger, "code-contests", as_lines(tmp_path / "half.jsonl", problem), *flags)
    assert seen["figures"]["with float tolerance"] == int("tolerance" in stored)
    assert sql(ledger, "SELECT validator_flags, memory_limit_bytes FROM problem") == [[stored, 256_000_000]]


def test_unknown_validator_flags_are_refused(tmp_path: Path) -> None:
    """Before anything is stored."""
    ledger, path = new_ledger(tmp_path), as_lines(tmp_path / "half.jsonl", contest("half"))
    done = lap("import", "code-contests", path, "--validator-flags", "tolerant", "--ledger", ledger)
    assert (done.code, done.err) == (
        2,
        "lap: --validator-flags: 'tolerant' is no answer flag: use case_sensitive, space_change_sensitive,"
        " float_tolerance E, float_absolute_tolerance E, float_relative_tolerance E\n",
    )
    assert sql(ledger, "SELECT count(*) FROM problem") == [[0]]


def test_code_contests_go_on_where_they_stopped(tmp_path: Path) -> None:
    """A broken row ends the import; what came before is held, and the mended file adds the rest alone."""
    ledger = new_ledger(tmp_path)
    path = as_lines(tmp_path / "test.jsonl", contest("a"), contest("b", source=99))
    done = lap("import", "code-contests", path, "--ledger", ledger)
    assert done.code == 2
    assert "'test.jsonl', row 2: 'source' is '99', expected 0 to 6 or a name" in done.err
    assert sql(ledger, "SELECT slug FROM problem") == [["a"]]
    assert sql(ledger, "SELECT count(*) FROM imported") == [[0]]
    as_lines(path, contest("a"), contest("b"))
    (seen,) = imported(ledger, "code-contests", path)
    assert (seen["problems"], seen["programs"]) == (1, 3)
    (seen,) = imported(ledger, "code-contests", path)
    assert (seen["held"], seen["problems"]) == (True, 0)
    assert sql(ledger, "SELECT records, campaign_id FROM imported") == [[2, None]]


def test_what_cannot_be_run_is_left_out_and_named(tmp_path: Path) -> None:
    """Problems that read files, have no tests or no Python 3 program; programs told twice or with a NUL byte."""
    twice = {"language": ["PYTHON3"] * 3, "solution": ["print(1)", "print(1)", "a\0"]}
    rows = [
        contest("file", input_file="in.txt"),
        contest("untested", public_tests=None, private_tests=None, generated_tests=None),
        contest("other", solutions={"language": [2], "solution": ["int"]}, incorrect_solutions=None),
        contest(
            "twice", solutions=twice, incorrect_solutions=None, time_limit=None, difficulty=0, source=0, cf_index=""
        ),
    ]
    result = list(code_contests.rows(as_lines(tmp_path / "test.jsonl", *rows)))
    assert [row.reason for row in result[:3]] == [
        "file: reads a file instead of standard input",
        "untested: no test",
        "other: no Python 3 program",
    ]
    package = result[3].package
    assert package is not None
    assert (package.time_limit_ns, package.tier, package.source, len(package.programs)) == (
        None,
        None,
        "contest 1575",
        1,
    )
    reasons = {item.reason for item in package.excluded}
    assert reasons == {"1 programs accepted, seen before", "1 programs accepted with a NUL byte"}


def test_code_contests_without_a_problem_are_refused(tmp_path: Path) -> None:
    """No byte, blank lines, or a table without a row: nothing is added, and no provenance either."""
    ledger = new_ledger(tmp_path)
    for name, data in (("a.jsonl", b""), ("b.jsonl", b"\n \n")):
        (tmp_path / name).write_bytes(data)
    pq.write_table(pq.read_table(as_parquet(tmp_path / "c.parquet", contest("a"))).slice(0, 0), tmp_path / "c.parquet")
    for name in ("a.jsonl", "b.jsonl", "c.parquet"):
        done = lap("import", "code-contests", tmp_path / name, "--ledger", ledger)
        assert (done.code, f"'{name}': holds no problem" in done.err) == (2, True)
    assert sql(ledger, "SELECT count(*) FROM imported") == [[0]]


def test_broken_code_contests_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Lists that do not match, a foreign Parquet file, a torn one, one whose rows would fill the memory."""
    uneven = contest("a", public_tests={"input": ["1"], "output": []})
    with pytest.raises(UserError, match="row 1, 'public_tests': 1 of 'input' and 0 of 'output'"):
        list(code_contests.rows(as_lines(tmp_path / "a.jsonl", uneven)))
    uneven = contest("a", solutions={"language": [3], "solution": []})
    with pytest.raises(UserError, match="1 languages and 0 programs"):
        list(code_contests.rows(as_lines(tmp_path / "a.jsonl", uneven)))
    foreign = as_parquet(tmp_path / "a.parquet", {"x": 1})
    with pytest.raises(UserError, match="has no column 'generated_tests'"):
        list(code_contests.rows(foreign))
    torn = tmp_path / "torn.parquet"
    torn.write_bytes(foreign.read_bytes()[:-20])
    with pytest.raises(UserError, match="no readable Parquet"):
        list(code_contests.rows(torn))
    monkeypatch.setattr(files, "MAX_GROUP_BYTES", 10)
    with pytest.raises(UserError, match="smaller row groups"):
        list(code_contests.rows(as_parquet(tmp_path / "a.parquet", contest("a"))))


def test_icpc_packages_come_in_one_way_under_two_names(tmp_path: Path) -> None:
    """What `lap import icpc` brought, `lap import icpc` holds already."""
    ledger, package = new_ledger(tmp_path), make_package(tmp_path / "sums")
    first = well("import", "icpc", package, "--ledger", ledger, "--json").json["imported"]
    again = well("import", "icpc", package, "--ledger", ledger, "--json").json["imported"]
    counts = [{name: row[0][name] for name in ("new problems", "new tests", "new programs")} for row in (first, again)]
    assert counts == [
        {"new problems": 1, "new tests": 5, "new programs": 5},
        {"new problems": 0, "new tests": 0, "new programs": 0},
    ]


@pytest.mark.realdata
def test_the_real_packages_are_taken(real_data: Path, tmp_path: Path) -> None:
    """Six contest problems; the verdicts of their programs are another test's."""
    ledger = new_ledger(tmp_path)
    rows = well("import", "icpc", real_data / "icpc", "--ledger", ledger, "--json").json["imported"]
    assert len(rows) == 6
    assert sum(row["new tests"] for row in rows) == sql(ledger, "SELECT count(*) FROM test")[0][0] == 513
