"""Rewards in [-1, 1] from the gates c and g and the quality q.

Where something was never seen a reward lies between two bounds, and is decided only when they meet. The same functions
serve the online rewarder and the offline replay. No measurement or threshold is read here.
"""

from fractions import Fraction

import numpy as np

from lapledger.replay.criteria import Criterion
from lapledger.replay.judging.gates import Verdicts
from lapledger.replay.measurements import Bools, Floats, Ints


def reward(verdicts: Verdicts, criterion: Criterion, *, group: Ints | None = None) -> Floats:
    """Rewards in [-1, 1] of every program [P]; nan where undecided.

    `group` numbers the group of rollouts of each program [P], -1 for none: the reward `multitask` alternates by it.
    """
    lowest, highest = bounds(verdicts, criterion, group=group)
    return np.where(lowest == highest, lowest, np.nan)


def bounds(verdicts: Verdicts, criterion: Criterion, *, group: Ints | None = None) -> tuple[Floats, Floats]:
    """The smallest and the largest reward [P] that can still be true; nan for a problem that left the environment.

    Every reward grows with c and with e, so each bound takes the worst, or the best, of both.
    """
    e_lo, e_hi = efficiency(verdicts, criterion)
    wrong = verdicts.c == 0
    nothing = wrong & verdicts.none_finished  # no finished test: the least efficiency, whatever was killed
    ends = (
        _of(verdicts.c == 1, np.where(nothing, -1.0, e_lo), criterion, group),
        _of(~wrong, np.where(nothing, -1.0, e_hi), criterion, group),
    )
    if criterion.reward == "multitask":
        alone = np.full(len(wrong), -1, dtype=np.int64) if group is None else group
        ends = (np.where(alone < 0, -1.0, ends[0]), np.where(alone < 0, 1.0, ends[1]))
    if verdicts.excluded:
        ends = (np.full(len(wrong), np.nan),) * 2
    return ends


def efficiency(verdicts: Verdicts, criterion: Criterion) -> tuple[Floats, Floats]:
    """The smallest and the largest efficiency e in [-1, 1] [P] under the criterion's shape."""
    gate = np.where(verdicts.g == 1, 1.0, -1.0), np.where(verdicts.g == 0, -1.0, 1.0)
    if criterion.shape == "binary":
        return gate
    enough = (verdicts.pool_size >= criterion.min_references) | (not criterion.needs_pool)
    known = (verdicts.q_den > 0) & enough
    den = np.where(known, verdicts.q_den, 1)
    ends = _graded(verdicts.q_hi, den, criterion), _graded(verdicts.q_lo, den, criterion)
    e_lo, e_hi = np.where(known, ends[0], -1.0), np.where(known, ends[1], 1.0)
    if criterion.shape != "split":
        return e_lo, e_hi
    s = float(Fraction(criterion.split))
    return s * gate[0] + (1 - s) * e_lo, s * gate[1] + (1 - s) * e_hi


def _graded(q: Ints, den: Ints, criterion: Criterion) -> Floats:
    """1 - 2 q, or the same of the bucket that q falls in; one division of whole numbers, so equal q give equal e."""
    top, bottom = den - 2 * q, den
    if criterion.shape == "bucketed":
        bucket = np.maximum(-(-q * criterion.buckets // den), 1) - 1
        top, bottom = criterion.buckets - 1 - 2 * bucket, np.full_like(den, criterion.buckets - 1)
    graded: Floats = np.true_divide(top, bottom)
    return graded


def _of(right: Bools, e: Floats, criterion: Criterion, group: Ints | None) -> Floats:
    """The reward [P] of programs that are right or not with efficiency e [P]."""
    signed = np.where(right, 1.0, -1.0)
    if criterion.reward == "correctness-only":
        return signed
    if criterion.reward == "optimization-only":
        return e
    if criterion.reward == "additive":
        w = float(Fraction(criterion.weight))
        return w * signed + (1 - w) * e
    if criterion.reward == "multitask":
        return signed if group is None else np.where(group % 2 == 0, signed, e)
    return np.where(right, (e + 1) / 2 if criterion.reward == "two-gate" else e, -1.0)
