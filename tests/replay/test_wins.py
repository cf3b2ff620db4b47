"""Win rates and speeds where runs were killed, crashed or never seen: held against every way they might have ended."""

import itertools
import statistics
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from scipy import stats

from lapledger.replay.criteria import PRESETS, Criterion
from lapledger.replay.errors import ReplayError
from lapledger.replay.estimates import READINGS, Totals, best_curve, speed_ups, speeds, win_rate
from lapledger.replay.estimates.trainings import pairs_over_runs
from lapledger.replay.judging.gates import judge
from lapledger.replay.measurements import Outcome
from tests.replay.builders import MS, make_tests, measured
from tests.replay.oracle import Run, World
from tests.replay.races import judged, race

OK, WRONG, CRASHED, KILLED, MISSING = 1, 2, 3, 6, 0
TOLERANT = Criterion(timeouts="tolerated")


def rate(m, reading, criterion=TOLERANT):
    """The win rate of a over b on one problem or several."""
    problems = m if isinstance(m, list) else [m]
    verdicts = [judge(problem, criterion) for problem in problems]
    a, b = (speeds(verdicts, problems, criterion, [run]) for run in "ab")
    return win_rate([a], [b], reading)


def pair(wall, outcome, *, limit=10, tests=None):
    """Two references of 2 and 4 ms on two tests, then a program of a, then one of b; in ms."""
    wall = np.array([[2, 2], [4, 4], *wall]) * MS
    return measured(
        wall,
        reference=[0, 1],
        outcome=[[1, 1], [1, 1], *outcome],
        limit=limit * MS,
        models=("human", "human", "a", "b"),
        tests=tests or make_tests(2),
    )


# the reviewed faults, by hand


def test_a_killed_run_is_no_duration():
    """a took 5 ms, then was killed at 10 s: its total is unknown. b took 6 ms and 9999.5 ms: nobody knows who won.

    Against 6 ms and 5 ms a lost, as its total is 10.005 s at least.
    """
    result = [rate(pair([[5, 10_000], [6, 9999.5]], [[OK, KILLED], [OK, OK]], limit=10_000), r) for r in READINGS]
    assert [(problem.wins, problem.losses, problem.value, problem.undecided) for problem in result] == [
        (0, 0, None, ("sum",))
    ] * 3
    assert result[0].bounds == (0, 1)
    lost = rate(pair([[5, 10_000], [6, 5]], [[OK, KILLED], [OK, OK]], limit=10_000), "median")
    assert (lost.wins, lost.losses, lost.undecided, lost.bounds) == (0, 1, (), None)


def test_a_run_killed_at_the_others_time_lost():
    """Killed at 10 ms it took longer than that: b with 10 ms was faster, b with 10 ms and a nanosecond may be."""
    m = pair([[1, 10], [1, 10]], [[OK, KILLED], [OK, OK]])
    assert rate(m, "best").losses == 1
    longer = m.wall_ns.copy()
    longer[3, 1] += 1
    longer_run = measured(longer, reference=[0, 1], outcome=m.outcome, limit=10 * MS, models=m.models, tests=m.tests)
    assert rate(longer_run, "best").undecided == ("sum",)


def test_a_crashed_run_has_no_duration():
    """Under `rlvr` a crash after 1 ns on an optimization test is correct, but no time: it wins nothing, is worth 0."""
    m = pair([[1, 1e-6], [2, 3]], [[OK, CRASHED], [OK, OK]], tests=make_tests(2, original=1))
    criterion = PRESETS["rlvr"]
    result = rate(m, "best", criterion)
    assert (result.wins, result.losses, result.excluded) == (0, 0, ("sum",))
    low, high = speed_ups([judge(m, criterion)], [m], criterion, "a")
    assert low[0].tolist() == high[0].tolist() == [0.0]
    low, high = speed_ups([judge(m, criterion)], [m], criterion, "b")
    assert low[0].tolist() == high[0].tolist() == [6 / 5]  # references take 4 and 8 ms, 6 in the middle


