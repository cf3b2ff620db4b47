"""A slow judge in plain Python, written from the definitions in docs/criteria.md; it shares no code with the kernel.

It judges a world in which everything is known: every run has ended, or would have ended, at some time. Fractions and
infinity throughout, one program at a time.
"""

import math
from dataclasses import dataclass
from decimal import Context, Decimal
from fractions import Fraction

INF = math.inf
MS = 1_000_000
EXACT = Context(prec=50)


class UnknownError(Exception):
    """The pool is too small to say: the kernel must leave open whatever hangs on it."""


@dataclass(frozen=True)
class Run:
    """How a run ended, or would have ended: after how many ns, rightly or not, and where it was killed if it was."""

    ns: float
    kind: str  # "ok", "wrong", "failed" or "missing"
    killed: float | None = None


@dataclass(frozen=True)
class Judgement:
    """What the slow judge says of one program; q None where it is undefined."""

    c: int | None
    g: int | None
    q: Fraction | None


class World:
    """One problem in which everything is known, under one criterion.

    Where it was not all known when it was judged, only the references proven to be correct then are a yardstick: `base`
    shapes filters and limits, `pool` ranks.
    """

    def __init__(self, m, criterion, runs, *, base=None, pool=None):
        self.m, self.criterion, self.runs = m, criterion, runs
        self.tests = range(len(m.tests.ids))
        self.every = [t for t in self.tests if m.tests.optimization[t]]
        good = [p for p in self.references() if self.correct(p, self.every, {}) == 1]
        self.base = [p for p in good if self.full(p, self.every)] if base is None else base
        self.kept = [t for t in self.every if self.stays(t)]
        self.pool = pool
        if pool is None:
            self.pool = [p for p in self.references() if self.right(p) == 1 and self.full(p, self.kept)]

    def references(self):
        return [p for p in range(len(self.m.programs)) if self.m.reference[p]]

    def full(self, p, tests):
        return self.criterion.missing != "skip" or all(self.runs[p][t].kind != "missing" for t in tests)

    def without(self, pool, p):
        return [j for j in pool if self.m.duplicate[j] != self.m.duplicate[p]]

    def duration(self, p, t):
        """Infinite where the run failed."""
        run = self.runs[p][t]
        ended = run.kind == "ok" or (run.kind == "wrong" and self.criterion.ranks_wrong)
        cut = run.killed is not None and not (run.kind == "failed" and self.crashes(p, t))
        return run.ns if ended or cut else INF

    # before execution

    def mean(self, t):
        if len(self.base) < self.criterion.min_references:
            raise UnknownError
        return sum(self.duration(p, t) for p in self.base) / len(self.base)

    def stays(self, t):
        cr, most = self.criterion, self.criterion.keep == "at_most"

        def holds(value, bound):
            return value <= bound if most else value >= bound

        if cr.keep_chars is not None:
            chars = int(self.m.tests.input_chars[t] + self.m.tests.output_chars[t])
            if not holds(chars, cr.keep_chars):
                return False
        if cr.keep_ms is not None and not holds(self.mean(t), cr.keep_ms * MS):
            return False
        if cr.keep_share is None:
            return True
        mine = self.mean(t)
        ahead = [u for u in self.every if (self.mean(u) < mine if most else self.mean(u) > mine)]
        return len(ahead) < math.ceil(Fraction(cr.keep_share) * len(self.every) / 100)

    # during execution

    def limit(self, p, t):
        """The limit of program p on optimization test t, None without one."""
        cr, pool, limits_ns = self.criterion, self.without(self.base, p), []
        if cr.limit_ms is not None:
            limits_ns.append(cr.limit_ms * MS)
        if (cr.limit_quantile or cr.limit_ranked) and len(pool) < cr.min_references:
            raise UnknownError
        if cr.limit_quantile is not None:
            durations = sorted(self.duration(j, t) for j in pool)
            index = math.ceil(Fraction(cr.limit_quantile) * len(pool) / 100) - 1
            limits_ns.append(durations[index] * Fraction(cr.limit_factor) if durations[index] < INF else INF)
        if cr.limit_ranked is not None:
            scores = {j: self.score(j, self.without(pool, j), self.kept) for j in pool}
            if None in scores.values():
                raise UnknownError
            room = math.ceil(Fraction(cr.limit_ranked) * len(pool) / 100)
            best = [j for j in pool if sum(scores[i] < scores[j] for i in pool) < room]
            slowest = max(self.duration(j, t) for j in best)
            limits_ns.append(slowest * Fraction(cr.limit_factor) if slowest < INF else INF)
        return min(limits_ns) if limits_ns else None

    def late(self, p, t, limit):
        run = self.runs[p][t]
        if limit is None:
            return run.killed is not None or self.duration(p, t) == INF
        return self.duration(p, t) == INF or run.ns > limit

    def crashes(self, p, t):
        """Whether the run ends in a crash, which a kill at the criterion's limit spares it."""
        run, limits = self.runs[p][t], self.effective(p, t)
        if run.killed is None:
            return run.kind == "failed" or (run.kind == "missing" and self.criterion.missing == "fail")
        return run.kind == "failed" and limits is not None and run.ns <= limits

    # correctness

    def correct(self, p, kept, limits):
        cr, kinds = self.criterion, self.m.tests
        any_kind = [t for t in self.tests if kinds.original[t] or kinds.correctness[t] or t in kept]
        counted = [t for t in self.tests if kinds.original[t]] if cr.correctness == "original" else any_kind
        if cr.missing == "skip":
            counted = [t for t in counted if self.runs[p][t].kind != "missing"]
        if not counted:
            return None
        return int(all(self.passes(p, t, limits.get(t)) for t in counted))

    def passes(self, p, t, limit):
        cr, run, kinds = self.criterion, self.runs[p][t], self.m.tests
        everywhere = None if cr.timeout_ms is None else cr.timeout_ms * MS
        tolerated = cr.timeouts == "tolerated"
        limits = [limit_ns for limit_ns in (everywhere, limit) if limit_ns is not None]
        if run.killed is None and run.kind != "ok":
            return False
        base = kinds.original[t] or kinds.correctness[t]
        if kinds.optimization[t] and not base:  # may be too slow, where that is tolerated
            cut = run.ns > min(limits) if limits else run.killed is not None
            return tolerated if cut else run.kind == "ok"
        cut = run.ns > everywhere if everywhere is not None else run.killed is not None
        return not cut and run.kind == "ok" and (tolerated or limit is None or run.ns <= limit)

    def right(self, p):
        """Correct under the whole criterion by its tests."""
        return self.correct(p, self.kept, {t: self.limit(p, t) for t in self.kept})

    # after execution

    def rank(self, mine, theirs):
        """A percentile rank in [0, 1]; infinite mine is behind all."""
        n = len(theirs)
        less = n if mine == INF else sum(d < mine for d in theirs)
        upto = n if mine == INF else sum(d <= mine for d in theirs)
        kinds = {"mean": less + upto, "strict": 2 * less, "weak": 2 * upto, "rank": less + upto + (less < upto)}
        return Fraction(kinds[self.criterion.percentile], 2 * n)

    def score(self, p, pool, tests):
        """The statistic of one program among a pool, 0 or small when fast; None where it is undefined."""
        theirs = {t: [self.duration(j, t) for j in pool] if pool else [self.duration(p, t)] for t in tests}
        d = {t: self.duration(p, t) for t in tests}
        r = [self.rank(d[t], theirs[t]) for t in tests]
        if not pool:  # alone: as tied with itself, even where it failed
            tie = {"mean": Fraction(1, 2), "strict": Fraction(0), "weak": Fraction(1), "rank": Fraction(1)}
            r = [tie[self.criterion.percentile]] * len(tests)
        m = [middle(theirs[t]) for t in tests]
        return SCORES[self.criterion.statistic](Numbers(r, list(d.values()), m, list(theirs.values()), not pool))

    def quality(self, p, tests):
        cr = self.criterion
        if cr.reading == "zero":
            return Fraction(0)
        if not tests:
            return None
        if cr.reading == "over-limit":
            return Fraction(sum(self.late(p, t, self.effective(p, t)) for t in tests), len(tests))
        if cr.reading == "raw-duration":
            total = sum(self.duration(p, t) for t in tests)
            return min(Fraction(1) if total == INF else Fraction(total) / (len(tests) * 10_000 * MS), Fraction(1))
        pool = self.without(self.pool, p)
        if len(pool) < cr.min_references:
            return None
        mine = self.score(p, pool, tests)
        if cr.reading == "score":
            return mine
        own_scores = [self.score(j, self.without(pool, j), tests) for j in pool]
        if mine is None or None in own_scores:
            return None
        less, upto = sum(s < mine for s in own_scores), sum(s <= mine for s in own_scores)
        kinds = {"mean": less + upto, "strict": 2 * less, "weak": 2 * upto, "rank": less + upto + (less < upto)}
        return Fraction(kinds[cr.percentile], 2 * len(own_scores))

    def effective(self, p, t):
        cr = self.criterion
        limits = [
            limit_ns for limit_ns in (self.limit(p, t), cr.timeout_ms and cr.timeout_ms * MS) if limit_ns is not None
        ]
        return min(limits) if limits else None

    def judge(self, p):
        """The whole verdict on one program."""
        cr, tests = self.criterion, self.kept
        if cr.filters and not tests:
            return Judgement(None, None, None)
        if cr.missing == "skip":
            tests = [t for t in tests if self.runs[p][t].kind != "missing"]
        q = self.quality(p, tests)
        g = 1 if cr.threshold == 1 else None if q is None else int(q <= cr.threshold)
        if cr.reward in ("additive", "optimization-only", "multitask"):  # paid for speed, right or wrong
            g = 0 if any(self.crashes(p, t) for t in tests) else g
        if cr.in_time == "required":
            timely = int(not any(self.late(p, t, self.effective(p, t)) for t in tests)) if tests else None
            g = 0 if 0 in (g, timely) else None if None in (g, timely) else 1
        return Judgement(self.right(p), g, q)


