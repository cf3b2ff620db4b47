"""The table of a criterion's fields: meaning, allowed values and default; `values` brings a value to its one form.

Parsing, hashing, the flags of the commands and the docs page all read it. `criteria` checks fields against each other.
A default never changes: hashes leave it out.
"""

from collections.abc import Mapping

from lapledger.replay.values import (
    COUNT,
    MS,
    PERCENT,
    SHARE,
    Field,
    buckets,
    choice,
    factor,
    field,
    integer,
    optional,
    percent,
    share,
)
from lapledger.replay.values import FieldDoc as FieldDoc

OF_PERCENTILES = ("mean", "median", "trimmed-mean", "clipped-mean", "worst", "p90", "weighted-mean")
OF_TIMES = (
    "total",
    "clipped-total",
    "median-time",
    "longest",
    "geometric-mean",
    "mean-ratio",
    "median-ratio",
    "win-rate",
    "slope",
    "log-slope",
)
"""The seventeen statistics: the first seven join per-test percentiles, these ten durations."""


_QUALITY = (
    field(
        "tau",
        "100",
        percent,
        PERCENT.format("tau"),
        "p_tau: a program passes when it is correct and its quality q is at most tau/100; at 100 this gate is open",
    ),
    choice(
        "reading",
        ("leaderboard", "score", "over-limit", "raw-duration", "zero"),
        "the quality q: `leaderboard` ranks the program's score among the references' own scores; `score` is the score"
        " itself, as a share of 100; `over-limit` is the share of tests that took longer than their limit;"
        " `raw-duration` the mean duration over 10 s, at most 1; `zero` sets no speed requirement",
    ),
    choice(
        "statistic",
        (*OF_PERCENTILES, *OF_TIMES),
        "how a program's tests become one score: formulas and values are below",
    ),
    choice(
        "percentile",
        ("mean", "strict", "weak", "rank"),
        "the percentile rank among n references, of which L are faster and R faster or equal: `mean` 50 (L + R)/n,"
        " `strict` 100 L/n, `weak` 100 R/n, `rank` 50 (L + R + [L < R])/n; of durations and of scores alike",
    ),
)
_CORRECTNESS = (
    choice(
        "correctness",
        ("strict", "original"),
        "the tests that count for correctness: `strict` all, where an optimization test must show no wrong answer"
        " and no crash; `original` only the problem's original tests",
    ),
    choice(
        "interface",
        ("ignored", "required"),
        "whether correctness requires that the program kept the interface it was given; an interface that was not"
        " checked is undecided",
    ),
    choice(
        "timeouts",
        ("fail", "tolerated"),
        "whether a timeout on a test that is only an optimization test, neither original nor added for correctness,"
        " fails correctness; a timeout on any other counted test always does",
    ),
    optional(
        "timeout_ms",
        integer,
        MS,
        "a tighter limit, judged on every test: a longer duration is a timeout, but still ranked as measured; a run"
        " killed below this limit is undecided",
    ),
    choice(
        "own_limits",
        ("ignored", "enforced"),
        "whether the limits of time and memory that a problem's package states count where a campaign was run under"
        " others: `enforced` takes a run above one as stopped there, as `lap run --limit own` would have",
    ),
)
_BEFORE = (
    choice(
        "keep",
        ("at_least", "at_most"),
        "the direction of the three filters: `at_least` keeps tests at or above their bound, so short tests go",
    ),
    optional(
        "keep_ms",
        integer,
        MS,
        "keeps the optimization tests whose mean duration over the references is at least (or at most) this",
    ),
    optional(
        "keep_chars",
        integer,
        COUNT,
        "keeps the optimization tests whose input and output together have at least (or at most) so many characters",
    ),
    optional(
        "keep_share",
        percent,
        PERCENT.format("keep_share"),
        "keeps the slowest (or, with at_most, the fastest) so many percent of the optimization tests by mean duration"
        " over the references, rounded up to whole tests; tests equal to the last one kept stay too",
    ),
)
_DURING = (
    optional(
        "limit_ms",
        integer,
        MS,
        "a limit on every optimization test, and on no other",
    ),
    optional(
        "limit_quantile",
        percent,
        PERCENT.format("limit_quantile"),
        "a limit on each optimization test: the duration of the reference that so many percent of the references do not"
        " exceed there, the program and its duplicates excluded",
    ),
    optional(
        "limit_ranked",
        percent,
        PERCENT.format("limit_ranked"),
        "a limit on each optimization test: the slowest duration there of the best so many percent of the references,"
        " ranked by their scores and rounded up to whole programs, ties kept, the program and its duplicates excluded",
    ),
    field(
        "limit_factor",
        "1",
        factor,
        "a decimal number, 0 < limit_factor <= 1000, at most nine decimals",
        "what limit_quantile and limit_ranked are multiplied with; of several limits the smallest counts",
    ),
    choice(
        "in_time",
        ("ignored", "required"),
        "whether the optimization gate also requires that every optimization test kept ends within its limit: the"
        " smallest of these and timeout_ms, else the hard limit of its run",
    ),
)
_MEASURE = (
    choice(
        "clock",
        ("wall", "cpu", "memory"),
        "what is ranked: wall time, processor time, or peak memory in place of a time",
    ),
    choice(
        "estimator",
        ("median", "min", "mean", "hodges-lehmann"),
        "how repetitions become one duration; rounded down to whole ns. `hodges-lehmann` is the median of the means of"
        " all pairs, each repetition paired with itself too",
    ),
    choice(
        "startup",
        ("keep", "subtract"),
        "whether the worker's start-up baseline (wall time) is subtracted from a wall time, down to 1 ns at least",
    ),
    choice(
        "calibration",
        ("none", "multiplicative", "affine", "affine-weighted", "theil-sen", "power"),
        "whether stored references of an earlier campaign join the pool, and by which kind of map: a fit on the"
        " references measured in both, made by `lap calibrate`; candidates are never mapped",
    ),
    field(
        "min_references",
        1,
        integer,
        COUNT,
        "the smallest pool that can decide a quality, a filter or a limit; with a smaller one they are undecided",
    ),
    choice(
        "missing",
        ("undecided", "fail", "skip"),
        "what a test without any result does: `undecided` leaves open what depends on it; `fail` counts it as"
        " failed; `skip` judges the program, and the references it is ranked among, on the tests it has results for",
    ),
)
_REWARD = (
    choice(
        "reward",
        (
            "collapsed-binary",
            "correctness-only",
            "collapsed",
            "two-gate",
            "additive",
            "optimization-only",
            "multitask",
        ),
        "the reward in [-1, 1], from the signed gate c~ and the efficiency e: `collapsed-binary` is +1 only when"
        " correct and fast enough, else -1; `correctness-only` is c~; `collapsed` -1 if c = 0, else e; `two-gate` -1 if"
        " c = 0, else (e + 1)/2; `additive` w c~ + (1 - w) e; `optimization-only` e, whatever c; `multitask` c~ for"
        " even groups, e for odd ones. The last three rank a wrong answer by its duration, the others as failed; under"
        " them a crash on an optimization test fails the gate g",
    ),
    choice(
        "shape",
        ("binary", "bucketed", "continuous", "split"),
        "the efficiency e in [-1, 1]: `binary` is the signed gate g~; `bucketed` 1 - 2 (max(ceil(q B), 1) - 1)/(B - 1);"
        " `continuous` 1 - 2 q; `split` s g~ + (1 - s)(1 - 2 q)",
    ),
    field("buckets", 10, buckets, "a whole number, 2 to 1000", "B of the shape `bucketed`"),
    field("split", "0.5", share, SHARE.format("split"), "s of the shape `split`"),
    field("weight", "0.5", share, SHARE.format("weight"), "w of `additive`"),
)

GROUPS: Mapping[str, tuple[Field, ...]] = {
    "quality": _QUALITY,
    "correctness": _CORRECTNESS,
    "before execution: which optimization tests are kept": _BEFORE,
    "during execution: limits on optimization tests": _DURING,
    "measurement": _MEASURE,
    "reward": _REWARD,
}
FIELDS: Mapping[str, Field] = {field.doc.name: field for group in GROUPS.values() for field in group}
