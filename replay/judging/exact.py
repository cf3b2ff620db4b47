"""Exact arithmetic on arrays: shares rounded up, logarithms in whole steps, comparison of rationals.

No float decides here, so programs are in the same order on every machine.
"""

import math
from decimal import Context, Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]
Numbers = npt.NDArray[Any]
"""int64, or Python's whole numbers where a product may be larger."""
Score = tuple[Numbers, Numbers]
"""Numerators and positive denominators."""

LOG_STEPS = 2**16
"""A logarithm to base 2 is a whole number of these steps."""
LARGEST = 2**62
"""Products below this never overflow int64, nor does their double."""
_HARD = 1e-6  # steps; float64 log2 times 2**16 errs by less than 1e-9, so only such middles can round wrongly
_PRECISE = Context(prec=60)


def ceil_share(share: Fraction, size: Ints) -> Ints:
    """The smallest whole number [K] that is at least a share of a size [K]."""
    sizes, index = np.unique(size, return_inverse=True)
    return np.array([math.ceil(share * int(n)) for n in sizes], dtype=np.int64)[index]


def log_steps(values: Ints) -> Ints:
    """Logarithms to base 2 of positive whole numbers, in steps of 2^-16, correctly rounded.

    A float logarithm within _HARD of the middle between two steps is recomputed to 60 digits.
    """
    steps = np.log2(values.astype(np.float64)) * LOG_STEPS
    nearest = np.floor(steps + 0.5).astype(np.int64)
    for cell in zip(*np.nonzero(np.abs(steps + 0.5 - np.rint(steps + 0.5)) < _HARD), strict=True):
        exact = _PRECISE.ln(Decimal(int(values[cell]))) / _PRECISE.ln(Decimal(2)) * LOG_STEPS
        nearest[cell] = math.floor(exact + Decimal("0.5"))
    return nearest


def below(mine: Score, theirs: Score) -> tuple[Bools, Bools]:
    """Whether each of their scores [M, N] is smaller, and smaller or equal, than mine [M].

    By cross-multiplication, as denominators are positive; in Python's whole numbers where a product might overflow.
    """
    (num, den), (their_num, their_den) = (mine[0][:, None], mine[1][:, None]), theirs
    if _largest(num, their_num) * _largest(den, their_den) >= LARGEST:
        num, den, their_num, their_den = (part.astype(object) for part in (num, den, their_num, their_den))
    left, right = their_num * den, num * their_den
    return (left < right).astype(np.bool_), (left <= right).astype(np.bool_)


def among(mine: Score, theirs: Score) -> tuple[Ints, Ints]:
    """How many of the same scores [N] are smaller, and smaller or equal, than each of mine [M]."""
    (num, den), (their_num, their_den) = mine, theirs
    common = int(their_den[0]) if len(their_den) else 1
    small = all(part.dtype != object for part in (*mine, *theirs)) and _largest(num) * common < LARGEST
    if not small or (their_den != common).any():
        smaller, no_larger = below(mine, (np.broadcast_to(their_num, (len(num), len(their_num))), their_den[None, :]))
        return smaller.sum(axis=1, dtype=np.int64), no_larger.sum(axis=1, dtype=np.int64)
    # their_num / one < num / den is their_num < num * one / den, and so at most the whole number below that
    floor, rest = np.divmod(num * common, den)
    rising = np.sort(their_num)
    upto = np.searchsorted(rising, floor, "right")
    less = np.where(rest == 0, np.searchsorted(rising, floor, "left"), upto)
    return less, upto


def _largest(*parts: Numbers) -> int:
    return max((int(abs(part).max()) for part in parts if part.size), default=0)
