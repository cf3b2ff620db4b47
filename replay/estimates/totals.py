"""Total times of programs, from and to, and what the median, best or worst of some of them is at least and at most.

Read as ranks read durations: a killed run took longer than its bound, a crashed or wrong one has no duration at all,
and one that was never seen may have any. Nobody is compared here.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from lapledger.replay.criteria import Criterion
from lapledger.replay.errors import ReplayError
from lapledger.replay.judging.gates import Status, Verdicts
from lapledger.replay.judging.ranks import FAILED, KILLED, spans
from lapledger.replay.measurements import ABSENT, Bools, Bytes, Ints, Outcome, ProblemMeasurements, read

READINGS = ("median", "best", "worst")
"""WR_m compares the median sample's speed, WR_b the best's; one source reads WR_b as the worst's."""
ENDLESS = 2**62
"""The end of a total that has no known end."""


@dataclass(frozen=True, slots=True, eq=False)
class Totals:
    """Total times over all tests [n] in half ns, so that a run killed at its limit took one more than it."""

    low: Ints
    high: Ints  # ENDLESS where no end is known
    there: Bytes  # 1 a correct program with a duration on every test, 0 not, -1 undecided

    def of(self, rows: Bools) -> "Totals":
        """Those of some programs that are there, or may be."""
        kept = rows & (self.there != 0)
        return Totals(self.low[kept], self.high[kept], self.there[kept])


def totals(v: Verdicts, m: ProblemMeasurements, criterion: Criterion) -> Totals:
    """The total times of every program of one problem [P].

    Not there is a program that is not correct, that crashed or went wrong on some test, or whose finished run has no
    duration recorded; perhaps there one whose correctness is undecided, or that has no result on some test.
    """
    readings = read(m, criterion)
    low, high = spans(readings, criterion)
    unseen = readings.outcome == Outcome.MISSING
    gone = (low == FAILED) & ~unseen
    gone |= (readings.outcome == Outcome.WRONG_ANSWER) | (~unseen & (readings.duration_ns == ABSENT) & (high == FAILED))
    gone |= unseen & (criterion.missing == "fail")
    never, perhaps = gone.any(axis=1) | (v.c == Status.FAIL), unseen.any(axis=1) | (v.c == Status.UNDECIDED)
    ends = np.where((high < KILLED).all(axis=1), np.where(high < KILLED, high, 0).sum(axis=1), ENDLESS)
    starts = np.where(unseen | gone, 0, np.maximum(low, 0)).sum(axis=1)
    return Totals(starts, ends, np.where(never, 0, np.where(perhaps, -1, 1)).astype(np.int8))


def bounds_of(program_totals: Totals, reading: str) -> tuple[int, int] | None:
    """Twice the median, best or worst total at least and at most, whichever of the undecided programs are there.

    None where no program is there for certain. ReplayError for another reading.
    """
    if reading not in READINGS:
        raise ReplayError(f"win rate: no reading {reading!r}; use one of {', '.join(READINGS)}")
    sure = program_totals.there == 1
    if not sure.any():
        return None
    least = _extreme(np.sort(program_totals.low[sure]), np.sort(program_totals.low[~sure]), reading, min)
    most = _extreme(np.sort(program_totals.high[sure]), np.sort(program_totals.high[~sure])[::-1], reading, max)
    return least, most


def _extreme(sure: Ints, perhaps: Ints, reading: str, choose: Callable[[list[int]], int]) -> int:
    """The smallest or largest reading of the sure values with the first 0, 1, 2, ... of the others, best first.

    Of so many others the first ones are the extreme: each reading grows with each value.
    """
    return choose([twice(np.sort(np.concatenate([sure, perhaps[:n]])), reading) for n in range(len(perhaps) + 1)])


def twice(rising: Ints, reading: str) -> int:
    """Twice the median, best or worst of a rising list; ENDLESS at most."""
    n = len(rising)
    low, high = {"median": ((n - 1) // 2, n // 2), "best": (0, 0), "worst": (n - 1, n - 1)}[reading]
    return int(rising[low]) + int(rising[high])
