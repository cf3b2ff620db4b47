"""Intervals and bounds as text, in percent; `-` where there is none."""

import math

from lapledger.replay.estimates import Interval


def percent(share: float) -> str:
    """A share in [0, 1] in percent."""
    return f"{100 * share:.1f}"


def of_shares(ends: Interval | None, method: str = "t") -> str:
    """An interval of shares in [0, 1], with the method that gave it where it is not `t`."""
    return of_percents(None if ends is None else (100 * ends[0], 100 * ends[1]), method)


def of_percents(ends: Interval | None, method: str = "t") -> str:
    """An interval that is in percent already."""
    if ends is None or math.isnan(ends[0]):
        return "-"
    return f"{ends[0]:.1f} .. {ends[1]:.1f}{'' if method == 't' else f' ({method})'}"


def at_most(value: float, bound: float) -> str:
    """A bound in percent where it is above the value itself."""
    return f"{bound:.1f}" if bound > value else "-"
