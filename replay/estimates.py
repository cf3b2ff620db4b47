"""Estimates: pass@k of each maker's candidates over problems, with every denominator it stands on.

The sampling interval over problems and the bound that undecided verdicts leave open are two columns, never merged.
No verdict is made here.
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.special import stdtrit

from replay.criteria import Criterion
from replay.errors import ReplayError
from replay.gates import Status, Verdicts, one_campaign
from replay.measurements import Bytes, Floats, Ints, ProblemMeasurements


@dataclass(frozen=True, slots=True)
class Estimate:
    """pass@k of one maker's candidates, with every denominator it stands on."""

    maker: str
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
    interval: tuple[float, float] | None  # 95% t interval of value over problems; None with one problem
    left_out: int = 0  # problems that left the environment, as its filter keeps no test of theirs


def pass_at_k(n: int, c: int, k: int) -> float:
    """The unbiased estimate of pass@k in [0, 1] from n samples of which c pass: 1 - C(n-c, k) / C(n, k).

    ReplayError when n < k or the counts are not 1 <= k and 0 <= c <= n. Source: Chen et al. 2021 (arXiv 2107.03374).
    """
    _check_counts(n, c, k)
    every = math.comb(n, k)
    return (every - math.comb(n - c, k)) / every


def t_interval(values: Floats) -> tuple[float, float] | None:
    """The 95% t interval of the mean of values in [0, 1], clipped to [0, 1]; None with fewer than two values."""
    if len(values) < 2:
        return None
    half = float(stdtrit(len(values) - 1, 0.975) * values.std(ddof=1) / math.sqrt(len(values)))
    middle = float(values.mean())
    return max(middle - half, 0.0), min(middle + half, 1.0)


def estimate(verdicts: Sequence[Verdicts], measurements: Sequence[ProblemMeasurements], k: int) -> list[Estimate]:
    """One estimate a maker, makers in alphabetical order.

    Verdicts and measurements go in pairs, one a problem. ReplayError when they do not match or are of several
    campaigns, or when a problem has fewer than k candidates of a maker: no problem is left out in silence.
    """
    if [v.problem for v in verdicts] != [m.problem for m in measurements]:
        raise ReplayError("estimate: verdicts and measurements name different problems; judge the same measurements")
    one_campaign(measurements)
    left_out = [v.left_out for v in verdicts]
    statuses, sizes = [v.status for v in verdicts], [v.pool_size for v in verdicts]
    return estimate_statuses(statuses, sizes, measurements, k=k, left_out=left_out)


def estimate_statuses(
    statuses: Sequence[Bytes],
    pool_sizes: Sequence[Ints],
    measurements: Sequence[ProblemMeasurements],
    *,
    k: int,
    left_out: Sequence[bool],
) -> list[Estimate]:
    """The same from bare statuses [P] and pool sizes [P], one array a problem, and whether it left the environment."""
    rows: dict[str, list[_Row | None]] = {}
    for status, sizes, m, gone in zip(statuses, pool_sizes, measurements, left_out, strict=True):
        makers = np.array(m.makers)
        for maker in sorted(set(makers[m.candidate].tolist())):
            mine = m.candidate & (makers == maker)
            row = None if gone else _row(m.problem, maker, status[mine], sizes[mine], k=k)
            rows.setdefault(maker, []).append(row)
    return [_estimate(maker, k, rows[maker]) for maker in sorted(rows)]


def resolution_warning(pool_sizes: Iterable[int], criterion: Criterion) -> str:
    """One sentence where some pool is too small to resolve tau (100/n > tau), else the empty text."""
    sizes = [int(size) for size in pool_sizes]
    small = [size for size in sizes if criterion.threshold * size < 1]
    if criterion.threshold == 1 or not small:
        return ""
    return (
        f"p_{criterion.tau} needs pools of at least {math.ceil(1 / criterion.threshold)} references:"
        f" {len(small)} of {len(sizes)} pools are smaller (smallest {min(small)})"
    )


def cap_warning(verdicts: Sequence[Verdicts], measurements: Sequence[ProblemMeasurements]) -> str:
    """One sentence where a criterion asks for a longer limit than was run, else the empty text.

    What a longer limit would have shown is never guessed: these runs leave open whatever depends on them.
    """
    runs = sum(int(v.beyond[v.candidate].sum()) for v in verdicts)
    if not runs:
        return ""
    programs = sum(int((v.beyond[v.candidate] > 0).sum()) for v in verdicts)
    caps = {int(cap) for m in measurements for cap in np.unique(m.limit_ns[m.limit_ns > 0])}
    executed = " to ".join(f"{cap / 1e6:.6g}" for cap in sorted({min(caps), max(caps)}))
    return (
        f"the limit asked for is above what was executed ({executed} ms): {runs} runs of {programs} candidates were"
        " killed before it, and only running them again with the longer limit can decide them"
    )


@dataclass(frozen=True, slots=True)
class _Row:
    """One maker on one problem."""

    counts: tuple[int, int, int]  # passed, failed, undecided
    references: tuple[int, int]
    value: float
    upper: float


def _row(problem: str, maker: str, status: Bytes, sizes: Ints, *, k: int) -> _Row:
    n = len(status)
    if n < k:
        raise ReplayError(f"pass@{k} of {maker}: problem {problem} has {n} candidates; choose k <= {n} or sample more")
    passed, failed = int((status == Status.PASS).sum()), int((status == Status.FAIL).sum())
    undecided = n - passed - failed
    upper = pass_at_k(n, passed + undecided, k)
    bounds = (int(sizes.min()), int(sizes.max()))
    return _Row((passed, failed, undecided), bounds, pass_at_k(n, passed, k), upper)


def _estimate(maker: str, k: int, rows: list[_Row | None]) -> Estimate:
    """One maker's estimate over the problems that stayed; nan when none did."""
    stayed = [row for row in rows if row is not None]
    passed, failed, undecided = (sum(row.counts[i] for row in stayed) for i in range(3))
    values = np.array([row.value for row in stayed])
    return Estimate(
        maker,
        k,
        problems=len(stayed),
        programs=passed + failed + undecided,
        passed=passed,
        failed=failed,
        undecided=undecided,
        references_min=min((row.references[0] for row in stayed), default=0),
        references_max=max((row.references[1] for row in stayed), default=0),
        value=float(values.mean()) if stayed else math.nan,
        upper_bound=float(np.mean([row.upper for row in stayed])) if stayed else math.nan,
        interval=t_interval(values),
        left_out=len(rows) - len(stayed),
    )


def _check_counts(n: int, c: int, k: int) -> None:
    if not (1 <= k <= n and 0 <= c <= n):
        raise ReplayError(f"pass@{k}: {c} of {n} samples pass; k must be 1 to {n} and the passes 0 to {n}")
