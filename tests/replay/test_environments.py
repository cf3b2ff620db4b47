"""Every environment on one small example by hand: what it makes of c, g and q, and what it does not know."""

import dataclasses

import numpy as np
import pytest

from lapledger.replay.criteria import ENVIRONMENTS, PRESETS, Criterion
from lapledger.replay.estimates import estimate
from lapledger.replay.explanations.example import example
from lapledger.replay.judging.gates import judge, share_within
from lapledger.replay.measurements import Outcome
from tests.replay.builders import MS, make_tests, measured

CANDIDATES = ("fast", "mixed", "slow", "wrong", "overfit")
BY_HAND = {
    # only the test `small` counts, which all pass
    "rlvr": ("1 1 0", "1 1 0", "1 1 0", "1 1 0", "1 1 0"),
    # killed on o3, wrong on o2, wrong on `edge`
    "rlvr-added-tests": ("1 1 0", "1 1 0", "0 1 0", "0 1 0", "0 1 0"),
    # means are 70, 500 and 3000 ms: o2 and o3 stay. There the references score 0, 25, 50, 75, 100; fast (20 + 20)/2 is
    # behind one, mixed (80 + 0)/2 behind two, slow 100 behind four and beside one, wrong (100 + 0)/2 behind 2 beside 1
    "pre-0.1s": ("1 1 1/5", "1 1 2/5", "1 0 9/10", "0 0 1/2", "0 1 1/5"),
    "pre-0.5s": ("1 1 1/5", "1 1 2/5", "1 0 9/10", "0 0 1/2", "0 1 1/5"),
    # o3 alone: references 0, 25, 50, 75, 100; mixed and wrong are the fastest and tie with the first
    "pre-2s": ("1 1 1/5", "1 1 1/10", "1 0 9/10", "1 1 1/10", "0 1 1/5"),
    "pre-10m-characters": ("1 1 1/5", "1 1 1/10", "1 0 9/10", "1 1 1/10", "0 1 1/5"),
    # ceil(1.5) = 2 slowest of three
    "pre-slowest-50": ("1 1 1/5", "1 1 2/5", "1 0 9/10", "0 0 1/2", "0 1 1/5"),
    "timeout-0.5s": ("1 0 1/3", "1 0 2/3", "1 0 2/3", "0 0 1/3", "0 0 1/3"),
    "timeout-2s": ("1 1 0", "1 1 0", "1 0 1/3", "0 0 1/3", "0 1 0"),
    # the first of five on each test: 50, 300, 1000
    "relative-p20": ("1 0 1", "1 0 2/3", "1 0 1", "0 0 1/3", "0 0 1"),
    # the third: 70, 500, 3000
    "relative-p50": ("1 1 0", "1 0 1/3", "1 0 1", "0 0 1/3", "0 1 0"),
    # the fourth: 80, 600, 4000
    "relative-p80": ("1 1 0", "1 0 1/3", "1 0 1", "0 0 1/3", "0 1 0"),
    # references by score: R2 25, R1 33.3, R3 50, R5 66.7, R4 75. R2 alone: 60, 400, 2000
    "ranked-worst-p20": ("1 1 0", "1 0 2/3", "1 0 1", "0 0 1/3", "0 1 0"),
    # R2, R1, R3: 90, 500, 3000
    "ranked-worst-p50": ("1 1 0", "1 0 1/3", "1 0 1", "0 0 1/3", "0 1 0"),
    # and R5: 90, 700, 5000
    "ranked-worst-p80": ("1 1 0", "1 1 0", "1 0 1", "0 0 1/3", "0 1 0"),
    # fast 20, before all; mixed (40 + 80 + 0)/3 = 40, behind R2 and R1; slow 100; wrong (0 + 100 + 0)/3, tied with R1
    "top-80": ("1 1 0", "1 1 2/5", "0 0 1", "0 1 3/10", "0 1 0"),
    "top-50": ("1 1 0", "1 1 2/5", "0 0 1", "0 1 3/10", "0 1 0"),
    "top-30": ("1 1 0", "1 0 2/5", "0 0 1", "0 1 3/10", "0 1 0"),
    "top-10": ("1 1 0", "1 0 2/5", "0 0 1", "0 0 3/10", "0 1 0"),
    "per-test-top-80": ("1 1 1/5", "1 1 2/5", "0 0 1", "0 1 1/3", "0 1 1/5"),
    "per-test-top-50": ("1 1 1/5", "1 1 2/5", "0 0 1", "0 1 1/3", "0 1 1/5"),
    "per-test-top-30": ("1 1 1/5", "1 0 2/5", "0 0 1", "0 0 1/3", "0 1 1/5"),
}


