"""A crash on an optimization test under the rewards that pay for speed whatever is right: by hand, and in doubt."""

import dataclasses
from fractions import Fraction

import numpy as np
import pytest

from lapledger.replay.criteria import Criterion
from lapledger.replay.explanations.why import explain
from lapledger.replay.judging.gates import judge
from lapledger.replay.judging.reasons import kind_of
from lapledger.replay.judging.rewards import reward
from lapledger.replay.measurements import Outcome
from tests.replay.builders import MS, make_tests, measured


def ten_references(outcome, **overrides):
    """References of 10, 11, ..., 19 ms on each of ten tests, and a program of 1 ms with ten outcomes, the last row."""
    wall = [*([ms * MS] * 10 for ms in range(10, 20)), [MS] * 10]
    return measured(wall, reference=range(10), outcome=[*[[1] * 10] * 10, outcome], **overrides)


CRASHED = [1, 1, 1, 3, 1, 1, 1, 1, 1, 1]


@pytest.mark.parametrize("crash", [Outcome.RUN_TIME_ERROR, Outcome.MEMORY_LIMIT, Outcome.OUTPUT_LIMIT])
@pytest.mark.parametrize(
    ("change", "expected"),
    [  # r = 100 on one test of ten: s = 10, behind the fastest reference alone (0, 11.1, ...): q = 1/10
        ({"reward": "optimization-only"}, -1),
        ({"reward": "additive"}, -1),  # (-1 - 1)/2
        ({"reward": "multitask"}, -1),
        ({"reward": "optimization-only", "reading": "score"}, -1),
        ({"reward": "optimization-only", "tau": "100"}, -1),
        ({"reward": "optimization-only", "reading": "zero"}, -1),
        ({"reward": "optimization-only", "shape": "continuous"}, 0.8),  # 1 - 2/10
        ({"reward": "optimization-only", "shape": "split"}, -0.1),  # (-1 + 0.8)/2
        ({"reward": "additive", "shape": "split", "split": "0.25"}, -0.325),  # (-1 - 0.25 + 0.75 * 0.8)/2
    ],
)
def test_a_crash_fails_the_gate_where_speed_is_paid_whatever_is_right(change, crash, expected):
    """A program that is the fastest on nine tests and crashes on one: c = 0, q = 1/10, g = 0."""
    criterion = Criterion(**{"tau": "30", **change})
    verdicts = judge(ten_references([crash if outcome_of == 3 else outcome_of for outcome_of in CRASHED]), criterion)
    assert (verdicts.c[-1], verdicts.g[-1]) == (0, 0)
    if criterion.reading != "zero":
        assert Fraction(int(verdicts.q_hi[-1]), int(verdicts.q_den[-1])) == Fraction(1, 10)
    assert reward(verdicts, criterion, group=np.ones(11, dtype=np.int64))[-1] == pytest.approx(expected)


def test_a_wrong_answer_or_a_kill_is_no_crash():
    """The same program wrong or killed on that test: fast enough, and paid for it; under other rewards q alone asks."""
    paid = Criterion(tau="30", reward="optimization-only")
    for outcome in (Outcome.WRONG_ANSWER, Outcome.TIME_LIMIT):
        verdicts = judge(ten_references([outcome if outcome_of == 3 else outcome_of for outcome_of in CRASHED]), paid)
        assert (verdicts.c[-1], verdicts.g[-1], reward(verdicts, paid)[-1]) == (0, 1, 1)
    verdicts = judge(ten_references(CRASHED), Criterion(tau="30"))
    assert (verdicts.c[-1], verdicts.g[-1], verdicts.status[-1]) == (0, 1, 0)


NEVER_RUN = [1, 2, 1, 0, 1, 1, 1, 1, 1, 1]
KILLED = [1, 2, 1, 6, 1, 1, 1, 1, 1, 1]


@pytest.mark.parametrize(
    ("outcome", "change", "g"),
    [
        (NEVER_RUN, {}, -1),
        (NEVER_RUN, {"missing": "skip"}, 1),
        (NEVER_RUN, {"missing": "fail"}, 0),
        (KILLED, {}, 1),
        (KILLED, {"limit_ms": 5_000}, 1),  # cut before
        (KILLED, {"limit_ms": 20_000}, -1),  # with more time it might have crashed
        (KILLED, {"timeout_ms": 20_000}, -1),
        (KILLED, {"timeout_ms": 20_000, "limit_ms": 5_000}, 1),
        ([1, 3, *KILLED[2:]], {"limit_ms": 20_000}, 0),
    ],
)
def test_what_may_have_crashed_leaves_the_gate_open(outcome, change, g):
    """Wrong on one test, and never run or killed at 10 s on another; at tau = 100 nothing but a crash fails g."""
    criterion = Criterion(reward="optimization-only", timeouts="tolerated", **change)
    verdicts = judge(ten_references(outcome), criterion)
    assert verdicts.g[-1] == g
    np.testing.assert_array_equal(reward(verdicts, criterion)[-1], {1: 1.0, 0: -1.0, -1: np.nan}[g])


def test_what_could_have_finished_with_more_time_is_not_idle():
    """Wrong and killed at 4 ms on each test: e = -1; a limit of 5 ms was never run, and might have been kept."""
    m = measured(np.array([[4, 4], [5, 5]]) * MS, reference=[1], outcome=[[6, 6], [1, 1]], limit=4 * MS)
    known, longer = (Criterion(reward="optimization-only", missing="fail", limit_ms=ms) for ms in (4, 5))
    assert judge(m, known).none_finished.tolist() == [True, False]
    assert judge(m, longer).none_finished.tolist() == [False, False]


def test_a_crash_is_reported():
    """The reason names the test, also where correctness does not look at it; a filter in doubt leaves it open."""
    m = ten_references(CRASHED, tests=dataclasses.replace(make_tests(10), original=np.arange(10) == 0))
    criterion = Criterion(tau="30", reward="additive", correctness="original")
    verdicts = judge(m, criterion)
    assert (verdicts.c[-1], verdicts.g[-1]) == (1, 0)
    assert verdicts.reason[-1] == "crashed on t3 (run_time_error)"
    assert kind_of(verdicts.reason[-1]) == "crashed on an optimization test"
    assert explain(m, criterion, "p10").deciding_test == "t3"
    wall, outcome = np.array([[1, 9], [1, 9], [4, 9]]) * MS, [[3, 1], [1, 1], [6, 1]]
    doubt = measured(wall, reference=[1, 2], outcome=outcome, limit=4 * MS)
    verdicts = judge(doubt, Criterion(keep_ms=5, timeouts="tolerated", reward="additive"))
    assert (verdicts.kept.tolist(), verdicts.g[0]) == ([-1, 1], -1)
