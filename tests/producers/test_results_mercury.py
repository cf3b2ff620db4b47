"""Mercury's real sessions through the real path, and the calibration of one onto another that does harm.

The files are third-party data beside the checkout, described in its README; the tests are skipped where they are not.
"""

import json
import statistics
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from lapledger.ledger.errors import UserError
from lapledger.producers.importers import mercury
from tests.producers.results_files import imported, mercury_sample, mercury_session, new_ledger, write
from tests.support.lap import lap, sql, well

GPT_35, GPT_4 = "gpt-3.5-turbo-1106_eval.json", "gpt-4-1106-preview_eval.json"
OUTCOMES = {
    "passed": "accepted",
    "failed@cases": "wrong_answer",
    "failed@load": "run_time_error",
    "failed@eval": "run_time_error",
}


@pytest.fixture(scope="module")
def sessions(real_data: Path) -> dict[str, Any]:
    """The two sessions as JSON, by file."""
    return {name: json.loads((real_data / "mercury" / name).read_text()) for name in (GPT_35, GPT_4)}


@pytest.fixture(scope="module")
def ledger(real_data: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A ledger with the two sessions as campaigns `old` and `new`."""
    location = new_ledger(tmp_path_factory.mktemp("mercury"))
    for name, campaign in ((GPT_35, "old"), (GPT_4, "new")):
        imported(location, "mercury", real_data / "mercury" / name, "--campaign", campaign)
    return location


@pytest.mark.realdata
@pytest.mark.parametrize(("campaign", "name"), [("old", GPT_35), ("new", GPT_4)])
def test_every_sample_and_reference_is_there(sessions: dict[str, Any], ledger: Path, campaign: str, name: str) -> None:
    """Verdicts and durations to the nanosecond, problem by problem; where no case was run, no duration."""
    due: Counter[tuple[str, str, str, int | None]] = Counter()
    for slug, samples in sessions[name].items():
        for sample in samples:
            status = sample.get("status") or sample["result"]
            ran = status["result"] in ("passed", "failed@cases")
            ns = round(status["runtime"] * 1e9) if ran else None
            due[slug, name.removesuffix("_eval.json"), OUTCOMES[status["result"]], ns] += 1
        for seconds in samples[0]["runtimes"]:
            due[slug, "human", "accepted", round(seconds * 1e9)] += 1
    rows = sql(
        ledger,
        "SELECT b.slug, p.model, e.outcome, t.wall_ns FROM execution e JOIN program p USING (program_id)"
        " JOIN problem b ON b.problem_id = e.problem_id"
        f" LEFT JOIN timing t ON t.attempt_id = e.attempt_id WHERE e.campaign_id = '{campaign}'",
    )
    assert Counter(map(tuple, rows)) == due


@pytest.mark.realdata
def test_the_figures_are_the_published_ones(real_data: Path, tmp_path: Path) -> None:
    """Pass, stored score, clamped score, and the formula that gives every stored score."""
    (seen,) = imported(new_ledger(tmp_path), "mercury", real_data / "mercury" / "CodeLlama-13b-Instruct-hf_eval.json")
    figures = seen["figures"]
    assert figures["pass, %"] == pytest.approx(40.23, abs=0.005)
    assert figures["Beyond as stored, %"] == pytest.approx(30.91, abs=0.005)
    assert figures["Beyond C, %"] == pytest.approx(31.35, abs=0.005)
    assert figures["formula of the stored"] == "A"


@pytest.mark.realdata
def test_scores_follow_from_the_ledger_alone(sessions: dict[str, Any], ledger: Path) -> None:
    """Formula B in SQL over the stored durations gives the file's mean, but for the rounding to nanoseconds."""
    query = """
    WITH cell AS (
      SELECT e.problem_id, p.model, e.outcome, t.wall_ns FROM execution e JOIN program p USING (program_id)
      LEFT JOIN timing t ON t.attempt_id = e.attempt_id WHERE e.campaign_id = 'new'),
    pool AS (SELECT problem_id, min(wall_ns) AS low, max(wall_ns) AS high FROM cell WHERE model = 'human' GROUP BY 1)
    SELECT avg(CASE WHEN outcome = 'accepted' THEN greatest((high - wall_ns) / (high - low), 0) ELSE 0 END), count(*)
    FROM cell JOIN pool USING (problem_id) WHERE model <> 'human'
    """
    ((mean, samples),) = sql(ledger, query)
    stored = [sample["beyond_p"] for samples in sessions[GPT_4].values() for sample in samples]
    assert samples == len(stored) == 256
    assert mean == pytest.approx(statistics.fmean(stored), abs=1e-6)


@pytest.mark.realdata
def test_the_harmful_calibration_is_refused(ledger: Path) -> None:
    """Its R squared out of fold is 0.98, and it would move references further than no map at all; none may be used."""
    seen = well("calibrate", "--from", "old", "--to", "new", "--ledger", ledger, "--json").json
    (affine,) = seen["tried"]
    assert affine["r2"] == pytest.approx(0.98, abs=0.005)
    assert affine["a"] == pytest.approx(1.9, abs=0.05)
    assert affine["refused"]
    assert affine["error_map"] > affine["error_none"]
    assert affine["points_map"] > affine["points_none"] > 20
    assert sql(ledger, "SELECT count(*) FROM calibration WHERE refused <> ''") == [[1]]
    done = lap("replay", "--campaign", "new", "--tau", 30, "--calibration", "affine", "--ledger", ledger)
    assert (done.code, "no usable calibration into campaign 'new'" in done.err) == (2, True)


def percentile(duration: float, pool: list[float]) -> float:
    """The tie-averaged percentile rank, counted one by one."""
    return 50 * sum((ref < duration) + (ref <= duration) for ref in pool) / len(pool)


@pytest.mark.realdata
def test_the_refused_map_does_the_harm_that_is_published(ledger: Path) -> None:
    """Judged on the other session's references programs move by 20 points, on the mapped ones by 27."""
    fit = well("calibrate", "--from", "old", "--to", "new", "--ledger", ledger, "--json").json["tried"][0]
    query = """
    SELECT t.problem_id, t.campaign_id, p.model = 'human', list(t.wall_ns) FROM timing t
    JOIN program p USING (program_id) WHERE t.outcome = 'accepted' GROUP BY ALL
    """
    walls = {tuple(key): durations for *key, durations in sql(ledger, query)}
    moved: dict[str, list[float]] = {"unmapped": [], "mapped": []}
    for problem, campaign, human in walls:
        if campaign == "new" and not human:
            (mine,) = walls[problem, "new", False]
            matching = percentile(mine, walls[problem, "new", True])
            second = walls[problem, "old", True]
            mapped = [fit["a"] * ns + fit["b_ns"] for ns in second]
            moved["unmapped"].append(abs(matching - percentile(mine, second)))
            moved["mapped"].append(abs(matching - percentile(mine, mapped)))
    assert len(moved["mapped"]) == 205
    assert statistics.fmean(moved["unmapped"]) == pytest.approx(20.1, abs=0.1)
    assert statistics.fmean(moved["mapped"]) == pytest.approx(27.2, abs=0.1)


def test_a_session_that_contradicts_itself_is_refused(tmp_path: Path) -> None:
    """One set of reference times a problem, one index a sample, a known verdict; file, problem and sample named."""
    cases = {
        "differ from those of sample 1": [mercury_sample(), mercury_sample(index=1, runtimes=(0.2, 0.5))],
        "its 'index' was used before": [mercury_sample(), mercury_sample()],
        "expected one of passed, failed@cases": [mercury_sample("perhaps")],
        "'m_eval.json', 'two-sum', sample 2: 'solution' is missing": [mercury_sample(), {**_bare(1), "beyond_p": 0}],
        "'two-sum', sample 1, 'status': 'runtime' is 'long', expected a finite number": [_ran("long")],
        "'m_eval.json', 'two-sum', sample 1: 'beyond_p' is missing": [_bare(0) | {"solution": "1"}],
        "expected at least one sample": [],
    }
    for reason, samples in cases.items():
        path = write(tmp_path / "m_eval.json", mercury_session(two_sum=samples))
        with pytest.raises(UserError, match=reason):
            mercury.read(path)
    with pytest.raises(UserError, match="holds no problem"):
        mercury.read(write(tmp_path / "m_eval.json", {}))


def _bare(index: int) -> dict[str, Any]:
    """A sample without its program and its score."""
    return {k: v for k, v in mercury_sample(index=index).items() if k not in ("solution", "beyond_p")}


def _ran(runtime: Any) -> dict[str, Any]:
    """A sample with some run time."""
    return mercury_sample() | {"status": {"result": "passed", "runtime": runtime, "index": 0}}


def test_a_problem_without_spread_is_held_and_its_score_is_not_known(tmp_path: Path) -> None:
    """Formulas, by hand: the other problem's two samples score (1 - 0.5) / 0.8 and 0; as stored, 0.9 joins them."""
    flat = [mercury_sample(index=n) | {"runtimes": [0.2, 0.2], "beyond_p": score} for n, score in ((0, 0.9), (1, None))]
    flat.append(mercury_sample("failed@cases", index=2) | {"runtimes": [0.2, 0.2]})
    session = mercury_session(flat_one=flat, two_sum=[mercury_sample(), mercury_sample("failed@load", index=1)])
    ledger = new_ledger(tmp_path)
    (seen,) = imported(ledger, "mercury", write(tmp_path / "m_eval.json", session))
    assert seen["figures"] == {
        "samples": 5,
        "pass, %": 60.0,
        "scores not known": "2, the first of 'flat-one'",
        "Beyond as stored, %": pytest.approx(100 * (0.9 + 0.5 / 0.8) / 4),
        "formula of the stored": "A",
        **dict.fromkeys(("Beyond A, %", "Beyond B, %", "Beyond C, %"), pytest.approx(100 * (0.5 / 0.8) / 3)),
    }
    assert "the score of 2 samples of 'flat-one': its references have no spread" in seen["unknown"]
    rows = sql(
        ledger,
        "SELECT outcome, count(*) FROM execution JOIN problem USING (problem_id)"
        " WHERE slug = 'flat-one' GROUP BY 1 ORDER BY 1",
    )
    assert rows == [["accepted", 4], ["wrong_answer", 1]]
    assert well("verify", "--ledger", ledger, "--json").json["problems"] == []


def test_a_file_of_such_problems_alone_has_no_score(tmp_path: Path) -> None:
    """No figure, and no formula that would fit nothing."""
    flat = mercury_sample() | {"runtimes": [], "beyond_p": None}
    figures = mercury.read(write(tmp_path / "m_eval.json", mercury_session(two_sum=[flat]))).figures
    assert {figures[name] for name in figures if "Beyond" in name or "formula" in name} == {None}


def test_both_names_of_the_verdict_are_read(tmp_path: Path) -> None:
    """The field is `status` in some files and `result` in others."""
    sample = mercury_sample()
    sample["result"] = sample.pop("status")
    path = write(tmp_path / "m_eval.json", mercury_session(two_sum=[sample]))
    assert mercury.read(path).figures["formula of the stored"] == "A"  # a lead below one second: A and B agree
    assert mercury.read(path, "a model").problems[0].programs[0].model == "a model"
