"""LiveCodeBench's two gradings of one model: pass@1, every flip by question, and the times that both have.

The files are third-party data beside the checkout, described in its README; the tests are skipped where they are not.
"""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from lapledger.ledger.errors import UserError
from lapledger.producers.importers import livecodebench
from tests.producers.results_files import imported, new_ledger, question, write
from tests.support.lap import sql, well

FILES = {"first": "o1-mini.2025-01-15_v5begin_90e7c3e.json", "second": "o1-mini.2025-01-17_a0c3146_final.json"}
PAGE = (Path(__file__).parents[2] / "docs" / "importing.md").read_text()
FLIPS = PAGE.partition("```sql\n")[2].partition("```")[0]
"""The query of the page on importing."""
OUTCOMES = {-2: "wrong_answer", -3: "time_limit", -4: "run_time_error", -5: "sandbox_fault"}


@pytest.fixture(scope="module")
def gradings(real_data: Path) -> dict[str, dict[str, Any]]:
    """Campaign -> question -> what the file says of it, read without our reader."""
    result = {}
    for campaign, name in FILES.items():
        rows = json.loads((real_data / "livecodebench" / name).read_text())
        result[campaign] = {row["question_id"]: row for row in rows}
    return result


@pytest.fixture(scope="module")
def logged(real_data: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, Any]]:
    """A ledger with both gradings, and what the import said of each."""
    location, message = new_ledger(tmp_path_factory.mktemp("livecodebench")), {}
    for campaign, name in FILES.items():
        file = real_data / "livecodebench" / name
        args = ("--model", "o1-mini", "--campaign", campaign, "--license", "MIT")
        (message[campaign],) = imported(location, "livecodebench", file, *args)
    return location, message


@pytest.fixture(scope="module")
def ledger(logged: tuple[Path, dict[str, Any]]) -> Path:
    """The ledger alone."""
    return logged[0]


@pytest.mark.realdata
def test_pass_at_1_is_the_published_one(logged: tuple[Path, dict[str, Any]], gradings: dict[str, Any]) -> None:
    """68.18 % and 68.41 %, as the mean of the stored `pass@1` is; 7 of the 880 programs are new in the second."""
    for campaign, due in (("first", 68.18), ("second", 68.41)):
        figures = logged[1][campaign]["figures"]
        stored = [row["pass@1"] for row in gradings[campaign].values()]
        assert figures["pass@1, %"] == pytest.approx(due, abs=0.005)
        assert figures["pass@1, %"] == figures["pass@1 as stored, %"] == pytest.approx(100 * np.mean(stored))
    assert [logged[1][campaign]["programs"] for campaign in ("first", "second")] == [880, 7]


@pytest.mark.realdata
def test_replay_gives_the_same_and_reports_what_a_fault_could_change(ledger: Path) -> None:
    """The runner failed on one program itself: undecided; the share that surely passes is the published one."""
    for campaign, passed in (("first", 600), ("second", 602)):
        (row,) = well("replay", "--campaign", campaign, "--tau", 100, "--ledger", ledger, "--json").json["criteria"]
        (estimate,) = row["estimates"]
        assert (estimate["problems"], estimate["passed"], estimate["undecided"]) == (880, passed, 1)
        assert estimate["value"] == pytest.approx(passed / 880)


@pytest.mark.realdata
def test_the_flips_between_the_gradings_are_exactly_these(ledger: Path, gradings: dict[str, Any]) -> None:
    """By question, from the ledger and from the files alone; one of the four has another program too."""
    item, second = gradings["first"], gradings["second"]
    due = {
        (q, item[q]["graded_list"][0], second[q]["graded_list"][0], item[q]["code_list"] == second[q]["code_list"])
        for q in item
        if item[q]["graded_list"] != second[q]["graded_list"]
    }
    assert {flip[0] for flip in due} == {"abc315_d", "abc364_a", "abc374_b", "arc185_e"}
    result = {(slug, a == "accepted", b == "accepted", same) for slug, _, a, b, same in sql(ledger, FLIPS)}
    assert result == due


