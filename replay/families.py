"""The family of a criterion: where its speed constraint enters. Matrices and pictures group criteria by it.

A family is read from the fields alone, so that a criterion of one's own has one too. No measurement is looked at.
"""

from lapledger.replay.criteria import Criterion

FAMILIES = (
    "correctness only",
    "raw duration",
    "pre-execution",
    "absolute timeout",
    "relative timeout",
    "ranked-worst",
    "leaderboard ranking",
    "per-test ranking",
)
"""Every family, in the order in which tables and pictures show them."""


def family(criterion: Criterion) -> str:
    """The family's name. Limits go before filters, filters before the reading; p_100 is the end of its ranking."""
    if criterion.limit_ranked is not None:
        return "ranked-worst"
    if criterion.limit_quantile is not None:
        return "relative timeout"
    if criterion.limit_ms is not None or criterion.timeout_ms is not None:
        return "absolute timeout"
    if criterion.filters:
        return "pre-execution"
    by_reading = {"leaderboard": "leaderboard ranking", "score": "per-test ranking", "raw-duration": "raw duration"}
    return by_reading.get(criterion.reading, "correctness only")
