"""Formulas of others give what others publish: values by hand, by enumeration, of scipy, and stored in their files.

Every expectation here is computed in another way than the code does it.
"""

import json
import math
import statistics
from bisect import bisect_left
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from lapledger.replay import conventions
from lapledger.replay.conventions import DifferentialScore
from lapledger.replay.errors import ReplayError

SHARES = st.floats(0, 1, allow_nan=False)


@pytest.mark.parametrize(
    ("runtime", "scores"),
    [(1.0, (0.5, 1.0, 1.0)), (2.0, (0.5, 0.5, 0.5)), (0.0, (0.5, 1.5, 1.0)), (4.0, (0.0, 0.0, 0.0))],
)
def test_mercury_beyond_by_hand(runtime: float, scores: tuple[float, ...]) -> None:
    """References of 1, 2 and 3 seconds: B is (3 - t)/2 from 0, C that up to 1, and A counts one second of the lead."""
    found = [conventions.mercury_beyond(runtime, [2.0, 1.0, 3.0], version) for version in ("A", "B", "C")]
    assert found == list(scores)


def test_mercury_beyond_of_a_short_spread_may_exceed_one() -> None:
    """References 10 and 11 ms, sample 1 ms: a lead of 10 ms over a spread of 1 ms is 10 in A and B, 1 in C."""
    found = [conventions.mercury_beyond(0.001, [0.010, 0.011], version) for version in ("A", "B", "C")]
    assert found == [pytest.approx(10), pytest.approx(10), 1.0]
    assert conventions.mercury_beyond(0.001, [0.010, 0.011], "A", passed=False) == 0.0


def test_mercury_beyond_needs_a_spread() -> None:
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
    found: dict[str, list[float]] = {"A": [], "B": [], "C": []}
    for sample in samples:
        status = sample.get("status") or sample["result"]
        for each, values in found.items():
            right = status["result"] == "passed"
            values.append(
                conventions.mercury_beyond(status["runtime"], sample["runtimes"], each, passed=right)  # type: ignore[arg-type]
            )
    assert len(stored) == count
    assert found[version] == stored
    assert 100 * statistics.fmean(stored) == pytest.approx(mean, abs=0.005)
    assert 100 * statistics.fmean(found["C"]) == pytest.approx(clamped, abs=0.005)
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
    told = {(True, None): "accepted", (False, None): "failed", (False, -2): "wrong_answer"}
    told |= {(False, -3): "time_limit", (False, -1): "time_limit", (False, -4): "run_time_error"}
    told |= {(False, -5): "sandbox_fault", (True, -4): "accepted"}
    assert {key: conventions.livecodebench_outcome(*key) for key in told} == told
    with pytest.raises(ReplayError, match="error code -9 is not known"):
        conventions.livecodebench_outcome(False, -9)


def test_livecodebench_pass_at_1_is_the_mean_of_shares() -> None:
    """Shares 1/2, 1 and 0 have the mean 1/2, though 3 of 5 samples pass."""
    assert conventions.livecodebench_pass_at_1([[True, False], [True, True], [False]]) == pytest.approx(50)
    with pytest.raises(ReplayError, match="every problem needs a sample"):
        conventions.livecodebench_pass_at_1([[True], []])


def test_pyperf_critical_values_are_those_of_students_t() -> None:
    """To three digits up to 30 degrees of freedom; beyond, the point of a lower row: never below the true one."""
    for freedom in range(1, 31):
        assert conventions.pyperf_critical(freedom) == pytest.approx(stats.t.ppf(0.975, freedom), abs=0.00051)
    for freedom in range(31, 200):
        assert conventions.pyperf_critical(freedom) >= stats.t.ppf(0.975, freedom) - 0.0005
    assert conventions.pyperf_critical(10_000) == 1.960
    with pytest.raises(ReplayError, match="two values a side"):
        conventions.pyperf_critical(0)


@given(st.integers(2, 15), st.integers(0, 2**32 - 1), st.floats(0, 3))
def test_pyperf_significance_is_that_of_a_pooled_t_test(size: int, seed: int, shift: float) -> None:
    """As scipy's test with equal variances says, away from the rounding of the table."""
    random = np.random.default_rng(seed)
    first, second = random.normal(size=size), random.normal(loc=shift, size=size)
    p = stats.ttest_ind(first, second).pvalue
    if abs(p - 0.05) > 0.002:
        assert conventions.pyperf_significant(first.tolist(), second.tolist()) == (p < 0.05)


def test_pyperf_takes_what_it_cannot_test_to_differ() -> None:
    """Samples of other sizes, of one value, or without variance."""
    assert conventions.pyperf_significant([1.0, 1.1], [1.0, 1.1, 1.2])
    assert conventions.pyperf_significant([1.0], [1.0])
    assert conventions.pyperf_significant([1.0, 1.0], [1.0, 1.0])


