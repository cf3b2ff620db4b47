"""Explanations: the least change of one timing, or of all, that flips a verdict; exact, and one step less does not."""

import dataclasses
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lapledger.replay.criteria import Criterion
from lapledger.replay.errors import ReplayError
from lapledger.replay.explanations.why import FACTOR_STEPS, explain
from lapledger.replay.judging.gates import Status, judge
from lapledger.replay.judging.statistics import MONOTONE
from lapledger.replay.measurements import Outcome
from tests.replay.builders import MS, make_tests, measured, problems

SOME = (Outcome.OK,) * 8 + (Outcome.TIME_LIMIT, Outcome.MISSING, Outcome.WRONG_ANSWER)
TAUS = st.sampled_from([10, 30, 50, 80, 100])
PLAIN = st.builds(
    Criterion,
    tau=TAUS,
    reading=st.sampled_from(["leaderboard", "score"]),
    timeouts=st.sampled_from(["fail", "tolerated"]),
    clock=st.just("wall"),
)
DURATIONS = st.builds(
    Criterion,
    tau=TAUS,
    reading=st.sampled_from(["leaderboard", "over-limit", "raw-duration", "zero"]),
    statistic=st.sampled_from(sorted(MONOTONE)),
    percentile=st.sampled_from(["mean", "strict", "weak", "rank"]),
    timeouts=st.just("tolerated"),
    in_time=st.sampled_from(["ignored", "required"]),
    limit_quantile=st.sampled_from([None, 30, 80]),
    limit_ranked=st.sampled_from([None, 30, 80]),
    missing=st.sampled_from(["undecided", "skip"]),
    reward=st.sampled_from(["collapsed-binary", "additive"]),
)
CRITERIA = st.one_of(PLAIN, DURATIONS)


def changeable(m, criterion, row):
    """The tests whose durations count: finished, wrong answers too where they are ranked."""
    ended = m.outcome[row] == Outcome.OK
    return ended | ((m.outcome[row] == Outcome.WRONG_ANSWER) & criterion.ranks_wrong)


def status_with(m, criterion, row, durations):
    """The verdict after the program's finished runs took other durations, judged from scratch."""
    wall = m.wall_ns.copy()
    wall[row, :, 0] = durations
    return int(judge(dataclasses.replace(m, wall_ns=wall), criterion).status[row])


def spread_out(m):
    """The same problem with durations in the thousands, so that factors have room."""
    return dataclasses.replace(m, wall_ns=m.wall_ns * 1000, limit_ns=np.where(m.limit_ns > 0, m.limit_ns * 1000, -1))


@given(m=problems(outcomes=SOME), criterion=CRITERIA, data=st.data())
@settings(deadline=None, max_examples=100)
def test_the_smallest_change_flips_and_one_step_less_does_not(m, criterion, data):
    """Applied to the measurements and judged again: the change flips, 1 ns less does not, nor does any other test."""
    m = spread_out(m)
    row = data.draw(st.integers(0, len(m.programs) - 1))
    explanation = explain(m, criterion, m.programs[row])
    now = m.wall_ns[row, :, 0]
    finished = np.flatnonzero(changeable(m, criterion, row))
    opposite = {Status.PASS: 0, Status.FAIL: 1}.get(explanation.status)
    if explanation.change_ns is not None:
        less = abs(explanation.change_ns) - 1
        column = m.tests.ids.index(explanation.change_test)
        assert status_with(m, criterion, row, now + explanation.change_ns * (np.arange(len(now)) == column)) == opposite
    else:
        less = 10**6  # farther than anything here
    sign = 1 if explanation.status == Status.PASS else -1
    for test in finished if opposite is not None else []:
        step = sign * less if sign > 0 else -min(less, int(now[test]) - 1)
        assert status_with(m, criterion, row, now + step * (np.arange(len(now)) == test)) != opposite