def summary(verdicts, program):
    """c, g and q of one program in words."""
    row = verdicts.programs.index(program)
    assert verdicts.q_lo[row] == verdicts.q_hi[row]
    top, bottom = int(verdicts.q_lo[row]), int(verdicts.q_den[row])
    common = np.gcd(top, bottom)
    q = f"{top // common}/{bottom // common}" if bottom // common > 1 else f"{top // common}"
    return f"{verdicts.c[row]} {verdicts.g[row]} {q}"


@pytest.mark.parametrize("name", ENVIRONMENTS)
def test_an_environment_by_hand(name):
    """c, g and q of five programs, as the table of reductions has them."""
    verdicts = judge(example(), PRESETS[name])
    assert tuple(summary(verdicts, program) for program in CANDIDATES) == BY_HAND[name]


def test_every_environment_is_computed_by_hand():
    """No preset is left out of the table."""
    assert set(BY_HAND) == set(ENVIRONMENTS)


# before execution


def kept(m, **change):
    return judge(m, Criterion(**change)).kept.tolist()


def test_filters_have_two_directions():
    """Means 70, 500, 3000 ms; 1,000, 100,000 and 12,000,000 characters; a bound itself stays either way."""
    m = example()
    assert kept(m, keep_ms=500) == [0, 0, 0, 1, 1]
    assert kept(m, keep_ms=500, keep="at_most") == [0, 0, 1, 1, 0]
    assert kept(m, keep_chars=100_000) == [0, 0, 0, 1, 1]
    assert kept(m, keep_chars=100_000, keep="at_most") == [0, 0, 1, 1, 0]
    assert kept(m, keep_share=34) == [0, 0, 0, 1, 1]  # 1.02 tests are two
    assert kept(m, keep_share=33, keep="at_most") == [0, 0, 1, 0, 0]
    assert kept(m, keep_ms=500, keep_chars=12_000_000) == [0, 0, 0, 0, 1]  # both must hold


def test_tests_equal_to_the_last_one_kept_stay():
    """The choice does not hang on the order of tests: of three equal tests, one third is all three."""
    assert kept(measured([[5, 5, 5], [7, 7, 7]], reference=[1]), keep_share=30) == [1, 1, 1]


def test_a_test_that_is_filtered_out_still_counts_for_correctness_if_it_is_of_both_kinds():
    """t0 is short, original and an optimization test: dropped by the filter, a wrong answer there still fails."""
    tests = dataclasses.replace(make_tests(2), original=np.array([True, False]))
    m = measured(np.array([[1, 9], [1, 9]]) * MS, reference=[1], outcome=[[2, 1], [1, 1]], tests=tests)
    verdicts = judge(m, Criterion(keep_ms=5))
    assert (verdicts.kept.tolist(), verdicts.c.tolist()) == ([0, 1], [0, 1])


def test_a_problem_without_a_test_leaves_the_environment_and_is_counted():
    """No test of the first problem takes 8 ms: nothing is said of its programs, and the estimate counts it apart."""
    short = measured(np.array([[1], [2]]) * MS, reference=[1], problem="short", models=("model", "human"))
    long = measured(np.array([[8], [9]]) * MS, reference=[1], problem="long", models=("model", "human"))
    criterion = Criterion(tau="50", keep_ms=8)
    verdicts = [judge(m, criterion) for m in (short, long)]
    assert [v.excluded for v in verdicts] == [True, False]
    assert (verdicts[0].c.tolist(), verdicts[0].status.tolist()) == ([-1, -1], [-1, -1])
    assert verdicts[0].reason[0] == "excluded: the filter keeps no optimization test"
    human, model = estimate(verdicts, [short, long], 1)
    assert (model.model, model.problems, model.excluded, model.value) == ("model", 1, 1, 1.0)
    assert (human.problems, human.undecided) == (1, 1)  # the only reference has nobody to be ranked against


def test_all_problems_left_out_is_no_estimate():
    """No value is made up of nothing."""
    m = measured([[1], [2]], reference=[1])
    (estimated,) = estimate([judge(m, Criterion(keep_ms=8))], [m], 1)
    assert (estimated.problems, estimated.excluded, np.isnan(estimated.value), estimated.interval) == (0, 1, True, None)


