"""Measurements by hand and by hypothesis, and a slow judge with fractions that shares no code with the kernel."""

from fractions import Fraction

import numpy as np
from hypothesis import strategies as st

from lapledger.replay.measurements import Outcome, ProblemMeasurements, Tests

MS = 1_000_000


def make_tests(count, *, correctness=0, original=0):
    """T tests, of which the first `correctness` are correctness tests only and the rest optimization tests."""
    index = np.arange(count)
    sizes = [np.zeros(count, dtype=np.int64)] * 4
    ids = tuple(f"t{i}" for i in index)
    return Tests(ids, index < original, index < correctness, index >= correctness, *sizes)


def measured(wall, *, reference, outcome=None, limit=10_000 * MS, **overrides):
    """A problem from durations in ns [P, T] or [P, T, R] and the rows of its references; all else has a default."""
    wall = np.asarray(wall, dtype=np.int64)
    wall = wall[:, :, None] if wall.ndim == 2 else wall
    programs, count = wall.shape[:2]
    outcome = np.ones((programs, count)) if outcome is None else np.asarray(outcome)
    given = {
        "problem": "sum",
        "campaign": "one",
        "tests": make_tests(count),
        "programs": tuple(f"p{i}" for i in range(programs)),
        "models": ("human",) * programs,
        "labels": ("accepted",) * programs,
        "candidate": np.ones(programs, dtype=np.bool_),
        "reference": np.isin(np.arange(programs), reference),
        "duplicate": np.arange(programs),
        "outcome": outcome.astype(np.int8),
        "wall_ns": wall,
        "cpu_ns": wall // 2,
        "startup_ns": np.zeros((programs, count), dtype=np.int64),
        "limit_ns": np.where(outcome == Outcome.MISSING, -1, limit).astype(np.int64),
    }
    return ProblemMeasurements(**(given | overrides))


@st.composite
def problems(draw, *, outcomes=(Outcome.OK,), programs=6, tests=3):
    """Small problems with many ties, exact duplicates and the outcomes given; killed at 2, 4 or 6 ns."""
    shape = (draw(st.integers(1, programs)), draw(st.integers(1, tests)))
    cells = shape[0] * shape[1]

    def grid(values):
        return np.array(draw(st.lists(values, min_size=cells, max_size=cells)), dtype=np.int64).reshape(shape)

    outcome = grid(st.sampled_from(outcomes))
    flags = draw(st.lists(st.booleans(), min_size=shape[0], max_size=shape[0]))
    duplicate = np.array(draw(st.lists(st.integers(0, 4), min_size=shape[0], max_size=shape[0])), dtype=np.int64)
    # few durations, so that ties are common; equal programs need not have equal durations
    return measured(
        grid(st.integers(1, 7)),
        reference=np.flatnonzero(flags),
        outcome=outcome,
        limit=grid(st.sampled_from([2, 4, 6])),
        duplicate=duplicate + 10 * np.arange(shape[0]) * (duplicate > 1),
        tests=make_tests(shape[1], original=shape[1]),
    )


def slow_quality(durations, m, pool, row, reading):
    """q of one program as a fraction from fully known durations (nested lists; None is a failed run), or None.

    Written from the definitions: a failed run has percentile 100; a failed reference is slower than any finished run.
    """
    peers = [j for j in pool if m.duplicate[j] != m.duplicate[row]]
    optimization = np.flatnonzero(m.tests.optimization)

    def rank_on(i, among, t):
        if durations[i][t] is None:
            return Fraction(1)
        known = [durations[j][t] for j in among]
        smaller = sum(1 for d in known if d is not None and d < durations[i][t])
        return (smaller + Fraction(sum(1 for d in known if d == durations[i][t]), 2)) / len(among)

    def score(i, among):
        if not among:
            return Fraction(1, 2)
        return sum(rank_on(i, among, t) for t in optimization) / len(optimization)

    if not peers or not len(optimization):
        return None
    mine = score(row, peers)
    if reading == "score":
        return mine
    own_scores = [score(j, [i for i in peers if m.duplicate[i] != m.duplicate[j]]) for j in peers]
    return (sum(1 for s in own_scores if s < mine) + Fraction(sum(1 for s in own_scores if s == mine), 2)) / len(
        own_scores
    )
