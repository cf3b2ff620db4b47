"""Ranks: integers, ties averaged, own duplicates left out, and intervals that hold every possible completion."""

import dataclasses
import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import percentileofscore

from lapledger.replay.criteria import Criterion
from lapledger.replay.judging.exact import among
from lapledger.replay.judging.gates import judge
from lapledger.replay.judging.ranks import MERGE_FROM, Order, _merged, versus
from lapledger.replay.measurements import Outcome
from tests.replay.builders import make_tests, measured, problems, slow_quality

READINGS = st.sampled_from(["leaderboard", "score"])
DURATIONS = st.lists(st.integers(1, 12), min_size=1, max_size=20)


@given(mine=st.integers(1, 12), references=DURATIONS)
def test_percentile_is_the_mean_percentile_rank_of_scipy(mine, references):
    """100 k / 2n equals scipy's percentileofscore(kind="mean"), ties included."""
    wall = np.array([[mine], *([r] for r in references)])
    verdicts = judge(measured(wall, reference=range(1, len(wall))), Criterion(tau="50"))
    k, n = verdicts.k_lo[0, 0], verdicts.pool_size[0]
    assert n == len(references)
    assert 100 * k / (2 * n) == pytest.approx(percentileofscore(references, mine, kind="mean"), abs=1e-9)


@given(m=problems(), reading=READINGS)
@settings(deadline=None, max_examples=150)
def test_quality_is_the_definition_in_fractions(m, reading):
    """q equals the definition computed with fractions, with ties, duplicates and programs of the pool."""
    verdicts = judge(m, Criterion(tau="30", reading=reading))
    pool = np.flatnonzero(m.reference)
    for row in range(len(m.programs)):
        expected = slow_quality(m.wall_ns[:, :, 0].tolist(), m, pool, row, reading)
        assert verdicts.q_lo[row] == verdicts.q_hi[row]
        if expected is None:
            assert verdicts.status[row] == -1
        else:
            assert Fraction(int(verdicts.q_lo[row]), int(verdicts.q_den[row])) == expected
            assert verdicts.status[row] == (expected <= Fraction(3, 10))


def completions(m):
    """Ways, all or 300 of them, in which killed runs (longer than their limit) and missing ones could have ended."""
    shape = m.outcome.shape
    known = sorted(set(m.wall_ns[m.outcome == Outcome.OK].ravel().tolist()))
    durations = sorted({0.5} | {d + h for d in known for h in (0, 0.5)} | {x + 0.5 for x in (2, 4, 6)})
    cells = [[None] * shape[1] for _ in range(shape[0])]
    for p, t in np.ndindex(*shape):
        if m.outcome[p, t] == Outcome.OK:
            cells[p][t] = [int(m.wall_ns[p, t, 0])]
        elif m.outcome[p, t] == Outcome.TIME_LIMIT:
            cells[p][t] = [x for x in durations if x > m.limit_ns[p, t]]
        elif m.outcome[p, t] == Outcome.MISSING:
            cells[p][t] = [*durations, None]
        else:
            cells[p][t] = [None]
    flat = [cell for row in cells for cell in row]
    every = math.prod(len(cell) for cell in flat)
    draw = np.random.default_rng(every)
    drawn = ([cell[draw.integers(len(cell))] for cell in flat] for _ in range(300))
    for chosen in itertools.product(*flat) if every <= 300 else drawn:
        yield [list(chosen[p * shape[1] : (p + 1) * shape[1]]) for p in range(shape[0])]


SOME = (Outcome.OK,) * 6 + (Outcome.TIME_LIMIT, Outcome.MISSING, Outcome.WRONG_ANSWER)


