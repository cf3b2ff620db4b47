"""Grading of runs, as in `judging.graded_runs` and `ranks.spans`, one program at a time."""

from lapledger.replay.jit.machine import (
    ALLOWED,
    CENSORED_BELOW_LIMIT,
    CORRECT,
    FAILED,
    HAS_LIMITS,
    IN_TIME,
    KILLED,
    LIMIT_NS,
    MISSING,
    MISSING_FAILS,
    MOST,
    NO_CRASH,
    NO_LIMIT,
    NONE_FINISHED,
    NOT_WITHIN,
    OK,
    OVER,
    RANKS_WRONG,
    TIME_LIMIT,
    TOLERATED,
    UNSPECIFIED_FAILURE,
    WRONG_ANSWER,
    Array,
    jit,
)


@jit
def span_of(outcome: int, value: int, parameters: Array) -> tuple[int, int]:
    """Where a run lies, from and to, in half ns; `value` is its duration, or the bound of a killed one."""
    ended = outcome == OK or (parameters[RANKS_WRONG] == 1 and outcome == WRONG_ANSWER)
    if ended and value >= 0:
        return 2 * value, 2 * value
    if outcome == TIME_LIMIT:  # with more time it might have crashed
        return 2 * value + 1, FAILED if 2 * value + 1 <= parameters[ALLOWED] else KILLED
    if outcome == UNSPECIFIED_FAILURE:
        return -1, FAILED
    if (outcome > OK and not ended) or (outcome == MISSING and parameters[MISSING_FAILS] == 1):
        return FAILED, FAILED
    return -1, FAILED


@jit
def _is_plain(outcomes: Array, values: Array, most: int) -> bool:
    """Whether all runs of a program ended right, with a duration and within every limit: nearly all programs."""
    strange = False
    for t in range(len(outcomes)):
        strange |= (outcomes[t] != OK) | (values[t] < 0) | (values[t] > most)
    return not strange


@jit
def _in_time(outcome: int, span: tuple[int, int], parameters: Array) -> tuple[bool, bool]:
    """Whether a run on an optimization test ended within its limit for certain, and whether it did not."""
    low, high = span
    ended = low != FAILED and outcome in (OK, WRONG_ANSWER)
    if parameters[ALLOWED] == NO_LIMIT:
        return ended, low == FAILED or outcome == TIME_LIMIT or (
            outcome == UNSPECIFIED_FAILURE and parameters[RANKS_WRONG] == 0
        )
    return ended and high <= parameters[ALLOWED], low == FAILED or low > parameters[ALLOWED]


@jit
def _ended(outcome: int, value: int, parameters: Array) -> tuple[bool, bool, bool, bool]:
    """Whether a run, limits on optimization tests apart, failed, timed out, is unknown, was killed below its limit."""
    limit, killed = parameters[LIMIT_NS], outcome in (TIME_LIMIT, UNSPECIFIED_FAILURE)
    censored_below_limit = killed and limit != NO_LIMIT and (outcome == UNSPECIFIED_FAILURE or value < limit)
    late = limit != NO_LIMIT and outcome == OK and value > limit
    unknown = (
        outcome in (MISSING, UNSPECIFIED_FAILURE)
        or censored_below_limit
        or (outcome == OK and value < 0 and limit != NO_LIMIT)
    )
    failed = (outcome > OK and not killed) or (outcome == MISSING and parameters[MISSING_FAILS] == 1)
    return failed, (killed and not censored_below_limit) or late, unknown, censored_below_limit


@jit
def _cell(outcome: int, value: int, kind: int, parameters: Array) -> tuple[int, bool, bool, bool]:
    """Whether a run passes its test (1, 0, -1 undecided), was killed below its limit, ended within it, did not."""
    failed, timeout, unknown, censored_below_limit = _ended(outcome, value, parameters)
    pure, within, over = kind & 4 != 0, True, False
    if kind & 2:
        within, over = _in_time(outcome, span_of(outcome, value, parameters), parameters)
        if parameters[HAS_LIMITS] == 1:
            if outcome in (TIME_LIMIT, UNSPECIFIED_FAILURE) and not over:
                censored_below_limit = unknown = True
                timeout = timeout and not pure
            if parameters[TOLERATED] == 0:
                failed = failed or (over and outcome != MISSING)
                unknown = unknown or not (over or within)
    if timeout and not (pure and parameters[TOLERATED] == 1):
        failed = True
    return 0 if failed else -1 if unknown else 1, censored_below_limit and outcome != UNSPECIFIED_FAILURE, within, over


@jit
def grade_runs(outcomes: Array, values: Array, kinds: Array, parameters: Array, results: Array) -> None:
    """Fills the test results of one program [T]: correct, in time, no crash, censored, none finished, over its limits.

    `kinds` [T]: 1 counts for correctness, 2 optimization test, 4 only an optimization test.
    """
    results[:] = 0
    counted = tests = 0
    for t in range(len(kinds)):
        counted += kinds[t] & 1
        tests += (kinds[t] >> 1) & 1
    results[CORRECT], results[IN_TIME], results[NO_CRASH] = 1 if counted else -1, 1 if tests else -1, 1
    most, stopped = parameters[MOST], 0
    if _is_plain(outcomes, values, most):
        return
    for t in range(len(kinds)):
        if outcomes[t] == OK and 0 <= values[t] <= most:
            continue
        cell, censored_below_limit, within, over = _cell(outcomes[t], values[t], kinds[t], parameters)
        results[CENSORED_BELOW_LIMIT] += censored_below_limit
        results[OVER] += over
        results[NOT_WITHIN] += not within
        if kinds[t] & 1 and cell < 1 and results[CORRECT] != 0:
            results[CORRECT] = cell
        if kinds[t] & 2:
            low, high = span_of(outcomes[t], values[t], parameters)
            stopped += low == FAILED or high == KILLED
            if low == FAILED:
                results[NO_CRASH] = 0
            elif (
                high == FAILED and outcomes[t] in (MISSING, TIME_LIMIT, UNSPECIFIED_FAILURE) and results[NO_CRASH] == 1
            ):
                results[NO_CRASH] = -1
    results[NONE_FINISHED] = tests > 0 and stopped == tests
    if tests > 0:
        results[IN_TIME] = 0 if results[OVER] else -1 if results[NOT_WITHIN] else 1


@jit
def spans_of(outcomes: Array, values: Array, tests: Array, parameters: Array, spans: Array) -> bool:
    """Fills where the runs of a program on the optimization tests lie [2, T']; whether all of it is known."""
    certain = True
    for t in range(len(tests)):
        outcome, value = outcomes[tests[t]], values[tests[t]]
        if outcome == OK and value >= 0:
            spans[0, t] = spans[1, t] = 2 * value
            continue
        low, high = span_of(outcome, value, parameters)
        spans[0, t], spans[1, t] = low, high
        certain = certain and low == high
    return certain
