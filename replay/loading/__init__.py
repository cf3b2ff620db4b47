"""The one package of this room that reads the ledger: stored facts in, dense measurements and derived facts out.

The online rewarder and every offline replay call these same functions. Nothing is appended here, and nothing depends on
a clock: the same ledger at the same cut gives the same snapshot for ever.
"""

from lapledger.replay.loading.derived import (
    evidence,
    is_closed,
    judge_all,
    pooled,
    prepared,
    references_digest,
    reward_id,
    rewards,
)
from lapledger.replay.loading.sharing import borrowed, executed_by, false_shares
from lapledger.replay.loading.snapshots import KERNEL, MAIN, Calibration, Snapshot, find_campaign, load, load_problems

__all__ = [
    "KERNEL",
    "MAIN",
    "Calibration",
    "Snapshot",
    "borrowed",
    "evidence",
    "executed_by",
    "false_shares",
    "find_campaign",
    "is_closed",
    "judge_all",
    "load",
    "load_problems",
    "pooled",
    "prepared",
    "references_digest",
    "reward_id",
    "rewards",
]
