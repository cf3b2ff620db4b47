"""Pairwise speed between two makers on the same problems, where tests are too short for percentiles.

Durations of one campaign only: candidates are never mapped into another. Ties and left-out problems are named.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from replay.criteria import Criterion
from replay.errors import ReplayError
from replay.estimates.intervals import Interval, bootstrap, wilson_interval
from replay.judging.gates import Status, Verdicts, one_campaign
from replay.measurements import ABSENT, Floats, Ints, ProblemMeasurements, durations

READINGS = ("median", "best", "worst")
"""WR_m compares the median sample's speed, WR_b the best's; one source reads WR_b as the worst's."""


@dataclass(frozen=True, slots=True)
class WinRate:
    """How often A is faster than B, problem by problem."""

    reading: str
    problems: int  # that both sides have samples of
    samples: tuple[int, int]  # correct ones, of the problems compared
    wins: int
    losses: int
    ties: tuple[str, ...]  # problems
    left_out: tuple[str, ...]  # problems where one side has no correct sample
    value: float | None  # wins / (wins + losses); None where all are ties
    interval: Interval | None  # Wilson's, 95%, over problems
    bootstrapped: Interval | None


def speeds(
    verdicts: Sequence[Verdicts],
    measurements: Sequence[ProblemMeasurements],
    criterion: Criterion,
    runs: Sequence[str],
) -> dict[str, Ints]:
    """Problem -> total durations [n] in ns, rising, of the correct samples of some makers; every problem they have.

    A sample's speed is the sum of its durations over all tests; one that lacks a duration is left out. ReplayError for
    several campaigns.
    """
    one_campaign(measurements)
    found = {}
    for v, m in zip(verdicts, measurements, strict=True):
        mine = m.candidate & np.isin(np.array(m.makers), list(runs))
        if not mine.any() or v.left_out:
            continue
        read = durations(m, criterion)[mine & (v.c == Status.PASS)]
        found[m.problem] = np.sort(read[(read != ABSENT).all(axis=1)].sum(axis=1))
    return found


def win_rate(
    a: Mapping[str, Ints],
    b: Mapping[str, Ints],
    reading: str,
    rng: np.random.Generator | None = None,
) -> WinRate:
    """The win rate of A over B by the median, best or worst correct sample of each problem that both have.

    Medians of an even count are compared exactly, as sums of the two middle durations.
    """
    shared = [problem for problem in a if problem in b]
    compared = [problem for problem in shared if len(a[problem]) and len(b[problem])]
    signs = np.array([_sign(a[problem], b[problem], reading) for problem in compared], dtype=np.float64)
    wins, losses = int((signs < 0).sum()), int((signs > 0).sum())
    decided = (signs[signs != 0] < 0).astype(np.float64)
    return WinRate(
        reading,
        problems=len(shared),
        samples=(sum(len(a[p]) for p in compared), sum(len(b[p]) for p in compared)),
        wins=wins,
        losses=losses,
        ties=tuple(p for p, sign in zip(compared, signs.tolist(), strict=True) if sign == 0),
        left_out=tuple(problem for problem in shared if problem not in set(compared)),
        value=wins / (wins + losses) if wins + losses else None,
        interval=wilson_interval(decided),
        bootstrapped=None if rng is None else _bootstrapped(signs, rng),
    )


def _sign(a: Ints, b: Ints, reading: str) -> int:
    """-1 where A is faster, 1 where B is, 0 where neither."""
    mine, theirs = _twice(a, reading), _twice(b, reading)
    return (mine > theirs) - (mine < theirs)


def _twice(rising: Ints, reading: str) -> int:
    """Twice the median, best or worst duration of a rising list."""
    if reading not in READINGS:
        raise ReplayError(f"win rate: no reading {reading!r}; use one of {', '.join(READINGS)}")
    n = len(rising)
    low, high = {"median": ((n - 1) // 2, n // 2), "best": (0, 0), "worst": (n - 1, n - 1)}[reading]
    return int(rising[low]) + int(rising[high])


def _bootstrapped(signs: Floats, rng: np.random.Generator) -> Interval | None:
    """Problems drawn anew, ties among them; None where a resample may hold nothing but ties."""

    def rate(drawn: Floats) -> Floats:
        wins, losses = (drawn < 0).sum(axis=-1), (drawn > 0).sum(axis=-1)
        return np.where(wins + losses > 0, wins / np.maximum(wins + losses, 1), -1.0)

    found = bootstrap([signs], rate, rng)
    return None if found is None or min(found) < 0 else found
