"""Warnings beside results: limits longer than those executed, and maps applied outside the range they were fitted on.

What a longer limit would have shown is never guessed: verdicts that depend on runs killed before it stay undecided.
Only such verdicts cause a warning; a kill that settles its verdict causes none.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from lapledger.replay.batches.scaling import Scale, scaled
from lapledger.replay.calibration import outside_warning
from lapledger.replay.calibration.pools import Ranged
from lapledger.replay.criteria import Criterion
from lapledger.replay.judging.gates import Status
from lapledger.replay.judging.graded_runs import Rules, grade_runs, make_rules
from lapledger.replay.measurements import Bools, Ints, Outcome, ProblemMeasurements, Readings, read
from lapledger.replay.studies.pass_counts import statuses_of


@dataclass(frozen=True, slots=True)
class Variants:
    """Variants of a criterion that are judged too: other taus and scaled references; by default the criterion as is."""

    taus: Sequence[str] = ()
    scales: Sequence[Scale] = (Scale(),)

    def under(self, criterion: Criterion) -> list[Criterion]:
        """The criterion at every tau."""
        return [replace(criterion, tau=tau) for tau in self.taus or (criterion.tau,)]


AS_GIVEN = Variants()


def warnings_of(
    problems: Sequence[ProblemMeasurements],
    criteria: Mapping[str, Criterion],
    fit: Ranged | None,
    variants: Variants = AS_GIVEN,
) -> tuple[str, ...]:
    """The warnings on some criteria, one sentence each, without repeats; by name where there are several criteria."""
    sentences = [outside_warning(fit)] if fit is not None else []
    for name, criterion in criteria.items():
        sentence = cap_warning(problems, criterion, variants)
        sentences.append(f"{name}: {sentence}" if name and sentence and len(criteria) > 1 else sentence)
    return tuple(dict.fromkeys(text for text in sentences if text))


def tau_warning(criterion: Criterion, taus: Sequence[str]) -> str:
    """One sentence where a criterion whose quality metric is `zero` gets a tau below 100, else the empty text."""
    if criterion.reading != "zero" or not set(taus) - {"100"}:
        return ""
    return (
        "the criterion has no speed requirement (quality metric zero), so tau changes nothing: every tau gives the same"
        " verdicts"
    )


def killed_before(
    problems: Sequence[ProblemMeasurements], criterion: Criterion, variants: Variants = AS_GIVEN
) -> tuple[int, int]:
    """(runs, candidates): runs of undecided candidates killed below the criterion's limit, and how many candidates."""
    counts = [_counts(m, criterion, variants) for m in problems] if has_limits(criterion) else []
    return sum(int(count.sum()) for count in counts), sum(int((count > 0).sum()) for count in counts)


def cap_warning(problems: Sequence[ProblemMeasurements], criterion: Criterion, variants: Variants = AS_GIVEN) -> str:
    """One sentence where verdicts depend on a longer limit than the one executed, else the empty text.

    On the clock `memory` no limit in its unit was in force, so none is named.
    """
    runs, programs = killed_before(problems, criterion, variants)
    if not runs:
        return ""
    whose = f"{runs} run{'s' * (runs > 1)} of {programs} undecided candidate{'s' * (programs > 1)}"
    were = f"{whose} {'were' if runs > 1 else 'was'} killed below it"
    if criterion.clock == "memory":
        return (
            f"the criterion's limit exceeds what was measured: {were}, and only running them again with a longer time"
            " limit can decide them"
        )
    return (
        f"the criterion's limit exceeds the executed limit ({_executed(problems)}): {were}, and only running them again"
        " with the longer limit can decide them"
    )


def _executed(problems: Sequence[ProblemMeasurements]) -> str:
    """The limits in force on candidates as text, in ms."""
    caps = {int(cap) for m in problems for cap in np.unique(m.limit_ns[m.candidate]) if cap > 0}
    if not caps:
        return "a limit that is not known"
    return " to ".join(f"{cap / 1e6:.6g}" for cap in sorted({min(caps), max(caps)})) + " ms"


def has_limits(criterion: Criterion) -> bool:
    """Whether a criterion has a limit of its own."""
    return criterion.limits or criterion.timeout_ms is not None


def _counts(m: ProblemMeasurements, criterion: Criterion, variants: Variants) -> Ints:
    """Such runs of each candidate that was killed at all [K]; none where its verdict is settled everywhere."""
    rows = np.flatnonzero(m.candidate & (m.outcome == Outcome.TIME_LIMIT).any(axis=1))
    if not len(rows):
        return np.zeros(0, dtype=np.int64)
    readings = read(m, criterion)
    killed = Readings(readings.outcome[rows], readings.duration_ns[rows], readings.bound_ns[rows])
    censored: Ints = grade_runs(_rules(m, readings, criterion), killed, m.duplicate[rows]).censored_below_limit.sum(
        axis=1
    )
    return (
        np.where(_undecided(m, criterion, variants, rows[censored > 0])[rows], censored, 0)
        if censored.any()
        else censored
    )


def _undecided(m: ProblemMeasurements, criterion: Criterion, variants: Variants, rows: Ints) -> Bools:
    """Whether each program is undecided under some variant [P]; the search ends once all of `rows` are."""
    undecided = np.zeros(len(m.programs), dtype=np.bool_)
    for by in variants.scales:
        if undecided[rows].all():
            break
        for status in statuses_of(scaled(m, criterion, by), variants.under(criterion)):
            if status is not None:
                undecided |= status[: len(undecided)] == Status.UNDECIDED
    return undecided


def _rules(m: ProblemMeasurements, readings: Readings, criterion: Criterion) -> Rules:
    """The rules for a problem; where limits are the same for all programs no reference needs to be graded."""
    if criterion.filters or criterion.limit_quantile is not None or criterion.limit_ranked is not None:
        return make_rules(m, readings, criterion)
    return replace(make_rules(m, readings, criterion.unfiltered()), criterion=criterion)