def test_the_speed_of_a_killed_sample_is_a_bound():
    """By hand: the median reference takes 6 ms; a took 5 and more than 10 ms, so its speed is 0 to 6/15."""
    m = pair([[5, 10], [6, 9]], [[OK, KILLED], [OK, OK]])
    low, high = speed_ups([judge(m, TOLERANT)], [m], TOLERANT, "a")
    assert low[0].tolist() == [0.0]
    assert high[0].tolist() == pytest.approx([6 / 15], rel=1e-6)
    (problem,) = best_curve(low, high)
    assert problem.value < problem.upper_bound


def test_problems_that_one_arm_never_sampled_are_left_out_by_name():
    """`lone` is of b alone, `gone` left b with a wrong answer, `filtered` of all three left the environment."""
    problems = [race((1,), (2,), problem="won"), race((), (2,), problem="lone")]
    problems.append(race((1,), (2,), problem="gone", outcomes=[[1]] * 5 + [[2]]))
    result = rate(problems, "median")
    assert (result.wins, result.problems, result.excluded) == (1, 2, ("gone", "lone"))
    assert rate(problems, "median", Criterion(keep_ms=1000)).excluded == ("gone", "lone", "won")


# every way it might have ended

SHORT, LONG = 0, 10**15
CELLS = st.sampled_from([OK] * 6 + [KILLED, KILLED, WRONG, CRASHED, MISSING])


@st.composite
def contests(draw):
    """Two references and up to three samples a side on two tests of which one may be original, in ms, killed at 4."""
    sizes = draw(st.integers(1, 3)), draw(st.integers(1, 3))
    rows = 2 + sum(sizes)
    wall = np.array(draw(st.lists(st.integers(1, 5), min_size=2 * rows, max_size=2 * rows))).reshape(rows, 2)
    cells = [draw(st.sampled_from([OK, OK, OK, KILLED])) for _ in range(4)] + [draw(CELLS) for _ in range(2 * rows - 4)]
    outcome = np.array(cells).reshape(rows, 2)
    assume(int(np.isin(outcome, (KILLED, MISSING)).sum()) <= 5)
    return measured(
        np.where(outcome == KILLED, 4, wall)[:, :, None] * MS
        - (outcome == MISSING)[:, :, None] * (1 + wall[:, :, None] * MS),
        reference=[0, 1],
        outcome=outcome,
        limit=4 * MS,
        models=("human",) * 2 + ("a",) * sizes[0] + ("b",) * sizes[1],
        tests=make_tests(2, original=draw(st.integers(1, 2))),
    )


def endings(m, p, t, criterion):
    """The runs that may stand behind a cell: what is known, or the extremes of what is not."""
    outcome, ns = m.outcome[p, t], int(m.wall_ns[p, t, 0])
    if outcome == KILLED:
        return [Run(Fraction(2 * ns + 1, 2), "ok", 4 * MS), Run(LONG, "ok", 4 * MS)]
    if outcome == MISSING and criterion.missing == "fail":
        return [Run(LONG, "failed")]
    if outcome == MISSING:
        return [Run(SHORT, "ok"), Run(LONG, "ok"), Run(SHORT, "wrong")]
    return [Run(ns, {OK: "ok", WRONG: "wrong", CRASHED: "failed"}[int(outcome)])]


def worlds(m, criterion):
    """Each way the whole problem may have ended: the total time of every correct program, None without one."""
    cells = list(itertools.product(range(len(m.programs)), range(2)))
    for chosen in itertools.product(*(endings(m, p, t, criterion) for p, t in cells)):
        runs = [list(chosen[2 * p : 2 * p + 2]) for p in range(len(m.programs))]
        world = World(m, criterion, runs)
        yield [
            sum(run.ns for run in row) if world.right(p) == 1 and all(run.kind == "ok" for run in row) else None
            for p, row in enumerate(runs)
        ]


READ = {"median": statistics.median, "best": min, "worst": max}


def sign(times, m, reading):
    """Who is faster: -1 a, 1 b, 0 neither; None where one side has no correct sample."""
    a, b = ([t for t, by in zip(times, m.models, strict=True) if by == run and t is not None] for run in "ab")
    if not a or not b:
        return None
    mine, theirs = (READ[reading]([Fraction(t) for t in totals]) for totals in (a, b))
    return (mine > theirs) - (mine < theirs)


