"""The train-by-eval matrix: shares as estimates count them, figures by hand, correlations by scipy."""

import dataclasses
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from lapledger.replay.criteria import ENVIRONMENTS, FAMILIES, PRESETS, Criterion, family
from lapledger.replay.errors import ReplayError
from lapledger.replay.estimates import estimate
from lapledger.replay.judging.gates import judge
from lapledger.replay.measurements import Outcome
from lapledger.replay.studies.matrix import Matrix, family_figures, matrix
from lapledger.replay.studies.models import find_runs
from tests.replay.builders import measured, problems
from tests.replay.program_groups import candidates_of


def alone(*models):
    """Runs of one model each."""
    return {model: (model,) for model in models}


RUNS = {"slow": [95, 85, 75, None], "quick": [15, 25, 35, 45], "mixed": [15, 95, None, None]}


def two_problems():
    """On the second problem every model is right, and `slow` and `quick` have changed places."""
    walls = {"slow": [15, 25, 35, 45], "quick": [95, 85, 75, 65], "mixed": [15, 25, 15, 25]}
    return [candidates_of("a", humans=10, models=RUNS), candidates_of("b", humans=10, models=walls)]


@given(m=problems(outcomes=tuple(Outcome)))
@settings(deadline=None, max_examples=40)
def test_a_cell_is_the_estimate_of_its_criterion(m):
    """pass@1 and undecided of each model under each criterion are what `estimate` says of it alone."""
    models = tuple("ab"[i % 2] for i in range(len(m.programs)))
    m = dataclasses.replace(m, models=models)
    criteria = {str(tau): Criterion(tau=str(tau)) for tau in (100, 50, 20)} | {"late": PRESETS["relative-p50"]}
    result = matrix([m], criteria, alone(*sorted(set(models))))
    for row, criterion in enumerate(criteria.values()):
        for column, part in enumerate(estimate([judge(m, criterion)], [m], 1)):
            assert result.values[row, column] == pytest.approx(100 * part.value, nan_ok=True)
            assert (result.undecided[row, column], result.programs[row, column]) == (part.undecided, part.programs)


@given(m=st.lists(problems(outcomes=tuple(Outcome)), min_size=2, max_size=4))
@settings(deadline=None, max_examples=40)
def test_a_cell_has_the_interval_and_the_bound_of_its_criterion(m):
    """Over several problems: exactly what `estimate` says of it alone, its method too."""
    m = [
        dataclasses.replace(part, problem=f"p{n}", models=tuple("ab"[i % 2] for i in range(len(part.programs))))
        for n, part in enumerate(m)
    ]
    criteria = {"p_50": Criterion(tau="50"), "limit": Criterion(limit_ms=1, timeouts="tolerated")}
    models = sorted({by for part in m for by in part.models})
    result = matrix(m, criteria, alone(*models))
    for row, criterion in enumerate(criteria.values()):
        expected = estimate([judge(part, criterion) for part in m], m, 1)
        for cell, part in zip(result.cells[row], expected, strict=True):
            assert (cell.value, cell.upper_bound, cell.problems) == (part.value, part.upper_bound, part.problems)
            assert (cell.interval, cell.method) == (part.interval, part.method)
            assert result.over_runs(row, 0) is None


def test_spread_and_range_by_hand():
    """p_100 and p_50 of three runs, on references of 10, 20, ... 100 ms.

    On `a`: slow passes 3/4 and 0/4, quick 4/4 and 4/4, mixed 2/4 and 1/4. On `b`: all right; slow 4/4, quick 0/4,
    mixed 4/4. So p_100 is 87.5, 100, 75 and p_50 is 50, 50, 62.5.
    """
    result = matrix(
        two_problems(), {"p_100": Criterion(), "p_50": Criterion(tau="50")}, alone("slow", "quick", "mixed")
    )
    assert result.values.tolist() == [[87.5, 100, 75], [50, 50, 62.5]]
    (ranking,) = family_figures(result)
    assert (ranking.family, ranking.criteria) == ("leaderboard ranking", 2)
    assert ranking.spread == pytest.approx((25 + 12.5) / 2)
    assert ranking.range == pytest.approx((37.5 + 50 + 12.5) / 3)
    # p_100: quick - mixed is 50 on a, 0 on b; p_50: mixed - slow (the first of the two lowest) is 25 and 0
    halves = [stats.t.ppf(0.975, 1) * np.std(pair, ddof=1) / math.sqrt(2) for pair in ([50, 0], [25, 0])]
    assert ranking.half_width == pytest.approx(np.mean(halves))
    assert not ranking.decides


