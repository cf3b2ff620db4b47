"""The one package of this room that reads the ledger: stored facts in, dense measurements and derived facts out.

The online rewarder and every offline replay call these same functions. Nothing is appended here, and nothing depends on
a clock: the same ledger at the same cut gives the same snapshot permanently.
"""

from lapledger.replay.loading.calibrations import Calibration, find_calibration, stored_calibration
from lapledger.replay.loading.derived import evidence, is_closed, references_digest, reward_id, rewards
from lapledger.replay.loading.judged_campaign import (
    JudgedCampaign,
    MeasuredCampaign,
    judge_campaign,
    judge_snapshot,
    measure_campaign,
    prepare,
    prepare_problem,
)
from lapledger.replay.loading.sharing import executed_by, false_shares, shared_executions
from lapledger.replay.loading.snapshots import KERNEL, MAIN, Snapshot, find_campaign, load

__all__ = [
    "KERNEL",
    "MAIN",
    "Calibration",
    "JudgedCampaign",
    "MeasuredCampaign",
    "Snapshot",
    "evidence",
    "executed_by",
    "false_shares",
    "find_calibration",
    "find_campaign",
    "is_closed",
    "judge_campaign",
    "judge_snapshot",
    "load",
    "measure_campaign",
    "prepare",
    "prepare_problem",
    "references_digest",
    "reward_id",
    "rewards",
    "shared_executions",
    "stored_calibration",
]
