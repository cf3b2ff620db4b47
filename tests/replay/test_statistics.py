"""The seventeen statistics, each by hand, and against scipy where it has the same."""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from lapledger.replay.criteria import Criterion
from lapledger.replay.errors import ReplayError
from lapledger.replay.explanations.example import statistic_value
from lapledger.replay.fields import OF_PERCENTILES, OF_TIMES
from lapledger.replay.judging.exact import LOG_STEPS, ceil_share, log_steps
from lapledger.replay.judging.gates import Status, judge
from lapledger.replay.judging.ranks import Pool, against
from lapledger.replay.judging.statistics import MONOTONE, STATISTICS, score, shown
from tests.replay.builders import MS, measured
from tests.replay.oracle import steps

REFERENCES = np.array([[10, 100, 1000], [20, 200, 1000], [30, 300, 2000], [40, 400, 3000]]) * MS
CANDIDATE = np.array([[25, 100, 4000]]) * MS


def value(name, mine=CANDIDATE, references=REFERENCES, kind="mean"):
    """The statistic of one program among references, durations in ns, as a person reads it."""
    pool = Pool(2 * references, 2 * references, np.arange(len(references)))
    outside = pool.column(np.array([len(references)]))
    ends = against(pool, 2 * mine, 2 * mine, rows=np.array([0]), groups=[outside])
    numerator, denominator = score(name, ends, kind)[0]
    return shown(name, int(numerator[0]), int(denominator[0]), mine.shape[1])


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("mean", 325 / 6),  # (50 + 12.5 + 100)/3
        ("median", 50),  # the middle of 12.5, 50, 100
        ("trimmed-mean", 325 / 6),  # three tests: floor(3/10) = 0 are cut
        ("clipped-mean", 52.5),  # (50 + 12.5 + 95)/3
        ("worst", 100),
        ("p90", 100),  # ceil(2.7) = 3: the third of three
        ("weighted-mean", 154_375 / 1775),  # (25 * 50 + 250 * 12.5 + 1500 * 100)/(25 + 250 + 1500)
        ("total", 4125 * MS),  # 25 + 100 + 4000
        ("clipped-total", 3125 * MS),  # p95 of four is the largest: 25 + 100 + 3000
        ("median-time", 100 * MS),
        ("longest", 4000 * MS),
        ("geometric-mean", 10 ** (7 / 3) * MS),  # 25 * 100 * 4000 = 10^7
        ("mean-ratio", 4_066_666 / 3_000_000),  # (25/25 + 100/250 + 4000/1500)/3, the last rounded down to 2.666666
        ("median-ratio", 1),
        ("win-rate", 6 / 11),  # losses 2 + 0 + 4; wins 2 + 3 + 0; the tie with 100 ms is left out
        # m 25, 250, 1500 and d 25, 100, 4000, less their means 1775/3 and 1375:
        # (1700 * 1350 + 1025 * 1275 + 2725 * 2625)/3 over (1700^2 + 1025^2 + 2725^2)/9
        ("slope", 3 * (1700 * 1350 + 1025 * 1275 + 2725 * 2625) / (1700**2 + 1025**2 + 2725**2)),
    ],
)
def test_a_statistic_by_hand(name, expected):
    """References 10, 20, 30, 40; 100, 200, 300, 400; 1000, 1000, 2000, 3000 ms, and a program of 25, 100, 4000 ms.

    Percentiles: 2 of 4 are faster, 50; one of 4 is equal, 12.5; all 4 are faster, 100. Medians: 25, 250, 1500 ms.
    """
    assert value(name) == pytest.approx(expected, rel=1e-12)


def test_the_slope_in_logarithms():
    """The same example: log2 of d 4.643856, 6.643856, 11.965784 against log2 of m 4.643856, 7.965784, 10.550747.

    Less their means 7.751165 and 7.720129: 9.558931 - 0.272016 + 11.929977 = 21.216892 over
    9.463456 + 0.060346 + 8.012398 = 17.536200, which is 1.209891.
    """
    assert value("log-slope") == pytest.approx(1.209891, abs=2e-5)
    plain = stats.linregress(np.log2([25, 250, 1500]), np.log2([25, 100, 4000])).slope
    assert value("log-slope") == pytest.approx(plain, abs=2e-5)


def test_ten_tests_are_trimmed_by_one_at_each_end():
    """Percentiles 0, 10, ..., 90 among ten references: the mean of 10 ... 80 is 45; p90 is the ninth, 80."""
    references = np.tile(np.arange(10, 110, 10)[:, None], (1, 10)) * MS
    mine = np.arange(5, 105, 10)[None, :] * MS
    assert value("trimmed-mean", mine, references) == pytest.approx(45)
    assert value("p90", mine, references) == pytest.approx(80)
    assert value("mean", mine, references) == pytest.approx(45)
    assert value("clipped-mean", mine, references) == pytest.approx(45.5)  # 0 counts as 5


