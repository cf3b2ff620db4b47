"""Fits the map of one campaign's stored reference durations into another campaign's state, and keeps it as a fact."""

import math
from collections.abc import Callable, Collection
from dataclasses import dataclass

from lapledger.ledger.codec.canonical import sha256_fields
from lapledger.ledger.errors import UserError
from lapledger.ledger.events import CalibrationFitted
from lapledger.ledger.questions.queries import CAMPAIGNS, Questions
from lapledger.ledger.store.open_ledger import Ledger
from lapledger.ledger.streams.producer import Producer
from lapledger.replay.calibration import Fit, best, fit_kinds
from lapledger.replay.criteria import Criterion
from lapledger.replay.loading import KERNEL, Snapshot, load, references_digest


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
    """What came of one order: every kind that was fitted, none appended, and the one that is kept."""

    fits: tuple[CalibrationFitted, ...]
    kept: CalibrationFitted


def calibrate(
    ledger: Ledger,
    producer: Producer,
    order: CalibrationOrder,
    *,
    already_appended: Collection[str] = (),
    on_fitted: Callable[[str], None] = lambda _kind: None,
) -> Calibrated:
    """Every kind that is ordered, and one of them appended unless the ledger holds it: then the one that is held.

    The best of the usable ones is kept; where all are refused the best of these, so that the refusal can be seen. An id
    in `already_appended` was appended before; `on_fitted` gets each kind when it is fitted. UserError when the
    worker classes differ, or while an execution of either campaign has no accepted outcome.
    """
    questions = Questions(ledger)
    try:
        _check_complete(questions, order.source, order.target)
        stored, fresh = load(questions, order.source), load(questions, order.target)
        fits, chosen = _events(stored, fresh, order, on_fitted)
        held = questions.rows("SELECT * FROM calibration WHERE calibration_id = $id", id=chosen.calibration_id)
    finally:
        questions.close()
    if held:
        return Calibrated(fits, CalibrationFitted(**held[0]))
    if chosen.calibration_id not in already_appended:
        producer.append([chosen])
    return Calibrated(fits, chosen)


def _check_complete(questions: Questions, *campaigns: str) -> None:
    for row in questions.rows(CAMPAIGNS):
        if row["campaign_id"] in campaigns and row["done"] < row["works"]:
            raise UserError(
                f"campaign {row['campaign_id']!r} has {row['works'] - row['done']} of {row['works']} works without an "
                "outcome; finish it with `lap run`, then calibrate"
            )


def _events(
    stored: Snapshot, fresh: Snapshot, order: CalibrationOrder, on_fitted: Callable[[str], None]
) -> tuple[tuple[CalibrationFitted, ...], CalibrationFitted]:
    """(an event for every kind, the one to keep)."""
    if stored.campaign["service"] != fresh.campaign["service"]:
        raise UserError(f"campaigns {stored.name!r} and {fresh.name!r} ran on different services; re-run on one")
    fits = fit_kinds(stored.problems, fresh.problems, order.criterion, order.kinds, on_progress=on_fitted)
    evidence = sha256_fields("pairs", references_digest(stored), references_digest(fresh))
    events = tuple(_event(fit, stored, fresh, evidence) for fit in fits)
    return events, events[fits.index(best(fits))]


def _event(fit: Fit, stored: Snapshot, fresh: Snapshot, evidence: str) -> CalibrationFitted:
    names = (stored.name, fresh.name, fit.clock, fit.estimator, fit.startup)
    return CalibrationFitted(
        calibration_id=sha256_fields("calibration", 2, fit.kind, *names, evidence, KERNEL),
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