@pytest.mark.parametrize("samples", [1, 2])
def test_the_page_lists_what_differs_between_two_gradings(tmp_path: Path, samples: int) -> None:
    """Of question 1 the last sample passes, then fails without a word; question 2 stays as it is."""
    ledger, same = new_ledger(tmp_path), [True] * (samples - 1)
    for campaign, last in (("first", True), ("second", False)):
        rows = [question("1", *same, last, notes=[{}] * samples), question("2", True, False)]
        path = write(tmp_path / f"{campaign}.json", rows)
        imported(ledger, "livecodebench", path, "--model", "m", "--campaign", campaign)
    assert sql(ledger, FLIPS) == [["1", f"m-{samples - 1}", "accepted", "failed", True]]


@pytest.mark.realdata
def test_identical_programs_are_one_program(ledger: Path, gradings: dict[str, Any]) -> None:
    """873 of 880, by the files' own texts."""
    item, second = gradings["first"], gradings["second"]
    same = sum(item[q]["code_list"] == second[q]["code_list"] for q in item)
    shared = "SELECT count(*) FROM (SELECT program_id FROM execution GROUP BY 1 HAVING count(DISTINCT campaign_id) = 2)"
    assert sql(ledger, shared) == [[same]] == [[873]]


@pytest.mark.realdata
def test_the_times_of_both_gradings_lie_on_a_line(ledger: Path, gradings: dict[str, Any]) -> None:
    """599 programs: slope 1.070, intercept 5.6 ms, R squared 0.987; from the files to the last nanosecond."""
    query = """
    SELECT b.slug, a.wall_ns, c.wall_ns FROM timing a JOIN timing c USING (program_id)
    JOIN problem b ON b.problem_id = a.problem_id WHERE a.campaign_id = 'first' AND c.campaign_id = 'second'
    """
    pairs = {slug: (x, y) for slug, x, y in sql(ledger, query)}
    due = {}
    for name in gradings["first"]:
        notes = [json.loads(gradings[campaign][name]["metadata"][0]) for campaign in FILES]
        if all("execution time" in note for note in notes):
            due[name] = tuple(round(note["execution time"] * 1e9) for note in notes)
    assert pairs == due
    assert len(pairs) == 599
    x, y = np.array(list(pairs.values())).T / 1e9
    slope, intercept = np.polyfit(x, y, 1)
    assert slope == pytest.approx(1.070, abs=0.0005)
    assert 1000 * intercept == pytest.approx(5.6, abs=0.05)
    assert np.corrcoef(x, y)[0, 1] ** 2 == pytest.approx(0.987, abs=0.0005)


@pytest.mark.realdata
def test_every_outcome_is_that_of_the_code_table(ledger: Path, gradings: dict[str, Any]) -> None:
    """Question by question, from the grades and the notes alone."""
    for campaign, rows in gradings.items():
        due = {}
        for name, row in rows.items():
            code = json.loads(row["metadata"][0]).get("error_code")
            due[name] = "accepted" if row["graded_list"][0] else OUTCOMES[code]
        query = "SELECT b.slug, e.outcome FROM execution e JOIN problem b USING (problem_id) WHERE e.campaign_id = '{}'"
        assert dict(sql(ledger, query.format(campaign))) == due


def test_what_a_question_reports_is_kept(tmp_path: Path) -> None:
    """Statement, title, difficulty, contest; sources by their text; a passing sample's time and no other's."""
    ledger = new_ledger(tmp_path)
    path = write(tmp_path / "m_eval_all.json", [question("abc301_a", True, False, codes=["print(1)", "print(2)"])])
    imported(ledger, "livecodebench", path)
    assert sql(ledger, "SELECT slug, name, source, tier, statement_blob IS NOT NULL FROM problem") == [
        ["abc301_a", "Question abc301_a", "atcoder contest abc301, 2024-01-02T00:00:00", "easy", True]
    ]
    assert sql(ledger, "SELECT name, model, label, source_bytes FROM program ORDER BY name") == [
        ["m-0", "m", "", 8],
        ["m-1", "m", "", 8],
    ]
    assert sql(ledger, "SELECT wall_ns FROM timing") == [[250_000_000]]


