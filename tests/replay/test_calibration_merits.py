"""What a map is worth, held against fits by other libraries and scores as fractions."""

import dataclasses
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import spearmanr

from lapledger.replay.calibration import KINDS, fit_kinds
from lapledger.replay.calibration.merits import scores
from lapledger.replay.criteria import Criterion
from lapledger.replay.measurements import Outcome
from tests.replay.builders import MS
from tests.replay.test_calibration import campaigns
from tests.replay.test_calibration_kinds import by_other_libraries


def refit(kind, x, y):
    """The map of a kind, as other libraries fit it, as a function; `none` changes nothing."""
    if kind == "none":
        return lambda durations: durations
    a, b, power = by_other_libraries(kind, x, y)
    return lambda durations: a * durations**power + b


def finished(m):
    return np.where(m.outcome == 1, m.wall_ns[:, :, 0].astype(float), np.nan)


def refit_without(both, excluded, kind):
    """The map of a kind, fitted on the pairs of every problem but one."""
    peers = [n for n in range(len(both[0])) if n != excluded]
    rerun = len(both[1][0].programs)
    x, y = (np.concatenate([finished(campaign[n])[:rerun].ravel() for n in peers]) for campaign in both)
    pairs = ~np.isnan(x + y)
    return refit(kind, x[pairs], y[pairs])


def scores_by_hand(old, new, change):
    """Of each re-run reference: its score when stored, fresh among mapped ones, among mapped re-run ones, among fresh.

    Durations [N, t] and [n, t] of one problem, its map, fractions.
    """
    result = []
    for i in range(len(new)):
        seen = np.flatnonzero(~np.isnan(old[i] + new[i]))
        pool = [j for j in range(len(old)) if j != i]
        rerun = [j for j in pool if j < len(new)]
        rows = (old[i], old[pool]), (new[i], change(old[pool])), (new[i], change(old[rerun])), (new[i], new[rerun])
        result.append([fraction(mine, theirs, seen) for mine, theirs in rows])
    return result


def fraction(mine, theirs, tests):
    """The mean over tests of (#smaller + #equal / 2) / #others, exactly; others that did not finish are none."""
    ranks = []
    for t in tests:
        column = theirs[:, t][~np.isnan(theirs[:, t])]
        ranks.append(Fraction(int(2 * (column < mine[t]).sum() + (column == mine[t]).sum()), 2 * len(column)))
    return sum(ranks) / len(ranks)


def unfinished(m, cells):
    outcome = m.outcome.copy()
    outcome[tuple(zip(*cells, strict=True))] = Outcome.WRONG_ANSWER
    return dataclasses.replace(m, outcome=outcome)


CAMPAIGNS = campaigns(1.1, 53 * MS, noise=0.08, problems=7)
SOME = [(0, 0), (2, 1), (6, 0), (6, 3), (7, 2)]
WITH_GAPS = [unfinished(m, SOME[n % 3 :]) for n, m in enumerate(CAMPAIGNS[0])], CAMPAIGNS[1]


@pytest.mark.parametrize("both", [CAMPAIGNS, WITH_GAPS], ids=["whole", "with gaps"])
@pytest.mark.parametrize("kind", ["none", *KINDS])
def test_the_merits_are_those_of_an_independent_refit(kind, both):
    """R^2, median relative error, Spearman and points, with each problem left out of a fit by other libraries.

    Scores are fractions, so that what ties does tie: few of the 35 references have a score of their own.
    """
    (fit,) = fit_kinds(*both, Criterion(), (kind if kind != "none" else "affine",))
    result = fit.unmapped if kind == "none" else fit.merits
    y, predicted, by_hand = [], [], []
    for n, (old, new) in enumerate(zip(*(map(finished, campaign) for campaign in both), strict=True)):
        change, seen = refit_without(both, n, kind), ~np.isnan(old[: len(new)])
        predicted.append(change(old[: len(new)])[seen])
        y.append(new[seen])
        by_hand += scores_by_hand(old, new, change)
    y, predicted = np.concatenate(y), np.concatenate(predicted)
    assert result.r2 == pytest.approx(1 - ((y - predicted) ** 2).sum() / ((y - y.mean()) ** 2).sum(), abs=1e-7)
    assert result.error == pytest.approx(np.median(np.abs(predicted - y) / y), abs=1e-7)
    before, after, moved, fresh = zip(*by_hand, strict=True)
    assert len(set(before)) < len(before)
    assert result.spearman == pytest.approx(spearmanr(in_order(before), in_order(after)).statistic, abs=1e-12)
    apart = [abs(a - b) for a, b in zip(moved, fresh, strict=True)]
    assert result.points == pytest.approx(float(100 * sum(apart) / len(apart)), abs=1e-9)


def in_order(fractions):
    """Their places among the different ones, whole numbers."""
    return [sorted(set(fractions)).index(exact_mean) for exact_mean in fractions]


@given(
    st.lists(st.lists(st.tuples(st.integers(0, 12), st.integers(1, 6)), min_size=1, max_size=6), min_size=1, max_size=9)
)
def test_equal_scores_are_equal_floats(rows):
    """Means of k / 2n with any n: equal fractions give equal floats, and order is kept."""
    exact = [sum(Fraction(min(k, 2 * n), 2 * n) for k, n in row) / len(row) for row in rows]
    result = []
    for row in rows:
        t, n = len(row), 6
        pool = np.full((n + 1, t), np.nan)
        for index, (k, size) in enumerate(row):  # k // 2 smaller, one equal where k is odd, the rest larger
            less, equal = min(k, 2 * size) // 2, min(k, 2 * size) % 2
            pool[1 : size + 1, index] = [1] * less + [2] * equal + [3] * (size - less - equal)
        mine, peers = np.full((1, t), 2.0), np.arange(n + 1)[None, :] > 0
        result.append(float(scores(mine, np.ones((1, t), dtype=bool), pool, peers)[0]))
    assert result == [float(exact_mean) for exact_mean in exact]
