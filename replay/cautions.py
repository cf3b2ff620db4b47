"""What to be wary of in an answer: limits longer than what was run, and maps beyond what they were fitted on.

Told of every criterion, and without any ranking. What a longer limit would have shown is never guessed: verdicts leave
open whatever depends on runs that were killed before it.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from replay.calibration import outside_warning
from replay.calibration.pools import Ranged
from replay.criteria import Criterion
from replay.judging.trials import Rules, make_rules, try_runs
from replay.measurements import Ints, Outcome, ProblemMeasurements, Readings, read


def cautions(
    problems: Sequence[ProblemMeasurements], criteria: Mapping[str, Criterion], fit: Ranged | None
) -> tuple[str, ...]:
    """One sentence for each thing to be wary of, each once; of several criteria by name."""
    found = [outside_warning(fit)] if fit is not None else []
    for name, criterion in criteria.items():
        words = cap_warning(problems, criterion)
        found.append(f"{name}: {words}" if name and words and len(criteria) > 1 else words)
    return tuple(dict.fromkeys(one for one in found if one))


def killed_before(problems: Sequence[ProblemMeasurements], criterion: Criterion) -> tuple[int, int]:
    """(runs, candidates): runs of candidates killed below the limit that the criterion asks for, and whose they are."""
    counts = [_counts(m, criterion) for m in problems] if asks_for_limits(criterion) else []
    return sum(int(count.sum()) for count in counts), sum(int((count > 0).sum()) for count in counts)


def cap_warning(problems: Sequence[ProblemMeasurements], criterion: Criterion) -> str:
    """One sentence where a criterion asks for a longer limit than was run, else the empty text.

    Where sizes are judged no limit on them was in force that could be named.
    """
    runs, programs = killed_before(problems, criterion)
    if not runs:
        return ""
    if criterion.clock == "memory":
        return (
            f"the limit asked for is above what was seen: {runs} runs of {programs} candidates were killed before it,"
            " and only running them again with a longer time limit can decide them"
        )
    caps = {int(cap) for m in problems for cap in np.unique(m.limit_ns[m.candidate]) if cap > 0}
    executed = " to ".join(f"{cap / 1e6:.6g}" for cap in sorted({min(caps), max(caps)}))
    return (
        f"the limit asked for is above what was executed ({executed} ms): {runs} runs of {programs} candidates were"
        " killed before it, and only running them again with the longer limit can decide them"
    )


def asks_for_limits(criterion: Criterion) -> bool:
    """Whether a criterion asks for a limit of its own."""
    return criterion.limits or criterion.timeout_ms is not None


def _counts(m: ProblemMeasurements, criterion: Criterion) -> Ints:
    """Such runs of each candidate that was killed at all [K]."""
    rows = np.flatnonzero(m.candidate & (m.outcome == Outcome.TIME_LIMIT).any(axis=1))
    if not len(rows):
        return np.zeros(0, dtype=np.int64)
    readings = read(m, criterion)
    killed = Readings(readings.outcome[rows], readings.duration_ns[rows], readings.bound_ns[rows])
    found: Ints = try_runs(_rules(m, readings, criterion), killed, m.duplicate[rows]).beyond.sum(axis=1)
    return found


def _rules(m: ProblemMeasurements, readings: Readings, criterion: Criterion) -> Rules:
    """The rules for a problem; where limits are the same for all nobody's references need to be looked at."""
    if criterion.filters or criterion.limit_quantile is not None or criterion.limit_ranked is not None:
        return make_rules(m, readings, criterion)
    return replace(make_rules(m, readings, criterion.unfiltered()), criterion=criterion)
