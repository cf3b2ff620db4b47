"""Warnings beside estimates: what a pool is too small to tell, and what was never executed. No figure is made here."""

import math
from collections.abc import Iterable, Sequence

import numpy as np

from replay.criteria import Criterion
from replay.judging.gates import Verdicts
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


def beyond(verdicts: Sequence[Verdicts]) -> tuple[int, int]:
    """(runs, candidates): runs that were killed below the limit that is asked for, and whose they are."""
    counts = [v.beyond[v.candidate] for v in verdicts]
    return sum(int(count.sum()) for count in counts), sum(int((count > 0).sum()) for count in counts)


def cap_warning(verdicts: Sequence[Verdicts], measurements: Sequence[ProblemMeasurements], criterion: Criterion) -> str:
    """One sentence where a criterion asks for a longer limit than was run, else the empty text.

    What a longer limit would have shown is never guessed: these runs leave open whatever depends on them. Where sizes
    are judged no limit on them was in force that could be named.
    """
    runs, programs = beyond(verdicts)
    if not runs:
        return ""
    if criterion.clock == "memory":
        return (
            f"the limit asked for is above what was seen: {runs} runs of {programs} candidates were killed before it,"
            " and only running them again with a longer time limit can decide them"
        )
    caps = {int(cap) for m in measurements for cap in np.unique(m.limit_ns[m.limit_ns > 0])}
    executed = " to ".join(f"{cap / 1e6:.6g}" for cap in sorted({min(caps), max(caps)}))
    return (
        f"the limit asked for is above what was executed ({executed} ms): {runs} runs of {programs} candidates were"
        " killed before it, and only running them again with the longer limit can decide them"
    )