def middle(values):
    """The median; infinite where one of the two middle values is."""
    ordered = sorted(values)
    low, high = ordered[(len(ordered) - 1) // 2], ordered[len(ordered) // 2]
    return INF if INF in (low, high) else Fraction(low + high) / 2


def at_least(values, share):
    """The smallest value that at least a share of the values do not exceed."""
    return sorted(values)[math.ceil(share * len(values)) - 1]


@dataclass(frozen=True)
class Numbers:
    """What a statistic sees of one program, test by test."""

    r: list  # percentiles in [0, 1]
    d: list  # durations
    m: list  # the references' medians
    theirs: list  # the references' durations
    alone: bool


def trimmed(x):
    cut = len(x.r) // 10
    kept = sorted(x.r)[cut : len(x.r) - cut]
    return sum(kept) / len(kept)


def weighted(x):
    if INF in x.m:
        return x.r[0] if len(set(x.r)) == 1 else None
    weights = [max(int(m // 1000), 1) for m in x.m]
    return sum(w * r for w, r in zip(weights, x.r, strict=True)) / sum(weights)


def ratios(x):
    full = []
    for d, m in zip(x.d, x.m, strict=True):
        full.append(INF if d == INF else 0 if m == INF else min(Fraction(int(10**6 * d // m), 10**6), 10**6))
    return full


def win_rate(x):
    if x.alone:
        return Fraction(1, 2)
    lost = sum(d == INF or reference < d for d, theirs in zip(x.d, x.theirs, strict=True) for reference in theirs)
    won = sum(d != INF and reference > d for d, theirs in zip(x.d, x.theirs, strict=True) for reference in theirs)
    return Fraction(lost, lost + won) if lost + won else Fraction(1, 2)


def steps(value):
    """Base-2 logarithm in whole steps of 2^-16, rounded to the nearest."""
    exact = EXACT.ln(Decimal(Fraction(value).numerator)) - EXACT.ln(Decimal(Fraction(value).denominator))
    return math.floor(exact / EXACT.ln(Decimal(2)) * 2**16 + Decimal("0.5"))


def slope(x, scale):
    if INF in x.d:
        return INF
    if INF in x.m:
        return None
    a, b = [scale(m) for m in x.m], [scale(d) for d in x.d]
    n = len(a)
    run = sum((v - Fraction(sum(a), n)) ** 2 for v in a)
    rise = sum((v - Fraction(sum(a), n)) * (w - Fraction(sum(b), n)) for v, w in zip(a, b, strict=True))
    return rise / run if run else None


SCORES = {
    "mean": lambda x: sum(x.r) / len(x.r),
    "median": lambda x: middle(x.r),
    "trimmed-mean": trimmed,
    "clipped-mean": lambda x: sum(min(max(r, Fraction(1, 20)), Fraction(19, 20)) for r in x.r) / len(x.r),
    "worst": lambda x: max(x.r),
    "p90": lambda x: at_least(x.r, Fraction(9, 10)),
    "weighted-mean": weighted,
    "total": lambda x: sum(x.d),
    "clipped-total": lambda x: sum(min(d, at_least(t, Fraction(19, 20))) for d, t in zip(x.d, x.theirs, strict=True)),
    "median-time": lambda x: middle(x.d),
    "longest": lambda x: max(x.d),
    "geometric-mean": lambda x: INF if INF in x.d else math.prod(map(Fraction, x.d)),
    "mean-ratio": lambda x: sum(ratios(x)) / len(x.d),
    "median-ratio": lambda x: middle(ratios(x)),
    "win-rate": win_rate,
    "slope": lambda x: slope(x, Fraction),
    "log-slope": lambda x: slope(x, steps),
}