def test_a_mean_that_a_killed_reference_leaves_unknown_is_undecided():
    """References 3 ms and one killed at 4 ms: their mean is above 3.5 ms. At least 3 is known, at least 5 is not."""
    m = measured(np.array([[1], [3], [4]]) * MS, reference=[1, 2], outcome=[[1], [1], [6]], limit=4 * MS)
    for bound, stays in ((3, 1), (5, -1)):
        verdicts = judge(m, Criterion(tau="50", keep_ms=bound, timeouts="tolerated"))
        assert (verdicts.kept.tolist(), verdicts.excluded) == ([stays], False)
    assert (verdicts.c[0], verdicts.g[0]) == (-1, -1)
    assert verdicts.reason[0] == "filter undecided on 1 test: the references' mean is not known"


# during execution


def test_a_limit_on_optimization_tests_spares_the_others():
    """`limit_ms` is judged on optimization tests only, `timeout_ms` on every test."""
    m = measured(np.array([[9, 1]]) * MS, reference=[], tests=make_tests(2, correctness=1))
    assert judge(m, Criterion(limit_ms=5)).status.tolist() == [1]
    assert judge(m, Criterion(timeout_ms=5)).status.tolist() == [0]


@pytest.mark.parametrize(("timeouts", "c"), [("fail", 0), ("tolerated", 1)])
def test_a_timeout_is_tolerated_or_not(timeouts, c):
    """Over its limit: late either way, and wrong only where timeouts are not tolerated."""
    m = measured(np.array([[9], [1], [2]]) * MS, reference=[1, 2])
    verdicts = judge(m, Criterion(limit_quantile="50", timeouts=timeouts, in_time="required", reading="over-limit"))
    assert (verdicts.c[0], verdicts.g[0]) == (c, 0)
    assert verdicts.reason[0] == ("time_limit on t0" if c == 0 else "over the limit on t0 (9 ms)")


def test_the_smallest_of_several_limits_counts():
    """5 ms, and half of the slowest reference's 8 ms: 4 ms, with the factor."""
    m = measured(np.array([[4], [5], [8]]) * MS, reference=[1, 2])
    late = Criterion(limit_ms=5, limit_quantile="100", limit_factor="0.5", in_time="required", timeouts="tolerated")
    assert judge(m, late).g.tolist() == [1, 0, 0]  # each reference is held to half of the other


def test_a_reference_is_held_to_limits_without_itself():
    """The fastest of three is over the limit that the others set for it only if it is slower than the second."""
    m = measured([[1], [2], [3]], reference=[0, 1, 2])
    fastest = Criterion(limit_quantile="1", in_time="required", timeouts="tolerated")
    assert judge(m, fastest).g.tolist() == [1, 0, 0]  # limits 2, 1, 1


def test_loosening_a_limit_past_the_cap_is_shown_and_never_guessed():
    """Killed at 2 s: late at 2 s and below; at 3 s nobody knows, and the verdict says how many runs it would need."""
    m = measured([[2000 * MS], [1 * MS]], reference=[1], outcome=[[6], [1]], limit=2000 * MS)
    judged = [judge(m, dataclasses.replace(PRESETS["timeout-2s"], limit_ms=ms)) for ms in (1000, 2000, 3000)]
    assert [(v.c[0], v.g[0], v.censored_below_limit[0]) for v in judged] == [(1, 0, 0), (1, 0, 0), (-1, -1, 1)]
    assert judged[2].reason[0] == "censored: killed at 2000 ms on t0, below the judged limit"
    assert [(v.q_lo[0], v.q_hi[0]) for v in judged] == [(1, 1), (1, 1), (0, 1)]
    strict = dataclasses.replace(PRESETS["timeout-2s"], limit_ms=3000, timeouts="fail")
    assert judge(m, strict).c[0] == -1  # not tolerated, and not known either


def test_reasons_name_what_is_not_known():
    """A limit on a run that has no duration, a limit that is an interval, a test without a result, a kill in bytes."""
    assert judge(measured([[-1]], reference=[]), Criterion(limit_ms=5)).reason == ("no wall duration on t0",)
    few = judge(measured([[9], [1], [2]], reference=[1, 2]), Criterion(limit_quantile="50", min_references=3))
    assert few.reason[0] == "limit unknown on t0"
    late = dataclasses.replace(PRESETS["timeout-2s"], limit_ms=5)
    missing = measured([[1, 1]], reference=[], outcome=[[1, 0]], tests=make_tests(2))
    assert judge(missing, late).reason == ("missing 1 test",)
    original = dataclasses.replace(make_tests(2), original=np.array([True, False]))
    missing = dataclasses.replace(missing, tests=original)
    assert judge(missing, dataclasses.replace(late, correctness="original")).reason == ("missing on t1",)
    bytes_ = np.array([[[7]], [[9]]])
    killed = measured([[1], [1]], reference=[1], outcome=[[6], [1]], memory_bytes=bytes_)
    by_memory = Criterion(clock="memory", limit_quantile="100", timeouts="tolerated")
    assert judge(killed, by_memory).reason[0] == "censored: killed at 7 bytes on t0, below the judged limit"


