"""What compiled code shares: the one place that knows numba, and the numbers by which arrays go in and come out.

Machine code is kept in files beside the sources, or in the user's cache folder, so that it is made once for a release.
A kept file holds the constants and functions that a function names, but is renewed by the age and size of its own
source alone: a change here or in `runs` takes one in `evaluation` too.
"""

from collections.abc import Callable
from typing import Any, TypeVar

import numba
import numpy.typing as npt

KILLED, FAILED_REFERENCE, FAILED = 2**62, 2**62 + 1, 2**62 + 2  # as in `ranks`, whose names numba cannot read
MISSING, OK, WRONG_ANSWER, TIME_LIMIT, UNSPECIFIED_FAILURE = 0, 1, 2, 6, 7  # of `Outcome`
NO_LIMIT = -1
FEW = 128  # references up to here are compared one after another

Array = npt.NDArray[Any]

# A criterion, as positions in one array of whole numbers: few arguments make compiled code fast to call.
LIMIT_NS, ALLOWED, HAS_LIMITS, TOLERATED, RANKS_WRONG, MISSING_FAILS = 0, 1, 2, 3, 4, 5
LESS_WEIGHT, UPTO_WEIGHT, RANKED, LEADERBOARD, MOST = 6, 7, 8, 9, 10
PARAMETERS = 11

# The results of each program, as rows of one array.
CORRECT, IN_TIME, CENSORED_BELOW_LIMIT, NONE_FINISHED, SIZE, Q_LO, Q_HI, Q_DEN, OVER, NOT_WITHIN, NO_CRASH = (
    0,
    1,
    2,
    3,
    4,
    5,
    6,
    7,
    8,
    9,
    10,
)
RESULTS = 11

F = TypeVar("F", bound=Callable[..., Any])


def jit(function: F) -> F:
    """The same function, compiled when it is called first; it lets other threads run."""
    compiled: F
    try:
        compiled = numba.njit(cache=True, nogil=True)(function)
    except RuntimeError:  # no folder to keep it in: recreated in every process
        compiled = numba.njit(nogil=True)(function)
    return compiled
