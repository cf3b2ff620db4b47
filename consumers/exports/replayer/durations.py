"""One duration of a run from its repetitions, and the span in which it lies where it was cut short.

Durations are compared in half nanoseconds: a finished run lies at 2d, a killed one above twice its bound. A
failed run ranks behind all. Whole numbers throughout.
"""

from collections.abc import Sequence
from typing import Any

from lapledger.consumers.exports.replayer.facts import Problem, Run

KILLED = 2**62
FAILED_REFERENCE = KILLED + 1
FAILED = KILLED + 2
MS = 1_000_000
ABSENT = -1
PAY_WRONG = ("additive", "optimization-only", "multitask")
"""The rewards that pay for speed whatever is right: a wrong answer is ranked by its duration, a crash is too slow."""

Span = tuple[int, int]


def estimate(repetitions: Sequence[int], estimator: str) -> int:
    """One value from repetitions, rounded down; -1 from none."""
    if not repetitions:
        return ABSENT
    if estimator == "min":
        return min(repetitions)
    if estimator == "mean":
        return sum(repetitions) // len(repetitions)
    if estimator == "median":
        return _two_middle(repetitions) // 2
    pairs = [a + b for i, a in enumerate(repetitions) for b in repetitions[i:]]
    return _two_middle(pairs) // 4


def _two_middle(values: Sequence[int]) -> int:
    ordered = sorted(values)
    return ordered[(len(ordered) - 1) // 2] + ordered[len(ordered) // 2]


def duration(run: Run, criterion: dict[str, Any]) -> int:
    """The duration of a run under a criterion; -1 without a repetition."""
    return _less_startup(estimate(run.clocks[criterion["clock"]], criterion["estimator"]), run, criterion)


def bound(run: Run, criterion: dict[str, Any]) -> int:
    """What the duration of a killed run exceeds: on the wall clock its longest repetition counts as the limit."""
    repetitions = list(run.clocks[criterion["clock"]])
    if criterion["clock"] == "wall":
        longest = repetitions.index(max(repetitions)) if repetitions else -1
        repetitions = [run.limit_ns if i == longest else min(d, run.limit_ns) for i, d in enumerate(repetitions)]
        repetitions = repetitions or [run.limit_ns]
    return max(_less_startup(estimate(repetitions, criterion["estimator"]), run, criterion), 0)


def _less_startup(value: int, run: Run, criterion: dict[str, Any]) -> int:
    if criterion["startup"] == "keep" or value == ABSENT:
        return value
    return ABSENT if run.startup_ns == ABSENT else max(value - run.startup_ns, 1)


class Durations:
    """One problem's runs under a criterion [P][T]: outcome, duration, bound, and span in half ns."""

    def __init__(self, problem: Problem, criterion: dict[str, Any]) -> None:
        self.outcome = [[run.outcome if run else "missing" for run in row] for row in problem.runs]
        self.ns = [[duration(run, criterion) if run else ABSENT for run in row] for row in problem.runs]
        self.bound = [
            [bound(run, criterion) if run and run.outcome == "time_limit" else 0 for run in row] for row in problem.runs
        ]
        self.pays_wrong = criterion["reward"] in PAY_WRONG
        self._ended = ("accepted", "wrong_answer") if self.pays_wrong else ("accepted",)
        self._missing_fails = criterion["missing"] == "fail"
        self.span = [[self._span(p, t) for t in range(len(row))] for p, row in enumerate(self.outcome)]

    def _span(self, p: int, t: int) -> Span:
        outcome, ns = self.outcome[p][t], self.ns[p][t]
        if outcome in self._ended:
            return (2 * ns, 2 * ns) if ns != ABSENT else (ABSENT, FAILED)
        if outcome == "time_limit":
            return 2 * self.bound[p][t] + 1, KILLED
        if outcome == "failed" or (outcome == "missing" and not self._missing_fails):
            return ABSENT, FAILED
        return FAILED, FAILED