def test_a_filter_that_is_undecided_on_one_of_two_tests():
    """t1 stays for certain, t0 perhaps: a program that fails t0 alone is open, one that is late on t1 is late."""
    wall = np.array([[1, 9], [1, 9], [4, 9]]) * MS
    m = measured(wall, reference=[1, 2], outcome=[[2, 1], [1, 1], [6, 1]], limit=4 * MS)
    verdicts = judge(m, Criterion(keep_ms=5, timeouts="tolerated", in_time="required", limit_ms=8))
    assert verdicts.kept.tolist() == [-1, 1]
    assert (verdicts.c[0], verdicts.g[0]) == (-1, 0)
    open_ = judge(m, Criterion(keep_ms=5, timeouts="tolerated"))
    doubt = "filter undecided on 1 test: the references' mean is not known"
    assert (open_.c[0], open_.reason[0]) == (-1, doubt)
    ranked = judge(m, Criterion(tau="50", keep_ms=5, timeouts="tolerated"))
    assert (ranked.c[1], ranked.g[1], ranked.reason[1]) == (1, -1, doubt)
    timed = judge(m, Criterion(keep_ms=5, timeouts="tolerated", in_time="required"))
    assert timed.g.tolist() == [-1, 1, -1]


def test_a_limit_from_too_few_references_is_unknown():
    """Two references of three asked: no limit, so nobody is late for certain and nobody is in time."""
    m = measured([[9], [1], [2]], reference=[1, 2])
    verdicts = judge(m, Criterion(limit_quantile="50", min_references=3, in_time="required", timeouts="tolerated"))
    assert verdicts.g.tolist() == [-1, -1, -1]
    assert verdicts.reason[0] == "limit unknown on t0"


def test_a_killed_reference_makes_a_limit_an_interval():
    """References of 1 ms and one killed at 4 ms: the slower one's duration, as a limit, is anything above 4 ms."""
    m = measured(np.array([[3], [6], [1], [4]]) * MS, reference=[2, 3], outcome=[[1], [1], [1], [6]], limit=4 * MS)
    verdicts = judge(m, Criterion(limit_quantile="100", in_time="required", timeouts="tolerated"))
    assert verdicts.g[:2].tolist() == [1, -1]
    assert verdicts.reason[1] == "limit unknown on t0"


# after execution, and rules for all


def test_the_share_of_tests_within_tau_is_reported_beside_the_mean():
    """mixed: percentiles 40, 80, 0. At tau 40 two of three tests are within, and the mean, 40, passes too."""
    criterion = Criterion(tau="40", reading="score")
    least, most, of = share_within(judge(example(), criterion), criterion)
    row = example().row("mixed")
    assert (least[row], most[row], of[row]) == (2, 2, 3)
    assert judge(example(), criterion).status[row] == 1


def test_percentile_kinds_differ_on_ties():
    """30 among 10, 30, 30, 50: L = 1, R = 3 of 4: strict 25, weak 75, mean 50, and scipy's rank 62.5."""
    m = measured([[30], [10], [30], [30], [50]], reference=[1, 2, 3, 4])
    judged = {}
    for kind in ("strict", "weak", "mean", "rank"):
        verdicts = judge(m, Criterion(tau="50", reading="score", percentile=kind))
        judged[kind] = 100 * verdicts.q_lo[0] / verdicts.q_den[0]
    assert judged == {"strict": 25, "weak": 75, "mean": 50, "rank": 62.5}


def test_memory_is_ranked_like_time():
    """The clock `memory` reads peak memory: the slowest program is the smallest. Without records it is undecided."""
    wall = np.array([[9], [1], [2]])
    bytes_ = np.array([[[10]], [[20]], [[30]]])
    criterion = Criterion(tau="30", clock="memory")
    assert judge(measured(wall, reference=[1, 2], memory_bytes=bytes_), criterion).status.tolist() == [1, 1, 0]
    assert judge(measured(wall, reference=[1, 2]), criterion).status.tolist() == [-1, -1, -1]


