"""What this replayer knows: the scoring engine that it follows, fields of criteria, and parts of a campaign's bundle.

Literals: a bundle is not asked about itself, and nothing of lapledger is there to ask. Tests compare them with the
release.
"""

from typing import Any

KERNEL = "1.3.0"
"""The version of the scoring engine whose verdicts these modules give."""
KEYS = ("campaign", "kernel")
"""What bundle.json of a campaign says beside what every bundle says."""
FIELDS: dict[str, Any] = {
    "tau": "100",
    "reading": "leaderboard",
    "statistic": "mean",
    "percentile": "mean",
    "correctness": "strict",
    "interface": "ignored",
    "timeouts": "fail",
    "timeout_ms": None,
    "own_limits": "ignored",
    "keep": "at_least",
    "keep_ms": None,
    "keep_chars": None,
    "keep_share": None,
    "limit_ms": None,
    "limit_quantile": None,
    "limit_ranked": None,
    "limit_factor": "1",
    "in_time": "ignored",
    "clock": "wall",
    "estimator": "median",
    "startup": "keep",
    "calibration": "none",
    "min_references": 1,
    "missing": "undecided",
    "reward": "collapsed-binary",
    "shape": "binary",
    "buckets": 10,
    "split": "0.5",
    "weight": "0.5",
}
"""Every field of a criterion with its default; a default never changes."""
MODULES = (
    *(
        "__init__",
        "checks",
        "cli",
        "durations",
        "facts",
        "graded_runs",
        "judging",
        "known",
        "mapping",
        "package_limits",
        "replay",
        "report",
        "scores",
    ),
    *("sources", "student_t", "tables"),
)
"""The modules that travel as the package `lapbundle.replayer`."""
PARTS = (
    r"tables\.json|verdicts\.parquet|lapbundle/interface\.py",
    rf"lapbundle/replayer/({'|'.join(MODULES)})\.py",
)
"""The parts of a campaign's bundle beside those that every bundle has."""
