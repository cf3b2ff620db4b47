"""Merits of a map where each problem was excluded of its own fit, against no map at all, and when a map is refused.

A high R^2 alone proves nothing: least squares sees the long tests only. So errors are relative, and given in percentile
points as well. Nothing is fitted here.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from lapledger.replay.calibration.maps import Maps
from lapledger.replay.calibration.pairs import Match
from lapledger.replay.correlation import SAME, spearman
from lapledger.replay.judging.ranks import versus
from lapledger.replay.measurements import Bools, Floats

NAN = float("nan")
LEAST_R2 = 0.9
"""A drift of one service leaves far more (0.9933 was published); a map between unlike machines leaves less."""
LEAST_FALL = 0.01
"""By how much a rank correlation must fall to count as worse."""


@dataclass(frozen=True, slots=True)
class Merits:
    """The merits of one way to use stored references; nan when unknown."""

    r2: float = NAN
    error: float = NAN  # median relative error
    spearman: float = NAN  # of stored against fresh reference scores
    points: float = NAN  # mean move of a fresh reference's mean percentile, others as predicted, not as re-run


UNKNOWN = Merits()
"""Of a map that was not evaluated, or whose merits were not recorded."""


@dataclass(frozen=True, slots=True, eq=False)
class Trial:
    """Pairs of both campaigns, and all that is the same whatever the map."""

    matches: Sequence[Match]
    x: Floats  # [n] stored
    y: Floats  # [n] fresh
    group: np.ndarray[tuple[int, ...], np.dtype[np.int64]]  # [n] number of the problem
    old: Floats  # [R] score of each re-run reference's stored durations in the stored pool
    rerun: Floats  # [R] of its fresh durations among the others' fresh ones

    @classmethod
    def of(cls, matches: Sequence[Match]) -> "Trial":
        """The trial of matches that have at least one pair each."""
        x, y = (np.concatenate([durations[m.both] for m, durations in pairs]) for pairs in _durations(matches))
        group = np.repeat(np.arange(len(matches)), [int(m.both.sum()) for m in matches])
        old = [scores(m.stored, m.both, m.pool, m.rankers) for m in matches]
        rerun = [scores(m.fresh, m.both, m.fresh, m.rankers[:, m.pool_rows]) for m in matches]
        return cls(matches, x, y, group, np.concatenate(old), np.concatenate(rerun))

    def without_map(self) -> Merits:
        """The merits of no map: stored durations as they are."""
        return self._merits(self.x, [m.pool for m in self.matches])

    def with_maps(self, maps: Maps) -> Merits:
        """The merits of maps, each problem by the one that left it out."""
        pools = [maps.without(g, m.pool) for g, m in enumerate(self.matches)]
        return self._merits(maps.out_of_fold(self.x, self.group), pools)

    def _merits(self, predicted: Floats, pools: Sequence[Floats]) -> Merits:
        among = [scores(m.fresh, m.both, pool, m.rankers) for m, pool in zip(self.matches, pools, strict=True)]
        moved = [
            scores(m.fresh, m.both, pool[m.pool_rows], m.rankers[:, m.pool_rows])
            for m, pool in zip(self.matches, pools, strict=True)
        ]
        return Merits(*errors(self.y, predicted), self._spearman(among), self._points(moved))

    def _spearman(self, among: Sequence[Floats]) -> float:
        fresh = np.concatenate(among)
        seen = ~np.isnan(self.old + fresh)
        return spearman(self.old[seen], fresh[seen])

    def _points(self, moved: Sequence[Floats]) -> float:
        apart = np.abs(np.concatenate(moved) - self.rerun)
        known = apart[~np.isnan(apart)]
        return float(100 * known.mean()) if len(known) else NAN


def _durations(matches: Sequence[Match]) -> tuple[list[tuple[Match, Floats]], list[tuple[Match, Floats]]]:
    return [(m, m.stored) for m in matches], [(m, m.fresh) for m in matches]


def errors(y: Floats, predicted: Floats) -> tuple[float, float]:
    """(R^2, median relative error) of predictions of y [n]; R^2 is nan where y does not vary."""
    left, spread = float(((y - predicted) ** 2).sum()), float(((y - y.mean()) ** 2).sum())
    relative = float(np.median(np.abs(predicted - y) / np.maximum(y, 1)))
    return 1 - left / spread if spread > 0 else NAN, relative


def scores(mine: Floats, valid: Bools, pool: Floats, rankers: Bools) -> Floats:
    """Mean over the valid tests of the percentile / 100 among the others' finished durations [n]; nan without any.

    Ranks are counted, and each mean is the float nearest to its fraction: equal scores are equal floats.
    """
    size = rankers.astype(np.int64) @ (~np.isnan(pool)).astype(np.int64)  # [n, t]
    pairwise = versus(mine[:, None, :], pool[None, :, :]) * rankers[:, :, None]
    counts = valid & (size > 0)
    ranks, size = (np.where(counts, part, 0) for part in (pairwise.sum(axis=1, dtype=np.int64), size))
    largest = size.max(axis=1, initial=0)
    with np.errstate(divide="ignore", invalid="ignore"):
        means = np.asarray(ranks.sum(axis=1) / (2 * largest * counts.sum(axis=1)))
    for row in np.flatnonzero((counts & (size != largest[:, None])).any(axis=1)):
        means[row] = _share(ranks[row, counts[row]].tolist(), size[row, counts[row]].tolist())
    return means


def _share(ranks: list[int], sizes: list[int]) -> float:
    """The mean of ranks / (2 sizes), rounded once."""
    common = math.lcm(*sizes)
    return sum(rank * (common // size) for rank, size in zip(ranks, sizes, strict=True)) / (2 * common * len(ranks))


def refusal(maps: Maps, merits: Merits, unmapped: Merits) -> str:
    """Why a map must not be used; empty when it may.

    It must rise, and out of fold beat no map in relative error, misplace references by no more percentile points, order
    them no worse, and follow the fresh durations (LEAST_R2). What is unknown refuses nothing: where no problem has two
    references there are neither points nor an order, and the rest decides.
    """
    if maps.a <= 0 or maps.power <= 0:
        return f"slope {maps.a if maps.a <= 0 else maps.power:.3g} is not positive"
    if not _less(merits.error, unmapped.error):
        return f"held-out median relative error {merits.error:.3g} vs {unmapped.error:.3g} uncalibrated"
    if _less(unmapped.points, merits.points):
        points = f"{merits.points:.3g} vs {unmapped.points:.3g} uncalibrated"
        return f"held-out percentile error {points}"
    if _less(merits.spearman, unmapped.spearman - LEAST_FALL):
        order = f"{merits.spearman:.3g} vs {unmapped.spearman:.3g} uncalibrated"
        return f"held-out Spearman correlation {order}"
    if merits.r2 < LEAST_R2:
        return f"held-out R squared {merits.r2:.3g} is below {LEAST_R2}: not explained by machine drift"
    return ""


def _less(a: float, b: float) -> bool:
    """Whether a lies below b by more than rounding; not so where one of them is unknown."""
    return a < b and not math.isclose(a, b, rel_tol=SAME)