def test_a_relative_limit_on_memory():
    """At most what the median reference needed: bytes against bytes."""
    bytes_ = np.array([[[25]], [[20]], [[30]]])
    m = measured([[1], [1], [1]], reference=[1, 2], memory_bytes=bytes_)
    late = Criterion(clock="memory", limit_quantile="50", in_time="required", timeouts="tolerated")
    assert judge(m, late).reason[0] == "over the limit on t0 (25 bytes)"


@pytest.mark.parametrize(("kept_it", "c", "reason"), [(1, 1, "correct"), (0, 0, "interface not kept"), (-1, -1, None)])
def test_the_interface_gate_joins_correctness(kept_it, c, reason):
    """Required: a program that dropped its interface is not correct; one that nobody looked at is undecided."""
    m = measured([[1], [2]], reference=[1], interface=np.array([kept_it, -1], dtype=np.int8))
    verdicts = judge(m, Criterion(interface="required"))
    assert verdicts.c[0] == c
    assert verdicts.reason[0] == (reason or "interface not checked")
    assert judge(m, Criterion()).c.tolist() == [1, 1]
    assert judge(measured([[1], [2]], reference=[1]), Criterion(interface="required")).c.tolist() == [-1, -1]


def test_references_rank_whether_or_not_their_interface_was_looked_at():
    """The gate is for programs that are judged; the pool is what it was."""
    m = measured([[1], [2]], reference=[1], interface=np.array([1, -1], dtype=np.int8))
    assert judge(m, Criterion(tau="50", interface="required")).pool_size[0] == 1


def test_a_program_not_run_on_all_tests_is_undecided_unless_the_criterion_reports_so():
    """Fastest on t0, never run on t1: undecided; failed; or, with `skip`, judged on t0 alone and said so."""
    m = measured([[1, 0], [2, 2], [3, 3]], reference=[1, 2], outcome=[[1, 0], [1, 1], [1, 1]])
    judged = [judge(m, Criterion(tau="50", missing=rule)) for rule in ("undecided", "fail", "skip")]
    assert [v.status[0] for v in judged] == [-1, 0, 1]
    assert [v.lacking[0] for v in judged] == [0, 0, 1]
    assert (judged[2].q_lo[0], judged[2].q_den[0], judged[2].k_lo[0].tolist()) == (1, 4, [0, -1])  # tied with the best
    assert judged[2].reason[0] == "q 1/4 = 0.25 <= 0.5, on 1 of 2 optimization tests"


def test_skipped_tests_are_skipped_for_the_references_too():
    """t1 orders the references the other way: on t0 alone a program of 15 ns is behind one of two, not before both."""
    wall = [[15, 0], [10, 90], [20, 10]]
    m = measured(wall, reference=[1, 2], outcome=[[1, 0], [1, 1], [1, 1]])
    verdicts = judge(m, Criterion(tau="50", missing="skip", statistic="total"))
    assert (verdicts.q_lo[0], verdicts.q_den[0]) == (2, 4)  # totals 15 against 10 and 20, not against 100 and 30


OF_NONE = ", on 0 of 2 optimization tests"


def test_no_result_at_all_proves_nothing():
    """`skip` of every test leaves nothing that counts."""
    m = measured([[0, 0], [2, 2]], reference=[1], outcome=[[0, 0], [1, 1]])
    verdicts = judge(m, Criterion(tau="50", missing="skip"))
    assert (verdicts.c[0], verdicts.g[0], verdicts.reason[0]) == (-1, -1, "no test counts for correctness" + OF_NONE)


def test_no_optimization_test_is_nothing_to_be_late_on():
    """In time on no test is undecided, not granted."""
    m = measured([[1]], reference=[], tests=make_tests(1, correctness=1))
    verdicts = judge(m, PRESETS["timeout-2s"])
    assert (verdicts.g[0], verdicts.reason[0]) == (-1, "no optimization test")


def test_outcomes_other_than_a_kill_are_late():
    """A crash on an optimization test fails the gate in time, however short it was."""
    m = measured([[1, 1], [5, 5]], reference=[1], outcome=[[Outcome.RUN_TIME_ERROR, 1], [1, 1]])
    verdicts = judge(m, PRESETS["timeout-2s"])
    assert (verdicts.g[0], verdicts.q_lo[0], verdicts.q_den[0]) == (0, 1, 2)
