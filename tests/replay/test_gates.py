"""Gates: what counts for correctness, exact thresholds, and nothing decided that was never seen."""

import dataclasses
import itertools
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lapledger.replay.criteria import Criterion
from lapledger.replay.errors import ReplayError
from lapledger.replay.estimates import estimate
from lapledger.replay.judging.context import fast
from lapledger.replay.judging.gates import Status, judge
from lapledger.replay.measurements import Outcome
from tests.replay.builders import MS, make_tests, measured, problems

ALL = tuple(Outcome)
O = Outcome  # noqa: E741


@pytest.mark.parametrize("reading", ["score", "leaderboard"])
def test_a_program_exactly_at_30_percent_passes(reading):
    """Behind 3m of 10m references q is exactly 3/10 and passes p_30; one reference more and it fails, for every m."""
    for m in range(1, 20):
        wall = np.arange(1, 10 * m + 1)[:, None] * 2
        at, over = [[6 * m + 1]], [[6 * m + 3]]
        problem = measured(np.concatenate([at, over, wall]), reference=range(2, 10 * m + 2))
        verdicts = judge(problem, Criterion(tau="30", reading=reading))
        assert Fraction(int(verdicts.q_lo[0]), int(verdicts.q_den[0])) == Fraction(3, 10)
        assert verdicts.status[:2].tolist() == [1, 0]


@given(st.integers(1, 10**9), st.integers(1, 10**6), st.integers(0, 10**9))
def test_the_speed_gate_compares_exactly(numerator, denominator, tau):
    """q <= tau/100 as fractions decide it, for any denominators."""
    text = f"{tau // 10**7 % 100}.{tau % 10**7 + 1:09d}"
    criterion = Criterion(tau=text)
    q, den = np.array([numerator]), np.array([denominator])
    expected = Fraction(numerator, denominator) <= Fraction(text) / 100
    assert bool(fast(q, q, den, pool_size=den, criterion=criterion)[0]) == expected


def test_no_float_decides_at_any_complete_tau():
    """q exactly at tau passes and one step above fails: 0.29 * 100 is 28.999... in floats, and exact here."""
    scale = np.arange(1, 50)
    for tau in range(1, 100):
        at, den = tau * scale, 100 * scale
        for q, expected in ((at, 1), (at + 1, 0)):
            assert (fast(q, q, den, pool_size=den, criterion=Criterion(tau=tau)) == expected).all()


def single(outcomes, criterion, *, wall=None, tests=None, limit=10_000 * MS):
    """The verdict on one program with the outcomes given, of 1 ms each, against no references."""
    wall = [[1 * MS] * len(outcomes)] if wall is None else [wall]
    tests = make_tests(len(outcomes), correctness=1) if tests is None else tests
    verdicts = judge(measured(wall, reference=[], outcome=[outcomes], tests=tests, limit=limit), criterion)
    return int(verdicts.status[0]), verdicts.reason[0]


@pytest.mark.parametrize(
    ("outcomes", "change", "status", "reason"),
    [
        ([O.OK, O.OK], {}, 1, "correct"),
        ([O.WRONG_ANSWER, O.OK], {}, 0, "wrong_answer on t0"),
        ([O.OK, O.WRONG_ANSWER], {"timeouts": "tolerated"}, 0, "wrong_answer on t1"),
        ([O.OK, O.RUN_TIME_ERROR], {}, 0, "run_time_error on t1"),
        ([O.OK, O.MEMORY_LIMIT], {}, 0, "memory_limit on t1"),
        ([O.OK, O.OUTPUT_LIMIT], {}, 0, "output_limit on t1"),
        ([O.OK, O.TIME_LIMIT], {}, 0, "time_limit on t1"),
        ([O.OK, O.TIME_LIMIT], {"timeouts": "tolerated"}, 1, "correct"),
        ([O.TIME_LIMIT, O.OK], {"timeouts": "tolerated"}, 0, "time_limit on t0"),
        ([O.OK, O.MISSING], {}, -1, "missing 1 test"),
        ([O.MISSING, O.MISSING], {}, -1, "missing 2 tests"),
        ([O.OK, O.MISSING], {"missing": "fail"}, 0, "missing on t1"),
        ([O.MISSING, O.WRONG_ANSWER], {}, 0, "wrong_answer on t1"),
        ([O.OK, O.WRONG_ANSWER], {"correctness": "original"}, 1, "correct"),
        ([O.WRONG_ANSWER, O.OK], {"correctness": "original"}, 0, "wrong_answer on t0"),
        ([O.OK, O.MISSING], {"correctness": "original"}, 1, "correct"),
    ],
)
def test_the_correctness_gate(outcomes, change, status, reason):
    """t0 is an original correctness test, t1 an optimization test: what fails, what is tolerated, what stays open."""
    tests = make_tests(2, correctness=1, original=1)
    assert single(outcomes, Criterion(**change), tests=tests) == (status, reason)


@pytest.mark.parametrize("kind", ["correctness", "original"])
@pytest.mark.parametrize("change", [{}, {"correctness": "original"}, {"limit_ms": 5_000}, {"limit_ms": 20_000}])
def test_a_test_of_both_kinds_tolerates_no_timeout(kind, change):
    """Only a test that is nothing but an optimization test may be too slow: base tests are to be passed."""
    tests = dataclasses.replace(make_tests(2, original=1), **{kind: np.array([True, True])})
    ignored = kind == "correctness" and change.get("correctness") == "original"
    expected = (1, "correct") if ignored else (0, "time_limit on t1")
    assert single([O.OK, O.TIME_LIMIT], Criterion(timeouts="tolerated", **change), tests=tests) == expected


