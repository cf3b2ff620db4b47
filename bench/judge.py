"""How fast one problem is judged: the kernel against scipy's `percentileofscore`, called timing by timing.

`python bench/judge.py [--quick] [--json]` prints {"rows": [{"name", "value", "unit", "baseline", "ratio"}],
"bytecode"}; both run in the same process on the same measurements. Not a test: no figure here can fail the gate.
"""

import argparse
import time
from collections.abc import Callable

import numpy as np
from figures import printed, row
from scipy.stats import percentileofscore

from lapledger.replay.criteria import Criterion
from lapledger.replay.judging.gates import judge
from lapledger.replay.measurements import Outcome, ProblemMeasurements, Tests

REFERENCES = 50


def synthetic(programs: int, tests: int, seed: int) -> ProblemMeasurements:
    """One problem with log-normal durations; the first 50 programs are references."""
    random = np.random.default_rng(seed)
    shape = (REFERENCES + programs, tests)
    wall = (1e8 * random.lognormal(sigma=0.7, size=(*shape, 1))).astype(np.int64)
    flags, sizes = np.ones(tests, dtype=np.bool_), np.ones(tests, dtype=np.int64)
    return ProblemMeasurements(
        problem="p",
        campaign="c",
        tests=Tests(tuple(f"t{t}" for t in range(tests)), flags, flags, flags, sizes, sizes, sizes, sizes),
        programs=tuple(f"p{p}" for p in range(shape[0])),
        models=("human",) * REFERENCES + ("model",) * programs,
        labels=("accepted",) * shape[0],
        candidate=np.ones(shape[0], dtype=np.bool_),
        reference=np.arange(shape[0]) < REFERENCES,
        duplicate=np.arange(shape[0]),
        outcome=np.full(shape, Outcome.OK, dtype=np.int8),
        wall_ns=wall,
        cpu_ns=wall,
        startup_ns=np.zeros(shape, dtype=np.int64),
        limit_ns=np.full(shape, 10**10, dtype=np.int64),
    )


def seconds(call: Callable[[], object], rounds: int) -> float:
    """The least wall time of a call over some rounds, in seconds."""
    best = float("inf")
    for _ in range(rounds):
        start = time.perf_counter()
        call()
        best = min(best, time.perf_counter() - start)
    return best


def scipy_scores(m: ProblemMeasurements) -> list[float]:
    """The baseline: the mean percentile of each candidate, one `percentileofscore` a timing."""
    wall = m.wall_ns[:, :, 0]
    pool = wall[m.reference]
    return [
        float(np.mean([percentileofscore(pool[:, t], wall[p, t], kind="mean") for t in range(wall.shape[1])]))
        for p in np.flatnonzero(~m.reference)
    ]


def main() -> None:
    """Prints the figures, as a line or as JSON."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    m = synthetic(20 if options.quick else 360, 60, seed=0)
    value = seconds(lambda: judge(m, Criterion(tau="30")), 5)
    baseline = seconds(lambda: scipy_scores(m), 1)
    made = row("judge one problem", value, "s", baseline=baseline)
    print(printed([made], as_json=options.json))


if __name__ == "__main__":
    main()
