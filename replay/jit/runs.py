"""How runs stand to their tests, as in `trials` and `ranks.spans`, one program at a time."""

from lapledger.replay.jit.machine import (
    ALLOWED,
    BEYOND,
    CORRECT,
    FAILED,
    HAS_LIMITS,
    IDLE,
    IN_TIME,
    KILLED,
    LIMIT_NS,
    MISSING,
    MISSING_FAILS,
    MOST,
    NO_LIMIT,
    NOT_WITHIN,
    OK,
    OVER,
    RANKS_WRONG,
    SOUND,
    TIME_LIMIT,
    TOLERATED,
    UNTOLD,
    WRONG_ANSWER,
    Array,
    in_machine_code,
)


@in_machine_code
def span_of(outcome: int, value: int, asked: Array) -> tuple[int, int]:
    """Where a run lies, from and to, in half ns; `value` is its duration, or the bound of a killed one."""
    ended = outcome == OK or (asked[RANKS_WRONG] == 1 and outcome == WRONG_ANSWER)
    if ended and value >= 0:
        return 2 * value, 2 * value
    if outcome == TIME_LIMIT:  # with more time it might have crashed
        return 2 * value + 1, FAILED if 2 * value + 1 <= asked[ALLOWED] else KILLED
    if outcome == UNTOLD:
        return -1, FAILED
    if (outcome > OK and not ended) or (outcome == MISSING and asked[MISSING_FAILS] == 1):
        return FAILED, FAILED
    return -1, FAILED


@in_machine_code
def _is_plain(outcomes: Array, values: Array, most: int) -> bool:
    """Whether all runs of a program ended right, with a duration and within every limit: nearly all programs."""
    strange = False
    for t in range(len(outcomes)):
        strange |= (outcomes[t] != OK) | (values[t] < 0) | (values[t] > most)
    return not strange


@in_machine_code
def _in_time(outcome: int, span: tuple[int, int], asked: Array) -> tuple[bool, bool]:
    """Whether a run on an optimization test ended within its limit for certain, and whether it did not."""
    low, high = span
    ended = low != FAILED and outcome in (OK, WRONG_ANSWER)
    if asked[ALLOWED] == NO_LIMIT:
        return ended, low == FAILED or outcome == TIME_LIMIT or (outcome == UNTOLD and asked[RANKS_WRONG] == 0)
    return ended and high <= asked[ALLOWED], low == FAILED or low > asked[ALLOWED]


@in_machine_code
def _ended(outcome: int, value: int, asked: Array) -> tuple[bool, bool, bool, bool]:
    """Whether a run, limits on optimization tests apart, failed, timed out, is unknown, was killed below its limit."""
    limit, killed = asked[LIMIT_NS], outcome in (TIME_LIMIT, UNTOLD)
    beyond = killed and limit != NO_LIMIT and (outcome == UNTOLD or value < limit)
    late = limit != NO_LIMIT and outcome == OK and value > limit
    unknown = outcome in (MISSING, UNTOLD) or beyond or (outcome == OK and value < 0 and limit != NO_LIMIT)
    failed = (outcome > OK and not killed) or (outcome == MISSING and asked[MISSING_FAILS] == 1)
    return failed, (killed and not beyond) or late, unknown, beyond


@in_machine_code
def _cell(outcome: int, value: int, kind: int, asked: Array) -> tuple[int, bool, bool, bool]:
    """Whether a run passes its test (1, 0, -1 undecided), was killed below its limit, ended within it, did not."""
    failed, timeout, unknown, beyond = _ended(outcome, value, asked)
    pure, within, over = kind & 4 != 0, True, False
    if kind & 2:
        within, over = _in_time(outcome, span_of(outcome, value, asked), asked)
        if asked[HAS_LIMITS] == 1:
            if outcome in (TIME_LIMIT, UNTOLD) and not over:
                beyond = unknown = True
                timeout = timeout and not pure
            if asked[TOLERATED] == 0:
                failed = failed or (over and outcome != MISSING)
                unknown = unknown or not (over or within)
    if timeout and not (pure and asked[TOLERATED] == 1):
        failed = True
    return 0 if failed else -1 if unknown else 1, beyond and outcome != UNTOLD, within, over


@in_machine_code
def try_runs(outcomes: Array, values: Array, kinds: Array, asked: Array, found: Array) -> None:
    """How one program [T] stands to its tests: correct, in time, sound, beyond, idle, over and not within its limits.

    `kinds` [T]: 1 counts for correctness, 2 optimization test, 4 only an optimization test.
    """
    found[:] = 0
    counted = tests = 0
    for t in range(len(kinds)):
        counted += kinds[t] & 1
        tests += (kinds[t] >> 1) & 1
    found[CORRECT], found[IN_TIME], found[SOUND] = 1 if counted else -1, 1 if tests else -1, 1
    most, stopped = asked[MOST], 0
    if _is_plain(outcomes, values, most):
        return
    for t in range(len(kinds)):
        if outcomes[t] == OK and 0 <= values[t] <= most:
            continue
        cell, beyond, within, over = _cell(outcomes[t], values[t], kinds[t], asked)
        found[BEYOND] += beyond
        found[OVER] += over
        found[NOT_WITHIN] += not within
        if kinds[t] & 1 and cell < 1 and found[CORRECT] != 0:
            found[CORRECT] = cell
        if kinds[t] & 2:
            low, high = span_of(outcomes[t], values[t], asked)
            stopped += low == FAILED or high == KILLED
            if low == FAILED:
                found[SOUND] = 0
            elif high == FAILED and outcomes[t] in (MISSING, TIME_LIMIT, UNTOLD) and found[SOUND] == 1:
                found[SOUND] = -1
    found[IDLE] = tests > 0 and stopped == tests
    if tests > 0:
        found[IN_TIME] = 0 if found[OVER] else -1 if found[NOT_WITHIN] else 1


@in_machine_code
def spans_of(outcomes: Array, values: Array, tests: Array, asked: Array, spans: Array) -> bool:
    """Fills where the runs of a program on the optimization tests lie [2, T']; whether all of it is known."""
    certain = True
    for t in range(len(tests)):
        outcome, value = outcomes[tests[t]], values[tests[t]]
        if outcome == OK and value >= 0:
            spans[0, t] = spans[1, t] = 2 * value
            continue
        low, high = span_of(outcome, value, asked)
        spans[0, t], spans[1, t] = low, high
        certain = certain and low == high
    return certain