@given(
    m=problems(outcomes=SOME, programs=4, tests=2),
    reading=READINGS,
    correctness=st.sampled_from(["strict", "original"]),
)
@settings(deadline=None, max_examples=120)
def test_an_interval_holds_every_completion(m, reading, correctness):
    """However the unseen runs had ended, q lies in its interval; so no certain verdict can be wrong."""
    tests = make_tests(len(m.tests.ids), original=1)  # so that a pool may hold failed and missing runs
    criterion = Criterion(tau="50", reading=reading, timeouts="tolerated", correctness=correctness)
    m = dataclasses.replace(m, tests=tests)
    verdicts = judge(m, criterion)
    pool = np.flatnonzero(m.reference & (verdicts.c == 1))
    for durations in completions(m):
        for row in np.flatnonzero(verdicts.q_den > 0):
            q = slow_quality(durations, m, pool, row, reading) * int(verdicts.q_den[row])
            assert verdicts.q_lo[row] <= q <= verdicts.q_hi[row]
            if verdicts.g[row] != -1:
                assert verdicts.g[row] == (2 * q <= int(verdicts.q_den[row]))


@given(bound=st.sampled_from([2, 4, 6]), references=DURATIONS, reading=READINGS)
@settings(deadline=None)
def test_the_interval_of_a_killed_run_is_tight(bound, references, reading):
    """With one killed run among finished references both ends of its interval are reached."""
    wall = np.array([[1], *([r] for r in references)])
    outcome = np.where(np.arange(len(wall)) == 0, Outcome.TIME_LIMIT, Outcome.OK)[:, None]
    m = measured(wall, reference=range(1, len(wall)), outcome=outcome, limit=bound)
    verdicts = judge(m, Criterion(tau="50", reading=reading, timeouts="tolerated"))
    pool = np.arange(1, len(wall))
    ends = []
    for x in (bound + 0.5, 99):
        durations = [[x], *([r] for r in references)]
        ends.append(slow_quality(durations, m, pool, 0, reading) * int(verdicts.q_den[0]))
    assert [verdicts.q_lo[0], verdicts.q_hi[0]] == ends


def test_a_killed_run_is_slower_only_than_what_ended_within_its_limit():
    """Killed at 4 ns: slower than references of 3 and 4 ns for certain, against one of 5 ns unknown: k from 4 to 6."""
    outcome = np.array([[6], [1], [1], [1]])
    m = measured([[4], [3], [4], [5]], reference=[1, 2, 3], outcome=outcome, limit=4)
    verdicts = judge(m, Criterion(tau="50", timeouts="tolerated"))
    assert (verdicts.k_lo[0, 0], verdicts.k_hi[0, 0]) == (4, 6)
    assert (verdicts.k_lo[3, 0], verdicts.k_hi[3, 0]) == (4, 4)


def test_two_killed_runs_do_not_rank_each_other():
    """A killed program against a killed reference is unknown, whatever their limits."""
    outcome = np.array([[6], [6]])
    m = measured([[9], [2]], reference=[1], outcome=outcome, limit=np.array([[9], [2]]))
    verdicts = judge(m, Criterion(tau="50", timeouts="tolerated"))
    assert (verdicts.k_lo[0, 0], verdicts.k_hi[0, 0], verdicts.status[0]) == (0, 2, -1)


def test_a_failed_test_counts_as_percentile_100():
    """A crash has k = 2n even when it was the fastest run of all."""
    m = measured([[1, 1], [5, 5], [6, 6]], reference=[1, 2], outcome=np.array([[3, 1], [1, 1], [1, 1]]))
    verdicts = judge(m, Criterion(tau="50"))
    assert verdicts.k_lo[0].tolist() == [4, 0]


def test_a_failed_program_ranks_behind_failed_references_too():
    """Percentile 100 even beside a reference that failed the same test, where only original tests are counted."""
    tests = make_tests(2, correctness=1, original=1)
    m = measured([[1, 1], [1, 1], [1, 5]], reference=[1, 2], outcome=[[1, 3], [1, 3], [1, 1]], tests=tests)
    verdicts = judge(m, Criterion(tau="50", correctness="original"))
    assert verdicts.pool_size[0] == 2
    assert verdicts.k_lo[:, 1].tolist() == [4, 2, 0]


def test_own_scores_of_killed_references_are_intervals():
    """Two references killed at 2 ns and one of 3 ns: their own scores span 0 to 1, so a program at 4 ns is open."""
    m = measured([[4], [2], [2], [3]], reference=[1, 2, 3], outcome=[[1], [6], [6], [1]], limit=2)
    verdicts = judge(m, Criterion(tau="50", timeouts="tolerated"))
    assert (verdicts.k_lo[0, 0], verdicts.k_hi[0, 0]) == (2, 6)  # the one of 3 ns is faster for certain
    assert (verdicts.q_lo[0], verdicts.q_hi[0]) == (0, 6)  # score from 1/3 to 1 against own scores from 0 to 1


