"""Warnings beside estimates: what a pool is too small to tell. No figure is made here."""

import math
from collections.abc import Iterable

from lapledger.replay.criteria import Criterion


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
