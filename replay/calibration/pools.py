"""Stored references that were not re-run join a fresh campaign's pool, their durations mapped; never a candidate."""

from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from lapledger.replay.calibration.fits import Fit, apply
from lapledger.replay.criteria import Criterion
from lapledger.replay.measurements import ABSENT, Outcome, ProblemMeasurements, read, with_references


def with_stored(fresh: ProblemMeasurements, stored: ProblemMeasurements, fit: Fit) -> ProblemMeasurements:
    """The fresh problem with the stored references that were not re-run added to its pool, durations mapped.

    They have one repetition on the fit's clock, no start-up left to subtract, and are never candidates. Of a killed run
    the bound is mapped, and is its limit from then on; a bound of 0 holds no information and stays. Tests the stored
    campaign lacks are MISSING. ReplayError when the fit is refused.
    """
    criterion = Criterion(clock=fit.clock, estimator=fit.estimator, startup=fit.startup)
    known = set(fresh.programs)
    rows = np.array([i for i in np.flatnonzero(stored.reference) if stored.programs[i] not in known], dtype=np.int64)
    readings = read(stored, criterion)
    killed = readings.outcome == Outcome.TIME_LIMIT
    unknown = np.where(killed, readings.bound_ns == 0, readings.duration_ns == ABSENT)
    mapped = np.where(unknown, ABSENT, apply(fit, np.where(killed, readings.bound_ns, readings.duration_ns)))
    limit = np.where(stored.limit_ns <= 0, stored.limit_ns, apply(fit, stored.limit_ns))
    # the killed repetition is read as the limit: with the hard limit there, more would be known than was ever seen
    limit = np.where(killed, np.maximum(mapped, 0), limit)
    outcome = _columns(stored, fresh, readings.outcome[rows], Outcome.MISSING)
    return with_references(
        fresh,
        stored,
        rows,
        clock=fit.clock,
        outcome=outcome,
        durations=_columns(stored, fresh, mapped[rows], ABSENT),
        startup_ns=np.zeros(outcome.shape, dtype=np.int64),
        limit_ns=_columns(stored, fresh, limit[rows], ABSENT),
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
    column = {test: i for i, test in enumerate(stored.tests.ids)}
    index = [column.get(test, len(column)) for test in fresh.tests.ids]
    return np.pad(values, ((0, 0), (0, 1)), constant_values=absent)[:, index]
