"""The 95% interval of a mean over problems, by Student's t or by Wilson, without a statistics library."""

import math
from collections.abc import Sequence

FEW = 5
"""With fewer passed, or failed, problems than this Wilson's interval is taken, where the t interval is worst."""


def interval(values: Sequence[float]) -> tuple[list[float] | None, str]:
    """(interval of the mean of values in [0, 1], one a problem; `t` or `wilson`); None with fewer than two values."""
    n, total = len(values), math.fsum(values)
    wilson = min(total, n - total) < FEW
    if n < 2:
        return None, "wilson" if wilson else "t"
    p, t = total / n, quantile(n - 1)
    variance = math.fsum((value - p) ** 2 for value in values) / (n - 1) / n
    if not wilson:
        half = t * math.sqrt(variance)
        return [max(p - half, 0.0), min(p + half, 1.0)], "t"
    # the effective sample size with t in place of z: Dean & Pagano 2015, Survey Methodology 41
    size = p * (1 - p) / variance if variance > 0 and 0 < p < 1 else float(n)
    middle = (p + t * t / (2 * size)) / (1 + t * t / size)
    half = math.sqrt(t * t * (p * (1 - p) / size + t * t / (4 * size * size))) / (1 + t * t / size)
    return [max(middle - half, 0.0), min(middle + half, 1.0)], "wilson"


def quantile(freedom: int) -> float:
    """The 97.5% quantile of t with so many degrees of freedom, by bisection of its distribution."""
    low, high = 0.0, 1.0
    while _above(high, freedom) > 0.025:
        high *= 2
    for _ in range(200):
        middle = (low + high) / 2
        low, high = (middle, high) if _above(middle, freedom) > 0.025 else (low, middle)
    return (low + high) / 2


def _above(t: float, freedom: int) -> float:
    """The chance of a larger t: half the incomplete beta function I_x(v/2, 1/2) at x = v/(v + t^2)."""
    a, b, x = freedom / 2, 0.5, freedom / (freedom + t * t)
    if x > (a + 1) / (a + b + 2):
        return (1 - _beta(b, a, 1 - x)) / 2
    return _beta(a, b, x) / 2


def _beta(a: float, b: float, x: float) -> float:
    """The regularized incomplete beta function, by its continued fraction (Abramowitz and Stegun 26.5.8)."""
    if x <= 0:
        return 0.0
    front = math.exp(math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b) + a * math.log(x) + b * math.log1p(-x))
    fraction = 1.0
    for m in range(200, 0, -1):
        even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m))
        odd = -(a + m - 1) * (a + b + m - 1) * x / ((a + 2 * m - 2) * (a + 2 * m - 1))
        fraction = 1 + odd / (1 + even / fraction)
    return front / (a * fraction)
