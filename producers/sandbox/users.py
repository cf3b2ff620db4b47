"""Users of their own for the programs of a root worker: ranges that no other worker on this machine uses meanwhile.

A lock on a file stands for a range. No user is made: the kernel knows numbers only. No process is started here.
"""

import fcntl
import os
from functools import cache
from pathlib import Path

from lapledger.ledger.errors import UserError

FIRST_UID, RANGE, RANGES = 60_000, 256, 64
NOBODY = 65_534
_CLAIMS = Path("/run/lapledger")


@cache
def claim_users() -> int:
    """The first user of a range that is this process's alone until it ends; the same range at each call.

    The kernel counts processes by user, so two workers with the same users would use up each other's limit.
    Raises UserError when all ranges are taken.
    """
    for first in range(FIRST_UID, FIRST_UID + RANGES * RANGE, RANGE):
        if NOBODY in range(first, first + RANGE):
            continue
        try:
            _CLAIMS.mkdir(mode=0o700, exist_ok=True)
            claim = os.open(_CLAIMS / str(first), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        except OSError:
            return first  # without a folder for locks workers cannot know of each other: all use the first range
        try:
            fcntl.flock(claim, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(claim)
            continue
        return first  # the descriptor stays open: the kernel gives the lock back when the process ends
    raise UserError(f"all {RANGES - 1} ranges of users are taken by other runs: wait until one ends")
