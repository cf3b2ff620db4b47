"""The rank correlation of two rows of numbers."""

import numpy as np

from lapledger.replay.measurements import Floats

SAME = 1e-12
"""Values that differ by less, relative to the largest of their row, count as equal: sums of floats end in noise."""


def spearman(x: Floats, y: Floats) -> float:
    """Spearman's rank correlation of x and y [n] with averaged ties, in [-1, 1]; nan when one of them does not vary."""
    ranks = [_ranks(v) for v in (x, y)]
    dx, dy = (rank - rank.mean() if rank.size else rank for rank in ranks)
    scale = float(np.sqrt((dx * dx).sum() * (dy * dy).sum()))
    return float((dx * dy).sum() / scale) if scale > 0 else float("nan")


def _ranks(values: Floats) -> Floats:
    """Twice the averaged rank [n], from 0: how many are smaller, and how many are no larger."""
    order = np.argsort(values, kind="stable")
    larger = np.diff(values[order], prepend=-np.inf) > SAME * np.abs(values).max(initial=0)
    rank = np.empty(len(values), dtype=np.int64)
    rank[order] = np.cumsum(larger) - 1
    upto = np.cumsum(np.bincount(rank))
    doubled: Floats = (np.append(0, upto)[rank] + upto[rank]).astype(np.float64)
    return doubled
