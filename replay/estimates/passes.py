"""pass@k of each model's candidates over problems, with every denominator it stands on.

The sampling interval over problems and the bound that undecided verdicts leave open are two columns, never merged. No
verdict is made here.
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from lapledger.replay.criteria import Criterion
from lapledger.replay.errors import ReplayError
from lapledger.replay.estimates.counts import pass_at_k
from lapledger.replay.estimates.intervals import over_problems
from lapledger.replay.judging.gates import Status, Verdicts, one_campaign
from lapledger.replay.measurements import Bytes, Ints, ProblemMeasurements


@dataclass(frozen=True, slots=True)
class Estimate:
    """pass@k of one model's candidates, with every denominator it stands on."""

    model: str
    k: int
    problems: int
    programs: int
    passed: int
    failed: int
    undecided: int
    references_min: int  # smallest pool that one of the programs was ranked against
    references_max: int
    value: float  # mean over problems of pass@k in [0, 1], undecided counted as not passed
    upper_bound: float  # the same, undecided counted as passed
    interval: tuple[float, float] | None  # 95% of value over problems; None with one problem
    method: str  # that gave the interval: `t` or `wilson`
    excluded: int = 0  # problems that left the environment, as its filter keeps no test of theirs


def estimate(verdicts: Sequence[Verdicts], measurements: Sequence[ProblemMeasurements], k: int) -> list[Estimate]:
    """One estimate a model, models in alphabetical order.

    Verdicts and measurements go in pairs, one a problem. ReplayError when they do not match or are of several
    campaigns, or when a problem has fewer than k candidates of a model: no problem is dropped silently.
    """
    if [v.problem for v in verdicts] != [m.problem for m in measurements]:
        raise ReplayError("estimate: verdicts and measurements name different problems; judge the same measurements")
    one_campaign(measurements)
    excluded = [v.excluded for v in verdicts]
    statuses, sizes = [v.status for v in verdicts], [v.pool_size for v in verdicts]
    return estimate_statuses(statuses, sizes, measurements, k=k, excluded=excluded)


def estimate_statuses(
    statuses: Sequence[Bytes],
    pool_sizes: Sequence[Ints],
    measurements: Sequence[ProblemMeasurements],
    *,
    k: int,
    excluded: Sequence[bool],
) -> list[Estimate]:
    """The same from bare statuses [P] and pool sizes [P], one array a problem, and whether it left the environment."""
    rows: dict[str, list[_Row | None]] = {}
    for status, sizes, m, gone in zip(statuses, pool_sizes, measurements, excluded, strict=True):
        models = np.array(m.models)
        for model in sorted(set(models[m.candidate].tolist())):
            mine = m.candidate & (models == model)
            row = None if gone else _row(m.problem, model, status[mine], sizes[mine], k=k)
            rows.setdefault(model, []).append(row)
    return [_estimate(model, k, rows[model]) for model in sorted(rows)]


@dataclass(frozen=True, slots=True)
class _Row:
    """One model on one problem."""

    counts: tuple[int, int, int]  # passed, failed, undecided
    references: tuple[int, int]
    value: float
    upper: float


def _row(problem: str, model: str, status: Bytes, sizes: Ints, *, k: int) -> _Row:
    n = len(status)
    if n < k:
        raise ReplayError(f"pass@{k} of {model}: problem {problem} has {n} candidates; choose k <= {n} or sample more")
    passed, failed = int((status == Status.PASS).sum()), int((status == Status.FAIL).sum())
    undecided = n - passed - failed
    upper = pass_at_k(n, passed + undecided, k)
    bounds = (int(sizes.min()), int(sizes.max()))
    return _Row((passed, failed, undecided), bounds, pass_at_k(n, passed, k), upper)


def _estimate(model: str, k: int, rows: list[_Row | None]) -> Estimate:
    """One model's estimate over the problems that stayed; nan when none did."""
    stayed = [row for row in rows if row is not None]
    passed, failed, undecided = (sum(row.counts[i] for row in stayed) for i in range(3))
    share = over_problems(*(np.array([getattr(row, end) for row in stayed]) for end in ("value", "upper")))
    return Estimate(
        model,
        k,
        problems=share.problems,
        programs=passed + failed + undecided,
        passed=passed,
        failed=failed,
        undecided=undecided,
        references_min=min((row.references[0] for row in stayed), default=0),
        references_max=max((row.references[1] for row in stayed), default=0),
        value=share.value,
        upper_bound=share.upper_bound,
        interval=share.interval,
        method=share.method,
        excluded=len(rows) - len(stayed),
    )


def resolution_warning(pool_sizes: Iterable[int], criterion: Criterion) -> str:
    """One sentence where some pool is too small to resolve tau (100/n > tau), else the empty text."""
    sizes, (numerator, denominator) = [int(size) for size in pool_sizes], criterion.threshold.as_integer_ratio()
    small = [size for size in sizes if numerator * size < denominator]
    if numerator == denominator or not small:
        return ""
    return (
        f"p_{criterion.tau} needs pools of at least {math.ceil(1 / criterion.threshold)} references:"
        f" {len(small)} of {len(sizes)} pools are smaller (smallest {min(small)})"
    )
