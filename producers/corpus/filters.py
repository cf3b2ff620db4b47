"""Filter decisions from what was measured: plain values in, `filter.decided` out. No reading, no running.

The rules are those of the field's corpus: a program's label checked again by running it (`re-execution`), and tests
whose amount of work varies enough to time them (`duration`).
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass

from lapledger.ledger.events import FilterDecided

ACCEPTED = "accepted"
PROMISES_PASS = frozenset((ACCEPTED, "slow_accepted"))
"""Labels that a failed correctness test contradicts."""
PROMISES_FAILURE = frozenset(
    (
        *("wrong_answer", "time_limit_exceeded", "run_time_error", "memory_limit_exceeded"),
        *("rejected", "brute_force", "incorrect"),  # the last is Code Contests'
    )
)
"""Labels that passing every test contradicts. Any other label, such as `mixed` or `other`, promises nothing."""
SANDBOX_FAULT = "sandbox_fault"
MINIMUM_ROBUST_CV = 0.3


@dataclass(frozen=True, slots=True, kw_only=True)
class Execution:
    """A program's label and the outcome of each test: of the correctness tests, and of the other ones."""

    campaign_id: str
    problem_id: str
    program_id: str
    label: str
    correctness: Mapping[str, str]
    other_tests: Mapping[str, str]


def relabel(execution: Execution) -> FilterDecided | None:
    """Whether re-execution bears a program's label out; the figure is the number of tests that it failed.

    Dropped: a program whose label promises a pass and that fails a correctness test, and one whose label promises a
    failure and that passes every test. None where nothing is decided: a label that promises neither, no outcome, or a
    sandbox fault on the test that would decide.
    """
    promises_pass = execution.label in PROMISES_PASS
    if not promises_pass and execution.label not in PROMISES_FAILURE:
        return None
    judged = execution.correctness if promises_pass else {**execution.correctness, **execution.other_tests}
    failed = sorted(test for test, outcome in judged.items() if outcome not in (ACCEPTED, SANDBOX_FAULT))
    unknown = SANDBOX_FAULT in judged.values() and not failed
    if not judged or unknown:
        return None
    kept = bool(failed) != promises_pass
    if failed:
        reason = f"labelled {execution.label}, failed {len(failed)} of {len(judged)} tests, first {failed[0]}"
    else:
        reason = f"labelled {execution.label}, passed all {len(judged)} tests"
    return FilterDecided(
        problem_id=execution.problem_id,
        subject="program",
        subject_id=execution.program_id,
        rule="re-execution",
        campaign_id=execution.campaign_id,
        kept=kept,
        reason=reason,
        figure=float(len(failed)),
    )


def duration(campaign_id: str, problem_id: str, spread: float, *, tests: int) -> FilterDecided:
    """Whether a problem's optimization tests vary enough in work to be timed: robust CV of at least 0.3, the figure.

    `spread` is the robust CV of `replay.measurements.robust_cv` over `tests` optimization tests, nan when undefined. A
    problem with fewer than two such tests has no spread and is dropped, without a figure.
    """
    known = tests > 1 and not math.isnan(spread)
    if known:
        reason = f"robust CV {spread:.3f} over {tests} optimization tests, {MINIMUM_ROBUST_CV} needed"
    else:
        reason = f"{tests} optimization tests with reference durations; at least 2 are needed"
    return FilterDecided(
        problem_id=problem_id,
        subject="problem",
        subject_id=problem_id,
        rule="duration",
        campaign_id=campaign_id,
        kept=known and spread >= MINIMUM_ROBUST_CV,
        reason=reason,
        figure=spread if known else None,
    )
