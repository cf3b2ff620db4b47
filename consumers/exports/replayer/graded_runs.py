"""Test results of a program under a criterion: kept tests, time limits, passes and crashes.

Three-valued: 1 yes, 0 no, -1 not known. Limits are intervals in half ns. No program is ranked here.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from lapledger.consumers.exports.replayer.durations import ABSENT, FAILED, KILLED, MS, Durations
from lapledger.consumers.exports.replayer.facts import Problem
from lapledger.consumers.exports.replayer.scores import HIGH, LOW, Pool, Standing, score

UNKNOWN, UNLIMITED = -1, FAILED
_INFINITE = KILLED << 64
FILTERS = ("keep_ms", "keep_chars", "keep_share")
LIMITS = ("limit_ms", "limit_quantile", "limit_ranked")


@dataclass(frozen=True)
class TestResults:
    """One program on its tests."""

    c: int
    within: Mapping[int, bool]  # by test that may be kept
    over: Mapping[int, bool]
    crashed: Mapping[int, int]  # 1 for certain, 0 not, -1 unknown
    lacking: frozenset[int]


class GradedRuns:
    """The rules of one problem under a criterion, and the results of programs under them."""

    def __init__(self, problem: Problem, criterion: dict[str, Any]) -> None:
        self.problem, self.criterion = problem, criterion
        self.durations = Durations(problem, criterion)
        self.group = [p["source_blob"] or f"unknown {p['program_id']}" for p in problem.programs]
        self.optimization = [t for t, test in enumerate(problem.tests) if test["optimization"]]
        self.kept = dict.fromkeys(self.optimization, 1)
        self.filtered = any(criterion[name] is not None for name in FILTERS)
        self.limited = any(criterion[name] is not None for name in LIMITS)
        self.limiting = Pool([], [], self.optimization)
        if self.filtered or self.limited:
            free = {**criterion, **dict.fromkeys((*FILTERS, *LIMITS))}
            base = GradedRuns(problem, free).pool()
            self.kept = {t: self._keeps(base, position) for position, t in enumerate(self.optimization)}
            self.limiting = base.on(self.ranked)
        self._allowed: dict[str | None, list[tuple[int, int]]] = {}
        for p, row in enumerate(self.durations.span):
            for t in self.ranked:
                if self._cut_short(p, t):  # with more time it might have crashed
                    row[t] = row[t][LOW], FAILED

    @property
    def ranked(self) -> list[int]:
        """The optimization tests that may be kept."""
        return [t for t in self.optimization if self.kept[t] != 0]

    @property
    def certain(self) -> bool:
        """Whether it is known of every test that it is kept or not."""
        return UNKNOWN not in self.kept.values()

    @property
    def excluded(self) -> bool:
        """Whether the filter keeps no optimization test."""
        return self.filtered and not self.ranked

    @property
    def stays(self) -> bool:
        """Whether the problem is in the environment for certain."""
        return not self.filtered or 1 in self.kept.values()

    def pool(self) -> Pool:
        """The references that are correct and lack no test, on the tests that may be kept."""
        members = [p for p, row in enumerate(self.problem.programs) if row["reference"]]
        good = [p for p in members if (graded := self.grade(p)).c == 1 and not graded.lacking]
        return Pool([self.durations.span[p] for p in good], [self.group[p] for p in good], self.ranked)

    # before execution

    def _keeps(self, base: Pool, position: int) -> int:
        criterion, at_most = self.criterion, self.criterion["keep"] == "at_most"
        test = self.problem.tests[self.optimization[position]]
        rules = [1]
        if criterion["keep_chars"] is not None:
            sizes = [-1 if test[name] is None else test[name] for name in ("input_chars", "output_chars")]
            stays = sum(sizes) <= criterion["keep_chars"] if at_most else sum(sizes) >= criterion["keep_chars"]
            rules.append(-1 if min(sizes) < 0 else int(stays))
        enough = len(base.group) >= criterion["min_references"]
        low, high = (self._sums(base, end, enough=enough) for end in (LOW, HIGH))
        if criterion["keep_ms"] is not None:
            most = 2 * MS * criterion["keep_ms"] * len(base.group)
            sure = high[position] <= most if at_most else low[position] >= most
            maybe = low[position] <= most if at_most else high[position] >= most
            rules.append(1 if sure else -1 if maybe else 0)
        if criterion["keep_share"] is not None:
            room = math.ceil(Fraction(criterion["keep_share"]) / 100 * len(low))
            sure, maybe = (
                _ahead(position, low, high, at_most=at_most, sure=certain) < room for certain in (True, False)
            )
            rules.append(1 if sure else -1 if maybe else 0)
        return 0 if 0 in rules else min(rules)

    def _sums(self, base: Pool, end: int, *, enough: bool) -> list[int]:
        if not enough:
            return [(UNKNOWN, _INFINITE)[end] for _ in self.optimization]
        columns = [[row[t][end] for row in base.spans] for t in self.optimization]
        return [sum(column) if max(column, default=0) < KILLED else _INFINITE for column in columns]

    # during execution

    def _limits(self, group: str) -> list[tuple[int, int]]:
        """The limit of a program of some group on each test that may be kept, from and to."""
        key = group if group in self.limiting.group else None
        if key not in self._allowed:
            self._allowed[key] = self._limits_without(key)
        return self._allowed[key]

    def _limits_without(self, group: str | None) -> list[tuple[int, int]]:
        criterion, pool = self.criterion, self.limiting
        fixed = [2 * MS * criterion[name] for name in ("limit_ms", "timeout_ms") if criterion[name] is not None]
        out = pool.out({group})
        enough = len(pool.group) - len(out) >= criterion["min_references"]
        best = [self._best(group, sure=sure) for sure in (True, False)] if criterion["limit_ranked"] and enough else []
        limits = []
        for t, test in enumerate(self.ranked):
            low, high = [UNLIMITED, *fixed], [UNLIMITED, *fixed]
            if not enough and (criterion["limit_quantile"] or criterion["limit_ranked"]):
                low.append(UNKNOWN)
            elif criterion["limit_quantile"]:
                share = Fraction(criterion["limit_quantile"]) / 100
                standing = Standing(pool, [(0, 0)] * len(self.ranked), out, LOW)
                low.append(self._times(standing.quantile(LOW, t, share)))
                high.append(self._times(standing.quantile(HIGH, t, share)))
            for bounds, end, members in zip((low, high), (LOW, HIGH), best, strict=False):
                bounds.append(self._times(max((pool.spans[n][test][end] for n in members), default=UNKNOWN)))
            limits.append((min(low), min(high)))
        return limits

    def _best(self, group: str | None, *, sure: bool) -> list[int]:
        """The best-ranked references without a group: those among them for certain, or perhaps."""
        pool = self.limiting
        rivals = [n for n, name in enumerate(pool.group) if name != group and pool.tests]
        scores = {n: reference_scores(pool, n, group, self.criterion) for n in rivals}
        room = math.ceil(Fraction(self.criterion["limit_ranked"]) / 100 * len(rivals))

        def ahead(n: int) -> int:
            if sure:
                return sum(scores[j][LOW] < scores[n][HIGH] for j in rivals if j != n)
            return sum(scores[j][HIGH] < scores[n][LOW] for j in rivals)

        return [n for n in rivals if ahead(n) < room]

    def _times(self, limit: int) -> int:
        factor = Fraction(self.criterion["limit_factor"])
        return min(int(limit * factor), UNLIMITED) if 0 <= limit < KILLED else limit

    def grade(self, p: int) -> TestResults:
        """The results of one program on its tests."""
        within, over = self._in_time(p)
        skips = self.criterion["missing"] == "skip"
        missing = [t for t, outcome in enumerate(self.durations.outcome[p]) if outcome == "missing"]
        lacking = set(missing) if skips else set()
        cells = {t: self._passes(p, t, within, over) for t in range(len(self.problem.tests))}
        crashed = {t: self._crashes(p, t) for t in self.ranked}
        return TestResults(self._correct(cells, lacking), within, over, crashed, frozenset(lacking & set(self.ranked)))

    def _in_time(self, p: int) -> tuple[dict[int, bool], dict[int, bool]]:
        limits = self._limits(self.group[p]) if self.limited or self.criterion["timeout_ms"] else None
        within, over = {}, {}
        for position, t in enumerate(self.ranked):
            outcome, (low, high) = self.durations.outcome[p][t], self.durations.span[p][t]
            ended, failed = outcome in ("accepted", "wrong_answer") and low != FAILED, low == FAILED
            if limits is None:
                unspecified = outcome == "failed" and not self.durations.pays_wrong
                within[t], over[t] = ended, failed or unspecified or outcome == "time_limit"
            else:
                within[t], over[t] = ended and high <= limits[position][0], failed or low > limits[position][1]
        return within, over

    def _crashes(self, p: int, t: int) -> int:
        """Whether a run ended in a crash: 1, 0, or -1 where it was never run, or cut below the required limits."""
        if self.durations.span[p][t][LOW] == FAILED:
            return 1
        return -1 if self.durations.outcome[p][t] in ("missing", "failed") or self._cut_short(p, t) else 0

    def _cut_short(self, p: int, t: int) -> bool:
        """Whether a run was killed below the required limit, for all that is known of that limit."""
        if self.durations.outcome[p][t] != "time_limit" or not (self.limited or self.criterion["timeout_ms"]):
            return False
        return self.durations.span[p][t][LOW] <= self._limits(self.group[p])[self.ranked.index(t)][HIGH]

    def _passes(self, p: int, t: int, within: Mapping[int, bool], over: Mapping[int, bool]) -> int:
        """Whether a run passes its test: 1, 0, -1 undecided; a known failure stays one, however long it took."""
        criterion, outcome, ns = self.criterion, self.durations.outcome[p][t], self.durations.ns[p][t]
        limit = None if criterion["timeout_ms"] is None else criterion["timeout_ms"] * MS
        kinds = self.problem.tests[t]
        pure = kinds["optimization"] and not kinds["correctness"] and not kinds["original"]
        unspecified, missing, ended = outcome == "failed", outcome == "missing", outcome == "accepted"
        killed = unspecified or outcome == "time_limit"  # an unspecified failure may have been a kill, at any limit
        censored_below_limit = killed and limit is not None and (unspecified or self.durations.bound[p][t] < limit)
        timeout = (killed and not censored_below_limit) or (ended and limit is not None and ns > limit)
        failed = not (killed or missing or ended)
        unknown = missing or unspecified or censored_below_limit or (ended and ns == ABSENT and limit is not None)
        tolerated = criterion["timeouts"] == "tolerated"
        if self.limited and t in over:
            open_ = killed and not over[t]
            unknown = unknown or open_
            timeout = timeout and not (open_ and pure)
        failed = failed or (timeout and not (pure and tolerated)) or (missing and criterion["missing"] == "fail")
        if self.limited and not tolerated and t in over:
            failed = failed or (over[t] and not missing)
            unknown = unknown or not (over[t] or within[t])
        return 0 if failed else -1 if unknown else 1

    def _correct(self, cells: Mapping[int, int], lacking: set[int]) -> int:
        counts = {t: self._counts(t) for t in cells if t not in lacking}
        if any(cells[t] == 0 and count == 1 for t, count in counts.items()):
            return 0
        doubt = any((cells[t] == -1 and count == 1) or (cells[t] != 1 and count == -1) for t, count in counts.items())
        return -1 if doubt or 1 not in counts.values() else 1

    def _counts(self, t: int) -> int:
        test = self.problem.tests[t]
        if self.criterion["correctness"] == "original":
            return int(test["original"])
        return 1 if test["original"] or test["correctness"] else self.kept.get(t, 0)


def reference_scores(pool: Pool, n: int, group: str | None, criterion: dict[str, Any]) -> tuple[Fraction, Fraction]:
    """The smallest and the largest score of a reference among the others, without its group and one more."""
    out = pool.out({pool.group[n], group})
    spans = [pool.spans[n][t] for t in pool.tests]
    return score(Standing(pool, spans, out, LOW), criterion), score(Standing(pool, spans, out, HIGH), criterion)


def _ahead(position: int, low: Sequence[int], high: Sequence[int], *, at_most: bool, sure: bool) -> int:
    """How many tests come before one in the filter's order: perhaps (to be sure that it stays), or for certain."""
    ends, opposite = (low, high) if at_most != sure else (high, low)
    rivals = [value for t, value in enumerate(opposite) if t != position]
    return sum(value < ends[position] if at_most else value > ends[position] for value in rivals)
