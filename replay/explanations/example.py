"""The small problem on which the reference page and its tests show what each criterion says. Every number is by hand.

Five references and five programs on two correctness tests and three optimization tests; nothing here was measured.
"""

import numpy as np

from lapledger.replay.judging.ranks import Pool, against
from lapledger.replay.judging.statistics import score, shown
from lapledger.replay.measurements import Outcome, ProblemMeasurements, Tests

MS = 1_000_000
HARD_LIMIT_MS = 10_000
TESTS = ("small", "edge", "o1", "o2", "o3")
CHARACTERS = (10, 10, 1_000, 100_000, 12_000_000)
DURATIONS_MS = {  # on o1, o2, o3; every program takes 10 ms on the two correctness tests
    "R1": (90, 300, 1000),
    "R2": (60, 400, 2000),
    "R3": (70, 500, 3000),
    "R4": (80, 600, 4000),
    "R5": (50, 700, 5000),
    "fast": (55, 350, 1500),
    "mixed": (65, 650, 900),
    "slow": (95, 800, HARD_LIMIT_MS),
    "wrong": (12, 12, 12),
    "overfit": (55, 350, 1500),
}
ENDED = {  # all else ended right
    ("slow", "o3"): Outcome.TIME_LIMIT,
    ("wrong", "o2"): Outcome.WRONG_ANSWER,
    ("overfit", "edge"): Outcome.WRONG_ANSWER,
}


def example() -> ProblemMeasurements:
    """The problem: programs R1 to R5 are its references, the others its candidates."""
    names = tuple(DURATIONS_MS)
    wall = np.array([(10, 10, *row) for row in DURATIONS_MS.values()], dtype=np.int64)[:, :, None] * MS
    outcome = np.array([[ENDED.get((p, t), Outcome.OK) for t in TESTS] for p in names], dtype=np.int8)
    reference = np.array([name.startswith("R") for name in names])
    nothing = np.zeros(len(TESTS), dtype=np.int64)
    return ProblemMeasurements(
        problem="example",
        campaign="example",
        tests=Tests(
            ids=TESTS,
            original=np.array([True, False, False, False, False]),
            correctness=np.array([True, True, False, False, False]),
            optimization=np.array([False, False, True, True, True]),
            input_bytes=np.array(CHARACTERS),
            input_chars=np.array(CHARACTERS),
            output_bytes=nothing,
            output_chars=nothing,
        ),
        programs=names,
        models=tuple("human" if is_reference else "model" for is_reference in reference),
        labels=("accepted",) * len(names),
        candidate=~reference,
        reference=reference,
        duplicate=np.arange(len(names)),
        outcome=outcome,
        wall_ns=wall,
        cpu_ns=wall,
        startup_ns=np.zeros(outcome.shape, dtype=np.int64),
        limit_ns=np.full(outcome.shape, HARD_LIMIT_MS * MS),
    )


def statistic_value(name: str, program: str) -> float:
    """The statistic of one of the candidates among the references: in percent, in ns, or a ratio."""
    m = example()
    pool = Pool(*(2 * m.wall_ns[m.reference][:, m.tests.optimization, 0],) * 2, m.duplicate[m.reference])
    mine, outside = 2 * m.wall_ns[[m.row(program)]][:, m.tests.optimization, 0], np.array([len(pool.names)])
    ends = against(pool, mine, mine, rows=np.array([0]), groups=[outside])
    numerator, denominator = score(name, ends, "mean")[0]
    return shown(name, int(numerator[0]), int(denominator[0]), mine.shape[1])
