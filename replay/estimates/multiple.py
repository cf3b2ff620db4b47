"""Many comparisons at once: what chance alone would find among them, and p values that hold over all.

statsmodels is imported only when something is adjusted.
"""

from collections.abc import Sequence

import numpy as np

from lapledger.replay.errors import ReplayError

METHODS = {"holm": "Holm", "fdr_bh": "Benjamini-Hochberg"}
LARGE = 5
"""Number of comparisons from which a table carries a note."""
ALPHA = 0.05


def adjusted(p_values: Sequence[float | None], method: str = "holm") -> list[float | None]:
    """p values adjusted for their number, in their order; None stays None and is not counted.

    `holm` bounds the chance of any false finding, `fdr_bh` the share of false ones among the findings. Sources: Holm
    1979; Benjamini & Hochberg 1995. ReplayError for another method.
    """
    if method not in METHODS:
        raise ReplayError(f"comparisons: no method {method!r}; use one of {', '.join(METHODS)}")
    known = [p for p in p_values if p is not None]
    if len(known) < 2:
        return list(p_values)
    from statsmodels.stats.multitest import multipletests

    adjusted_known = iter(np.asarray(multipletests(known, ALPHA, method)[1]).tolist())
    return [None if p is None else next(adjusted_known) for p in p_values]


def many_comparisons(comparisons: int, method: str = "holm") -> str:
    """One sentence where a table holds many comparisons, else the empty text."""
    if comparisons < LARGE:
        return ""
    return (
        f"{comparisons} comparisons: where nothing differs about {ALPHA * comparisons:.2g} would still fall below p = "
        f"{ALPHA}; read the column {METHODS[method]} p, which holds over all of them"
    )
