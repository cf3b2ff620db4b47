"""Campaigns made by formula for matrices, curves and the simulator: many models, and durations whose order is known."""

import numpy as np

from lapledger.replay.measurements import Outcome
from tests.replay.builders import MS, make_tests, measured


def candidates_of(problem="p0", *, humans=11, wrong=0, models=None, tests=2, limit_ms=10_000):
    """A problem whose humans take 10, 20, 30, ... ms on every test, the last `wrong` of them with a wrong answer.

    All right humans are references. `models` maps a model's name to its programs' durations in ms, None a wrong answer.
    """
    made = [(f"h{i:03d}", "human", 10 * (i + 1), i >= humans - wrong) for i in range(humans)]
    for model, durations in (models or {}).items():
        made += [(f"{model}#{i}", model, ms or 1, ms is None) for i, ms in enumerate(durations)]
    wall = np.array([[ms] * tests for _, _, ms, _ in made], dtype=np.int64) * MS
    killed = wall >= limit_ms * MS
    outcome = np.where(killed, Outcome.TIME_LIMIT, Outcome.OK)
    outcome[[bad for *_, bad in made], 0] = Outcome.WRONG_ANSWER
    return measured(
        np.minimum(wall, limit_ms * MS),
        reference=[i for i, (_, by, _, bad) in enumerate(made) if by == "human" and not bad],
        outcome=outcome,
        limit=limit_ms * MS,
        problem=problem,
        programs=tuple(f"{problem}/{name}" for name, *_ in made),
        models=tuple(by for _, by, *_ in made),
        tests=make_tests(tests, original=1),
    )
