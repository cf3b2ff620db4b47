"""Fits the map of one campaign's stored reference durations into another campaign's state, and keeps it as a fact."""

import math
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Any

from lapledger.ledger.codec.canonical import sha256_words
from lapledger.ledger.errors import UserError
from lapledger.ledger.events import CalibrationFitted
from lapledger.ledger.questions.queries import CAMPAIGNS, Questions
from lapledger.ledger.store.open_ledger import Ledger
from lapledger.ledger.streams.producer import Producer
from lapledger.replay.calibration import Fit, Merits, best, fit_kinds
from lapledger.replay.criteria import Criterion
from lapledger.replay.loading import KERNEL, Calibration, Snapshot, load, references_digest


@dataclass(frozen=True, slots=True)
class CalibrationOrder:
    """Which maps to fit: under which criterion, of which campaign's stored durations, into which campaign's state."""

    criterion: Criterion
    source: str
    target: str
    kinds: tuple[str, ...] = ("affine",)

    def __post_init__(self) -> None:
        """Refuse a campaign without a name, and one into itself."""
        for flag, campaign in (("--from", self.source), ("--to", self.target)):
            if not campaign.strip():
                raise UserError(f"{flag}: give the id of a campaign; `lap status` lists them")
        if self.source == self.target:
            raise UserError(
                f"--from {self.source} --to {self.target}: one campaign needs no map into itself; name two campaigns"
            )


@dataclass(frozen=True, slots=True)
class Calibrated:
    """What came of one order: every kind that was tried, none appended, and the one that is kept."""

    tried: tuple[CalibrationFitted, ...]
    kept: CalibrationFitted


def calibrate(
    ledger: Ledger,
    producer: Producer,
    order: CalibrationOrder,
    *,
    told: Collection[str] = (),
    heard: Callable[[str], None] = lambda _kind: None,
) -> Calibrated:
    """Every kind that is ordered, and one of them appended unless the ledger holds it: then the one that is held.

    The best of the usable ones is kept; where all are refused the best of these, so that the refusal can be seen. An id
    in `told` was appended before; `heard` is told each kind when it is fitted. UserError when the worker classes
    differ, or while a work of either campaign has no accepted outcome.
    """
    questions = Questions(ledger)
    try:
        _check_complete(questions, order.source, order.target)
        stored, fresh = load(questions, order.source), load(questions, order.target)
        tried, chosen = _events(stored, fresh, order, heard)
        held = questions.rows("SELECT * FROM calibration WHERE calibration_id = $id", id=chosen.calibration_id)
    finally:
        questions.close()
    if held:
        return Calibrated(tried, CalibrationFitted(**held[0]))
    if chosen.calibration_id not in told:
        producer.append([chosen])
    return Calibrated(tried, chosen)


def _check_complete(questions: Questions, *campaigns: str) -> None:
    for row in questions.rows(CAMPAIGNS):
        if row["campaign_id"] in campaigns and row["done"] < row["works"]:
            raise UserError(
                f"campaign {row['campaign_id']!r} has {row['works'] - row['done']} of {row['works']} works without an "
                "outcome; finish it with `lap run`, then calibrate"
            )


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
            raise UserError(f"--from {source}: the criterion asks for no calibration; add one, as --calibration affine")
        return None
    rows = questions.rows(
        _FITS,
        target=target,
        kind=criterion.calibration,
        clock=criterion.clock,
        estimator=criterion.estimator,
        startup=criterion.startup,
    )
    asked = [row for row in rows if source in (None, row["source_campaign"])]
    usable = {row["source_campaign"]: row["calibration_id"] for row in asked if not row["refused"]}
    if not usable:
        reason = f"; the stored fit was refused: {asked[-1]['refused']}" if asked else ""
        raise UserError(
            f"no usable calibration into campaign {target!r}{reason}; "
            f"fit one with `lap calibrate --from ID --to {target} --kind {criterion.calibration}`"
        )
    if len(usable) > 1:
        sources = ", ".join(sorted(usable))
        raise UserError(
            f"several calibrations into campaign {target!r} are stored, from {sources}; name one with --from"
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


def _events(
    stored: Snapshot, fresh: Snapshot, order: CalibrationOrder, heard: Callable[[str], None]
) -> tuple[tuple[CalibrationFitted, ...], CalibrationFitted]:
    """(an event for every kind, the one to keep)."""
    if stored.campaign["service"] != fresh.campaign["service"]:
        raise UserError(f"campaigns {stored.name!r} and {fresh.name!r} ran on different services; re-run on one")
    fits = fit_kinds(stored.problems, fresh.problems, order.criterion, order.kinds, heard=heard)
    evidence = sha256_words("pairs", references_digest(stored), references_digest(fresh))
    events = tuple(_event(fit, stored, fresh, evidence) for fit in fits)
    return events, events[fits.index(best(fits))]


def _event(fit: Fit, stored: Snapshot, fresh: Snapshot, evidence: str) -> CalibrationFitted:
    names = (stored.name, fresh.name, fit.clock, fit.estimator, fit.startup)
    return CalibrationFitted(
        calibration_id=sha256_words("calibration", 2, fit.kind, *names, evidence, KERNEL),
        kind=fit.kind,
        source_campaign=stored.name,
        target_campaign=fresh.name,
        service=str(fresh.campaign["service"]),
        clock=fit.clock,
        estimator=fit.estimator,
        startup=fit.startup,
        a=fit.a,
        b_ns=fit.b_ns,
        pairs=fit.pairs,
        problems=fit.problems,
        r2=_known(fit.merits.r2),
        error_map=_known(fit.merits.error),
        error_none=_known(fit.unmapped.error),
        points_map=_known(fit.merits.points),
        points_none=_known(fit.unmapped.points),
        spearman_before=_known(fit.unmapped.spearman),
        spearman_after=_known(fit.merits.spearman),
        refused=fit.refused,
        evidence_digest=evidence,
        kernel=KERNEL,
        cut=fresh.cut,
        power=fit.power,
        low_ns=fit.low_ns,
        high_ns=fit.high_ns,
        moved=fit.moved,
        outside=fit.outside,
        r2_none=_known(fit.unmapped.r2),
    )


def _known(value: float) -> float | None:
    return None if math.isnan(value) else value
