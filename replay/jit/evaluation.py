"""The common criteria in machine code: grading, limits, pools, ranks and quality of one problem in a few hundred us.

Loading it takes about a second, so it is imported only where millions of runs are evaluated. Whole numbers throughout,
the same as numpy's: each rule is explained in `judging` (`graded_runs`, `ranks`, `quality`, `context`) and none lives
here alone; `batches.problem_batches` brings measurements here and verdicts back. Compiled code takes arrays in fixed
positions, and more of them than functions elsewhere: an object would be taken apart at every call.
"""

import numpy as np

from lapledger.replay.jit.machine import (
    CORRECT,
    FAILED_REFERENCE,
    FEW,
    LEADERBOARD,
    LESS_WEIGHT,
    Q_DEN,
    Q_HI,
    Q_LO,
    RANKED,
    RESULTS,
    SIZE,
    UPTO_WEIGHT,
    Array,
    jit,
)
from lapledger.replay.jit.runs import grade_runs, spans_of


@jit
def _lost(mine: Array, theirs: Array, parameters: Array) -> int:
    """The rank of one program [T'] against one reference [T'], summed over the tests."""
    less = upto = 0
    for t in range(len(mine)):
        less += theirs[t] < mine[t]
        upto += theirs[t] <= mine[t]
    return int(parameters[LESS_WEIGHT] * less + parameters[UPTO_WEIGHT] * upto)


@jit
def _rank(rising: Array, value: int, parameters: Array) -> int:
    """The rank of a value among n >= 1 values in rising order.

    The first value that is not smaller lies in [less, less + step] throughout: each halving keeps that, without a
    branch that the processor would have to guess. Equal values follow it at once, so both counts are exact under ties.
    """
    less, step = 0, len(rising)
    while step > 1:
        half = step // 2
        less += half * (rising[less + half - 1] < value)
        step -= half
    less += rising[less] < value
    upto = less
    while upto < len(rising) and rising[upto] == value:
        upto += 1
    return int(parameters[LESS_WEIGHT] * less + parameters[UPTO_WEIGHT] * upto)


@jit
def _total(mine: Array, theirs: Array, rising: Array, group: Array, excluded: int, parameters: Array) -> int:
    """The rank of a program [T'] against the references [n, T'] outside one group, summed over both.

    Few references are compared one by one; else all are ranked by search, and the left-out group is subtracted again:
    exact, as each reference adds its own whole part to the sum.
    """
    total, n = 0, len(theirs)
    if n <= FEW:  # several comparisons fit one instruction
        for i in range(n):
            if group[i] != excluded:
                total += _lost(mine, theirs[i], parameters)
        return total
    for t in range(len(mine)):
        total += _rank(rising[t], mine[t], parameters)
    for i in range(n):
        if group[i] == excluded:
            total -= _lost(mine, theirs[i], parameters)
    return total


@jit
def _pairs(mine: Array, theirs: Array, group: Array, parameters: Array) -> Array:
    """The rank of each reference [n, T'] against each other one, summed over the tests [n, n]; 0 in its own group."""
    n = len(group)
    ranks = np.zeros((n, n), dtype=np.int64)
    for i in range(n):
        for j in range(n):
            if group[i] != group[j]:
                ranks[i, j] = _lost(mine[i], theirs[j], parameters)
    return ranks


@jit
def _reference_scores(pairs: Array, group: Array, excluded: int, tests: int, alone: int) -> Array:
    """The references' own scores, numerators and denominators [2, n], each without its group and one more group."""
    n = len(group)
    scores = np.zeros((2, n), dtype=np.int64)
    for i in range(n):
        total = size = 0
        for j in range(n):
            ranks_it = group[j] != group[i] and group[j] != excluded
            size += ranks_it
            total += pairs[i, j] * ranks_it
        scores[0, i], scores[1, i] = total, 2 * size * tests
        if size == 0:
            scores[0, i], scores[1, i] = alone * tests, 2 * tests
    return scores


@jit
def _standing(top: int, bottom: int, scores: Array, group: Array, excluded: int, parameters: Array) -> int:
    """The integer rank of a score among the own scores [2, n] of the references outside one group."""
    less = upto = 0
    for i in range(len(group)):
        ranks_it = group[i] != excluded
        left, right = scores[0, i] * bottom, top * scores[1, i]  # both below 2**62: see MOST_SCORE
        less += ranks_it and left < right
        upto += ranks_it and left <= right
    return int(parameters[LESS_WEIGHT] * less + parameters[UPTO_WEIGHT] * upto)


