"""Durations and sizes as text: ms on a clock of time, bytes on the clock `memory`."""

from lapledger.replay.criteria import NS_PER_MS


def amount(value: float | None, clock: str) -> str:
    """A value in ns as ms, or in bytes as bytes; `-` for none."""
    if value is None:
        return "-"
    return f"{value} bytes" if clock == "memory" else f"{value / NS_PER_MS:.6g} ms"


def span(ends: tuple[int, int | None] | None, clock: str) -> str:
    """A value from and to, once where both agree; `?` where it has no known end, `-` for none."""
    if ends is None:
        return "-"
    low, high = ends
    if low == high:
        return amount(low, clock)
    return f"{amount(low, clock)} to {'?' if high is None else amount(high, clock)}"
