"""Verdicts that differ between two judgements, each with the test that turned it and the timings that did so.

Two criteria at one cut, or one question at two cuts: both sides are judged before they come here. No verdict is made.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from lapledger.replay.criteria import Criterion
from lapledger.replay.explanations.decisive_runs import Look, Timing
from lapledger.replay.judging.gates import Status, Verdicts, one_campaign
from lapledger.replay.measurements import ProblemMeasurements


@dataclass(frozen=True, slots=True, eq=False)
class Judgement:
    """A criterion with what it was put to and what it said, problem by problem in pairs."""

    name: str
    criterion: Criterion
    measured: Sequence[ProblemMeasurements]
    verdicts: Sequence[Verdicts]


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
    timing_before: Timing | None  # None where no single test decides, or none was looked for
    timing_after: Timing | None

    @property
    def kind(self) -> str:
        """From what to what, as `pass -> fail`."""
        return f"{self.before.name.lower()} -> {self.after.name.lower()}"


def turned(
    before: Judgement, after: Judgement, *, through: str | None = None, timed: bool = True
) -> Iterator[list[Change]]:
    """The changes of each problem of both judgements, in the order of the first: one list a problem, empty ones too.

    Candidates that only one side holds are left out. ReplayError when the sides judge different campaigns, unless
    `through` names the calibration that they meet through. Without `timed` no timing is looked for, which is quick.
    """
    if through is None:
        one_campaign([*before.verdicts, *after.verdicts])
    places = {v.problem: place for place, v in enumerate(after.verdicts)}
    for place, was in enumerate(before.verdicts):
        if was.problem not in places:
            continue
        sides = _Side(before, place), _Side(after, places[was.problem])
        yield _changes(*sides, timed=timed)


def tally(changes: Sequence[Change]) -> list[tuple[str, str, int]]:
    """(model, kind, number of changes), in order of both words."""
    counts = Counter((change.model, change.kind) for change in changes)
    return [(model, kind, count) for (model, kind), count in sorted(counts.items())]


def _changes(before: "_Side", after: "_Side", *, timed: bool) -> list[Change]:
    rows = {program: row for row, program in enumerate(after.verdicts.programs) if after.verdicts.candidate[row]}
    was, now = before.verdicts.status, after.verdicts.status
    pairs = [
        (row, rows[program])
        for row, program in enumerate(before.verdicts.programs)
        if before.verdicts.candidate[row] and program in rows and was[row] != now[rows[program]]
    ]
    plain = [_change(before, after, *pair) for pair in pairs]
    if not plain or not timed:
        return plain
    looks = before.look(), after.look()
    return [_timed(change, looks, pair) for change, pair in zip(plain, pairs, strict=True)]


@dataclass(frozen=True, slots=True, eq=False)
class _Side:
    """One problem of one judgement."""

    judgement: Judgement
    place: int

    @property
    def verdicts(self) -> Verdicts:
        return self.judgement.verdicts[self.place]

    @property
    def m(self) -> ProblemMeasurements:
        return self.judgement.measured[self.place]

    def look(self) -> Look:
        return Look.of(self.m, self.judgement.criterion, self.verdicts)


def _change(before: _Side, after: _Side, old: int, new: int) -> Change:
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


def _timed(change: Change, looks: tuple[Look, Look], rows: tuple[int, int]) -> Change:
    test = _cause(*looks, *rows)
    if test is None:
        return change
    before, after = (look.timing(row, test) for look, row in zip(looks, rows, strict=True))
    return replace(change, timing_before=before, timing_after=after)


def _cause(before: Look, after: Look, old: int, new: int) -> str | None:
    """The test that turned a verdict: where speed did and ranks moved, the one whose percentile moved farthest.

    Else the one that decides on the side where the program does not pass.
    """
    look, row = (before, old) if after.verdicts.status[new] == Status.PASS else (after, new)
    if look.verdicts.c[row] == 1 and look.criterion.in_time == "ignored":
        first, second = before.percentiles(old), after.percentiles(new)
        moves = {t: max(abs(a - b) for a, b in zip(first[t], second[t], strict=True)) for t in first if t in second}
        farthest = max(moves, key=moves.__getitem__, default=None)
        if farthest is not None and moves[farthest] > 0:
            return farthest
    return look.deciding(row)
