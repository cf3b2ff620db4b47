"""How the repetitions of one run become one value: whole units, rounded down, over the repetitions that are present.

Every estimator grows with each repetition, so a bound on the repetitions is a bound on the value.
"""

import numpy as np
import numpy.typing as npt

Ints = npt.NDArray[np.int64]

ABSENT = -1
"""The value of a repetition, duration or limit that does not exist."""


def one_value(repetitions: Ints, estimator: str) -> Ints:
    """The estimate [...] of the repetitions [..., R] that are not -1; -1 where none is present.

    `min`, `median`, `mean`, or `hodges-lehmann`: the median of the means of all pairs i <= j (Hodges & Lehmann 1963).
    """
    if repetitions.shape[-1] == 1:
        return np.maximum(repetitions[..., 0], ABSENT)
    if estimator == "mean":
        return _mean(repetitions)
    if estimator == "hodges-lehmann":
        return _middle(_pair_sums(repetitions), 4)
    if estimator == "min":
        ordered, first, _ = _ordered(repetitions)
        return _pick(ordered, first)
    return _middle(repetitions, 2)


def _mean(repetitions: Ints) -> Ints:
    present = (repetitions >= 0).sum(axis=-1)
    total = np.where(repetitions >= 0, repetitions, 0).sum(axis=-1)
    return np.where(present > 0, total // np.maximum(present, 1), ABSENT)


def _middle(values: Ints, divisor: int) -> Ints:
    """The sum of the two middle values [...] over a divisor, rounded down; -1 where none is present."""
    ordered, first, present = _ordered(values)
    low, high = first + np.maximum(present - 1, 0) // 2, np.minimum(first + present // 2, values.shape[-1])
    return np.where(present > 0, (_pick(ordered, low) + _pick(ordered, high)) // divisor, ABSENT)


def _pair_sums(repetitions: Ints) -> Ints:
    first, second = np.triu_indices(repetitions.shape[-1])
    a, b = repetitions[..., first], repetitions[..., second]
    return np.where((a >= 0) & (b >= 0), a + b, ABSENT)


def _ordered(values: Ints) -> tuple[Ints, Ints, Ints]:
    """Values in order, one absent value ahead of all; where the present ones start; how many they are."""
    present = (values >= 0).sum(axis=-1)
    padded = np.concatenate([np.full((*present.shape, 1), ABSENT), values], axis=-1)
    return np.sort(padded, axis=-1), np.minimum(padded.shape[-1] - present, values.shape[-1]), present


def _pick(ordered: Ints, index: Ints) -> Ints:
    return np.take_along_axis(ordered, index[..., None], axis=-1)[..., 0]