CRITERIA = st.builds(
    Criterion,
    timeouts=st.sampled_from(["tolerated", "fail"]),
    correctness=st.sampled_from(["strict", "original"]),
    missing=st.sampled_from(["undecided", "skip", "fail"]),
    reward=st.sampled_from(["collapsed-binary", "additive"]),  # the latter ranks wrong answers by their durations
)


@given(m=contests(), criterion=CRITERIA)
@settings(deadline=None, max_examples=250)
def test_no_completion_contradicts_a_win_and_two_do_an_undecided_one(m, criterion):
    """The oracle ends every killed and missing run in all extreme ways: what is said must hold in each of them."""
    ended = list(worlds(m, criterion))
    for reading in READINGS:
        result, ways = rate(m, reading, criterion), {sign(times, m, reading) for times in ended}
        if result.undecided:
            assert len(ways) > 1
        elif result.excluded:
            assert ways == {None}
        else:
            assert ways == {result.losses - result.wins}
            assert bool(result.ties) == (ways == {0})


@given(m=contests(), criterion=CRITERIA)
@settings(deadline=None, max_examples=150)
def test_a_speed_lies_between_its_bounds_in_every_completion(m, criterion):
    """The median reference of those that are correct for certain, over each sample's time; 0 without one.

    Both ends are reached, but for a time that may be nothing, of which nothing is known.
    """
    verdicts = judge(m, criterion)
    result = speed_ups([verdicts], [m], criterion, "a")
    pool = [p for p in (0, 1) if verdicts.c[p] == 1]
    if not pool:
        assert result == ([], [])
        return
    mine = [p for p, by in enumerate(m.models) if by == "a"]
    speed = []
    for times in worlds(m, criterion):
        middle = statistics.median(times[p] for p in pool)
        speed.append([0.0 if times[p] is None else np.inf if not times[p] else float(middle / times[p]) for p in mine])
    low, high = (totals[0] for totals in result)
    assert low == pytest.approx(np.min(speed, axis=0), abs=1e-6)
    most = np.max(speed, axis=0)
    unknown = np.isnan(high)
    assert (most[unknown] > 10**6).all()
    assert high[~unknown] == pytest.approx(most[~unknown], abs=1e-6)


# rates over problems and over runs


def fixed(*halves):
    """Total times that are known."""
    low = np.array(halves, dtype=np.int64)
    return Totals(low, low, np.ones(len(low), dtype=np.int8))


def test_win_rates_by_median_best_and_worst():
    """By hand: a has the better median, b the better best; a tie and a problem without a correct sample are named."""
    problems = [
        race((3, 4, 5), (1, 6, 9), problem="first"),
        race((3, 4), (4, 3), problem="tie"),
        race((1,), (2,), problem="fast"),
        race((1,), (2,), problem="wrong", outcomes=[[1]] * 5 + [[2]]),
    ]
    a, b = (speeds(judged(*problems), problems, Criterion(), [run]) for run in "ab")
    assert (a["first"].low.tolist(), a["first"].high.tolist()) == ([6 * MS, 8 * MS, 10 * MS],) * 2
    median, best, worst = (win_rate([a], [b], reading) for reading in ("median", "best", "worst"))
    assert (median.wins, median.losses, median.value) == (2, 0, 1.0)
    assert (best.wins, best.losses, best.value) == (1, 1, 0.5)
    assert (worst.wins, worst.losses) == (2, 0)
    assert (median.ties, median.excluded, median.problems, median.samples) == (("tie",), ("wrong",), 4, (6, 6))
    assert (median.undecided, median.bounds, median.over_runs) == ((), None, None)
    assert median.interval is not None
    assert win_rate([b], [a], "best").value == 1 - best.value
    with pytest.raises(ReplayError, match="no reading 'mean'; use one of median, best, worst"):
        win_rate([a], [b], "mean")


def test_the_interval_of_a_win_rate():
    """30 problems, 20 won: Wilson holds it, problems drawn anew agree; nothing but ties gives no rate."""
    a = {f"p{i}": fixed(1 if i < 20 else 3) for i in range(30)}
    b = dict.fromkeys(a, fixed(2))
    result = win_rate([a], [b], "median", np.random.default_rng(0))
    assert result.value == pytest.approx(2 / 3)
    assert result.interval[0] < 0.5 < result.interval[1]
    assert result.bootstrapped == pytest.approx(result.interval, abs=0.04)
    tied = win_rate([a], [a], "median", np.random.default_rng(0))
    assert (tied.value, tied.interval, tied.bootstrapped, len(tied.ties)) == (None, None, None, 30)