DURATIONS = st.integers(1, 30)


@st.composite
def tables(draw):
    """References [N, T] and one program [1, T] in ms."""
    tests = draw(st.integers(1, 12))
    rows = st.lists(DURATIONS, min_size=tests, max_size=tests)
    return np.array([draw(rows)]) * MS, np.array(draw(st.lists(rows, min_size=1, max_size=8))) * MS


@given(tables(), st.sampled_from(["mean", "strict", "weak", "rank"]))
def test_percentiles_are_those_of_scipy(table, kind):
    """Each kind as scipy's percentileofscore has it; trimmed and median as scipy and numpy join them."""
    mine, references = table
    r = [stats.percentileofscore(references[:, t], mine[0, t], kind=kind) for t in range(mine.shape[1])]
    assert value("mean", mine, references, kind) == pytest.approx(np.mean(r))
    assert value("median", mine, references, kind) == pytest.approx(np.median(r))
    assert value("trimmed-mean", mine, references, kind) == pytest.approx(stats.trim_mean(r, 0.1))
    assert value("clipped-mean", mine, references, kind) == pytest.approx(np.mean(np.clip(r, 5, 95)))
    assert value("p90", mine, references, kind) == pytest.approx(np.quantile(r, 0.9, method="inverted_cdf"))


@given(tables())
def test_times_are_those_of_numpy_and_scipy(table):
    """Totals, geometric mean, ratios to the median, and the line of scipy."""
    mine, references = table
    d, m = mine[0] / MS, np.median(references, axis=0) / MS
    end = np.quantile(references, 0.95, axis=0, method="inverted_cdf") / MS
    assert value("total", mine, references) == pytest.approx(d.sum() * MS)
    assert value("clipped-total", mine, references) == pytest.approx(np.minimum(d, end).sum() * MS)
    assert value("median-time", mine, references) == pytest.approx(np.median(d) * MS)
    assert value("longest", mine, references) == pytest.approx(d.max() * MS)
    assert value("geometric-mean", mine, references) == pytest.approx(stats.gmean(d) * MS)
    assert value("mean-ratio", mine, references) == pytest.approx(np.mean(d / m), abs=1e-6)
    assert value("median-ratio", mine, references) == pytest.approx(np.median(d / m), abs=1e-6)
    if len(set(m.tolist())) > 1:
        assert value("slope", mine, references) == pytest.approx(stats.linregress(m, d).slope, abs=1e-9)
        x, y = np.log2(m) - np.log2(m).mean(), np.log2(d) - np.log2(d).mean()
        logs = stats.linregress(x, y).slope
        moved = ((1 + 2 * abs(logs)) * abs(x).sum() + abs(y).sum()) / (x**2).sum()  # by logarithms that are off by one
        assert value("log-slope", mine, references) == pytest.approx(logs, abs=moved / LOG_STEPS + 1e-6)


@given(tables())
def test_the_win_rate_counts_pairs(table):
    """Mann-Whitney's U without its ties, test by test: losses over wins and losses."""
    mine, references = table
    lost, won = int((references < mine).sum()), int((references > mine).sum())
    assert value("win-rate", mine, references) == (lost / (lost + won) if lost + won else 0.5)


@given(st.integers(1, 2**61))
def test_logarithms_are_rounded_to_the_nearest_step(number):
    """2 * steps - 1 <= 2 * 2^16 * log2(x) <= 2 * steps + 1, in whole numbers where they are small enough."""
    result = int(log_steps(np.array([number]))[0])
    assert result == pytest.approx(math.log2(number) * LOG_STEPS, abs=0.51)
    if number < 32:
        assert 2 ** (2 * result - 1) <= number ** (2 * LOG_STEPS) <= 2 ** (2 * result + 1)


def test_logarithms_near_the_middle_of_two_steps_are_computed_again():
    """Among the numbers up to three million the ten whose float is within 1e-6 of the middle: as sixty digits say."""
    near = [313249, 626498, 692513, 1205113, 1252996, 1385026, 1776301, 2410226, 2447759, 2505992]
    assert log_steps(np.array(near)).tolist() == [steps(number) for number in near]


def test_powers_of_two_have_complete_logarithms():
    """No float error moves a logarithm that is exact."""
    powers = np.array([2**p for p in range(62)])
    assert log_steps(powers).tolist() == [LOG_STEPS * p for p in range(62)]