@pytest.mark.parametrize("metadata", [{}, {"metadata": {}}, {"metadata": None}, {"metadata": []}])
def test_gradings_without_notes_are_read(tmp_path: Path, metadata: dict[str, Any]) -> None:
    """Older files have none, or an empty one: a failure is then one of an unknown kind, and nothing has a time."""
    old = {key: value for key, value in question("1", True, False).items() if key != "metadata"} | metadata
    results = livecodebench.read(write(tmp_path / "m_eval_all.json", [old]))
    runs = [program.runs[0] for program in results.problems[0].programs]
    assert [(run.outcome, run.repetitions) for run in runs] == [("accepted", ()), ("failed", ())]


def exported(ledger: Path, path: Path, campaign: str) -> list[dict[str, Any]]:
    """What `lap export livecodebench` writes of a campaign under the criterion that counts every test, and no time."""
    well("export", "livecodebench", path, "--criterion", "rlvr", "--campaign", campaign, "--ledger", ledger)
    result: list[dict[str, Any]] = json.loads(path.read_text())
    return result


KEPT = ("question_id", "question_title", "question_content", "platform", "contest_id", "contest_date", "starter_code")
KEPT = (*KEPT, "difficulty", "code_list")


@pytest.mark.realdata
def test_a_real_file_goes_round(ledger: Path, gradings: dict[str, Any], tmp_path: Path) -> None:
    """Out, in again, and out: every question, program, grade and time; the runner's own failure alone is not graded."""
    once = exported(ledger, tmp_path / "o1-mini_eval_all.json", "second")
    assert len(once) == 880
    for row in once:
        due = gradings["second"][row["question_id"]]
        assert {key: row[key] for key in KEPT} == {key: due[key] for key in KEPT}
        note, was = json.loads(row["metadata"][0]), json.loads(due["metadata"][0])
        faulty = was.get("error_code") == -5
        assert row["graded_list"] == ([None] if faulty else due["graded_list"])
        assert note.get("error_code") == (None if faulty else was.get("error_code"))
        assert note.get("execution time") == pytest.approx(was.get("execution time"), abs=5e-10)
    again = new_ledger(tmp_path)
    args = ("--model", "o1-mini", "--campaign", "again")
    (logged,) = imported(again, "livecodebench", tmp_path / "o1-mini_eval_all.json", *args)
    assert (logged["problems"], logged["executions"], logged["figures"]["pass@1, %"]) == (880, 879, None)
    rows = "SELECT p.program_id, e.outcome, t.wall_ns FROM program p JOIN execution e USING (program_id)"
    rows += " LEFT JOIN timing t USING (attempt_id) WHERE e.campaign_id = '{}' AND e.accepted ORDER BY 1"
    assert sql(again, rows.format("again")) == sql(ledger, rows.format("second"))
    twice = exported(again, tmp_path / "twice.json", "again")
    about = ("lapledger",)
    assert [{k: v for k, v in row.items() if k not in about} for row in twice] == [
        {k: v for k, v in row.items() if k not in about} for row in once
    ]


def test_a_small_file_goes_round(tmp_path: Path) -> None:
    """With a failure that has no code, ids that are no words and share one slug, and no date: nothing is lost."""
    ledger = new_ledger(tmp_path)
    rows = [question("weekly 1/a", True, False, notes=[{"execution time": 0.5}, {}]), question("weekly 1-a", False)]
    rows[1] |= {"contest_date": None, "contest_id": "", "starter_code": "class Solution:"}
    first = write(tmp_path / "m_eval_all.json", rows)
    imported(ledger, "livecodebench", first, "--campaign", "one")
    once = {row["question_id"]: row for row in exported(ledger, tmp_path / "once.json", "one")}
    for row in rows:
        out = once[row["question_id"]]
        assert {key: out[key] for key in (*KEPT, "graded_list")} == {key: row[key] for key in (*KEPT, "graded_list")}
    notes = [json.loads(note) for note in once["weekly 1/a"]["metadata"]]
    assert [note["results"] for note in notes] == [[True], [False]]
    assert "error_code" not in notes[1]
    imported(ledger, "livecodebench", tmp_path / "once.json", "--model", "m", "--campaign", "two")
    outcomes = "SELECT program_id, outcome FROM execution WHERE campaign_id = '{}' ORDER BY 1"
    assert sql(ledger, outcomes.format("one")) == sql(ledger, outcomes.format("two"))
    assert {outcome for _, outcome in sql(ledger, outcomes.format("one"))} == {"accepted", "failed", "wrong_answer"}


