"""A sweep as a picture: its longest axis along x, then lines, columns and rows of panels for what else varies."""

from collections.abc import Sequence
from typing import Any

from lapledger.replay.criteria import NS_PER_MS
from lapledger.replay.errors import ReplayError
from lapledger.replay.plots.figure import Kind
from lapledger.replay.plots.panels import Line, Panel, band, look, panels_plot
from lapledger.replay.studies.sweeps import Point

AXES = ("tau", "timeout_ns", "beta_ns", "alpha")
LABELS = {"tau": "tau (%)", "timeout_ns": "timeout (ms)", "beta_ns": "beta (ms)", "alpha": "alpha", "model": "model"}


def sweep_plot(points: Sequence[Point], title: str, footer: str, *, kind: Kind) -> bytes:
    """The bytes of the picture of p_tau (%) with 95% bands over problems; hollow points have undecided programs.

    ReplayError when more than four of tau, timeout, alpha, beta and model vary: no picture on paper shows that.
    """
    x, line, column, row = _roles(points)
    columns, rows, lines = (_values(points, name) for name in (column, row, line))
    ticks: dict[float, str] = {}
    if x == "timeout_ns":
        ticks = {float(i): value_text(x, value) for i, value in enumerate(_values(points, x))}
    positions = {value: i if ticks else _number(x, value) for i, value in enumerate(_values(points, x))}

    def panel(down: Any, across: Any) -> Panel:
        drawn = []
        for number, of in enumerate(lines):
            wanted = {row: down, column: across, line: of}
            mine = [p for p in points if all(name is None or getattr(p, name) == v for name, v in wanted.items())]
            mine.sort(key=lambda p: positions[getattr(p, x)])
            drawn.append(
                Line(
                    _label(line, of) or "p_tau",
                    [positions[getattr(p, x)] for p in mine],
                    [p.p_tau for p in mine],
                    look(number, number + number // 8),  # after eight colours other dashes
                    **band([p.interval for p in mine]),
                    hollow=[p.undecided > 0 for p in mine],
                )
            )
        above = ", ".join(filter(None, (_label(row, down), _label(column, across))))
        return Panel(above, LABELS[x], "p_tau (%)", drawn, ticks=ticks, falling=x == "tau")

    grid = [[panel(down, across) for across in columns] for down in rows]
    return panels_plot(grid, title, footer, kind=kind)


def value_text(axis: str, value: Any) -> str:
    """A value of an axis in its unit: ns as ms, no timeout as `as is`."""
    if axis == "timeout_ns":
        return "as is" if value is None else f"{value / NS_PER_MS:g}"
    return f"{value / NS_PER_MS:g}" if axis == "beta_ns" else str(value) if axis == "model" else f"{value:g}"


def _roles(points: Sequence[Point]) -> tuple[str, str | None, str | None, str | None]:
    """What runs along x, as lines, across columns and down rows; None where nothing more varies."""
    lengths = {axis: len(_values(points, axis)) for axis in AXES}
    x = max(AXES, key=lambda axis: lengths[axis])
    further_axes = sorted((axis for axis in AXES if axis != x and lengths[axis] > 1), key=lambda axis: -lengths[axis])
    models = len(_values(points, "model")) > 1
    roles: list[str | None] = [*(["model"] if models else []), *further_axes]
    if len(roles) > 3:
        raise ReplayError("sweep: five things vary, and a picture shows four; give one axis a single value, or use CSV")
    line, column, row = [*roles, None, None, None][:3]
    return x, line, column, row


def _values(points: Sequence[Point], axis: str | None) -> list[Any]:
    """The values of an axis in the grid's order, timeouts and numbers as they come; one None without an axis."""
    return [None] if axis is None else list(dict.fromkeys(getattr(point, axis) for point in points))


def _label(axis: str | None, value: Any) -> str:
    if axis is None:
        return ""
    unit = " ms" if axis in ("timeout_ns", "beta_ns") and value is not None else ""
    name = {"timeout_ns": "timeout ", "beta_ns": "beta ", "alpha": "alpha ", "tau": "p_", "model": ""}[axis]
    return f"{name}{value_text(axis, value)}{unit}"


def _number(axis: str, value: float) -> float:
    return value / NS_PER_MS if axis == "beta_ns" else value