def test_no_counted_test_proves_nothing():
    """Without a test that counts correctness is undecided, never granted."""
    assert single([O.OK], Criterion(correctness="original")) == (-1, "no test counts for correctness")


@pytest.mark.parametrize(
    ("outcome", "wall_ms", "timeout_ms", "status"),
    [
        (O.OK, 500, 500, 1),  # exactly at the limit is in time
        (O.OK, 501, 500, 0),
        (O.OK, 501, None, 1),
        (O.TIME_LIMIT, 2000, 2000, 0),  # killed at 2 s: longer than any limit up to that
        (O.TIME_LIMIT, 2000, 1000, 0),
        (O.TIME_LIMIT, 2000, 2001, -1),  # might have ended in time, in any way
        (O.OK, -1, 500, -1),  # ended right, but no duration is known
    ],
)
def test_a_judged_limit_may_tighten_but_never_guess(outcome, wall_ms, timeout_ms, status):
    """Under a judged limit a longer duration is a timeout; a run killed below that limit is undecided."""
    wall = [1 * MS, wall_ms * MS if wall_ms > 0 else -1]
    criterion = Criterion(timeout_ms=timeout_ms)
    assert single([O.OK, outcome], criterion, wall=wall, limit=2000 * MS)[0] == status


def test_a_timeout_above_the_judged_limit_is_ranked_as_measured():
    """A duration over the judged limit is known: only the correctness gate changes, not the rank."""
    m = measured([[7 * MS], [5 * MS], [9 * MS]], reference=[1, 2])
    verdicts = judge(m, Criterion(tau="50", timeout_ms=6, timeouts="tolerated"))
    assert (verdicts.k_lo[0, 0], verdicts.k_hi[0, 0]) == (2, 2)
    assert verdicts.status[0] == Status.PASS


def test_stale_labels_do_not_enter_the_pool():
    """A reference labelled accepted that fails by re-execution ranks nobody; the pool size says so."""
    m = measured([[5], [1], [9]], reference=[1, 2], outcome=[[1], [2], [1]])
    verdicts = judge(m, Criterion(tau="50"))
    assert verdicts.pool_size.tolist() == [1, 1, 0]
    assert verdicts.status[0] == Status.PASS


def test_a_small_pool_decides_correctness_only():
    """Below min_references p_tau is undecided, p_100 and a wrong answer are not."""
    m = measured([[5], [1], [9]], reference=[2], outcome=[[1], [2], [1]])
    strict = judge(m, Criterion(tau="50", min_references=2))
    assert strict.status.tolist() == [-1, 0, -1]
    assert strict.reason[0] == "pool of 1 reference, 2 needed"
    assert judge(m, Criterion(min_references=2)).status.tolist() == [1, 0, 1]


def test_an_undecided_verdict_reports_what_it_lacks():
    """Missing tests, a censored rank, no optimization test: each has its own words."""
    m = measured([[4], [3], [5]], reference=[1, 2], outcome=[[6], [1], [1]], limit=4)
    assert "censored: q from 1/2 = 0.5 to 3/4 = 0.75" in judge(m, Criterion(tau="50", timeouts="tolerated")).reason[0]
    bare = measured([[4], [3]], reference=[1], tests=make_tests(1, correctness=1))
    assert judge(bare, Criterion(tau="50")).reason[0] == "no optimization test"


def test_a_missing_test_cannot_save_a_slow_program():
    """With one of two tests missing, last on the other: q is at least 1/2, so p_30 by score fails for certain."""
    m = measured([[9, 1], [1, 1], [2, 2]], reference=[1, 2], outcome=[[1, 0], [1, 1], [1, 1]])
    verdicts = judge(m, Criterion(tau="30", reading="score"))
    assert (verdicts.c[0], verdicts.status[0]) == (-1, 0)
    assert verdicts.reason[0] == "too slow: q 1/2 = 0.5 > 0.3"


@given(m=problems(outcomes=ALL), data=st.data())
@settings(deadline=None)
def test_a_pass_at_tau_passes_at_every_larger_tau(m, data):
    """Verdicts are monotone in tau, undecided ones in between."""
    taus = sorted(data.draw(st.lists(st.integers(1, 100), min_size=2, max_size=4)))
    change = {"reading": data.draw(st.sampled_from(["leaderboard", "score"])), "timeouts": "tolerated"}
    order = {0: 0, -1: 1, 1: 2}
    result = [[order[s] for s in judge(m, Criterion(tau=tau, **change)).status.tolist()] for tau in taus]
    assert all(a <= b for low, high in itertools.pairwise(result) for a, b in zip(low, high, strict=True))


def test_programs_of_two_campaigns_are_not_compared():
    """Nothing but a named calibration lets them meet: estimates refuse, in one line."""
    single, second = (measured([[1], [2]], reference=[1], campaign=name, problem=name) for name in ("may", "june"))
    verdicts = [judge(m, Criterion()) for m in (single, second)]
    with pytest.raises(ReplayError, match="campaigns june, may meet only through a named calibration"):
        estimate(verdicts, [single, second], 1)