@given(st.integers(0, 1000), st.integers(1, 1000))
def test_a_share_is_rounded_up_exactly(size, thousandths):
    """0.29 of 100 is 29, where floats make it 30."""
    share = Fraction(thousandths, 1000)
    assert ceil_share(share, np.array([size]))[0] == -(-size * thousandths // 1000)
    assert ceil_share(Fraction("0.29"), np.array([100]))[0] == 29


def test_the_table_is_complete():
    """Seventeen names, the same as the criterion's words, in the same order; each says its formula."""
    assert tuple(STATISTICS) == OF_PERCENTILES + OF_TIMES
    assert len(STATISTICS) == 17
    assert all(statistic.formula for statistic in STATISTICS.values())


@given(table=tables(), test=st.integers(0, 11), more=DURATIONS, name=st.sampled_from(sorted(MONOTONE)))
def test_a_slower_run_never_scores_better(table, test, more, name):
    """Every statistic but the two slopes grows, or stays, with each duration."""
    mine, references = table
    slower = mine.copy()
    slower[0, test % mine.shape[1]] += more * MS
    assert value(name, slower, references) >= value(name, mine, references)


def test_a_slope_may_fall_as_a_run_gets_slower():
    """Slower on the short test alone: the line is flatter. So `lap why` searches no change under a slope."""
    references = np.array([[10, 100]]) * MS
    assert value("slope", np.array([[50, 100]]) * MS, references) < value(
        "slope", np.array([[10, 100]]) * MS, references
    )


@pytest.mark.parametrize("name", [name for name in STATISTICS if name not in ("slope", "log-slope")])
def test_equal_durations_in_another_order_are_a_tie(name):
    """No sum hangs on the order of its terms: the same durations on equal tests give the same rank, exactly."""
    rows = np.array([[13, 7, 29], [29, 13, 7], [7, 29, 13], [1, 1, 1], [99, 99, 99]]) * MS
    references = np.tile(np.array([[10], [20], [30]]) * MS, (1, 3))
    wall = np.concatenate([rows, references])
    verdicts = judge(measured(wall, reference=[5, 6, 7]), Criterion(tau="50", statistic=name))
    assert len({int(q) for q in verdicts.q_lo[:3]}) == 1
    assert verdicts.q_lo[3] < verdicts.q_lo[4]


def test_durations_that_cannot_be_added_are_refused():
    """Thirty-six years of run time: one line, and no wrapped number."""
    wall = np.full((2, 4), 2**59)
    with pytest.raises(ReplayError, match="too long"):
        judge(measured(wall, reference=[1]), Criterion(tau="50", statistic="total"))


def test_weights_too_large_to_be_exact_are_refused():
    """Percentiles weighted with years of run time: one line, and no rounded bucket."""
    wall = np.full((9, 64), 2**56)
    with pytest.raises(ReplayError, match="too long to weigh"):
        judge(measured(wall, reference=range(1, 9)), Criterion(tau="50", statistic="weighted-mean"))


def test_ratios_of_long_durations_are_exact_too():
    """A day against a day and a second: 86,400/86,401 is 0.999988, and the product that finds it does not overflow."""
    day, second = 86_400 * 10**9, 10**9
    assert value("mean-ratio", np.array([[day]]), np.array([[day + second]])) == 0.999988


def test_the_example_of_the_reference_page():
    """mixed: 40 of percent by the mean, 1615 ms in all, (65/70 + 650/500 + 900/3000)/3 = 0.842857 by ratios."""
    result = [statistic_value(name, "mixed") for name in ("mean", "total", "mean-ratio", "win-rate")]
    assert result == pytest.approx([40, 1615 * MS, 0.842857, 0.4], abs=1e-6)


def test_an_unknown_median_leaves_a_slope_open():
    """Two references, one killed on t1: the median there is unknown, so is the slope, and the verdict is undecided."""
    wall = np.array([[5, 9], [4, 8], [6, 2]]) * MS
    outcome = [[1, 1], [1, 1], [1, 6]]
    m = measured(wall, reference=[1, 2], outcome=outcome, limit=2 * MS)
    verdicts = judge(m, Criterion(tau="30", statistic="slope", timeouts="tolerated"))
    assert (verdicts.q_lo[0], verdicts.q_hi[0], verdicts.status[0]) == (0, 4, -1)
    assert verdicts.reason[0] == "censored: q from 0 to 1"


@pytest.mark.parametrize("name", ["slope", "log-slope"])
def test_a_slope_over_one_test_is_undecided(name):
    """No line goes through one point: nobody passes or fails by it, though every duration is known."""
    wall = np.array([[5], [10], [20], [30]]) * MS
    verdicts = judge(measured(wall, reference=[1, 2, 3]), Criterion(tau="50", statistic=name))
    assert set(verdicts.g) == {Status.UNDECIDED}
