"""What to be wary of in an answer: limits longer than what was run, and maps beyond what they were fitted on.

What a longer limit would have shown is never guessed: verdicts leave open whatever depends on runs that were killed
before it. Only of such verdicts something is said; what a kill leaves settled is no reason to be wary.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from lapledger.replay.calibration import outside_warning
from lapledger.replay.calibration.pools import Ranged
from lapledger.replay.criteria import Criterion
from lapledger.replay.judging.gates import Status
from lapledger.replay.judging.test_results import Rules, make_rules, try_runs
from lapledger.replay.measurements import Bools, Ints, Outcome, ProblemMeasurements, Readings, read
from lapledger.replay.studies.pass_counts import statuses_of
from lapledger.replay.studies.scaling import Scale, scaled


@dataclass(frozen=True, slots=True)
class Places:
    """What else is asked beside a criterion: other taus, and references scaled; without any, the criterion as it is."""

    taus: Sequence[str] = ()
    scales: Sequence[Scale] = (Scale(),)

    def under(self, criterion: Criterion) -> list[Criterion]:
        """The criterion at every tau."""
        return [replace(criterion, tau=tau) for tau in self.taus or (criterion.tau,)]


HERE = Places()


def cautions(
    problems: Sequence[ProblemMeasurements],
    criteria: Mapping[str, Criterion],
    fit: Ranged | None,
    places: Places = HERE,
) -> tuple[str, ...]:
    """One sentence for each thing to be wary of, each once; of several criteria by name."""
    found = [outside_warning(fit)] if fit is not None else []
    for name, criterion in criteria.items():
        words = cap_warning(problems, criterion, places)
        found.append(f"{name}: {words}" if name and words and len(criteria) > 1 else words)
    return tuple(dict.fromkeys(one for one in found if one))


def tau_warning(criterion: Criterion, taus: Sequence[str]) -> str:
    """One sentence where a tau below 100 is asked of a criterion that reads none, else the empty text."""
    if criterion.reading != "zero" or not set(taus) - {"100"}:
        return ""
    return "the criterion asks for no speed (reading zero), so tau changes nothing: every tau gives the same verdicts"


def killed_before(
    problems: Sequence[ProblemMeasurements], criterion: Criterion, places: Places = HERE
) -> tuple[int, int]:
    """(runs, candidates): runs of undecided candidates killed below the limit that is asked for, and whose they are."""
    counts = [_counts(m, criterion, places) for m in problems] if asks_for_limits(criterion) else []
    return sum(int(count.sum()) for count in counts), sum(int((count > 0).sum()) for count in counts)


def cap_warning(problems: Sequence[ProblemMeasurements], criterion: Criterion, places: Places = HERE) -> str:
    """One sentence where verdicts hang on a longer limit than was run, else the empty text.

    Where sizes are judged no limit on them was in force that could be named.
    """
    runs, programs = killed_before(problems, criterion, places)
    if not runs:
        return ""
    whose = f"{runs} run{'s' * (runs > 1)} of {programs} undecided candidate{'s' * (programs > 1)}"
    were = f"{whose} {'were' if runs > 1 else 'was'} killed before it"
    if criterion.clock == "memory":
        return (
            f"the limit asked for is above what was seen: {were}, and only running them again with a longer time limit"
            " can decide them"
        )
    return (
        f"the limit asked for is above what was executed ({_executed(problems)}): {were}, and only running them again"
        " with the longer limit can decide them"
    )


def _executed(problems: Sequence[ProblemMeasurements]) -> str:
    """The limits in force on candidates in words, in ms."""
    caps = {int(cap) for m in problems for cap in np.unique(m.limit_ns[m.candidate]) if cap > 0}
    if not caps:
        return "a limit that is not known"
    return " to ".join(f"{cap / 1e6:.6g}" for cap in sorted({min(caps), max(caps)})) + " ms"


def asks_for_limits(criterion: Criterion) -> bool:
    """Whether a criterion asks for a limit of its own."""
    return criterion.limits or criterion.timeout_ms is not None


def _counts(m: ProblemMeasurements, criterion: Criterion, places: Places) -> Ints:
    """Such runs of each candidate that was killed at all [K]; none where its verdict is settled everywhere."""
    rows = np.flatnonzero(m.candidate & (m.outcome == Outcome.TIME_LIMIT).any(axis=1))
    if not len(rows):
        return np.zeros(0, dtype=np.int64)
    readings = read(m, criterion)
    killed = Readings(readings.outcome[rows], readings.duration_ns[rows], readings.bound_ns[rows])
    found: Ints = try_runs(_rules(m, readings, criterion), killed, m.duplicate[rows]).beyond.sum(axis=1)
    return np.where(_undecided(m, criterion, places, rows[found > 0])[rows], found, 0) if found.any() else found


def _undecided(m: ProblemMeasurements, criterion: Criterion, places: Places, rows: Ints) -> Bools:
    """Whose verdict is undecided at one of the places [P], looked for until all of the rows are known to be."""
    found = np.zeros(len(m.programs), dtype=np.bool_)
    for by in places.scales:
        if found[rows].all():
            break
        for status in statuses_of(scaled(m, criterion, by), places.under(criterion)):
            if status is not None:
                found |= status[: len(found)] == Status.UNDECIDED
    return found


def _rules(m: ProblemMeasurements, readings: Readings, criterion: Criterion) -> Rules:
    """The rules for a problem; where limits are the same for all nobody's references need to be looked at."""
    if criterion.filters or criterion.limit_quantile is not None or criterion.limit_ranked is not None:
        return make_rules(m, readings, criterion)
    return replace(make_rules(m, readings, criterion.unfiltered()), criterion=criterion)
