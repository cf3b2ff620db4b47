"""The common criteria in machine code: runs, limits, pools, ranks and quality of one problem in a few hundred us.

The one home of numba in this room; loading it takes about a second, so it is imported only where millions of runs are
weighed. Whole numbers throughout. What each rule means is said where numpy says it: `trials`, `ranks`, `quality`,
`court`; `prepared` brings measurements here and verdicts back. No rule lives here alone. Compiled code takes arrays in
fixed places, and more of them than functions elsewhere do: an object would be taken apart at every call.
"""

import numpy as np

from lapledger.replay.jit.codes import CORRECT, FOUND, RANKED, Array
from lapledger.replay.jit.machine import in_machine_code
from lapledger.replay.jit.ranking import pool_sizes, rank_all
from lapledger.replay.jit.runs import spans_of, try_runs


@in_machine_code
def weigh(
    outcomes: Array,  # [P, T] of Outcome
    values: Array,  # [P, T] ns: durations, and bounds of killed runs
    kinds: Array,  # [T] as in `try_runs`
    group: Array,  # [P] of exact duplicates among the references, from 0; -1 for none
    rows: Array,  # [N] the references
    scaled: Array,  # [N, T] their values as they rank others
    asked: Array,  # [ASKED] what the criterion asks
    found: Array,  # [FOUND, P] filled here, as `asked` names its rows
) -> None:
    """Everything decided of the programs of a problem but the threshold on q."""
    each = np.zeros(FOUND, dtype=np.int64)
    for p in range(len(outcomes)):
        try_runs(outcomes[p], values[p], kinds, asked, each)
        found[:, p] = each
    member = np.zeros(len(rows), dtype=np.bool_)
    for r in range(len(rows)):
        try_runs(outcomes[rows[r]], scaled[r], kinds, asked, each)
        member[r] = each[CORRECT] == 1
    pool = np.flatnonzero(member)
    groups = group[rows[pool]]
    pool_sizes(group, groups, found)
    tests = np.flatnonzero(kinds & 2)
    if asked[RANKED] == 0 or len(pool) == 0 or len(tests) == 0:
        return
    spans, one = np.zeros((2, len(pool), len(tests)), dtype=np.int64), np.zeros((2, len(tests)), dtype=np.int64)
    certain = True
    for i in range(len(pool)):
        certain = spans_of(outcomes[rows[pool[i]]], scaled[pool[i]], tests, asked, one) and certain
        spans[0, i], spans[1, i] = one[0], one[1]
    rank_all(outcomes, values, tests, group, groups, spans, certain, asked, found)
