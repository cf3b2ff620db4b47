"""Stored references that were not re-run join a fresh campaign's pool, their durations mapped; never a candidate."""

from dataclasses import replace
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from lapledger.replay.calibration.fits import Fit, apply
from lapledger.replay.criteria import Criterion
from lapledger.replay.measurements import ABSENT, Ints, Outcome, ProblemMeasurements, read


def with_stored(fresh: ProblemMeasurements, stored: ProblemMeasurements, fit: Fit) -> ProblemMeasurements:
    """The fresh problem with the stored references that were not re-run added to its pool, durations mapped.

    They have one repetition on the fit's clock, no start-up left to subtract, and are never candidates. Of a killed run
    the bound is mapped, and is its limit from then on; a bound of 0 tells nothing and stays. Tests the stored campaign
    lacks are MISSING. ReplayError when the fit is refused.
    """
    criterion = Criterion(clock=fit.clock, estimator=fit.estimator, startup=fit.startup)
    known = set(fresh.programs)
    rows = [i for i in np.flatnonzero(stored.reference).tolist() if stored.programs[i] not in known]
    readings = read(stored, criterion)
    outcome = _columns(stored, fresh, readings.outcome[rows], Outcome.MISSING)
    killed = readings.outcome == Outcome.TIME_LIMIT
    unknown = np.where(killed, readings.bound_ns == 0, readings.duration_ns == ABSENT)
    mapped = np.where(unknown, ABSENT, apply(fit, np.where(killed, readings.bound_ns, readings.duration_ns)))
    limit = np.where(stored.limit_ns <= 0, stored.limit_ns, apply(fit, stored.limit_ns))
    # the killed repetition is read as the limit: with the hard limit there, more would be known than was ever seen
    limit = np.where(killed, np.maximum(mapped, 0), limit)
    repetitions = np.full((*outcome.shape, max(fresh.wall_ns.shape[2], 1)), ABSENT, dtype=np.int64)
    absent = repetitions.copy()
    repetitions[:, :, 0] = _columns(stored, fresh, mapped[rows], ABSENT)
    on = {clock: repetitions if clock == fit.clock else absent for clock in ("wall", "cpu", "memory")}
    remembered = fresh.memory_bytes is not None or fit.clock == "memory"
    return replace(
        fresh,
        programs=fresh.programs + tuple(stored.programs[i] for i in rows),
        models=fresh.models + tuple(stored.models[i] for i in rows),
        labels=fresh.labels + tuple(stored.labels[i] for i in rows),
        candidate=np.append(fresh.candidate, np.zeros(len(rows), dtype=np.bool_)),
        reference=np.append(fresh.reference, np.ones(len(rows), dtype=np.bool_)),
        duplicate=np.append(fresh.duplicate, stored.duplicate[rows]),
        outcome=np.concatenate([fresh.outcome, outcome]),
        wall_ns=_below(fresh.wall_ns, on["wall"]),
        cpu_ns=_below(fresh.cpu_ns, on["cpu"]),
        memory_bytes=_below(fresh.on_clock("memory"), on["memory"]) if remembered else None,
        startup_ns=np.concatenate([fresh.startup_ns, np.zeros(outcome.shape, dtype=np.int64)]),
        limit_ns=np.concatenate([fresh.limit_ns, _columns(stored, fresh, limit[rows], ABSENT)]),
        interface=None if fresh.interface is None else np.append(fresh.interface, np.full(len(rows), -1, np.int8)),
    )


class Ranged(Protocol):
    """A fit, or the event that keeps it: the range it was fitted on, and what it is there to map."""

    @property
    def low_ns(self) -> int | None:
        """The shortest stored duration that was fitted."""

    @property
    def high_ns(self) -> int | None:
        """The longest."""

    @property
    def moved(self) -> int | None:
        """Stored durations, and bounds of killed runs, of references that were not re-run."""

    @property
    def outside(self) -> int | None:
        """How many of these lie outside the range."""


def outside_warning(fit: Ranged) -> str:
    """One sentence where stored durations lie outside the range that the map was fitted on, else the empty text.

    Bounds of killed runs are among them: a map moves these too. All are mapped by the same formula and counted: where a
    program is ranked beyond the fitted range, the rank rests on an extrapolation.
    """
    if not fit.outside:
        return ""
    low, high = (f"{(end or 0) / 1e6:.6g}" for end in (fit.low_ns, fit.high_ns))
    return (
        f"{fit.outside} of the {fit.moved} stored durations that the calibration maps lie outside the {low} to {high}"
        " ms it was fitted on: ranks among them are extrapolated"
    )


def _columns(
    stored: ProblemMeasurements, fresh: ProblemMeasurements, values: npt.NDArray[Any], absent: int
) -> npt.NDArray[Any]:
    """Stored values [n, stored tests] in the order of the fresh tests; `absent` for tests that were not stored."""
    place = {test: i for i, test in enumerate(stored.tests.ids)}
    index = [place.get(test, len(place)) for test in fresh.tests.ids]
    return np.pad(values, ((0, 0), (0, 1)), constant_values=absent)[:, index]


def _below(upper: Ints, lower: Ints) -> Ints:
    """Repetitions of two sets of programs, one below the other, padded to the same number."""
    missing = lower.shape[2] - upper.shape[2]
    return np.concatenate([np.pad(upper, ((0, 0), (0, 0), (0, missing)), constant_values=ABSENT), lower])
