"""Flips: which verdicts differ, which test turned them, and the timings around it, all worked out by hand."""

import dataclasses

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lapledger.replay.criteria import Criterion
from lapledger.replay.errors import ReplayError
from lapledger.replay.explanations.decisive_runs import Neighbour
from lapledger.replay.explanations.flips import Change, flipped, tally, verdict_changes
from lapledger.replay.judging.gates import Status, judge
from lapledger.replay.judging.reasons import kind_of
from lapledger.replay.measurements import Outcome
from tests.replay.builders import MS, make_tests, measured, problems

POOL = [[10, 10], [20, 20], [30, 30], [40, 40]]


@dataclasses.dataclass(frozen=True)
class OneProblem:
    """One problem judged."""

    criterion: Criterion
    measurements: list
    verdicts: list


def judged(m, criterion):
    """One problem judged."""
    return OneProblem(criterion, [m], [judge(m, criterion)])


def changes(m, before, after, **more):
    """All changes of one problem between two criteria."""
    return [change for flips in verdict_changes(judged(m, before), judged(m, after), **more) for change in flips]


def test_a_flip_by_rank_reports_the_timings_beside_it():
    """25 and 35 among 10, 20, 30, 40: ranks 4 and 6 of 8, so a score of 5/8 passes p_100 and fails per-test top 50.

    The own rank is worst on t1: percentile 75, between 30 and 40.
    """
    m = measured([[25, 35], *POOL], reference=[1, 2, 3, 4])
    flips = changes(m, Criterion(), Criterion(tau="50", reading="score"))
    mine = next(change for change in flips if change.program == "p0")
    assert (mine.kind, mine.problem, mine.model) == ("pass -> fail", "sum", "human")
    assert (mine.reason_before, mine.reason_after) == ("correct", "too slow: q 5/8 = 0.625 > 0.5")
    timing = mine.timing_after
    assert (timing.test, timing.duration, timing.rank, timing.references) == ("t1", 35, (6, 6), 4)
    assert timing.percentile == (75, 75)
    assert (timing.next_faster, timing.next_slower) == (Neighbour("p3", 30), Neighbour("p4", 40))
    assert (timing.outcome, timing.longer_than, timing.limit) == (Outcome.OK, None, None)
    assert timing.hard_limit_ns == 10_000 * MS


def test_a_member_of_the_pool_is_no_neighbour_of_itself():
    """Reference p3 (30) stands between 20 and 40 once itself is left out: rank 4 of 6 on each test."""
    m = measured(POOL, reference=[0, 1, 2, 3])
    flips = changes(m, Criterion(), Criterion(tau="50", reading="score"))
    mine = next(change for change in flips if change.program == "p2")
    assert (mine.timing_after.rank, mine.timing_after.references) == ((4, 4), 3)
    assert (mine.timing_after.next_faster, mine.timing_after.next_slower) == (Neighbour("p1", 20), Neighbour("p3", 40))


def test_the_test_whose_rank_moved_farthest_is_named():
    """The CPU clock reads half of each wall time, but t1 of p0 used a hundredth: rank 8 of 8 becomes 0 of 8 there."""
    m = measured([[5, 99], *POOL], reference=[1, 2, 3, 4])
    cpu = m.cpu_ns.copy()
    cpu[0, 1, 0] = 1
    m = dataclasses.replace(m, cpu_ns=cpu)
    score = Criterion(tau="30", reading="score")
    (mine,) = (c for c in changes(m, score, dataclasses.replace(score, clock="cpu")) if c.program == "p0")
    assert mine.kind == "fail -> pass"
    assert (mine.timing_before.test, mine.timing_before.rank, mine.timing_after.rank) == ("t1", (8, 8), (0, 0))
    assert (mine.timing_before.duration, mine.timing_after.duration) == (99, 1)
    assert (mine.timing_after.next_faster, mine.timing_after.next_slower) == (None, Neighbour("p1", 5))


def test_a_tighter_limit_names_the_run_that_broke_it():
    """A judged limit of 2 ms: the run of 3 ms on t1 is a timeout; the limit in force stands beside it."""
    m = measured([[1 * MS, 3 * MS]], reference=[])
    (mine,) = changes(m, Criterion(), Criterion(timeout_ms=2))
    assert mine.reason_after == "time_limit on t1"
    assert (mine.timing_after.test, mine.timing_after.duration) == ("t1", 3 * MS)
    assert mine.timing_before.limit is None
    assert mine.timing_after.limit == (2 * MS, 2 * MS)
    assert mine.timing_after.rank is None


def test_a_limit_from_the_references_is_reported_without_the_program():
    """The median of 10, 20, 30, 40 (smallest that half do not exceed) is 20: 25 is late. p1 is held to 30, p4 to 20."""
    m = measured([[25], [10], [20], [30], [40]], reference=[1, 2, 3, 4])
    late = Criterion(limit_quantile="50", in_time="required", timeouts="tolerated", reading="over-limit")
    flips = {change.program: change for change in changes(m, Criterion(), late)}
    assert sorted(flips) == ["p0", "p3", "p4"]
    assert flips["p0"].timing_after.limit == (20, 20)
    assert flips["p3"].timing_after.limit == (20, 20)  # of 10, 20, 40
    assert flips["p0"].reason_after.startswith("over the limit on t0")


