"""Pairwise speed between two models on the same problems, where tests are too short for percentiles.

Durations of one campaign only: candidates are never mapped into another. Ties, left-out problems and those that hang on
what was never seen are named; intervals over problems, intervals over training runs and bounds stand apart.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from lapledger.replay.criteria import Criterion
from lapledger.replay.estimates.intervals import Interval, bootstrap, wilson_interval
from lapledger.replay.estimates.totals import Totals, bounds_of, totals
from lapledger.replay.estimates.trainings import pairs_over_runs
from lapledger.replay.judging.gates import Verdicts, one_campaign
from lapledger.replay.measurements import Floats, ProblemMeasurements

WON, TIED, LOST, OPEN = -1, 0, 1, 2
"""A is faster, a tie, B is faster, and undecided: it depends on what was never seen."""


@dataclass(frozen=True, slots=True)
class WinRate:
    """How often A is faster than B, problem by problem."""

    reading: str
    problems: int  # that both arms have samples of
    samples: tuple[int, int]  # that are correct or may be, of the problems compared
    wins: int
    losses: int
    ties: tuple[str, ...]  # problems
    undecided: tuple[str, ...]  # problems where killed or missing runs, or undecided samples, leave open who is faster
    excluded: tuple[str, ...]  # every other problem: one arm has no correct sample of it, or none at all
    value: float | None  # wins / (wins + losses); None where nothing is won or lost
    bounds: Interval | None  # with every undecided problem lost, and won; None where there is none
    interval: Interval | None  # Wilson's, 95%, over problems
    bootstrapped: Interval | None
    over_runs: Interval | None  # 95% over training runs, of the mean rate of a run of A over one of B; None with one
    by_run: float | None  # that mean rate; None where some pair has won and lost nothing


def speeds(
    verdicts: Sequence[Verdicts],
    measurements: Sequence[ProblemMeasurements],
    criterion: Criterion,
    runs: Sequence[str],
) -> dict[str, Totals]:
    """Problem -> total times of the samples of some models that are correct, or may be; every problem they have.

    A sample's speed is the sum of its durations over all tests; one with a crashed or wrong run has none, and a killed
    run took longer than its limit. None on a problem that left the environment. ReplayError for several campaigns.
    """
    one_campaign(measurements)
    by_problem = {}
    for v, m in zip(verdicts, measurements, strict=True):
        mine = m.candidate & np.isin(np.array(m.models), list(runs))
        if mine.any():
            by_problem[m.problem] = totals(v, m, criterion).of(mine & (not v.excluded))
    return by_problem


def win_rate(
    a: Sequence[Mapping[str, Totals]],
    b: Sequence[Mapping[str, Totals]],
    reading: str,
    rng: np.random.Generator | None = None,
) -> WinRate:
    """The win rate of A over B, the training runs of each arm, by the median, best or worst correct sample.

    The samples of an arm's runs are pooled on each problem, which is the unit of the interval over problems.
    Medians of an even count are compared exactly, as sums of the two middle times. ReplayError for another reading.
    """
    mine, theirs = (_together(arm) for arm in (a, b))
    signs = _signs(mine, theirs, reading)
    named = {sign: tuple(p for p, outcome in signs.items() if outcome == sign) for sign in (WON, TIED, LOST, OPEN)}
    wins, losses, open_ = (len(named[sign]) for sign in (WON, LOST, OPEN))
    decided = np.array([sign == WON for sign in signs.values() if sign in (WON, LOST)], dtype=np.float64)
    settled = np.array([sign for sign in signs.values() if sign != OPEN], dtype=np.float64)
    by_pair = np.array([[_rate(_signs(run_a, run_b, reading)) for run_b in b] for run_a in a])
    by_run, over_runs = pairs_over_runs(by_pair)
    return WinRate(
        reading,
        problems=len([p for p in mine if p in theirs]),
        samples=(sum(len(mine[p].there) for p in signs), sum(len(theirs[p].there) for p in signs)),
        wins=wins,
        losses=losses,
        ties=named[TIED],
        undecided=named[OPEN],
        excluded=tuple(sorted({*mine, *theirs} - set(signs))),
        value=wins / (wins + losses) if wins + losses else None,
        bounds=(wins / (wins + losses + open_), (wins + open_) / (wins + losses + open_)) if open_ else None,
        interval=wilson_interval(decided),
        bootstrapped=None if rng is None or not len(settled) else _bootstrapped(settled, rng),
        over_runs=over_runs,
        by_run=by_run,
    )


def _together(arm: Sequence[Mapping[str, Totals]]) -> dict[str, Totals]:
    """The samples of all training runs of an arm on each problem that one of them has."""
    by_problem = {}
    for problem in dict.fromkeys(p for run in arm for p in run):
        parts = [run[problem] for run in arm if problem in run]
        by_problem[problem] = Totals(
            *(np.concatenate([getattr(part, name) for part in parts]) for name in Totals.__slots__)
        )
    return by_problem


def _signs(a: Mapping[str, Totals], b: Mapping[str, Totals], reading: str) -> dict[str, int]:
    """Problem -> WON, TIED, LOST or OPEN, where both arms have a sample that is correct or may be."""
    return {p: _sign(a[p], b[p], reading) for p in a if p in b and len(a[p].there) and len(b[p].there)}


def _sign(a: Totals, b: Totals, reading: str) -> int:
    mine, theirs = bounds_of(a, reading), bounds_of(b, reading)
    if mine is None or theirs is None:
        return OPEN
    if mine[1] < theirs[0]:
        return WON
    if theirs[1] < mine[0]:
        return LOST
    return TIED if mine[0] == mine[1] == theirs[0] == theirs[1] else OPEN


def _rate(signs: Mapping[str, int]) -> float:
    """Wins of wins and losses; nan where there is neither."""
    won, lost = (sum(sign == outcome for sign in signs.values()) for outcome in (WON, LOST))
    return won / (won + lost) if won + lost else math.nan


def _bootstrapped(signs: Floats, rng: np.random.Generator) -> Interval | None:
    """The 95% interval when problems are resampled, ties among them; None where a resample may hold ties only."""

    def rate(drawn: Floats) -> Floats:
        wins, losses = (drawn < 0).sum(axis=-1), (drawn > 0).sum(axis=-1)
        return np.where(wins + losses > 0, wins / np.maximum(wins + losses, 1), -1.0)

    interval = bootstrap([signs], rate, rng)
    return None if interval is None or min(interval) < 0 else interval