@given(m=problems(outcomes=SOME), criterion=CRITERIA, data=st.data())
@settings(deadline=None, max_examples=100)
def test_the_common_factor_flips_and_one_step_less_does_not(m, criterion, data):
    """Where no single timing can: the factor flips, a millionth nearer to 1 does not."""
    m = spread_out(m)
    row = data.draw(st.integers(0, len(m.programs) - 1))
    explanation = explain(m, criterion, m.programs[row])
    now, finished = m.wall_ns[row, :, 0], changeable(m, criterion, row)
    opposite = {Status.PASS: 0, Status.FAIL: 1}.get(explanation.status)

    def status_at(factor):
        scaled = [max(1, d * factor.numerator // factor.denominator) for d in now.tolist()]
        return status_with(m, criterion, row, np.where(finished, scaled, now))

    if explanation.factor is not None:
        assert explanation.change_ns is None
        nearer = explanation.factor + Fraction(1 if explanation.factor < 1 else -1, FACTOR_STEPS)
        assert (status_at(explanation.factor), status_at(nearer) == opposite) == (opposite, False)
    elif explanation.change_ns is None and opposite is not None:
        assert status_at(Fraction(0)) != opposite or explanation.status == Status.PASS
        assert status_at(Fraction(10**6)) != opposite or explanation.status == Status.FAIL


def test_a_slow_program_by_hand():
    """d = 30 among references 10, 20, 40, 50 has q 1/2; p_30 needs q <= 0.3: one reference ahead at most, 19 ns."""
    m = measured([[30], [10], [20], [40], [50]], reference=[1, 2, 3, 4])
    explanation = explain(m, Criterion(tau="30", reading="score"), "p0")
    assert (explanation.status, explanation.deciding_test, explanation.change_test, explanation.change_ns) == (
        Status.FAIL,
        "t0",
        "t0",
        -11,
    )
    assert (explanation.q_lo, explanation.distance_q, explanation.factor) == (Fraction(1, 2), Fraction(1, 5), None)
    assert explanation.distance_points == pytest.approx(20)
    assert explanation.note == "11 ns faster on t0 would flip the verdict"


def test_points_to_the_leaderboard_threshold():
    """Own scores of 10, 20, 30, 40 are 0, 1/3, 2/3, 1; q <= 1/2 holds up to a score of 2/3, so 3/4 is 8.33 above."""
    m = measured([[35], [10], [20], [30], [40]], reference=[1, 2, 3, 4])
    explanation = explain(m, Criterion(tau="50"), "p0")
    assert explanation.q_lo == Fraction(3, 4)
    assert explanation.distance_points == pytest.approx(100 * (3 / 4 - 2 / 3))


def test_only_all_timings_together_can_flip():
    """Last on two tests: one test alone leaves a score of 1/2; both must fall below 10 ns, by a factor under 10/40."""
    m = measured([[40, 40], [10, 10]], reference=[1])
    explanation = explain(m, Criterion(tau="40", reading="score"), "p0")
    assert explanation.change_ns is None
    assert explanation.factor == Fraction(249_999, 1_000_000)
    assert "0.249999" in explanation.note


def test_a_judged_limit_is_a_breakpoint():
    """2 ns over a judged limit of 1 ms: exactly 2 ns less would pass; a passing run may lose the rest of its limit."""
    m = measured([[1_000_002], [999_990]], reference=[])
    late, good = (explain(m, Criterion(timeout_ms=1), name) for name in ("p0", "p1"))
    assert (late.status, late.change_ns, late.deciding_test) == (Status.FAIL, -2, "t0")
    assert (good.status, good.change_ns) == (Status.PASS, 11)


@pytest.mark.parametrize(
    ("outcome", "reason"),
    [(Outcome.WRONG_ANSWER, "wrong_answer on t0"), (Outcome.RUN_TIME_ERROR, "run_time_error on t0")],
)
def test_no_timing_mends_a_wrong_program(outcome, reason):
    """A wrong answer or a crash is explained as such: no change, no factor, and the note says so."""
    m = measured([[1, 1], [5, 5]], reference=[1], outcome=[[outcome, 1], [1, 1]])
    explanation = explain(m, Criterion(tau="50"), "p0")
    assert (explanation.status, explanation.deciding_test, explanation.change_ns, explanation.factor) == (
        Status.FAIL,
        "t0",
        None,
        None,
    )
    assert explanation.note == f"no timing can flip the verdict ({reason})"


def test_an_undecided_verdict_wants_evidence():
    """Nothing is computed for an undecided verdict; the note names what is missing."""
    m = measured([[1, 1], [5, 5]], reference=[1], outcome=[[1, 0], [1, 1]], tests=make_tests(2, correctness=1))
    explanation = explain(m, Criterion(tau="50"), "p0")
    assert (explanation.status, explanation.deciding_test, explanation.change_ns, explanation.factor) == (
        Status.UNDECIDED,
        "t1",
        None,
        None,
    )
    assert "missing 1 test" in explanation.note


def test_an_unknown_program_is_refused():
    """The message names the program."""
    with pytest.raises(ReplayError, match="'nobody'"):
        explain(measured([[1]], reference=[]), Criterion(), "nobody")


def test_a_limit_names_the_late_test_and_what_it_lacks():
    """References 10 and 20 on each test: of their slowest, 20, a run of 26 ns is 6 over, and 6 less would pass."""
    m = measured([[15, 26], [10, 10], [20, 20]], reference=[1, 2])
    criterion = Criterion(limit_quantile="100", in_time="required", timeouts="tolerated")
    explanation = explain(m, criterion, "p0")
    assert (explanation.status, explanation.deciding_test, explanation.change_test, explanation.change_ns) == (
        Status.FAIL,
        "t1",
        "t1",
        -6,
    )
    assert explanation.reason == "over the limit on t1 (2.6e-05 ms)"


def test_no_change_is_searched_under_a_slope():
    """A slower run may rank better there, so a bisection would mislead: the note says so."""
    m = measured([[30, 50], [10, 40], [20, 30]], reference=[1, 2])
    explanation = explain(m, Criterion(tau="30", statistic="slope"), "p0")
    assert (explanation.change_ns, explanation.factor) == (None, None)
    assert explanation.note == "not searched: under the statistic 'slope' a slower run may rank better"


def test_no_change_is_searched_for_a_reference_that_shapes_the_filter():
    """Its own durations choose the tests; those of a candidate do not."""
    m = measured(np.array([[3], [4], [5]]) * MS, reference=[1, 2])
    criterion = Criterion(tau="30", keep_ms=1)
    assert explain(m, criterion, "p1").note.startswith("not searched: as a reference it takes part")
    assert explain(m, criterion, "p0").change_ns is not None


def test_a_duration_of_nothing_has_no_factor():
    """A clock that read 0: no factor moves it, and nothing is divided by it."""
    m = measured([[1]], reference=[], cpu_ns=np.array([[[0]]]))
    assert explain(m, Criterion(clock="cpu"), "p0").factor is None


def test_no_distance_in_points_where_the_references_are_in_doubt():
    """A killed reference's own score is an interval, so the largest score that passes is not known."""
    m = measured([[3], [1], [10], [12], [4]], reference=[1, 2, 3, 4], outcome=[[1]] * 4 + [[6]], limit=4)
    explanation = explain(m, Criterion(tau="50", timeouts="tolerated"), "p0")
    assert (explanation.status, explanation.distance_q, explanation.distance_points) == (
        Status.PASS,
        Fraction(-1, 4),
        None,
    )