def test_a_reference_with_no_other_scores_one_half():
    """In a pool of one, its own score is 1/2: a program passes p_50 when its mean percentile is at most 50."""
    wall = [[1, 1, 9], [5, 5, 5], [9, 9, 9]]
    verdicts = judge(measured(wall, reference=[1]), Criterion(tau="50"))
    assert [int(k) for k in verdicts.q_lo] == [0, 0, 2]
    assert verdicts.status.tolist() == [1, -1, 0]  # the reference itself has an empty pool


@given(m=problems(), reading=READINGS, steps=st.lists(st.integers(1, 10**6), min_size=7, max_size=7))
@settings(deadline=None)
def test_ranks_survive_a_common_increasing_map(m, reading, steps):
    """Only the order of durations counts: any increasing map of all of them leaves every verdict as it is."""
    table = np.cumsum([0, *steps])
    mapped = measured(table[m.wall_ns], reference=np.flatnonzero(m.reference), duplicate=m.duplicate, tests=m.tests)
    a, b = (judge(x, Criterion(tau="30", reading=reading)) for x in (m, mapped))
    for name in ("k_lo", "k_hi", "q_lo", "q_hi", "status"):
        assert np.array_equal(getattr(a, name), getattr(b, name))


def test_versus_grows_with_mine_and_falls_with_theirs():
    """2 [theirs < mine] + [theirs = mine]: the rank among one reference."""
    assert versus(np.array([1, 2, 3]), np.array([2, 2, 2])).tolist() == [0, 1, 2]


@given(data=st.data(), shape=st.tuples(st.integers(0, 6), st.integers(0, 9), st.integers(1, 4)))
@settings(deadline=None)
def test_one_order_counts_as_a_search_does(data, shape):
    """Ties among many: counted along one order of both, or searched one by one, the numbers are the same."""
    references, runs, tests = shape

    def grid(rows):
        cells = data.draw(st.lists(st.integers(-1, 5), min_size=rows * tests, max_size=rows * tests))
        return np.array(cells, dtype=np.int64).reshape(rows, tests)

    order, mine = Order.of(grid(references)), grid(runs)
    less, upto = order.counts(mine)
    assert mine.size <= MERGE_FROM  # so that this was the search
    along = _merged(order.rising, mine)
    assert (along[0].tolist(), along[1].tolist()) == (less.tolist(), upto.tolist())


def test_large_problems_are_counted_along_one_order():
    """The oracle counts pairs; large enough that both ways of counting are taken."""
    random = np.random.default_rng(0)
    values, mine = random.integers(0, 40, (9, 7)), random.integers(0, 40, (300, 7))
    assert mine.size > MERGE_FROM
    less, upto = Order.of(values).counts(mine)
    assert less.tolist() == (values[None] < mine[:, None]).sum(axis=1).tolist()
    assert upto.tolist() == (values[None] <= mine[:, None]).sum(axis=1).tolist()


@given(
    mine=st.lists(st.tuples(st.integers(0, 30), st.integers(1, 9)), min_size=1, max_size=6),
    theirs=st.lists(st.tuples(st.integers(0, 30), st.integers(1, 9)), max_size=6),
    alike=st.booleans(),
)
def test_locations_among_the_same_scores(mine, theirs, alike):
    """The oracle compares fractions; alike: all their denominators are one, as nearly always."""
    theirs = [(top, 4 if alike else bottom) for top, bottom in theirs]
    scores = [
        tuple(np.array([score[i] for score in half], dtype=np.int64) for i in range(2)) for half in (mine, theirs)
    ]
    less, upto = among(*scores)
    fractions = [[Fraction(*score) for score in half] for half in (mine, theirs)]
    assert less.tolist() == [sum(reference < score for reference in fractions[1]) for score in fractions[0]]
    assert upto.tolist() == [sum(reference <= score for reference in fractions[1]) for score in fractions[0]]
