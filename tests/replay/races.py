"""Races of two models on one test against a few references, for best of N and win rates."""

import numpy as np

from lapledger.replay.criteria import Criterion
from lapledger.replay.judging.gates import judge
from tests.replay.builders import MS, measured


def race(a, b, *, problem="sum", refs=(2, 4, 6, 8), outcomes=None):
    """One problem on one test: durations in ms of the samples of a and b, after the references."""
    wall = np.array([[ms * MS] for ms in (*refs, *a, *b)])
    models = ("human",) * len(refs) + ("a",) * len(a) + ("b",) * len(b)
    candidate = np.arange(len(wall)) >= len(refs)
    return measured(
        wall, reference=range(len(refs)), models=models, problem=problem, candidate=candidate, outcome=outcomes
    )


def judged(*problems, criterion=None):
    """The verdicts on some problems."""
    return [judge(m, criterion or Criterion()) for m in problems]