def test_a_win_rate_over_training_runs():
    """Two runs of a win 4 and 3 of 4 against both runs of b but for the last problem, by hand below.

    Rates a1: 1 against b1 and b2; a2: 3/4 and 2/4. So the mean is 13/16; rows 1 and 5/8, columns 7/8 and 3/4, and the
    half-width is Welch's of these two pairs (scipy).
    """
    problems = [f"p{i}" for i in range(4)]
    a1 = {p: fixed(1) for p in problems}
    a2 = {p: fixed(v) for p, v in zip(problems, (1, 1, 5, 9), strict=True)}
    b1 = {p: fixed(v) for p, v in zip(problems, (2, 3, 6, 4), strict=True)}
    b2 = {p: fixed(v) for p, v in zip(problems, (2, 3, 4, 4), strict=True)}
    result = win_rate([a1, a2], [b1, b2], "best")
    assert result.by_run == pytest.approx((1 + 1 + 3 / 4 + 2 / 4) / 4)
    welch = stats.ttest_ind([1, 5 / 8], [7 / 8, 3 / 4], equal_var=False).confidence_interval()
    half = (welch.high - welch.low) / 2
    assert result.over_runs == pytest.approx((max(13 / 16 - half, 0), min(13 / 16 + half, 1)))
    assert result.value == 1.0  # of both runs' samples together the best is a1's everywhere
    assert win_rate([a1, a2], [b1], "best").over_runs is None
    assert pairs_over_runs(np.array([[0.5, np.nan], [1, 1]])) == (None, None)


def test_the_interval_over_runs_holds_its_level():
    """Of 2,000 trainings of 5 and 4 runs, each with a strength of its own, about 95% hold the true mean rate.

    A pair's rate is 0.5 + a - b; a and b are normal with an SD of 0.05, so no rate leaves [0, 1] in practice.
    """
    draw, held = np.random.default_rng(3), 0
    for _ in range(2000):
        rates = 0.5 + 0.05 * draw.standard_normal((5, 1)) - 0.05 * draw.standard_normal((1, 4))
        low, high = pairs_over_runs(rates)[1]
        held += low <= 0.5 <= high
    assert held / 2000 == pytest.approx(0.95, abs=0.015)


def test_speeds_of_several_campaigns_never_meet():
    """Candidates are not mapped; a sample's speed is the sum over tests, and one that lacks a duration has none."""
    m = measured([[1, 2], [3, 4]], reference=[0], models=("human", "a"))
    longer_run = measured([[1, 2]], reference=[0], models=("a",), campaign="two", problem="x")
    with pytest.raises(ReplayError, match="meet only through a named calibration"):
        speeds(judged(m, longer_run), [m, longer_run], Criterion(), ["a"])
    assert speeds(judged(m), [m], Criterion(), ["a", "human"])["sum"].low.tolist() == [6, 14]
    assert speeds(judged(m), [m], Criterion(clock="memory"), ["a"])["sum"].low.tolist() == []


def test_speed_is_held_against_the_median_reference():
    """By hand: the median reference takes 5 ms, so 1 ms is 5 times as fast; wrong is 0, undecided not known."""
    m = race((1, 10, 1), (), outcomes=[[1]] * 6 + [[2]])
    low, high = speed_ups(judged(m), [m], Criterion(), "a")
    assert low[0].tolist() == high[0].tolist() == [5.0, 0.5, 0.0]
    assert best_curve(low, high)[1].value == pytest.approx((5 + 5 + 0.5) / 3)
    open_ = race((1, 5), (), outcomes=[[1]] * 5 + [[Outcome.MISSING]])
    low, high = speed_ups(judged(open_), [open_], Criterion(), "a")
    assert low[0].tolist() == [5.0, 0.0]
    assert np.isnan(best_curve(low, high)[0].upper_bound)
    bare = measured([[1]], reference=[], models=("a",))
    assert speed_ups(judged(bare), [bare], Criterion(), "a") == ([], [])
