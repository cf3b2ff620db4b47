"""Formulas that other tools and papers publish and that no command of ours computes yet, written from their sources.

Plain functions on plain numbers; every formula names its source, and keeps its oddities.
"""

import math
from bisect import bisect_left
from collections.abc import Sequence

import numpy as np

from lapledger.replay.errors import ReplayError

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
