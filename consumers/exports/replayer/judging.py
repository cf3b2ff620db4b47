"""Verdicts on every program of a problem under a criterion, by the definitions, and pass@k from them."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from lapledger.consumers.exports.replayer.durations import PAY_WRONG, Span
from lapledger.consumers.exports.replayer.facts import Problem
from lapledger.consumers.exports.replayer.graded_runs import GradedRuns, TestResults, reference_scores
from lapledger.consumers.exports.replayer.scores import HIGH, LOW, Pool, Standing, percentile, score
from lapledger.consumers.exports.replayer.student_t import interval

RAW_SCALE_NS = 10_000_000_000
STATUS = {1: "pass", 0: "fail", -1: "undecided"}


@dataclass(frozen=True)
class Verdict:
    """The verdict on one program; q from its smallest to its largest, None where it is undefined."""

    program: str
    model: str
    status: int
    q: tuple[Fraction, Fraction] | None
    references: int
    c: int  # the gates: 1, 0, -1 undecided
    g: int


@dataclass(frozen=True)
class Judged:
    """One problem's verdicts on its candidates, and whether the filter excludes it."""

    problem: str
    verdicts: Sequence[Verdict]
    excluded: bool
    missing: int


class Judge:
    """The judge of one problem under one criterion."""

    def __init__(self, problem: Problem, criterion: dict[str, Any]) -> None:
        self.problem, self.criterion = problem, criterion
        self.results = GradedRuns(problem, criterion)
        self.pool = self.results.pool()
        self._pools: dict[tuple[int, ...], Pool] = {}
        self._scores: dict[tuple[tuple[int, ...], str | None], list[tuple[Fraction, Fraction]]] = {}

    def judged(self) -> Judged:
        """Every candidate's verdict."""
        rows = [p for p, row in enumerate(self.problem.programs) if row["candidate"]]
        missing = sum(outcome == "missing" for p in rows for outcome in self.results.durations.outcome[p])
        return Judged(self.problem.name, [self.verdict(p) for p in rows], self.results.excluded, missing)

    def verdict(self, p: int) -> Verdict:
        """The verdict on one program."""
        graded, criterion = self.results.grade(p), self.criterion
        tests = [t for t in self.results.ranked if t not in graded.lacking]
        pool = self._pool(tests)
        out = pool.out({self.results.group[p]})
        size = len(pool.group) - len(out)
        q = self._quality(p, graded, tests)
        if not self.results.certain and criterion["reading"] != "zero":
            q = (Fraction(0), Fraction(1)) if q else None
        g, c = self._fast(q, size), graded.c
        if criterion["reward"] in PAY_WRONG:
            g = combine(g, self._no_crash(graded))
        if criterion["in_time"] == "required":
            g = combine(g, self._in_time(graded))
        if criterion["interface"] == "required":
            c = combine(c, -1)  # sources are read elsewhere
        if not self.results.stays:
            c = g = -1
        row = self.problem.programs[p]
        return Verdict(row["program_id"], row["model"], combine(c, g), q, size, c, g)

    def _pool(self, tests: Sequence[int]) -> Pool:
        key = tuple(tests)
        if key not in self._pools:
            self._pools[key] = self.pool.on(tests)
        return self._pools[key]

    def _fast(self, q: tuple[Fraction, Fraction] | None, size: int) -> int:
        threshold = Fraction(self.criterion["tau"]) / 100
        if threshold == 1:
            return 1
        if q is None or (self._ranks and size < self.criterion["min_references"]):
            return -1
        return 1 if q[HIGH] <= threshold else 0 if q[LOW] > threshold else -1

    @property
    def _ranks(self) -> bool:
        return self.criterion["reading"] in ("leaderboard", "score")

    def _no_crash(self, graded: TestResults) -> int:
        """Whether no kept test crashed."""
        crashed = {t: graded.crashed[t] for t in self.results.ranked if t not in graded.lacking}
        if any(crash == 1 and self.results.kept[t] == 1 for t, crash in crashed.items()):
            return 0
        return -1 if any(crashed.values()) else 1

    def _in_time(self, graded: TestResults) -> int:
        tests = [t for t in self.results.ranked if t not in graded.lacking]
        late = any(graded.over[t] for t in tests if self.results.kept[t] == 1 or self.results.certain)
        timely = bool(tests) and all(graded.within[t] for t in tests)
        return 0 if late else 1 if timely else -1

    def _quality(self, p: int, graded: TestResults, tests: Sequence[int]) -> tuple[Fraction, Fraction] | None:
        reading, spans = self.criterion["reading"], [self.results.durations.span[p][t] for t in tests]
        if reading == "zero":
            return Fraction(0), Fraction(0)
        if not tests:
            return None
        if reading == "over-limit":
            late = sum(graded.over[t] for t in tests)
            return Fraction(late, len(tests)), 1 - Fraction(sum(graded.within[t] for t in tests), len(tests))
        if reading == "raw-duration":
            return _raw(spans, LOW), _raw(spans, HIGH)
        pool = self._pool(tests)
        out = pool.out({self.results.group[p]})
        if len(out) == len(pool.group):
            return None
        low, high = (score(Standing(pool, spans, out, end), self.criterion) for end in (LOW, HIGH))
        return (low, high) if reading == "score" else self._rank(pool, self.results.group[p], low, high)

    def _rank(self, pool: Pool, group: str, low: Fraction, high: Fraction) -> tuple[Fraction, Fraction]:
        """The rank of a score among the references' scores, each computed without this program's group."""
        column = group if group in pool.group else None
        key = tuple(pool.tests), column
        if key not in self._scores:
            self._scores[key] = [reference_scores(pool, n, column, self.criterion) for n in range(len(pool.group))]
        foreign_scores = [scores for n, scores in enumerate(self._scores[key]) if pool.group[n] != group]

        def rank(value: Fraction, end: int) -> Fraction:
            less, upto = sum(o[end] < value for o in foreign_scores), sum(o[end] <= value for o in foreign_scores)
            return Fraction(percentile(less, upto, self.criterion["percentile"]), 2 * len(foreign_scores))

        return rank(low, HIGH), rank(high, LOW)


