"""Verdicts that differ between two judged campaigns, each with the test that turned it and the timings that did so.

Two criteria at one cut, or one criterion at two cuts: both are judged before they come here. No verdict is made.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Protocol, TypeVar

import numpy as np

from lapledger.replay.criteria import Criterion
from lapledger.replay.explanations.decisive_runs import JudgedProblem, Timing
from lapledger.replay.judging.gates import Status, Verdicts, one_campaign
from lapledger.replay.measurements import ProblemMeasurements

Key = TypeVar("Key")


class Judged(Protocol):
    """A criterion with what it judged and its verdicts, problem by problem in pairs."""

    @property
    def criterion(self) -> Criterion:
        """The criterion."""

    @property
    def measurements(self) -> Sequence[ProblemMeasurements]:
        """What was judged."""

    @property
    def verdicts(self) -> Sequence[Verdicts]:
        """The verdicts, in the order of the measurements."""


@dataclass(frozen=True, slots=True)
class Change:
    """One candidate whose verdict differs, and the timings that turned it."""

    problem: str
    program: str
    model: str
    before: Status
    after: Status
    reason_before: str
    reason_after: str
    timing_before: Timing | None  # None where no single test decides, or without `timed`
    timing_after: Timing | None

    @property
    def kind(self) -> str:
        """From what to what, as `pass -> fail`."""
        return f"{self.before.name.lower()} -> {self.after.name.lower()}"


def verdict_changes(
    before: Judged, after: Judged, *, through: str | None = None, timed: bool = True
) -> Iterator[list[Change]]:
    """The changes of each problem of both, in the order of the first: one list a problem, empty ones too.

    Candidates that only one of them holds are excluded. ReplayError when they judge different campaigns, unless
    `through` names the calibration that joins them. Without `timed` no timing is searched, which is fast.
    """
    if through is None:
        one_campaign([*before.verdicts, *after.verdicts])
    rows = {v.problem: row for row, v in enumerate(after.verdicts)}
    for row, v in enumerate(before.verdicts):
        if v.problem in rows:
            yield _changes(_Problem.of(before, row), _Problem.of(after, rows[v.problem]), timed=timed)


def tally(changes: Sequence[Change]) -> list[tuple[str, str, int]]:
    """(model, kind, number of changes), in order of both."""
    counts = Counter((change.model, change.kind) for change in changes)
    return [(model, kind, count) for (model, kind), count in sorted(counts.items())]


def flipped(before: Mapping[Key, Status], after: Mapping[Key, Status]) -> list[Key]:
    """The programs that both hold with different verdicts, in the order of the first."""
    return [program for program, status in before.items() if after.get(program, status) != status]


def statuses(v: Verdicts) -> dict[str, Status]:
    """The verdict of every candidate of a problem, by program."""
    return {v.programs[row]: Status(int(v.status[row])) for row in np.flatnonzero(v.candidate).tolist()}


@dataclass(frozen=True, slots=True, eq=False)
class _Problem:
    """One problem as it was judged."""

    m: ProblemMeasurements
    verdicts: Verdicts
    criterion: Criterion

    @classmethod
    def of(cls, judged: Judged, row: int) -> "_Problem":
        return cls(judged.measurements[row], judged.verdicts[row], judged.criterion)

    def judged(self) -> JudgedProblem:
        return JudgedProblem.of(self.m, self.criterion, self.verdicts)


def _changes(before: _Problem, after: _Problem, *, timed: bool) -> list[Change]:
    programs = flipped(statuses(before.verdicts), statuses(after.verdicts))
    if not programs:
        return []
    old, new = ({program: row for row, program in enumerate(problem.m.programs)} for problem in (before, after))
    pairs = [(old[program], new[program]) for program in programs]
    plain = [_change(before, after, *pair) for pair in pairs]
    if not timed:
        return plain
    judged_pair = before.judged(), after.judged()
    return [_timed(change, judged_pair, pair) for change, pair in zip(plain, pairs, strict=True)]


def _change(before: _Problem, after: _Problem, old: int, new: int) -> Change:
    return Change(
        problem=before.m.problem,
        program=before.m.programs[old],
        model=before.m.models[old],
        before=Status(int(before.verdicts.status[old])),
        after=Status(int(after.verdicts.status[new])),
        reason_before=before.verdicts.reason[old],
        reason_after=after.verdicts.reason[new],
        timing_before=None,
        timing_after=None,
    )


def _timed(change: Change, judged_pair: tuple[JudgedProblem, JudgedProblem], rows: tuple[int, int]) -> Change:
    test = _cause(*judged_pair, *rows)
    if test is None:
        return change
    before, after = (judged.timing(row, test) for judged, row in zip(judged_pair, rows, strict=True))
    return replace(change, timing_before=before, timing_after=after)


def _cause(before: JudgedProblem, after: JudgedProblem, old: int, new: int) -> str | None:
    """The test that turned a verdict: where speed did and ranks moved, the one whose percentile moved farthest.

    Else the one that decides where the program does not pass.
    """
    judged, row = (before, old) if after.verdicts.status[new] == Status.PASS else (after, new)
    if judged.verdicts.c[row] == 1 and judged.criterion.in_time == "ignored":
        first, second = before.percentiles(old), after.percentiles(new)
        moves = {t: max(abs(a - b) for a, b in zip(first[t], second[t], strict=True)) for t in first if t in second}
        farthest = max(moves, key=moves.__getitem__, default=None)
        if farthest is not None and moves[farthest] > 0:
            return farthest
    return judged.deciding(row)