def test_a_spread_past_its_interval_decides():
    """The same difference on each of twenty problems has an interval of width nothing."""
    problems = [candidates_of(f"p{i}", humans=10, models={"slow": [95, 85], "quick": [15, 25]}) for i in range(20)]
    (ranking,) = family_figures(matrix(problems, {"p_50": Criterion(tau="50")}, alone("slow", "quick")))
    assert (ranking.spread, ranking.half_width, ranking.range, ranking.decides) == (100, 0, 0, True)


def test_repeated_trainings_have_an_interval_of_their_own():
    """Two trainings, three seeds each: values are means over seeds, and Welch's interval of their difference by scipy.

    Of four programs on each of two problems 1, 2, 2 pass against 2, 3, 4 (all problems alike, so none over problems).
    """

    def programs(right):
        return [15] * right + [None] * (4 - right)

    passed = {"a-1": 1, "a-2": 2, "a-3": 2, "b-1": 2, "b-2": 3, "b-3": 4}
    both = [candidates_of(f"p{i}", humans=10, models={by: programs(n) for by, n in passed.items()}) for i in range(2)]
    result = matrix(both, {"p_100": Criterion()}, find_runs(passed, ["a-{seed}", "b-{seed}"]))
    assert result.runs == ("a", "b")
    assert result.values[0] == pytest.approx([500 / 12, 75])
    assert result.programs.tolist() == [[24, 24]]
    (ranking,) = family_figures(result)
    welch = stats.ttest_ind([0.5, 0.75, 1.0], [0.25, 0.5, 0.5], equal_var=False).confidence_interval()
    assert ranking.half_width_runs == pytest.approx(50 * (welch.high - welch.low))
    assert (ranking.half_width, ranking.spread) == (pytest.approx(0), pytest.approx(75 - 500 / 12))
    interval = stats.t.interval(0.95, 2, loc=75, scale=stats.sem([50, 75, 100]))
    assert result.over_runs(0, 1) == pytest.approx((interval[0] / 100, min(interval[1] / 100, 1)))
    assert not ranking.decides  # 33 points apart, and training again moves that by more
    (part,) = family_figures(matrix(both, {"p_100": Criterion()}, alone("a-1", "b-3")))
    assert (math.isnan(part.half_width_runs), part.decides) == (True, True)


def test_correlations_by_scipy():
    """Spearman of each two rows over the runs, with ties; a row that does not vary has none."""
    rng = np.random.default_rng(5)
    shares = rng.integers(0, 5, (4, 6, 3)) / 4
    shares[3] = 0.5
    counts = np.full((4, 6), 9)
    result = Matrix(
        tuple("abcdef"),
        tuple((i,) for i in range(6)),
        tuple("wxyz"),
        ("leaderboard ranking",) * 4,
        shares,
        shares,
        counts,
        counts,
    )
    means = shares.mean(axis=2)
    for i in range(3):
        for j in range(3):
            assert result.correlations[i, j] == pytest.approx(stats.spearmanr(means[i], means[j]).statistic)
    assert np.isnan(result.correlations[3]).all()


