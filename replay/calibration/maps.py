"""Kinds of maps from stored to fresh durations: fitted on pairs as a whole, and again with each problem excluded.

Arrays in, coefficients out. `merits` evaluates maps; a map is never inverted and never composed.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from lapledger.replay.measurements import Floats, Ints

SLOPES = 2**18
"""Slopes that Theil-Sen takes the median of at most: all of them up to 724 pairs, else evenly spread ones."""
R2 = (0.7548776662466927, 0.5698402909980532)
"""1/g and 1/g^2 of the root g of g^3 = g + 1, after which the sequence R2 steps."""


@dataclass(frozen=True, slots=True, eq=False)
class Maps:
    """fresh = a * stored ** power + b through all pairs, and with each of G groups excluded; nan without a spread."""

    a: float
    b: float
    power: float
    out_a: Floats  # [G] fitted without group g
    out_b: Floats  # [G]
    out_power: Floats  # [G]

    def out_of_fold(self, x: Floats, group: Ints) -> Floats:
        """Predictions of x [n] by the map that excluded its group [n]."""
        return mapped(x, self.out_a[group], self.out_b[group], self.out_power[group])

    def without(self, group: int, x: Floats) -> Floats:
        """Predictions of x [...] by the map that excluded one group."""
        return mapped(x, self.out_a[group], self.out_b[group], self.out_power[group])

    @property
    def is_known(self) -> bool:
        """Whether every one of its coefficients is finite."""
        parts = [np.atleast_1d(part) for part in (self.a, self.b, self.power, self.out_a, self.out_b, self.out_power)]
        return bool(np.isfinite(np.concatenate(parts)).all())


def mapped(x: Floats, a: Floats | float, b: Floats | float, power: Floats | float) -> Floats:
    """a * x ** power + b, broadcast; a power of 1 touches no digit of x."""
    raised = x if np.all(np.equal(power, 1)) else np.power(x, power)
    return np.asarray(a * raised + b, dtype=np.float64)


def fit_line(x: Floats, y: Floats, group: Ints, weight: Floats | None = None) -> Maps:
    """The weighted least-squares line of y on x [n], and those with each group [n] of 0..G-1 excluded."""
    w = np.ones_like(x) if weight is None else weight
    x_mean, y_mean = (float((w * v).sum() / w.sum()) for v in (x, y))  # centred sums keep their digits
    dx, dy = x - x_mean, y - y_mean
    parts = np.array([np.bincount(group, weights=part) for part in (w, w * dx, w * dy, w * dx * dx, w * dx * dy)])
    total = parts.sum(axis=1, keepdims=True)
    n, sx, sy, sxx, sxy = np.concatenate([total, total - parts], axis=1)
    spread = n * sxx - sx * sx
    with np.errstate(divide="ignore", invalid="ignore"):
        a = np.where(spread > 1e-12 * total[3] * total[0], (n * sxy - sx * sy) / spread, np.nan)
        b = (sy - a * sx) / n + y_mean - a * x_mean
    power_one = np.ones(len(a) - 1)
    return Maps(float(a[0]), float(b[0]), 1.0, a[1:], b[1:], power_one)


def fit_weighted(x: Floats, y: Floats, group: Ints) -> Maps:
    """The line of least squares weighted by 1/x, so that short tests count beside long ones."""
    return fit_line(x, y, group, 1 / np.maximum(x, 1))


def fit_ratio(x: Floats, y: Floats, group: Ints) -> Maps:
    """The multiple of x whose logarithm misses that of y least in squares: a is the geometric mean of y/x."""
    logs = np.log(np.maximum(y, 1)) - np.log(np.maximum(x, 1))
    sums, counts = np.bincount(group, weights=logs), np.bincount(group)
    with np.errstate(divide="ignore", invalid="ignore"):
        out = np.exp((logs.sum() - sums) / (len(logs) - counts))
    return Maps(float(np.exp(logs.mean())), 0.0, 1.0, out, np.zeros_like(out), np.ones_like(out))


def fit_power(x: Floats, y: Floats, group: Ints) -> Maps:
    """The power law a * x ** power: a least-squares line in logarithms."""
    line = fit_line(np.log(np.maximum(x, 1)), np.log(np.maximum(y, 1)), group)
    with np.errstate(over="ignore"):
        return Maps(float(np.exp(line.b)), 0.0, line.a, np.exp(line.out_b), np.zeros_like(line.out_a), line.out_a)


def fit_theil_sen(x: Floats, y: Floats, group: Ints) -> Maps:
    """The median of the slopes between pairs that differ in x, through the medians of x and y (Theil 1950, Sen 1968).

    Of more than SLOPES slopes so many are taken, spread evenly over all: the same ones for the same pairs.
    """
    order = np.lexsort((group, y, x))
    first, second = _picked(len(x))
    shorter, longer = order[first], order[second]
    distinct = x[longer] > x[shorter]
    shorter, longer = shorter[distinct], longer[distinct]
    slopes = (y[longer] - y[shorter]) / (x[longer] - x[shorter])
    a = _medians(slopes, np.array([group[shorter], group[longer]]), int(group.max()) + 1)
    middle_x, middle_y = (_medians(values, group[None, :], int(group.max()) + 1) for values in (x, y))
    b = middle_y - a * middle_x
    return Maps(float(a[0]), float(b[0]), 1.0, a[1:], b[1:], np.ones(len(a) - 1))


def _picked(n: int) -> tuple[Ints, Ints]:
    """Which positions in the order of x give a slope [S], the smaller x first: all pairs where they are few.

    Else the points of a sequence that fills the square evenly (R2, Roberts 2018), without its diagonal.
    """
    if n * (n - 1) // 2 <= SLOPES:
        first, second = np.triu_indices(n, 1)
        return first.astype(np.int64), second.astype(np.int64)
    step = np.arange(1, SLOPES + 1, dtype=np.float64)
    row, column = ((step * part % 1 * n).astype(np.int64) for part in R2)
    apart = row != column
    return np.minimum(row, column)[apart], np.maximum(row, column)[apart]


def _medians(values: Floats, labels: Ints, groups: int) -> Floats:
    """The median of values [S], then of those that do not bear each label of 0..G-1 [1 + G]; nan of none.

    `labels` [L, S] gives each value's L labels. Sorted once: what a label takes away only shifts the middle.
    """
    order = np.argsort(values, kind="stable")
    rising = values[order]
    position = np.tile(np.arange(len(values)), len(labels))
    label = labels[:, order].ravel()
    by_label = np.lexsort((position, label))
    ends = np.searchsorted(label[by_label], np.arange(groups + 1))
    gone = [np.unique(position[by_label[ends[g] : ends[g + 1]]]) for g in range(groups)]
    return np.array([_middle(rising, removed) for removed in (position[:0], *gone)])


def _middle(rising: Floats, removed: Ints) -> float:
    """The median of sorted values without those at some positions; nan where none is left."""
    kept = len(rising) - len(removed)
    if kept < 1:
        return np.nan
    ahead = removed - np.arange(len(removed))  # how many are kept before each removed place
    low, high = (rising[k + np.searchsorted(ahead, k, side="right")] for k in ((kept - 1) // 2, kept // 2))
    return float((low + high) / 2)


@dataclass(frozen=True, slots=True)
class Kind:
    """One kind of map: its formula as text, and how it is fitted."""

    formula: str
    fit: Callable[[Floats, Floats, Ints], Maps]


KINDS: Mapping[str, Kind] = {
    "multiplicative": Kind("a * stored, a the geometric mean of fresh / stored", fit_ratio),
    "affine": Kind("a * stored + b by least squares", fit_line),
    "affine-weighted": Kind("a * stored + b by least squares weighted with 1 / stored", fit_weighted),
    "theil-sen": Kind("a * stored + b, a the median slope between pairs, through the medians", fit_theil_sen),
    "power": Kind("a * stored ** power by least squares in logarithms", fit_power),
}
"""Every kind, plainest first; `none` is no map, and what each of them is held against."""
NONE = "none"