def test_pyperf_geometric_mean_by_hand() -> None:
    """Ratios 2 (significant), 1.001 (not) and 0.5 (significant): the cube root of 2 * 0.5, or of their product."""
    still = [1.0, 1.1, 0.9, 1.05, 0.95]
    pairs = [
        (still, [2 * v for v in still]),
        (still, [1.001 * v for v in still]),
        (still, [v / 2 for v in still]),
    ]
    assert conventions.pyperf_geometric_mean(pairs) == pytest.approx(1.0)
    assert conventions.pyperf_geometric_mean(pairs, significant_only=False) == pytest.approx(1.001 ** (1 / 3))
    assert conventions.pyperf_geometric_mean(pairs[:2]) == pytest.approx(math.sqrt(2))
    with pytest.raises(ReplayError, match="no benchmark is in both"):
        conventions.pyperf_geometric_mean([])
    with pytest.raises(ReplayError, match="not positive"):
        conventions.pyperf_geometric_mean([([0.0, 0.0], [1.0, 1.0])])


@given(st.lists(st.tuples(st.floats(0.1, 100), st.booleans()), min_size=1, max_size=30))
def test_swefficiency_is_the_harmonic_mean_with_ones_for_failures(rows: list[tuple[float, bool]]) -> None:
    """As the standard library's harmonic mean says."""
    speedups, correct = [one for one, _ in rows], [right for _, right in rows]
    due = statistics.harmonic_mean([speedup if right else 1.0 for speedup, right in rows])
    assert conventions.swefficiency_speedup(speedups, correct) == pytest.approx(due)


def test_swefficiency_refuses_nonsense() -> None:
    """Lengths that differ, and speed-ups that are none."""
    with pytest.raises(ReplayError, match="1 values and 2 verdicts"):
        conventions.swefficiency_speedup([1.0], [True, False])
    with pytest.raises(ReplayError, match="positive"):
        conventions.swefficiency_speedup([0.0], [True])
    assert conventions.swefficiency_speedup([0.0, 2.0], [False, True]) == pytest.approx(4 / 3)
    assert conventions.swefficiency_human_ratio(3.0, 2.0) == 1.5
    with pytest.raises(ReplayError, match="positive"):
        conventions.swefficiency_human_ratio(1.0, 0.0)


@given(st.floats(0, 10), st.lists(st.integers(0, 10).map(float), min_size=1, max_size=20))
def test_afterburner_counts_the_references_that_are_not_faster(value: float, references: list[float]) -> None:
    """Counted one by one: ties are beaten."""
    due = sum(reference >= value for reference in references) / len(references)
    assert conventions.afterburner_percentile(value, references) == pytest.approx(due)
    assert bisect_left(sorted(references), value) == sum(reference < value for reference in references)
    with pytest.raises(ReplayError, match="needs references"):
        conventions.afterburner_percentile(1.0, [])


@given(st.lists(SHARES, min_size=1, max_size=8), st.data())
def test_enamel_eff_is_the_mean_best_of_all_draws(values: list[float], data: Any) -> None:
    """Over every choice of k samples, one by one."""
    k = data.draw(st.integers(1, len(values)))
    due = statistics.fmean(max(chosen) for chosen in combinations(values, k))
    assert conventions.enamel_eff_at_k(values, k) == pytest.approx(due)


def test_enamel_eff_with_verdicts_is_pass_at_k() -> None:
    """Efficiencies 0 and 1: 1 - C(n - c, k)/C(n, k) with n = 10, c = 3, k = 4; it stays exact for thousands."""
    assert conventions.enamel_eff_at_k([1.0] * 3 + [0.0] * 7, 4) == pytest.approx(
        1 - math.comb(7, 4) / math.comb(10, 4)
    )
    assert conventions.enamel_eff_at_k([0.5] * 3000, 1000) == pytest.approx(0.5)
    with pytest.raises(ReplayError, match=r"eff@3 of 2 samples: k must lie in 1 \.\. 2"):
        conventions.enamel_eff_at_k([1.0, 1.0], 3)


def test_kernelbench_fast_p_counts_right_and_faster() -> None:
    """Of four, three are right, two of them above 1.5 times; exactly p times is not faster."""
    correct, speedups = [True, True, True, False], [1.0, 2.0, 1.6, 9.0]
    assert conventions.kernelbench_fast_p(correct, speedups, 1.5) == 0.5
    assert conventions.kernelbench_fast_p(correct, speedups, 1.0) == 0.5
    assert conventions.kernelbench_fast_p(correct, speedups, 0.0) == 0.75
    with pytest.raises(ReplayError, match="0 verdicts"):
        conventions.kernelbench_fast_p([], [], 1.0)