@jit
def pool_sizes(group: Array, members: Array, results: Array) -> None:
    """How many references, of groups [n], rank each program, without its exact duplicates."""
    sizes = np.zeros(len(group) + 1, dtype=np.int64)
    for i in range(len(members)):
        sizes[members[i]] += 1
    for p in range(len(group)):
        results[SIZE, p] = len(members) - (sizes[group[p]] if group[p] >= 0 else 0)


@jit
def _rising(theirs: Array) -> Array:
    """References [2, n, T'] in rising order on each test [2, T', n]; nothing where they are few."""
    rising = np.zeros((2, theirs.shape[2], theirs.shape[1] if theirs.shape[1] > FEW else 0), dtype=np.int64)
    if theirs.shape[1] > FEW:
        for end in range(2):
            for t in range(theirs.shape[2]):
                rising[end, t] = np.sort(theirs[end, :, t])
    return rising


@jit
def rank_all(
    outcomes: Array,
    values: Array,
    tests: Array,
    group: Array,
    groups: Array,
    spans: Array,
    certain: bool,
    parameters: Array,
    results: Array,
) -> None:
    """Fills the quality of every program among the references [n] that lie at spans [2, n, T'].

    Nine arguments, for the reason that the module gives. The low end of a program is counted against the high ends of
    the references, and the reverse: so `quality` makes the smallest and the largest q.
    """
    count, alone, leaderboard = len(tests), parameters[UPTO_WEIGHT], parameters[LEADERBOARD] == 1
    theirs = np.minimum(spans, FAILED_REFERENCE)  # a failed reference ranks before a failed program
    rising = _rising(theirs)
    pairs = np.zeros((2, len(groups), len(groups)), dtype=np.int64)
    none_left_out = np.zeros((2, 2, len(groups)), dtype=np.int64)
    if leaderboard:
        for end in range(2):
            pairs[end] = _pairs(spans[end], theirs[1 - end], groups, parameters)
            none_left_out[end] = _reference_scores(pairs[end], groups, -2, count, alone)
    span = np.zeros((2, count), dtype=np.int64)
    for p in range(len(outcomes)):
        size = results[SIZE, p]
        if size == 0:
            continue
        known = spans_of(outcomes[p], values[p], tests, parameters, span) and certain
        excluded = group[p] if size < len(groups) else -2
        for end in range(2):  # the low end is counted against the references' high ends
            if end == 1 and known:
                results[Q_HI, p] = results[Q_LO, p]
                break
            total = _total(span[end], theirs[1 - end], rising[1 - end], groups, excluded, parameters)
            if leaderboard:
                scores = none_left_out[1 - end]
                if excluded >= 0:
                    scores = _reference_scores(pairs[1 - end], groups, excluded, count, alone)
                total = _standing(total, 2 * size * count, scores, groups, excluded, parameters)
            results[Q_LO + end, p] = total
        results[Q_DEN, p] = 2 * size if leaderboard else 2 * size * count


@jit
def evaluate(
    outcomes: Array,  # [P, T] of Outcome
    values: Array,  # [P, T] ns: durations, and bounds of killed runs
    kinds: Array,  # [T] as in `try_runs`
    group: Array,  # [P] of exact duplicates among the references, from 0; -1 for none
    rows: Array,  # [N] the references
    scaled: Array,  # [N, T] their values as they rank others
    parameters: Array,  # [PARAMETERS] the criterion
    results: Array,  # [RESULTS, P] filled here; `machine` names its rows
) -> None:
    """Everything decided of the programs of a problem but the threshold on q."""
    row = np.zeros(RESULTS, dtype=np.int64)
    for p in range(len(outcomes)):
        grade_runs(outcomes[p], values[p], kinds, parameters, row)
        results[:, p] = row
    member = np.zeros(len(rows), dtype=np.bool_)
    for r in range(len(rows)):
        grade_runs(outcomes[rows[r]], scaled[r], kinds, parameters, row)
        member[r] = row[CORRECT] == 1
    pool = np.flatnonzero(member)
    groups = group[rows[pool]]
    pool_sizes(group, groups, results)
    tests = np.flatnonzero(kinds & 2)
    if parameters[RANKED] == 0 or len(pool) == 0 or len(tests) == 0:
        return
    spans, span = np.zeros((2, len(pool), len(tests)), dtype=np.int64), np.zeros((2, len(tests)), dtype=np.int64)
    certain = True
    for i in range(len(pool)):
        certain = spans_of(outcomes[rows[pool[i]]], scaled[pool[i]], tests, parameters, span) and certain
        spans[0, i], spans[1, i] = span[0], span[1]
    rank_all(outcomes, values, tests, group, groups, spans, certain, parameters, results)
