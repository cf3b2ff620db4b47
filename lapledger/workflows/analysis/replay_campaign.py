"""A campaign under several criteria, the flips between them, its curve: what `lap replay` and the Python API share."""

from collections.abc import Collection, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import TYPE_CHECKING

from lapledger.ledger.errors import UserError
from lapledger.ledger.questions.queries import Questions
from lapledger.replay.criteria import Criterion
from lapledger.replay.engines import AUTO, Engine
from lapledger.replay.explanations.flips import Change, verdict_changes
from lapledger.replay.loading import JudgedCampaign, Snapshot
from lapledger.workflows.analysis.judge import judge_with_progress
from lapledger.workflows.reporter import LOGGING, Reporter

if TYPE_CHECKING:
    from lapledger.replay.plots.figure import Kind

Named = tuple[str, Criterion]
"""A criterion with the name that tables show."""


def at_taus(name: str, criterion: Criterion, taus: Sequence[str]) -> list[Named]:
    """The criterion at each tau, called `p_TAU` behind its name where it is not the default; itself without a tau."""
    prefix = "" if criterion == Criterion() else f"{name} "
    return [(f"{prefix}p_{tau}", replace(criterion, tau=tau)) for tau in taus] or [(name, criterion)]


def known_models(snapshot: Snapshot, names: Collection[str]) -> frozenset[str] | None:
    """The models of these names, None for none; UserError where the campaign has no program of one."""
    known = sorted({model for m in snapshot.problems for model in m.models})
    for name in names:
        if name not in known:
            raise UserError(f"no program of model {name!r}; the models are {', '.join(known)}")
    return frozenset(names) or None


def judge_criteria(
    questions: Questions,
    snapshot: Snapshot,
    criteria: Sequence[Named],
    *,
    source: str | None = None,
    k: int = 1,
    engine: Engine = AUTO,
    models: Collection[str] | None = None,
    reporter: Reporter = LOGGING,
) -> list[JudgedCampaign]:
    """The campaign judged under each criterion, in their order; see `judge_campaign` for what each argument means.

    UserError where a calibration's campaign is named and none of the criteria uses a calibration.
    """
    if source is not None and all(criterion.calibration == "none" for _, criterion in criteria):
        raise UserError(
            f"calibration from {source}: no criterion here uses a calibration; choose its kind, for instance affine"
        )
    return [
        judge_with_progress(
            questions,
            snapshot,
            criterion,
            name=name,
            source=source,
            k=k,
            engine=engine,
            criteria=len(criteria),
            models=models,
            reporter=reporter,
        )
        for name, criterion in criteria
    ]


def flips_between(judged: Sequence[JudgedCampaign]) -> list[tuple[str, str, list[Change]]]:
    """The flips between each two criteria that follow each other: (before, after, flips)."""
    return [
        (a.name, b.name, [change for changes in verdict_changes(a, b, timed=False) for change in changes])
        for a, b in pairwise(judged)
    ]


def tau_picture(judged: JudgedCampaign, kind: "Kind", *, models: Collection[str] | None = None) -> bytes:
    """pass@1 in [0, 1] against tau from 5 to 100, one curve a model with its 95% interval, as PNG or SVG.

    `models` are those that are drawn; by default all.
    """
    from lapledger.replay.plots.curves import curve_plot
    from lapledger.replay.studies.curves import tau_curve

    curves = tau_curve(judged.measurements, judged.criterion, [*range(5, 101, 5)])
    drawn = {model: curve for model, curve in curves.items() if models is None or model in models}
    title = f"campaign {judged.campaign}: {len(judged.measurements)} problems"
    return curve_plot(drawn, title, f"criterion {judged.criterion.hash[:12]}, cut {judged.cut}", fmt=kind)
