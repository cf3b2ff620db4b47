"""Scores and codes of other tools equal what they publish: by hand, and as stored in their own files."""

import json
import statistics
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lapledger.replay import conventions
from lapledger.replay.conventions import DifferentialScore
from lapledger.replay.errors import ReplayError
from lapledger.replay.judging.ranks import percentile


@pytest.mark.parametrize(
    ("runtime", "scores"),
    [(1.0, (0.5, 1.0, 1.0)), (2.0, (0.5, 0.5, 0.5)), (0.0, (0.5, 1.5, 1.0)), (4.0, (0.0, 0.0, 0.0))],
)
def test_mercury_past_by_hand(runtime: float, scores: tuple[float, ...]) -> None:
    """References of 1, 2 and 3 seconds: B is (3 - t)/2 from 0, C that up to 1, and A counts one second of the lead."""
    result = [conventions.mercury_beyond(runtime, [2.0, 1.0, 3.0], version) for version in ("A", "B", "C")]
    assert result == list(scores)


def test_mercury_past_of_a_short_spread_may_exceed_one() -> None:
    """References 10 and 11 ms, sample 1 ms: a lead of 10 ms over a spread of 1 ms is 10 in A and B, 1 in C."""
    result = [conventions.mercury_beyond(0.001, [0.010, 0.011], version) for version in ("A", "B", "C")]
    assert result == [pytest.approx(10), pytest.approx(10), 1.0]
    assert conventions.mercury_beyond(0.001, [0.010, 0.011], "A", passed=False) == 0.0


def test_mercury_past_needs_a_spread() -> None:
    """The tool divides by zero there; here it is said."""
    with pytest.raises(ReplayError, match="no spread"):
        conventions.mercury_beyond(0.1, [0.2, 0.2], "C")


MERCURY = {
    "CodeLlama-13b-Instruct-hf_eval.json": ("A", 256, 40.23, 30.91, 31.35),
    "deepseek-coder-6.7b-instruct_eval_new.json": ("A", 1280, 66.17, 52.84, 53.77),
    "gpt-3.5-turbo-1106_eval.json": ("A", 256, 87.11, 71.51, 72.22),
    "gpt-4-1106-preview_eval.json": ("B", 256, 80.08, 67.84, 67.64),
}


@pytest.mark.realdata
@pytest.mark.parametrize("name", MERCURY)
def test_every_stored_score_of_mercury_is_given_to_the_last_bit(real_data: Path, name: str) -> None:
    """Formula A in three files, B in one; the means over all samples, stored and clamped, are the published ones."""
    version, count, passed, mean, clamped = MERCURY[name]
    session = json.loads((real_data / "mercury" / name).read_text())
    samples = [sample for samples in session.values() for sample in samples]
    stored = [sample["beyond_p"] for sample in samples]
    result: dict[str, list[float]] = {"A": [], "B": [], "C": []}
    for sample in samples:
        status = sample.get("status") or sample["result"]
        for version_name, values in result.items():
            right = status["result"] == "passed"
            values.append(
                conventions.mercury_beyond(status["runtime"], sample["runtimes"], version_name, passed=right)  # type: ignore[arg-type]
            )
    assert len(stored) == count
    assert result[version] == stored
    assert 100 * statistics.fmean(stored) == pytest.approx(mean, abs=0.005)
    assert 100 * statistics.fmean(result["C"]) == pytest.approx(clamped, abs=0.005)
    verdicts = [(sample.get("status") or sample["result"])["result"] == "passed" for sample in samples]
    assert 100 * statistics.fmean(verdicts) == pytest.approx(passed, abs=0.005)


def test_evalperf_scores_by_hand() -> None:
    """Four references from slow to fast cost 100, 80, 40, 10; their cumulative shares are 40, 70, 90 and 100 %."""
    costs, shares = [100.0, 80.0, 40.0, 10.0], [40.0, 70.0, 90.0, 100.0]
    due = {
        5.0: DifferentialScore(100.0, 100.0, 3),
        10.0: DifferentialScore(100.0, 100.0, 3),  # a tie matches
        11.0: DifferentialScore(90.0, 75.0, 2),
        80.0: DifferentialScore(70.0, 50.0, 1),
        99.0: DifferentialScore(40.0, 25.0, 0),
        101.0: DifferentialScore(0.0, 0.0, -1),
    }
    assert {cost: conventions.evalperf_dps(cost, costs, shares) for cost in due} == due
    assert conventions.evalperf_dps(None, costs, shares) == DifferentialScore(0.0, 0.0, -1)
    with pytest.raises(ReplayError, match="2 reference costs and 1 shares"):
        conventions.evalperf_dps(1.0, [1.0, 2.0], [1.0])


def test_evalperf_has_no_score_of_few_samples() -> None:
    """Below ten correct samples a task is missing, not zero."""
    ten = [DifferentialScore(float(n), float(2 * n), 0) for n in range(10)]
    assert conventions.evalperf_task(ten) == (4.5, 9.0)
    assert conventions.evalperf_task(ten[:9]) is None
    assert conventions.evalperf_task(ten[:2], least=2) == (0.5, 1.0)
    assert conventions.evalperf_task([], least=0) is None


def test_livecodebench_codes_are_those_of_its_table() -> None:
    """True passes; False or -2 wrong; -3 and the global -1 time; -4 run-time error; -5 the runner's own failure."""
    outcomes = {(True, None): "accepted", (False, None): "failed", (False, -2): "wrong_answer"}
    outcomes |= {(False, -3): "time_limit", (False, -1): "time_limit", (False, -4): "run_time_error"}
    outcomes |= {(False, -5): "sandbox_fault", (True, -4): "accepted"}
    assert {key: conventions.livecodebench_outcome(*key) for key in outcomes} == outcomes
    with pytest.raises(ReplayError, match="error code -9 is not known"):
        conventions.livecodebench_outcome(False, -9)


def test_livecodebench_pass_at_1_is_the_mean_of_shares() -> None:
    """Shares 1/2, 1 and 0 have the mean 1/2, though 3 of 5 samples pass."""
    assert conventions.livecodebench_pass_at_1([[True, False], [True, True], [False]]) == pytest.approx(50)
    with pytest.raises(ReplayError, match="every problem needs a sample"):
        conventions.livecodebench_pass_at_1([[True], []])


@given(st.floats(0, 10), st.lists(st.integers(0, 10).map(float), min_size=1, max_size=20))
def test_afterburner_is_one_minus_our_strict_percentile(value: float, references: list[float]) -> None:
    """Afterburner and Venus publish 1 - #(reference < value) / n, best 1; ours is 100 k / (2 n), best 0."""
    published = 1 - sum(reference < value for reference in references) / len(references)
    less, upto = (np.array([n]) for n in (sum(r < value for r in references), sum(r <= value for r in references)))
    assert 1 - percentile(less, upto, "strict")[0] / (2 * len(references)) == pytest.approx(published)
