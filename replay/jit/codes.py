"""The numbers in which compiled code is asked and answers: outcomes, ends of spans, and places in small arrays."""

from typing import Any

import numpy.typing as npt

KILLED, FAILED_REFERENCE, FAILED = 2**62, 2**62 + 1, 2**62 + 2  # as in `ranks`, which numba cannot look into
MISSING, OK, WRONG_ANSWER, TIME_LIMIT, UNTOLD = 0, 1, 2, 6, 7  # of `Outcome`
NO_LIMIT = -1
FEW = 128  # references up to here are compared one after another

Array = npt.NDArray[Any]

# What a criterion asks, as places in one array of whole numbers: few arguments make compiled code quick to call.
LIMIT_NS, ALLOWED, HAS_LIMITS, TOLERATED, RANKS_WRONG, MISSING_FAILS = 0, 1, 2, 3, 4, 5
LESS_WEIGHT, UPTO_WEIGHT, RANKED, LEADERBOARD, MOST = 6, 7, 8, 9, 10
ASKED = 11

# What is found of each program, as rows of one array.
CORRECT, IN_TIME, BEYOND, IDLE, SIZE, Q_LO, Q_HI, Q_DEN, OVER, NOT_WITHIN, SOUND = 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10
FOUND = 11
