"""Stored calibrations: the one that a criterion asks for, and the one of an id, each with its source campaign."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from lapledger.ledger.errors import UserError
from lapledger.ledger.questions.queries import Questions
from lapledger.replay.calibration import Fit, Merits
from lapledger.replay.criteria import Criterion
from lapledger.replay.loading.snapshots import Snapshot, load


@dataclass(frozen=True, slots=True, eq=False)
class Calibration:
    """A fit with the id of its event and the snapshot that its stored durations come from."""

    calibration_id: str
    fit: Fit
    stored: Snapshot


def find_calibration(
    questions: Questions, target: str, criterion: Criterion, *, source: str | None = None
) -> Calibration | None:
    """The calibration that a criterion asks for, as it was stored; None when it asks for none.

    Of several usable fits of its kind from one source the last admitted counts. UserError when there is none, when the
    sources differ and none is named, as programs of two campaigns meet only through a named one, or when a source is
    named and the criterion asks for no calibration.
    """
    if criterion.calibration == "none":
        if source is not None:
            raise UserError(
                f"calibration from {source}: the criterion uses no calibration; choose its kind, for instance affine"
            )
        return None
    rows = questions.rows(
        _FITS,
        target=target,
        kind=criterion.calibration,
        clock=criterion.clock,
        estimator=criterion.estimator,
        startup=criterion.startup,
    )
    fits = [row for row in rows if source in (None, row["source_campaign"])]
    usable = {row["source_campaign"]: row["calibration_id"] for row in fits if not row["refused"]}
    if not usable:
        reason = f"; the stored fit was refused: {fits[-1]['refused']}" if fits else ""
        raise UserError(
            f"no usable calibration into campaign {target!r}{reason}; "
            f"fit one with `lap calibrate --from ID --to {target} --kind {criterion.calibration}`"
        )
    if len(usable) > 1:
        sources = ", ".join(sorted(usable))
        raise UserError(
            f"several calibrations into campaign {target!r} are stored, from {sources}; name the campaign of one"
            " (--calibration-from, or calibration_from in Python)"
        )
    (calibration_id,) = usable.values()
    return stored_calibration(questions, calibration_id)


_FITS = """
SELECT calibration_id, source_campaign, refused FROM calibration_fitted
WHERE target_campaign = $target AND kind = $kind AND clock = $clock AND estimator = $estimator AND startup = $startup
QUALIFY row_number() OVER (PARTITION BY calibration_id ORDER BY _admission, _row) = 1 ORDER BY _admission, _row
"""
"""Fits into a target in the order of their admission; all of them lie on the one partition of their stream."""


def stored_calibration(questions: Questions, calibration_id: str) -> Calibration:
    """The calibration of that id with the snapshot of its source campaign; UserError when it is not stored."""
    rows = questions.rows("SELECT * FROM calibration WHERE calibration_id = $id", id=calibration_id)
    if not rows:
        raise UserError(
            f"no calibration {calibration_id!r} at this cut; the view `calibration` of `lap sql` lists them"
        )
    return Calibration(calibration_id, _fit(rows[0]), load(questions, rows[0]["source_campaign"]))


def _fit(row: Mapping[str, Any]) -> Fit:
    def merits(*columns: str) -> Merits:
        return Merits(*(math.nan if row[name] is None else float(row[name]) for name in columns))

    return Fit(
        a=row["a"],
        b_ns=row["b_ns"],
        pairs=row["pairs"],
        problems=row["problems"],
        merits=merits("r2", "error_map", "spearman_after", "points_map"),
        unmapped=merits("r2_none", "error_none", "spearman_before", "points_none"),
        clock=row["clock"],
        estimator=row["estimator"],
        startup=row["startup"],
        refused=row["refused"],
        kind=row["kind"],
        power=row["power"],
        low_ns=row["low_ns"],
        high_ns=row["high_ns"],
        moved=row["moved"],
        outside=row["outside"],
    )
