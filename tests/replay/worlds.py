"""Small problems with all outcomes and kinds of tests, and criteria that machine code knows."""

import dataclasses

import numpy as np
from hypothesis import strategies as st

from lapledger.replay.criteria import Criterion
from lapledger.replay.measurements import Outcome
from tests.replay.builders import MS, problems

ALL = tuple(Outcome)
MOSTLY = (Outcome.OK,) * 8 + ALL


@st.composite
def common(draw):
    """A criterion that machine code knows, with small limits."""
    chosen = draw(
        st.fixed_dictionaries(
            {
                "tau": st.sampled_from(["100", "50", "30", "12.5"]),
                "reading": st.sampled_from(["leaderboard", "score", "over-limit", "zero"]),
                "percentile": st.sampled_from(["mean", "strict", "weak"]),
                "correctness": st.sampled_from(["strict", "original"]),
                "interface": st.sampled_from(["ignored", "required"]),
                "timeouts": st.sampled_from(["fail", "tolerated"]),
                "timeout_ms": st.sampled_from([None, 2, 4]),
                "limit_ms": st.sampled_from([None, 1, 3, 5]),
                "in_time": st.sampled_from(["ignored", "required"]),
                "estimator": st.sampled_from(["median", "min", "mean", "hodges-lehmann"]),
                "min_references": st.integers(1, 3),
                "missing": st.sampled_from(["undecided", "fail"]),
                "reward": st.sampled_from(["collapsed-binary", "additive", "optimization-only"]),
            }
        )
    )
    clock, startup = draw(st.sampled_from([("wall", "keep"), ("wall", "subtract"), ("cpu", "keep")]))
    return Criterion.from_mapping(chosen | {"clock": clock, "startup": startup})


@st.composite
def measurements(draw, *, programs=6, tests=3):
    """A small problem in whole ms, with several models, all outcomes, kinds of tests and some runs without a time."""
    m = draw(problems(outcomes=MOSTLY, programs=programs, tests=tests))
    count, width = len(m.programs), len(m.tests.ids)
    flags = [np.array(draw(st.lists(st.booleans(), min_size=width, max_size=width))) for _ in range(2)]
    kinds = dataclasses.replace(m.tests, original=flags[0], correctness=flags[1], optimization=~flags[1] | flags[0])
    wall = m.wall_ns * MS
    wall[draw(st.integers(0, count - 1)), draw(st.integers(0, width - 1))] = draw(st.sampled_from([-1, 3 * MS]))
    return dataclasses.replace(
        m,
        tests=kinds,
        models=tuple("ab"[i % 2] for i in range(count)),
        candidate=np.array(draw(st.lists(st.booleans(), min_size=count, max_size=count))),
        wall_ns=wall,
        cpu_ns=np.where(wall < 0, -1, wall // 2),
        startup_ns=np.full((count, width), draw(st.sampled_from([0, MS, -1]))),
        limit_ns=np.where(m.limit_ns < 0, -1, m.limit_ns * MS),
        interface=draw(st.sampled_from([None, np.resize(np.array([1, 0, -1], dtype=np.int8), count)])),
    )
