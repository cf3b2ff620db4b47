"""A fitted map with its merits: what is stored, and what `apply` uses.

Every kind is fitted on the same pairs and judged against no map at all; which of several is kept is decided here too.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from lapledger.replay.calibration.maps import KINDS, Maps, mapped
from lapledger.replay.calibration.merits import NAN, UNKNOWN, Merits, Trial, refusal
from lapledger.replay.calibration.pairs import match
from lapledger.replay.criteria import Criterion
from lapledger.replay.errors import ReplayError
from lapledger.replay.measurements import Bools, Floats, Ints, ProblemMeasurements


@dataclass(frozen=True, slots=True)
class Fit:
    """fresh = a * stored ** power + b, with its merits where each problem was excluded of its own fit."""

    a: float
    b_ns: float
    pairs: int  # (reference, test) measured in both campaigns
    problems: int
    clock: str  # what the map holds for
    estimator: str
    startup: str
    merits: Merits = UNKNOWN  # of the map, out of fold
    unmapped: Merits = UNKNOWN  # of no map
    refused: str = ""  # why the map must not be used
    kind: str = "affine"
    power: float = 1.0
    low_ns: int | None = None  # shortest stored duration that was fitted; None where it was not recorded
    high_ns: int | None = None  # longest
    moved: int | None = None  # stored durations of references that were not re-run: what it is there for
    outside: int | None = None  # of these, how many lie below the shortest or above the longest fitted

    def extrapolates(self, stored_ns: Ints) -> Bools:
        """Which stored durations lie outside the fitted range, of the shape given; none where no range was recorded."""
        if self.low_ns is None or self.high_ns is None:
            return np.zeros(np.shape(stored_ns), dtype=np.bool_)
        return (stored_ns < self.low_ns) | (stored_ns > self.high_ns)


def fit_kinds(
    stored: Sequence[ProblemMeasurements],
    fresh: Sequence[ProblemMeasurements],
    criterion: Criterion,
    kinds: Sequence[str] = tuple(KINDS),
    *,
    on_progress: Callable[[str], None] = lambda _kind: None,
) -> list[Fit]:
    """The maps of some kinds from stored to fresh durations in ns, fitted on the references measured in both campaigns.

    Over the optimization tests, pairs that finished in both campaigns. Refused, with the reason: fewer than 3 pairs or
    2 problems, a map that does not rise, or no gain over no map, out of fold, in relative error or in percentile
    points. `on_progress` is called with each kind when it is done. ReplayError for an unknown kind, or when a problem
    appears twice in one campaign.
    """
    for kind in kinds:
        if kind not in KINDS:
            raise ReplayError(f"calibration: no kind {kind!r}; use one of {', '.join(KINDS)}")
    every = match(stored, fresh, criterion)
    matches = [pair_set for pair_set in every if pair_set.both.any()]
    of = (criterion.clock, criterion.estimator, criterion.startup)
    pairs = sum(int(pair_set.both.sum()) for pair_set in matches)
    plain = Fit(NAN, NAN, pairs, len(matches), *of)
    if pairs < 3 or len(matches) < 2:
        reason = f"{pairs} pairs on {len(matches)} problems: at least 3 on 2 are needed"
        return [replace(plain, kind=kind, refused=reason) for kind in kinds]
    trial = Trial.of(matches)
    plain = _ranged(plain, trial.x, np.concatenate([pair_set.moved for pair_set in every]))
    unmapped = trial.without_map()
    fits = []
    for kind in kinds:
        fits.append(_fit(replace(plain, kind=kind), trial, unmapped))
        on_progress(kind)
    return fits


def best(fits: Sequence[Fit]) -> Fit:
    """The one to keep: usable before refused, fewest percentile points, then smallest error, then the plainest kind.

    Figures that agree to 0.001 points and a millionth of relative error count as equal. ReplayError without any fit.
    """
    if not fits:
        raise ReplayError("calibration: no fit to choose from; name at least one kind")
    order = list(KINDS)

    def key(fit: Fit) -> tuple[bool, float, float, int]:
        figures = [np.inf if np.isnan(v) else v for v in (fit.merits.points, fit.merits.error)]
        return bool(fit.refused), round(figures[0], 3), round(figures[1], 6), order.index(fit.kind)

    return min(fits, key=key)


def apply(fit: Fit, stored_ns: Ints) -> Ints:
    """Mapped durations in whole ns, at least 1, of the shape given. ReplayError when the fit is refused.

    A duration outside the fitted range is mapped by the same formula; `Fit.extrapolates` says which are.
    """
    if fit.refused:
        raise ReplayError(f"calibration refused ({fit.refused}); judge with calibration 'none'")
    x = np.asarray(np.maximum(stored_ns, 0) if fit.power != 1 else stored_ns, dtype=np.float64)
    rounded: Ints = np.maximum(np.rint(mapped(x, fit.a, fit.b_ns, fit.power)), 1).astype(np.int64)
    return rounded


def formula(a: float, b_ns: float, power: float = 1.0) -> str:
    """The map as text, b in ms."""
    stored = "stored" if power == 1 else f"stored ** {power:.4f}"
    return f"fresh = {a:.4g} * {stored}" + (f" {b_ns / 1e6:+.2f} ms" if b_ns else "")


def _ranged(plain: Fit, x: Floats, moved: Floats) -> Fit:
    ranged = replace(plain, low_ns=int(x.min()), high_ns=int(x.max()), moved=len(moved))
    return replace(ranged, outside=int(ranged.extrapolates(moved.astype(np.int64)).sum()))


def _fit(plain: Fit, trial: Trial, unmapped: Merits) -> Fit:
    maps = KINDS[plain.kind].fit(trial.x, trial.y, trial.group)
    fit = replace(plain, a=maps.a, b_ns=maps.b, power=maps.power, unmapped=unmapped)
    if not maps.is_known:
        return replace(_lineless(fit, maps), refused="the stored durations do not differ without one of the problems")
    merits = trial.with_maps(maps)
    return replace(fit, merits=merits, refused=refusal(maps, merits, unmapped))


def _lineless(fit: Fit, maps: Maps) -> Fit:
    """An unknown power is stored as 1: the coefficient nan beside it says that there is no line."""
    return fit if np.isfinite(maps.power) else replace(fit, a=NAN, power=1.0)
