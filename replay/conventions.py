"""Scores and outcome codes of other tools, as they publish them: importers check the files they read against these.

Plain functions on plain numbers, and no criterion of ours. Each formula names its source and keeps its oddities: a cap
at one second stays a cap at one second.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Literal

from lapledger.replay.errors import ReplayError

Beyond = Literal["A", "B", "C"]
"""Which version of Mercury's score: A caps the lead at one second, B does not, C is clamped to [0, 1] as intended."""


def mercury_beyond(runtime: float, references: Sequence[float], version: Beyond, *, passed: bool = True) -> float:
    """Mercury's "Beyond" of one sample, 1 best in C; seconds in. 0 when it failed.

    With lead = max(references) - runtime and spread = max - min of the references: A = max(min(lead, 1), 0) / spread,
    B = max(lead / spread, 0), C = B up to 1. A may exceed 1. ReplayError when the references have no spread.
    Source: the result files of Elfsong/Mercury, which hold A (most) or B.
    """
    if not passed:
        return 0.0
    if not references or max(references) == min(references):
        raise ReplayError(
            "Mercury's Beyond: the references have no spread, so there is no score; leave the problem out"
        )
    slowest = max(references)
    spread = slowest - min(references)
    if version == "A":
        return max(min(slowest - runtime, 1), 0) / spread
    share = max((slowest - runtime) / spread, 0.0)
    return share if version == "B" else min(share, 1.0)


@dataclass(frozen=True, slots=True)
class DifferentialScore:
    """EvalPerf's scores of one sample, in percent, and the reference that it matches: -1 when slower than all."""

    dps: float
    dps_norm: float
    matched: int


def evalperf_dps(cost: float | None, reference_costs: Sequence[float], shares: Sequence[float]) -> DifferentialScore:
    """EvalPerf's differential performance score of one correct sample; `cost` None where its profile broke: 0.

    `reference_costs` [n] run from slow to fast, `shares` [n] are their cumulative shares in percent. The first
    reference from the fastest on, whose cost is at least the sample's, gives DPS = its share and DPS_norm =
    100 (j + 1) / n. ReplayError when the lengths differ or are 0. Source: evalplus, evalperf.py.
    """
    if not reference_costs or len(reference_costs) != len(shares):
        raise ReplayError(f"EvalPerf: {len(reference_costs)} reference costs and {len(shares)} shares; give as many")
    for j in reversed(range(len(shares))):
        if cost is not None and cost <= reference_costs[j]:
            return DifferentialScore(float(shares[j]), 100 * (j + 1) / len(shares), j)
    return DifferentialScore(0.0, 0.0, -1)


def evalperf_task(scores: Sequence[DifferentialScore], *, least: int = 10) -> tuple[float, float] | None:
    """Mean DPS and DPS_norm of a task's correct samples; None where fewer than `least` are correct: missing, not 0."""
    if len(scores) < max(least, 1):
        return None
    return math.fsum(s.dps for s in scores) / len(scores), math.fsum(s.dps_norm for s in scores) / len(scores)


LIVECODEBENCH_CODES: Mapping[int, str] = MappingProxyType(
    {
        -1: "time_limit",
        -2: "wrong_answer",
        -3: "time_limit",
        -4: "run_time_error",
        -5: "sandbox_fault",
    }
)
"""LiveCodeBench's error codes as outcomes: -1 is the time limit over all tests, -5 the failure of its own runner."""


def livecodebench_outcome(graded: bool, code: int | None) -> str:
    """The outcome of a sample from its grade and the error code of its metadata, null where it has none.

    ReplayError for a code that is not in LIVECODEBENCH_CODES. A failure without a code is `failed`: nobody says how.
    """
    if graded:
        return "accepted"
    if code is None:
        return "failed"
    if code not in LIVECODEBENCH_CODES:
        raise ReplayError(f"LiveCodeBench: error code {code} is not known; known: {sorted(LIVECODEBENCH_CODES)}")
    return LIVECODEBENCH_CODES[code]


def livecodebench_pass_at_1(graded: Sequence[Sequence[bool]]) -> float:
    """pass@1 in percent: the mean over problems of the share of passing samples; every failure counts, a fault too.

    ReplayError without a problem, or for one without samples. Source: `pass@1` of `*_eval_all.json`.
    """
    if not graded or not all(len(samples) for samples in graded):
        raise ReplayError("pass@1: every problem needs a sample; leave out the problems that have none")
    return 100 * math.fsum(sum(samples) / len(samples) for samples in graded) / len(graded)
