"""Stored references of an earlier campaign in a fresh pool: their durations mapped by a fit, never those of candidates.

fresh = a * stored ** power + b, rounded to whole ns, at least 1. The fit comes from its event.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from lapledger.consumers.exports.replayer.durations import ABSENT, bound, duration
from lapledger.consumers.exports.replayer.facts import Problem, Run

CLOCKS = ("wall", "cpu", "memory")


def mapped(ns: int, fit: Mapping[str, Any]) -> int:
    """One mapped duration."""
    power = float(fit.get("power", 1.0))
    raised = float(ns) if power == 1 else float(max(ns, 0)) ** power
    return max(round(float(fit["a"]) * raised + float(fit["b_ns"])), 1)


def with_stored(fresh: Problem, stored: Problem, fit: Mapping[str, Any]) -> Problem:
    """The fresh problem with the stored references that were not re-run in its pool; a test they lack is missing."""
    members = {row["program_id"] for row in fresh.programs}
    positions = {test["test_id"]: t for t, test in enumerate(stored.tests)}
    added: list[Mapping[str, Any]] = []
    runs: list[Sequence[Run | None]] = []
    for p, row in enumerate(stored.programs):
        if row["reference"] and row["program_id"] not in members:
            added.append({**row, "candidate": False})
            cells = [positions.get(test["test_id"]) for test in fresh.tests]
            runs.append([None if t is None else _moved(stored.runs[p][t], fit) for t in cells])
    return replace(fresh, programs=[*fresh.programs, *added], runs=[*fresh.runs, *runs])


def _moved(run: Run | None, fit: Mapping[str, Any]) -> Run | None:
    """A run with one mapped repetition on the fit's clock; of a killed one the bound is mapped, and is its limit."""
    if run is None:
        return None
    killed = run.outcome == "time_limit"
    ns = bound(run, dict(fit)) if killed else duration(run, dict(fit))
    ns = ABSENT if ns == (0 if killed else ABSENT) else mapped(ns, fit)
    limit = mapped(run.limit_ns, fit) if run.limit_ns > 0 else run.limit_ns
    clocks = {clock: [ns] if clock == fit["clock"] and ns != ABSENT else [] for clock in CLOCKS}
    return Run(run.outcome, clocks, 0, max(ns, 0) if killed else limit)
