"""Why each program got its verdict, as short text: what failed, what is too slow, or what was never seen.

Text only: every number here was decided in `context`.
"""

import math
from dataclasses import dataclass

import numpy as np

from lapledger.replay.criteria import Criterion
from lapledger.replay.judging.context import Evaluation
from lapledger.replay.measurements import Bools, Bytes, Outcome, ProblemMeasurements, Readings, read


@dataclass(frozen=True, slots=True, eq=False)
class Case:
    """One judged problem: its measurements, the criterion, and the evaluation."""

    m: ProblemMeasurements
    criterion: Criterion
    evaluation: Evaluation
    g: Bytes  # [P]


def reasons(case: Case) -> tuple[str, ...]:
    """One reason a program [P]."""
    if case.evaluation.rules.excluded:
        return ("excluded: the filter keeps no optimization test",) * len(case.m.programs)
    if not case.evaluation.rules.stays:
        return (_filter(case),) * len(case.m.programs)
    texts = _ReasonText(case, read(case.m, case.criterion), f"{float(case.criterion.threshold):.6g}")
    return tuple(texts.reason(row) + texts.fewer(row) for row in range(len(case.m.programs)))


@dataclass(frozen=True, slots=True, eq=False)
class _ReasonText:
    case: Case
    readings: Readings
    tau: str  # the threshold on q, for display

    def reason(self, row: int) -> str:
        c, g = self.case.evaluation.c[row], self.case.g[row]
        for applies, text in (
            (c == 0, self._failed),
            (g == 0, self._slow),
            (c == -1, self._unproven),
            (g == -1, self._open),
        ):
            if applies:
                return text(row)
        return self._passed(row)

    def fewer(self, row: int) -> str:
        """How many tests it was judged on, where the criterion lets it be fewer than all."""
        if self.case.criterion.missing != "skip" or not self.case.evaluation.results.lacking[row].any():
            return ""
        lacking = self.case.evaluation.results.lacking[row]
        return f", on {(~lacking).sum()} of {len(lacking)} optimization tests"

    def _passed(self, row: int) -> str:
        if self.case.criterion.tau != "100":
            return f"q {self._q(row, high=True)} <= {self.tau}"
        return "correct" if self.case.criterion.in_time == "ignored" else "correct and in time"

    def _failed(self, row: int) -> str:
        test = self._first(row, 0)
        if test is None:
            return "interface not kept"
        outcome = Outcome(self.readings.outcome[row, test])
        shown = Outcome.TIME_LIMIT if outcome == Outcome.OK else outcome  # finished, but above the limit
        return f"{shown.name.lower()} on {self._name(test)}"

    def _slow(self, row: int) -> str:
        if self.case.criterion.ranks_wrong and self.case.evaluation.no_crash[row] == 0:
            return self._crashed(row)
        if self.case.criterion.in_time == "required" and self.case.evaluation.in_time[row] == 0:
            return self._late(row)
        return f"too slow: q {self._q(row)} > {self.tau}"

    def _crashed(self, row: int) -> str:
        results, rules = self.case.evaluation.results, self.case.evaluation.rules
        broken = results.crashed[row] & ~results.lacking[row] & (rules.kept[rules.ranked] == 1)
        test = int(np.flatnonzero(rules.ranked)[np.flatnonzero(broken)[0]])
        return f"crashed on {self._name(test)} ({Outcome(self.readings.outcome[row, test]).name.lower()})"

    def _late(self, row: int) -> str:
        results, rules = self.case.evaluation.results, self.case.evaluation.rules
        late = results.over[row] & ~results.lacking[row] & (rules.kept[rules.ranked] == 1)
        test = int(np.flatnonzero(rules.ranked)[np.flatnonzero(late)[0]])
        more = f" and {late.sum() - 1} more" if late.sum() > 1 else ""
        return f"over the limit on {self._name(test)}{self._took(row, test)}{more}"

    def _took(self, row: int, test: int) -> str:
        outcome = Outcome(self.readings.outcome[row, test])
        took = self._amount(self.readings.duration_ns[row, test])
        return f" ({took if outcome == Outcome.OK else outcome.name.lower()})"

    def _amount(self, value: int) -> str:
        return f"{value} bytes" if self.case.criterion.clock == "memory" else f"{value / 1e6:.6g} ms"

    def _unproven(self, row: int) -> str:
        counted = self._counted(row)
        missing = int(((self.readings.outcome[row] == Outcome.MISSING) & counted).sum())
        if not counted.any():
            return "no test counts for correctness"
        if missing:
            return f"missing {missing} test{'s' if missing > 1 else ''}"
        test = self._first(row, -1)
        if test is None:
            return self._doubt(row)
        if self.readings.outcome[row, test] == Outcome.OK:
            unread = self.readings.duration_ns[row, test] < 0
            clock = self.case.criterion.clock
            return f"no {clock} duration on {self._name(test)}" if unread else f"limit unknown on {self._name(test)}"
        return self._unspecified(row, test) or self._cut_short(row, test)

    def _unspecified(self, row: int, test: int) -> str:
        """Text for a failure of an unknown kind; empty for every other outcome."""
        unspecified = self.readings.outcome[row, test] == Outcome.FAILED
        return f"unspecified failure on {self._name(test)}" if unspecified else ""

    def _cut_short(self, row: int, test: int) -> str:
        at = self._amount(self.readings.bound_ns[row, test])
        return f"censored: killed at {at} on {self._name(test)}, below the judged limit"

    def _doubt(self, row: int) -> str:
        """Correct by every test that counts for certain, and yet open."""
        if self.case.evaluation.results.c[row] == 1:
            return "interface not checked"
        return _filter(self.case)

    def _open(self, row: int) -> str:
        ranks, criterion = self.case.evaluation.ranks, self.case.criterion
        size, needed = int(ranks.pool_size[row]), criterion.min_references
        if criterion.in_time == "required" and self.case.evaluation.in_time[row] == -1:
            return self._perhaps_late(row)
        if criterion.ranks_wrong and self.case.evaluation.no_crash[row] == -1:
            return self._perhaps_crashed(row)
        if criterion.needs_pool and size < needed:
            return f"pool of {size} reference{'' if size == 1 else 's'}, {needed} needed"
        if not self.case.evaluation.rules.ranked.any() or not ranks.q_den[row]:
            return "no optimization test"
        if not self.case.evaluation.rules.certain:
            return _filter(self.case)
        return f"censored: q from {self._q(row)} to {self._q(row, high=True)}"

    def _perhaps_crashed(self, row: int) -> str:
        results = self.case.evaluation.results
        return self._doubtful(row, (results.open | results.crashed)[row] & ~results.lacking[row])

    def _perhaps_late(self, row: int) -> str:
        results = self.case.evaluation.results
        return self._doubtful(row, ~results.within[row] & ~results.lacking[row])

    def _doubtful(self, row: int, doubt: Bools) -> str:
        """What is not known of the first run of some [T'] in doubt."""
        rules = self.case.evaluation.rules
        if not doubt.any():
            return "no optimization test"
        if not rules.certain:
            return _filter(self.case)
        test = int(np.flatnonzero(rules.ranked)[np.flatnonzero(doubt)[0]])
        outcome = Outcome(self.readings.outcome[row, test])
        if outcome == Outcome.TIME_LIMIT:
            return self._cut_short(row, test)
        text = "missing" if outcome == Outcome.MISSING else "limit unknown"
        return self._unspecified(row, test) or f"{text} on {self._name(test)}"

    def _counted(self, row: int) -> Bools:
        skipped = self.case.criterion.missing == "skip"
        lacking = (self.readings.outcome[row] == Outcome.MISSING) & skipped
        counted: Bools = (self.case.evaluation.rules.counted != 0) & ~lacking
        return counted

    def _first(self, row: int, cell: int) -> int | None:
        sure = self.case.evaluation.rules.counted == 1
        tests = np.flatnonzero((self.case.evaluation.results.cells[row] == cell) & sure & self._counted(row))
        return int(tests[0]) if tests.size else None

    def _name(self, test: int) -> str:
        return self.case.m.tests.ids[test]

    def _q(self, row: int, *, high: bool = False) -> str:
        ranks = self.case.evaluation.ranks
        numerator = int((ranks.q_hi if high else ranks.q_lo)[row])
        common = math.gcd(numerator, int(ranks.q_den[row]))
        top, bottom = numerator // common, int(ranks.q_den[row]) // common
        return f"{top}/{bottom} = {top / bottom:.4g}" if bottom > 1 else str(top)


