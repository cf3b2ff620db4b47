"""Warnings beside estimates: what a pool is too small to tell, and what was never executed. No figure is made here."""

import math
from collections.abc import Iterable, Sequence

import numpy as np

from replay.criteria import Criterion
from replay.gates import Verdicts
from replay.measurements import ProblemMeasurements


def resolution_warning(pool_sizes: Iterable[int], criterion: Criterion) -> str:
    """One sentence where some pool is too small to resolve tau (100/n > tau), else the empty text."""
    sizes, (tau, whole) = [int(size) for size in pool_sizes], criterion.threshold.as_integer_ratio()
    small = [size for size in sizes if tau * size < whole]
    if tau == whole or not small:
        return ""
    return (
        f"p_{criterion.tau} needs pools of at least {math.ceil(1 / criterion.threshold)} references:"
        f" {len(small)} of {len(sizes)} pools are smaller (smallest {min(small)})"
    )


def cap_warning(verdicts: Sequence[Verdicts], measurements: Sequence[ProblemMeasurements]) -> str:
    """One sentence where a criterion asks for a longer limit than was run, else the empty text.

    What a longer limit would have shown is never guessed: these runs leave open whatever depends on them.
    """
    runs = sum(int(v.beyond[v.candidate].sum()) for v in verdicts)
    if not runs:
        return ""
    programs = sum(int((v.beyond[v.candidate] > 0).sum()) for v in verdicts)
    caps = {int(cap) for m in measurements for cap in np.unique(m.limit_ns[m.limit_ns > 0])}
    executed = " to ".join(f"{cap / 1e6:.6g}" for cap in sorted({min(caps), max(caps)}))
    return (
        f"the limit asked for is above what was executed ({executed} ms): {runs} runs of {programs} candidates were"
        " killed before it, and only running them again with the longer limit can decide them"
    )