def test_runs_that_tie_in_the_mean_tie_in_the_correlation():
    """Shares of .1 .2 .3, .3 .2 .1 and .1 .3 .2 average to 0.2, whatever the last bit says."""
    first = [[0.1, 0.2, 0.3], [0.3, 0.2, 0.1], [0.1, 0.3, 0.2], [0.5, 0.5, 0.5]]
    second = [[0.2] * 3, [0.4] * 3, [0.3] * 3, [0.6] * 3]
    result = Matrix(
        runs=tuple("abcd"),
        members=((0,), (1,), (2,), (3,)),
        criteria=("x", "y"),
        families=("leaderboard ranking", "per-test ranking"),
        by_model=np.array([first, second]),
        perhaps=np.array([first, second]),
        undecided=np.zeros((2, 4), dtype=np.int64),
        programs=np.ones((2, 4), dtype=np.int64),
    )
    expected = stats.spearmanr([2, 2, 2, 5], [2, 4, 3, 6]).statistic
    assert result.correlations == pytest.approx(np.array([[1, expected], [expected, 1]]), abs=1e-12)


def test_a_criterion_without_problems_reports_nothing():
    """Nothing takes 2 s: no value, no correlation, and its family counts only the criterion that has one."""
    criteria = {"2s": PRESETS["pre-2s"], "20ms": dataclasses.replace(PRESETS["pre-2s"], keep_ms=20)}
    result = matrix(two_problems(), criteria, alone("slow", "quick"))
    assert np.isnan(result.values[0]).all()
    assert result.problems.tolist() == [[0, 0], [2, 2]]
    assert np.isnan(result.correlations[0]).all()
    (before,) = family_figures(result)
    assert (before.criteria, before.range) == (1, 0)
    (nothing,) = family_figures(matrix(two_problems(), {"2s": PRESETS["pre-2s"]}, alone("slow")))
    assert (nothing.criteria, math.isnan(nothing.spread), nothing.decides) == (0, True, False)


def test_every_environment_has_a_family():
    """The presets fall into the families of the table of environments."""
    by_family = {name: sorted(n for n, c in ENVIRONMENTS.items() if family(c) == name) for name in FAMILIES}
    assert by_family["correctness only"] == ["rlvr", "rlvr-added-tests"]
    assert by_family["ranked-worst"] == ["ranked-worst-p20", "ranked-worst-p50", "ranked-worst-p80"]
    assert by_family["relative timeout"] == ["relative-p20", "relative-p50", "relative-p80"]
    assert by_family["absolute timeout"] == ["timeout-0.5s", "timeout-2s"]
    assert len(by_family["pre-execution"]) == 5
    assert by_family["per-test ranking"] == ["per-test-top-30", "per-test-top-50", "per-test-top-80"]
    assert by_family["leaderboard ranking"] == ["top-10", "top-30", "top-50", "top-80"]
    assert family(PRESETS["raw-duration"]) == "raw duration"


def test_what_cannot_be_requested():
    """No run, no criterion, two campaigns."""
    with pytest.raises(ReplayError, match="name at least one training run"):
        matrix(two_problems(), {"p": Criterion()}, {})
    mixed = [measured([[1]], reference=[]), measured([[1]], reference=[], campaign="two", problem="other")]
    with pytest.raises(ReplayError, match="meet only through a named calibration"):
        matrix(mixed, {"p": Criterion()}, alone("human"))


def test_runs_by_pattern():
    """All but humans; by shell patterns, in their order and once each; of checkpoints the last of each run."""
    models = ["human", "qwen-500", "qwen-1k", "qwen-900", "cwm-10", "base"]
    assert find_runs(models, []) == alone("base", "cwm-10", "qwen-1k", "qwen-500", "qwen-900")
    assert list(find_runs(models, ["base", "q*", "*w*-*"])) == ["base", "qwen-1k", "qwen-500", "qwen-900", "cwm-10"]
    assert find_runs(models, ["*-{step}", "base"]) == alone("cwm-10", "qwen-1k", "base")
    assert find_runs(models, ["qwen-{seed}"]) == {"qwen": ("qwen-500", "qwen-900", "qwen-1k")}
    with pytest.raises(ReplayError, match=r"no model matches 'gpt\*'; the campaign's models are base, cwm-10"):
        find_runs(models, ["gpt*"])