def _filter(case: Case) -> str:
    doubtful = int((case.evaluation.rules.kept == -1).sum())
    return f"filter undecided on {doubtful} test{'s' if doubtful > 1 else ''}: the references' mean is not known"


_KINDS = (
    ("excluded", "excluded by the filter"),
    ("filter undecided", "the filter is undecided"),
    ("missing", "missing tests"),
    ("censored: killed", "censored: killed below the judged limit"),
    ("censored: q", "censored: the quality is an interval"),
    ("pool of", "pool too small"),
    ("limit unknown", "a limit is unknown"),
    ("unspecified failure", "failed in an unspecified way"),
    ("no test counts", "no test counts for correctness"),
    ("no optimization test", "no optimization test"),
    ("no ", "no duration on the clock"),
    ("interface not checked", "interface not checked"),
    ("interface not kept", "interface not kept"),
    ("too slow", "too slow"),
    ("over the limit", "over the limit"),
    ("crashed on", "crashed on an optimization test"),
    ("q ", "fast enough"),
    ("correct", "correct"),
)


def kind_of(reason: str) -> str:
    """The kind that a reason of `reasons` is of, without its tests and figures, so that many can be counted.

    A failed test is named by its outcome, as `wrong answer`.
    """
    for start, kind in _KINDS:
        if reason.startswith(start):
            return kind
    return reason.split(" on ", 1)[0].replace("_", " ")