def test_a_looser_limit_leaves_a_killed_run_undecided():
    """Killed at 10 s, judged at 20 s: nobody knows. The timing says what it is known to exceed, and has no duration."""
    outcome = [[Outcome.OK, Outcome.TIME_LIMIT]]
    m = measured([[1, 10_000 * MS]], reference=[], outcome=outcome)
    (mine,) = changes(m, Criterion(), Criterion(timeout_ms=20_000))
    assert mine.kind == "fail -> undecided"
    assert (mine.timing_after.test, mine.timing_after.duration) == ("t1", None)
    assert mine.timing_after.longer_than == mine.timing_after.hard_limit_ns == 10_000 * MS
    assert mine.timing_after.limit == (20_000 * MS, 20_000 * MS)
    assert kind_of(mine.reason_after) == "censored: killed below the judged limit"


def test_an_open_rank_names_the_test_that_leaves_it_open():
    """Killed beyond 25 on t0, among 10, 20, 30, 40 (k 4 to 8), 5 on t1 (k 0): the score is 1/4 to 1/2, tau 40."""
    outcome = np.ones((5, 2))
    outcome[0, 0] = Outcome.TIME_LIMIT
    m = measured([[25, 5], *POOL], reference=[1, 2, 3, 4], outcome=outcome, limit=25, tests=make_tests(2))
    before = Criterion(timeouts="tolerated")
    after = dataclasses.replace(before, tau="40", reading="score")
    (mine,) = (c for c in changes(m, before, after) if c.program == "p0")
    assert (mine.kind, mine.reason_after) == ("pass -> undecided", "censored: q from 1/4 = 0.25 to 1/2 = 0.5")
    assert (mine.timing_after.test, mine.timing_after.rank, mine.timing_after.longer_than) == ("t0", (4, 8), 25)
    assert mine.timing_after.percentile == (50, 100)
    assert mine.timing_after.next_slower == Neighbour("p3", 30)


def test_campaigns_meet_only_through_a_named_calibration():
    """Refused without a name; with one, programs of both are compared by their ids."""
    m = measured([[25, 35], *POOL], reference=[1, 2, 3, 4])
    second_campaign = dataclasses.replace(m, campaign="two")
    before, after = judged(m, Criterion()), judged(second_campaign, Criterion(tau="50", reading="score"))
    with pytest.raises(ReplayError, match="only through a named calibration"):
        list(verdict_changes(before, after))
    (flips,) = verdict_changes(before, after, through="c1")
    assert "p0" in {change.program for change in flips}


def test_the_tally_counts_by_model_and_kind():
    """Two models, two kinds, in order of both."""

    def change(model, before, after):
        return Change("p", "x", model, before, after, "", "", None, None)

    several = [
        change("b", Status.PASS, Status.FAIL),
        change("a", Status.PASS, Status.UNDECIDED),
        change("b", Status.PASS, Status.FAIL),
        change("b", Status.FAIL, Status.PASS),
    ]
    assert tally(several) == [("a", "pass -> undecided", 1), ("b", "fail -> pass", 1), ("b", "pass -> fail", 2)]


def test_a_flip_is_a_verdict_that_both_hold_and_that_differs():
    """Keys of one arm alone are compared with nothing; the order is that of the first."""
    before = {"c": Status.PASS, "a": Status.FAIL, "gone": Status.PASS, "same": Status.FAIL}
    after = {"a": Status.UNDECIDED, "c": Status.FAIL, "same": Status.FAIL, "new": Status.PASS}
    assert flipped(before, after) == ["c", "a"]


def test_pool_programs_are_no_flips():
    """Only candidates have verdicts that are compared."""
    m = measured([[5], [1], [2], [9]], reference=[1, 2, 3], candidate=np.array([True, True, True, False]))
    flips = changes(m, Criterion(), Criterion(tau="50"))
    assert [(c.problem, c.program, c.before, c.after) for c in flips] == [("sum", "p0", Status.PASS, Status.FAIL)]


CRITERIA = [
    Criterion(),
    Criterion(tau="50"),
    Criterion(tau="30", reading="score"),
    Criterion(tau="50", clock="cpu", timeouts="tolerated"),
    Criterion(limit_quantile="50", in_time="required", timeouts="tolerated", reading="over-limit"),
    Criterion(missing="skip", tau="50"),
    Criterion(keep_share="50", in_time="required", timeouts="tolerated"),
]


@settings(max_examples=60, deadline=None)
@given(problems(outcomes=tuple(Outcome)), st.sampled_from(CRITERIA), st.sampled_from(CRITERIA))
def test_changes_are_the_flips_whatever_was_seen(m, before, after):
    """Every candidate whose status differs, no other; every timing is of a test, and its rank is that of a verdict."""
    flips = changes(m, before, after)
    was, verdicts = judge(m, before), judge(m, after)
    plain = [
        (m.programs[row], was.status[row], verdicts.status[row])
        for row in np.flatnonzero(m.candidate)
        if was.status[row] != verdicts.status[row]
    ]
    assert [(c.program, c.before, c.after) for c in flips] == plain
    for change in flips:
        timing = change.timing_after
        if timing is None:
            continue
        row, test = m.row(change.program), m.tests.ids.index(timing.test)
        assert timing.outcome == m.outcome[row, test]
        if timing.rank is not None:
            assert timing.rank == (verdicts.k_lo[row, test], verdicts.k_hi[row, test])
        if timing.duration is not None and timing.next_faster and timing.next_slower:
            assert timing.next_faster.duration < timing.duration <= timing.next_slower.duration


@settings(max_examples=60, deadline=None)
@given(problems(outcomes=tuple(Outcome)), st.sampled_from(CRITERIA))
def test_every_reason_is_of_a_known_kind(m, criterion):
    """Kinds carry neither tests nor figures, so that they can be counted."""
    kinds = {kind_of(reason) for reason in judge(m, criterion).reason}
    assert not any(kind == "" or any(letter.isdigit() for letter in kind) for kind in kinds)