def test_an_ungraded_sample_has_no_run(tmp_path: Path) -> None:
    """As our own export leaves it: a program without an outcome, and no pass@1 of ours."""
    rows = [question("1", True, False) | {"graded_list": [True, None], "pass@1": None, "contest_date": None}]
    results = livecodebench.read(write(tmp_path / "m_eval_all.json", rows))
    assert [len(program.runs) for program in results.problems[0].programs] == [1, 0]
    assert results.problems[0].origin == "atcoder contest abc301"
    assert results.figures == {"samples": 2, "pass@1, %": None, "pass@1 as stored, %": None}


def test_what_contradicts_itself_is_refused(tmp_path: Path) -> None:
    """One program, grade and note a sample; every question once; a code that is known."""
    cases = {
        "1 programs, 2 grades and 2 notes": [question("1", True, False, codes=["print()"])],
        "question 2 .*the question appears twice": [question("1", True), question("1", False)],
        "error code 7 is not known": [question("1", False, notes=[{"error_code": 7}])],
        "'error_code' is 'x'": [question("1", False, notes=[{"error_code": "x"}])],
        "no list of questions": {"a": 1},
        "broken JSON": [question("1", True) | {"metadata": ["{"]}],
    }
    for reason, value in cases.items():
        with pytest.raises(UserError, match=reason):
            livecodebench.read(write(tmp_path / "m_eval_all.json", value))


def test_a_limit_where_no_kill_reports_its_own_is_answered(tmp_path: Path) -> None:
    """Passed in 30 and 60 ms, and one killed of each, nobody says when: 50 ms lets one pass of three that may.

    Two kills are open, so the bound of pass@1 is 1/2 and 1 of the two questions, 75 %, and `compare` says the same.
    """
    late = {"error_code": -3, "error_message": "Time Limit Exceeded"}
    rows = [
        question(f"q{number}", True, False, notes=[{"execution time": seconds}, late])
        for number, seconds in enumerate((0.03, 0.06))
    ]
    location = new_ledger(tmp_path)
    args = ("--model", "m", "--campaign", "a", "--license", "MIT")
    imported(location, "livecodebench", write(tmp_path / "graded.json", rows), *args)
    wanted = ("--timeout", "50ms", "--ledger", location, "--json")
    (result,) = well("replay", *wanted).json["criteria"]
    (row,) = result["estimates"]
    assert (row["value"], row["upper_bound"], row["undecided"]) == (0.25, 0.75, 2)
    warning = (
        "the criterion's limit exceeds the executed limit (a limit that is not known): 2 runs of 2 undecided candidates"
        " were killed below it, and only running them again with the longer limit can decide them"
    )
    assert result["warnings"] == [warning]
    compared = well("compare", "m", "m", *wanted).json
    assert warning in compared["warnings"]
    assert {(item["estimate"]["value"], item["estimate"]["upper_bound"]) for item in compared["passes"]} >= {
        (0.25, 0.75)
    }
    short = tmp_path / "short.toml"
    short.write_text("timeout_ms = 50\n")
    changed = well("diff", "--criterion-a", short, "--criterion-b", "correct", "--ledger", location, "--json").json
    assert changed["a"]["warnings"] == [warning]
    tally = {item["kind"]: item["count"] for item in changed["tally"]}
    assert (changed["count"], sum(tally.values())) == (3, 3)