def combine(c: int, g: int) -> int:
    """The verdict of two gates: one that fails settles it, else one that is undecided leaves it open."""
    return 0 if 0 in (c, g) else min(c, g)


def _raw(spans: Sequence[Span], end: int) -> Fraction:
    worst = 2 * RAW_SCALE_NS * len(spans)
    return Fraction(min(sum(min(max(span[end], 0), worst) for span in spans), worst), worst)


def pass_at_k(n: int, c: int, k: int) -> float:
    """1 - C(n - c, k) / C(n, k)."""
    return (math.comb(n, k) - math.comb(n - c, k)) / math.comb(n, k)


def estimates(judged: Sequence[Judged], k: int) -> list[dict[str, Any]]:
    """One row a model: counts, pass@k with undecided counted as not passed, and with them counted as passed."""
    models = sorted({v.model for problem in judged for v in problem.verdicts})
    return [_estimate(model, [(j, [v for v in j.verdicts if v.model == model]) for j in judged], k) for model in models]


def _estimate(model: str, by_problem: Sequence[tuple[Judged, Sequence[Verdict]]], k: int) -> dict[str, Any]:
    attempted = [(j, verdicts) for j, verdicts in by_problem if verdicts]
    included = [verdicts for j, verdicts in attempted if not j.excluded]
    counts = [[sum(v.status == status for v in verdicts) for status in (1, 0, -1)] for verdicts in included]
    sizes = [v.references for verdicts in included for v in verdicts]
    values = [pass_at_k(sum(n), n[0], k) for n in counts]
    bounds = [pass_at_k(sum(n), n[0] + n[2], k) for n in counts]
    passed, failed, undecided = (sum(n[i] for n in counts) for i in range(3))
    ends, method = interval(values)
    return {
        "model": model,
        "k": k,
        "problems": len(included),
        "programs": passed + failed + undecided,
        "passed": passed,
        "failed": failed,
        "undecided": undecided,
        "references_min": min(sizes, default=0),
        "references_max": max(sizes, default=0),
        "value": math.fsum(values) / len(values) if values else None,
        "upper_bound": math.fsum(bounds) / len(bounds) if bounds else None,
        "interval": ends,
        "method": method,
        "excluded": len(attempted) - len(included),
    }


def differing_columns(stored: Mapping[str, Any], recomputed: Mapping[str, Any]) -> list[str]:
    """The columns in which two rows of a table differ; floats may differ in their last bits."""

    def same(a: Any, b: Any) -> bool:
        if isinstance(a, list) and isinstance(b, list):
            return len(a) == len(b) and all(map(same, a, b))
        if isinstance(a, float) and isinstance(b, float):
            return math.isclose(a, b, rel_tol=1e-9, abs_tol=1e-9)
        return bool(a == b)

    return [name for name, value in recomputed.items() if not same(stored.get(name), value)]
