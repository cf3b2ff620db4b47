"""A failure of which nobody says how: held against every way in which it may have happened, one after another."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lapledger.replay.criteria import PRESETS, Criterion
from lapledger.replay.judging.gates import judge
from lapledger.replay.judging.reasons import kind_of
from lapledger.replay.judging.rewards import bounds
from lapledger.replay.measurements import Outcome
from tests.replay.builders import MS, make_tests, measured
from tests.replay.test_definitions import criteria

KINDS = (
    Outcome.WRONG_ANSWER,
    Outcome.RUN_TIME_ERROR,
    Outcome.MEMORY_LIMIT,
    Outcome.OUTPUT_LIMIT,
    Outcome.TIME_LIMIT,
)
"""How a run may have failed: with any duration where it ended, at any limit where it was killed."""


def one_program(outcome, **criterion):
    """What is said of a program that failed on the second of two tests, the first a correctness test only."""
    wall = np.array([[1, 10], [1, 20], [1, 30], [1, 0]]) * MS
    wall[3, 1] = -1
    outcomes = np.ones((4, 2), dtype=np.int64)
    outcomes[3, 1] = outcome
    tests = make_tests(2, correctness=1, original=1)
    limit = np.full((4, 2), 10_000 * MS)
    limit[3, 1] = 0  # nobody says at which limit it was killed, if it was
    m = measured(wall, reference=[0, 1, 2], outcome=outcomes, tests=tests, limit=limit)
    verdicts = judge(m, Criterion(**criterion))
    return int(verdicts.c[3]), int(verdicts.status[3]), verdicts.reason[3]


CASES = {
    "every kind fails": ({}, (0, 0, "failed on t1"), {0}),
    "the original tests alone count": ({"correctness": "original"}, (1, 1, "correct"), {1}),
    "a timeout is tolerated there": ({"timeouts": "tolerated"}, (-1, -1, "unspecified failure on t1"), {0, 1}),
    "tolerated, but it had to end in time": (
        {"timeouts": "tolerated", "in_time": "required"},
        (-1, 0, "over the limit on t1 (failed)"),
        {0},
    ),
    "killed below the judged limit, or not": (
        {"timeout_ms": 50},
        (-1, -1, "unspecified failure on t1"),
        {0, -1},
    ),
}
"""What is asked; c, verdict and reason; the verdicts that the kinds have one by one."""


@pytest.mark.parametrize("case", CASES)
def test_it_fails_where_every_kind_does_and_is_open_where_only_some_do(case):
    """By hand: a verdict where all kinds have the same one, and none where they differ."""
    change, due, possible = CASES[case]
    assert one_program(Outcome.FAILED, **change) == due
    assert {one_program(kind, **change)[1] for kind in KINDS} == possible


def test_its_kind_has_texts():
    """So that undecided verdicts are counted by it."""
    assert kind_of("unspecified failure on t1") == "failed in an unspecified way"
    assert kind_of("failed on t1") == "failed"


STEP = MS // 2


@st.composite
def halves(draw):
    """A world of correct references in which other programs failed untold, and the same with each failure told.

    All references are timed on three tests, one of them for correctness alone; ties are common.
    """
    references, candidates = draw(st.integers(2, 4)), draw(st.integers(1, 3))
    shape = (references + candidates, 3)
    wall = np.array(draw(st.lists(st.integers(1, 5), min_size=3 * shape[0], max_size=3 * shape[0])))
    wall = wall.reshape(shape) * STEP
    outcome = np.ones(shape, dtype=np.int8)
    seen = st.sampled_from([Outcome.OK, Outcome.OK, Outcome.FAILED, Outcome.WRONG_ANSWER])
    outcome[references:] = np.array(draw(st.lists(seen, min_size=3 * candidates, max_size=3 * candidates))).reshape(
        -1, 3
    )
    outcome_known, limit = outcome.copy(), np.full(shape, 10_000 * MS)
    measures = wall.copy()
    for p, t in np.argwhere(outcome == Outcome.FAILED):
        outcome_known[p, t] = draw(st.sampled_from(KINDS))
        measures[p, t] = draw(st.integers(1, 6)) * STEP
        limit[p, t] = draw(st.integers(0, 6)) * STEP
    tests = make_tests(3, correctness=draw(st.integers(0, 1)), original=draw(st.integers(0, 1)))
    worlds = (
        measured(w, reference=range(references), outcome=o, limit=limit, tests=tests)
        for w, o in ((np.where(outcome == Outcome.FAILED, -1, wall), outcome), (measures, outcome_known))
    )
    return tuple(worlds)


ANY = st.one_of(criteria(), st.sampled_from(list(PRESETS.values())))


@given(both=halves(), criterion=ANY)
@settings(max_examples=200)
def test_no_way_of_failing_contradicts_what_is_stated(both, criterion):
    """Gates and verdicts that are decided stay as they are, q lies within its bounds, the reward within its own."""
    unspecified, outcome_known = (judge(m, criterion) for m in both)
    for gate in ("c", "g", "status"):
        before, after = getattr(unspecified, gate), getattr(outcome_known, gate)
        settled = (before >= 0) & (after >= 0)
        assert (before[settled] == after[settled]).all(), gate
    assert (unspecified.pool_size == outcome_known.pool_size).all()
    wide, narrow = (
        [q.astype(object) for q in (v.q_lo, v.q_hi, v.q_den)] for v in (unspecified, outcome_known)
    )  # no overflow
    assert (wide[0] * narrow[2] <= narrow[0] * wide[2]).all()
    assert (wide[1] * narrow[2] >= narrow[1] * wide[2]).all()
    (lo, hi), (low, high) = (bounds(verdicts, criterion) for verdicts in (unspecified, outcome_known))
    known = (
        ~np.isnan(lo) & ~np.isnan(low) & (unspecified.none_finished == outcome_known.none_finished)
    )  # e = -1 asks that nothing ended for certain
    assert (lo[known] <= low[known] + 1e-12).all()
    assert (hi[known] >= high[known] - 1e-12).all()


@pytest.mark.parametrize("environment", ["rlvr", "rlvr-added-tests", "leaderboard"])
@pytest.mark.parametrize("kind", KINDS)
def test_it_is_no_better_and_no_worse_than_any_kind_where_all_fail(kind, environment):
    """The environments that tolerate no timeout on a test that checks: a plain fail, whatever it was."""
    m = measured([[10 * MS], [20 * MS], [-1]], reference=[0, 1], outcome=[[1], [1], [int(kind)]], limit=0)
    m = replace(m, tests=make_tests(1, original=1))
    unspecified = replace(m, outcome=np.where(m.outcome > 1, Outcome.FAILED, m.outcome).astype(np.int8))
    criterion = PRESETS[environment]
    if environment == "leaderboard":
        criterion = replace(criterion, timeouts="fail")
    assert [int(judge(variant, criterion).status[2]) for variant in (m, unspecified)] == [0, 0]
