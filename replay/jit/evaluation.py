"""The common criteria in machine code: runs, limits, pools, ranks and quality of one problem in a few hundred us.

The one home of numba in this room; loading it takes about a second, so it is imported only where millions of runs are
weighed. Whole numbers throughout. What each rule means is said where numpy says it: `trials`, `ranks`, `quality`,
`court`; `prepared` brings measurements here and verdicts back. No rule lives here alone. Compiled code takes arrays in
fixed places, and more of them than functions elsewhere do: an object would be taken apart at every call.
"""

import numpy as np

from lapledger.replay.jit.machine import (
    CORRECT,
    FAILED_REFERENCE,
    FEW,
    FOUND,
    LEADERBOARD,
    LESS_WEIGHT,
    Q_DEN,
    Q_HI,
    Q_LO,
    RANKED,
    SIZE,
    UPTO_WEIGHT,
    Array,
    in_machine_code,
)
from lapledger.replay.jit.runs import spans_of, try_runs


@in_machine_code
def _lost(mine: Array, theirs: Array, asked: Array) -> int:
    """The rank of one program [T'] against one reference [T'], summed over the tests."""
    less = upto = 0
    for t in range(len(mine)):
        less += theirs[t] < mine[t]
        upto += theirs[t] <= mine[t]
    return int(asked[LESS_WEIGHT] * less + asked[UPTO_WEIGHT] * upto)


@in_machine_code
def _place(rising: Array, value: int, asked: Array) -> int:
    """The rank of a value among n values in order."""
    less, step = 0, len(rising)
    while step > 1:  # halves without a branch that nobody can foresee
        half = step // 2
        less += half * (rising[less + half - 1] < value)
        step -= half
    less += rising[less] < value
    upto = less
    while upto < len(rising) and rising[upto] == value:
        upto += 1
    return int(asked[LESS_WEIGHT] * less + asked[UPTO_WEIGHT] * upto)


@in_machine_code
def _total(mine: Array, theirs: Array, rising: Array, group: Array, left_out: int, asked: Array) -> int:
    """The rank of a program [T'] against the references [n, T'] outside one group, summed over both."""
    total, n = 0, len(theirs)
    if n <= FEW:  # several comparisons fit one instruction
        for i in range(n):
            if group[i] != left_out:
                total += _lost(mine, theirs[i], asked)
        return total
    for t in range(len(mine)):
        total += _place(rising[t], mine[t], asked)
    for i in range(n):
        if group[i] == left_out:
            total -= _lost(mine, theirs[i], asked)
    return total


@in_machine_code
def _pairs(mine: Array, theirs: Array, group: Array, asked: Array) -> Array:
    """The rank of each reference [n, T'] against each other one, summed over the tests [n, n]; 0 in its own group."""
    n = len(group)
    found = np.zeros((n, n), dtype=np.int64)
    for i in range(n):
        for j in range(n):
            if group[i] != group[j]:
                found[i, j] = _lost(mine[i], theirs[j], asked)
    return found


@in_machine_code
def _own(pairs: Array, group: Array, left_out: int, tests: int, alone: int) -> Array:
    """The references' own scores, numerators and denominators [2, n], each without its group and one more group."""
    n = len(group)
    scores = np.zeros((2, n), dtype=np.int64)
    for i in range(n):
        total = size = 0
        for j in range(n):
            others = group[j] != group[i] and group[j] != left_out
            size += others
            total += pairs[i, j] * others
        scores[0, i], scores[1, i] = total, 2 * size * tests
        if size == 0:
            scores[0, i], scores[1, i] = alone * tests, 2 * tests
    return scores


@in_machine_code
def _standing(top: int, bottom: int, scores: Array, group: Array, left_out: int, asked: Array) -> int:
    """The integer rank of a score among the own scores [2, n] of the references outside one group."""
    less = upto = 0
    for i in range(len(group)):
        others = group[i] != left_out
        left, right = scores[0, i] * bottom, top * scores[1, i]
        less += others and left < right
        upto += others and left <= right
    return int(asked[LESS_WEIGHT] * less + asked[UPTO_WEIGHT] * upto)


@in_machine_code
def pool_sizes(group: Array, members: Array, found: Array) -> None:
    """How many references, of groups [n], rank each program, without its exact duplicates."""
    sizes = np.zeros(len(group) + 1, dtype=np.int64)
    for i in range(len(members)):
        sizes[members[i]] += 1
    for p in range(len(group)):
        found[SIZE, p] = len(members) - (sizes[group[p]] if group[p] >= 0 else 0)


@in_machine_code
def _rising(theirs: Array) -> Array:
    """References [2, n, T'] in rising order on each test [2, T', n]; nothing where they are few."""
    rising = np.zeros((2, theirs.shape[2], theirs.shape[1] if theirs.shape[1] > FEW else 0), dtype=np.int64)
    if theirs.shape[1] > FEW:
        for side in range(2):
            for t in range(theirs.shape[2]):
                rising[side, t] = np.sort(theirs[side, :, t])
    return rising


@in_machine_code
def rank_all(
    outcomes: Array,
    values: Array,
    tests: Array,
    group: Array,
    groups: Array,
    spans: Array,
    certain: bool,
    asked: Array,
    found: Array,
) -> None:
    """Fills the quality of every program among the references [n] that lie at spans [2, n, T'].

    Nine arguments, for the reason that `weighing` gives: an object would be taken apart at every call.
    """
    count, alone, leaderboard = len(tests), asked[UPTO_WEIGHT], asked[LEADERBOARD] == 1
    theirs = np.minimum(spans, FAILED_REFERENCE)  # a failed reference ranks before a failed program
    rising = _rising(theirs)
    pairs = np.zeros((2, len(groups), len(groups)), dtype=np.int64)
    nobody = np.zeros((2, 2, len(groups)), dtype=np.int64)
    if leaderboard:
        for side in range(2):
            pairs[side] = _pairs(spans[side], theirs[1 - side], groups, asked)
            nobody[side] = _own(pairs[side], groups, -2, count, alone)
    one = np.zeros((2, count), dtype=np.int64)
    for p in range(len(outcomes)):
        size = found[SIZE, p]
        if size == 0:
            continue
        known = spans_of(outcomes[p], values[p], tests, asked, one) and certain
        left_out = group[p] if size < len(groups) else -2
        for side in range(2):  # the low end is counted against the references' high ends
            if side == 1 and known:
                found[Q_HI, p] = found[Q_LO, p]
                break
            total = _total(one[side], theirs[1 - side], rising[1 - side], groups, left_out, asked)
            if leaderboard:
                own = nobody[1 - side]
                if left_out >= 0:
                    own = _own(pairs[1 - side], groups, left_out, count, alone)
                total = _standing(total, 2 * size * count, own, groups, left_out, asked)
            found[Q_LO + side, p] = total
        found[Q_DEN, p] = 2 * size if leaderboard else 2 * size * count


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
