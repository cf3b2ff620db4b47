"""Formulas of other tools and papers, as they publish them, so that our figures can be held beside theirs.

Plain functions on plain numbers: no ledger, no measurement arrays, no I/O. Ours are elsewhere; none of these is a
criterion. Every formula names its source, and keeps its oddities: a cap at one second is a cap at one second.
"""

import math
from bisect import bisect_left
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Literal

import numpy as np

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


_T95 = (
    *(12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228),
    *(2.201, 2.179, 2.160, 2.145, 2.131, 2.120, 2.110, 2.101, 2.093, 2.086),
    *(2.080, 2.074, 2.069, 2.064, 2.060, 2.056, 2.052, 2.048, 2.045, 2.042),
)
"""Two-sided 95% points of Student's t for 1 to 30 degrees of freedom, to three digits, as any table prints them."""
_T95_FROM = ((200, 1.960), (100, 1.984), (80, 1.990), (60, 2.000), (50, 2.009), (40, 2.021))
"""Beyond 30 degrees of freedom pyperf takes the point of the next lower row of such a table."""


def pyperf_critical(freedom: int) -> float:
    """pyperf's critical value of the two-sided t test at 95%; ReplayError below 1 degree of freedom."""
    if freedom < 1:
        raise ReplayError("pyperf's t test needs two values a side; run the benchmark more often")
    return next((point for least, point in _T95_FROM if freedom >= least), _T95[min(freedom, len(_T95)) - 1])


def pyperf_significant(first: Sequence[float], second: Sequence[float]) -> bool:
    """Whether two samples differ by pyperf's own test: a two-sided two-sample t test with pooled variance.

    Where pyperf has no test it takes them to differ: samples of different sizes, of one value, or without variance.
    Source: pyperf, _utils.py and _compare.py.
    """
    size = len(first)
    if size != len(second) or size < 2:
        return True
    a, b = np.asarray(first, dtype=np.float64), np.asarray(second, dtype=np.float64)
    pooled = float(((a - a.mean()) ** 2).sum() + ((b - b.mean()) ** 2).sum()) / (2 * size - 2)
    if pooled == 0:
        return True
    return abs(float(a.mean() - b.mean())) / math.sqrt(2 * pooled / size) >= pyperf_critical(2 * size - 2)


def pyperf_geometric_mean(
    pairs: Sequence[tuple[Sequence[float], Sequence[float]]], *, significant_only: bool = True
) -> float:
    """Geometric mean over benchmarks of mean(second) / mean(first): above 1 slower.

    The product of the significant ratios to the power 1 / number of all pairs: an insignificant pair counts as 1. Else
    every ratio counts as measured, as in the last line of `pyperf compare_to`. ReplayError without a pair, or where a
    mean is not positive.
    """
    if not pairs:
        raise ReplayError("pyperf's geometric mean: no benchmark is in both files; compare files of the same suite")
    logarithms = []
    for first, second in pairs:
        low, high = (float(np.mean(values)) if len(values) else 0.0 for values in (first, second))
        if not (low > 0 and high > 0):
            raise ReplayError("pyperf's geometric mean: a mean is not positive; leave that benchmark out")
        counts = not significant_only or pyperf_significant(first, second)
        logarithms.append(math.log(high / low) if counts else 0.0)
    return math.exp(math.fsum(logarithms) / len(pairs))


def swefficiency_speedup(speedups: Sequence[float], correct: Sequence[bool]) -> float:
    """SWE-fficiency's harmonic mean of speed-ups; one that is not correct counts as 1.0, whatever it measured.

    ReplayError when the lengths differ or are 0, or a counted speed-up is not positive.
    """
    if not speedups or len(speedups) != len(correct):
        raise ReplayError(f"speed-ups: {len(speedups)} values and {len(correct)} verdicts; give as many, at least one")
    counted = [speedup if right else 1.0 for speedup, right in zip(speedups, correct, strict=True)]
    if min(counted) <= 0:
        raise ReplayError("speed-ups must be positive; leave out what was not measured")
    return len(counted) / math.fsum(1 / speedup for speedup in counted)


def swefficiency_human_ratio(prediction: float, gold: float) -> float:
    """The prediction's speed-up over the human's, 1 when as fast; ReplayError when the human's is not positive."""
    if gold <= 0:
        raise ReplayError("the human's speed-up must be positive; leave the problem out")
    return prediction / gold


def afterburner_percentile(value: float, references: Sequence[float]) -> float:
    """Afterburner's and Venus' percentile in [0, 1], 1 best: 1 - #(reference < value) / n, ties counted as beaten.

    `references` [n] in any order, of the same unit as `value`. ReplayError without one.
    """
    if not references:
        raise ReplayError("a percentile needs references; leave the problem out")
    return 1 - bisect_left(sorted(references), value) / len(references)


def enamel_eff_at_k(efficiencies: Sequence[float], k: int) -> float:
    """ENAMEL's eff@k: the expected best efficiency of k samples drawn from n without replacement.

    sum_{r=k..n} C(r-1, k-1) / C(n, k) * e_(r) with e [n] sorted ascending. ReplayError unless 1 <= k <= n.
    """
    n = len(efficiencies)
    if not 1 <= k <= n:
        raise ReplayError(f"eff@{k} of {n} samples: k must lie in 1 .. {n}")
    ascending = sorted(efficiencies)
    return math.fsum(math.comb(r - 1, k - 1) / math.comb(n, k) * ascending[r - 1] for r in range(k, n + 1))


def kernelbench_fast_p(correct: Sequence[bool], speedups: Sequence[float], p: float) -> float:
    """KernelBench's fast_p: the share of programs that are correct and more than p times as fast as the baseline.

    ReplayError when the lengths differ or are 0.
    """
    if not correct or len(correct) != len(speedups):
        raise ReplayError(f"fast_p: {len(correct)} verdicts and {len(speedups)} speed-ups; give as many, at least one")
    return sum(right and speedup > p for right, speedup in zip(correct, speedups, strict=True)) / len(correct)
