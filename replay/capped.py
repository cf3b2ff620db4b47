"""What a longer limit would need: runs that were killed before it. Nothing is judged here, and nothing guessed."""

from collections.abc import Sequence

from replay.measurements import Outcome, ProblemMeasurements


def killed_below(problems: Sequence[ProblemMeasurements], timeout_ns: int) -> tuple[int, int]:
    """(runs, candidates): runs of candidates on optimization tests killed at a hard limit below a timeout in ns."""
    runs = programs = 0
    for m in problems:
        killed = (m.outcome == Outcome.TIME_LIMIT) & (m.limit_ns < timeout_ns) & m.tests.optimization
        counts = killed.sum(axis=1)[m.candidate]
        runs, programs = runs + int(counts.sum()), programs + int((counts > 0).sum())
    return runs, programs
