"""The corpus filters: labels checked by re-execution, and the spread of work that makes a problem's tests timeable."""

import pytest

from lapledger.producers.corpus.filters import Execution, duration, relabel

PROMISES_NOTHING = ("mixed", "partially_accepted", "other", "a folder of somebody's own")


def execution(label: str, correctness: dict[str, str], second: dict[str, str] | None = None) -> Execution:
    """A program of problem p with its outcomes."""
    return Execution(
        campaign_id="c",
        problem_id="p",
        program_id="p/x.1",
        label=label,
        correctness=correctness,
        other_tests=second or {},
    )


@pytest.mark.parametrize(
    ("label", "correctness", "second", "kept", "failed"),
    [
        ("accepted", {"1": "accepted", "2": "accepted"}, {}, True, 0),
        ("accepted", {"1": "accepted", "2": "wrong_answer"}, {}, False, 1),
        ("accepted", {"1": "run_time_error", "2": "time_limit"}, {}, False, 2),
        ("accepted", {"1": "accepted"}, {"9": "time_limit"}, True, 0),  # only correctness tests speak against it
        ("wrong_answer", {"1": "accepted"}, {"9": "accepted"}, False, 0),
        ("wrong_answer", {"1": "accepted", "2": "wrong_answer"}, {}, True, 1),
        ("time_limit_exceeded", {"1": "accepted"}, {"9": "time_limit"}, True, 1),
        ("slow_accepted", {"1": "accepted"}, {"9": "time_limit"}, True, 0),
        ("slow_accepted", {"1": "wrong_answer"}, {}, False, 1),
        ("rejected", {"1": "accepted"}, {}, False, 0),
        ("incorrect", {"1": "accepted"}, {}, False, 0),  # Code Contests
        ("brute_force", {"1": "accepted"}, {"9": "accepted"}, False, 0),
        ("run_time_error", {"1": "run_time_error"}, {}, True, 1),
        ("accepted", {"1": "sandbox_fault", "2": "wrong_answer"}, {}, False, 1),
        ("wrong_answer", {"1": "sandbox_fault", "2": "wrong_answer"}, {}, True, 1),
    ],
)
def test_a_label_that_running_contradicts_is_dropped(
    label: str, correctness: dict[str, str], second: dict[str, str], kept: bool, failed: int
) -> None:
    """A promised pass passes the correctness tests, a promised failure fails some test; the figure counts failures."""
    decided = relabel(execution(label, correctness, second))
    assert decided is not None
    assert (decided.kept, decided.figure, decided.rule) == (kept, failed, "re-execution")
    assert (decided.problem_id, decided.subject, decided.subject_id) == ("p", "program", "p/x.1")


@pytest.mark.parametrize(
    ("label", "correctness"),
    [
        ("", {"1": "accepted"}),
        *((label, {"1": outcome}) for label in PROMISES_NOTHING for outcome in ("accepted", "wrong_answer")),
        ("accepted", {}),
        ("accepted", {"1": "accepted", "2": "sandbox_fault"}),
        ("wrong_answer", {"1": "accepted", "2": "sandbox_fault"}),
    ],
)
def test_nothing_is_decided_without_evidence(label: str, correctness: dict[str, str]) -> None:
    """A label that promises neither, no outcome, or a fault of ours where it counts: never charged to the program."""
    assert relabel(execution(label, correctness)) is None


def test_the_reason_names_the_first_failed_test() -> None:
    """One line a person can act on."""
    decided = relabel(execution("accepted", {"b": "wrong_answer", "a": "memory_limit", "c": "accepted"}))
    assert decided is not None
    assert decided.reason == "labelled accepted, failed 2 of 3 tests, first a"
    passed = relabel(execution("wrong_answer", {"a": "accepted"}))
    assert passed is not None
    assert passed.reason == "labelled wrong_answer, passed all 1 tests"


@pytest.mark.parametrize(
    ("spread", "tests", "kept", "figure", "reason"),
    [
        (0.3, 8, True, 0.3, "robust CV 0.300 over 8 optimization tests, 0.3 needed"),
        (0.2999, 8, False, 0.2999, "robust CV 0.300 over 8 optimization tests, 0.3 needed"),
        (0.7413, 2, True, 0.7413, "robust CV 0.741 over 2 optimization tests, 0.3 needed"),
        (0.9, 1, False, None, "1 optimization tests with reference durations; at least 2 are needed"),
        (float("nan"), 8, False, None, "8 optimization tests with reference durations; at least 2 are needed"),
    ],
)
def test_the_duration_filter_keeps_a_spread_of_at_least_three_tenths(
    spread: float, tests: int, kept: bool, figure: float | None, reason: str
) -> None:
    """Robust CV >= 0.3 stays, at the threshold too; without a spread nothing is made up."""
    decided = duration("c", "p", spread, tests=tests)
    assert (decided.kept, decided.figure, decided.reason) == (kept, figure, reason)
    assert (decided.subject, decided.subject_id, decided.rule) == ("problem", "p", "duration")
    assert decided.campaign_id == "c"
