"""The test that decided a verdict: the one that failed, the one that was never seen, or the one that weighs most.

Shared by `why`, which asks about one program, and `flips`, which asks about many. Nothing is judged here.
"""

import numpy as np

from lapledger.replay.judging.gates import Status, Verdicts
from lapledger.replay.judging.test_results import Rules, Tried


def deciding(rules: Rules, tried: Tried, verdicts: Verdicts, *, row: int, at: int) -> int | None:
    """The deciding test of a program: `row` in the verdicts, `at` among those that were tried; None where none did.

    The first test that fails correctness, crashes where that matters, or fails its limit, or that leaves correctness
    open; else the one whose rank is widest open; else the one with the best (pass) or the worst percentile.
    """
    gate = int(verdicts.c[row])
    if gate == 0 or (gate == -1 and verdicts.g[row] != 0):
        short = np.flatnonzero((tried.cells[at] == gate) & (rules.counted == 1))
        return int(short[0]) if short.size else None
    for asked, bad in (
        (rules.criterion.ranks_wrong, tried.crashed),
        (rules.criterion.in_time == "required", tried.over),
    ):
        failed = np.flatnonzero(rules.ranked)[bad[at] & ~tried.lacking[at]]
        if asked and verdicts.status[row] == Status.FAIL and failed.size:
            return int(failed[0])
    ranked = np.flatnonzero(verdicts.k_lo[row] >= 0)
    if not ranked.size or not verdicts.q_den[row] or rules.criterion.threshold == 1:
        return None
    low, high = verdicts.k_lo[row, ranked], verdicts.k_hi[row, ranked]
    if verdicts.status[row] == Status.UNDECIDED and (high > low).any():
        return int(ranked[np.argmax(high - low)])
    return int(ranked[np.argmin(low if verdicts.status[row] == Status.PASS else -high)])
