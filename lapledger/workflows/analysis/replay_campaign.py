"""Criteria at several thresholds, and the curve of pass@1 against tau: what `lap replay` and the Python API share."""

from collections.abc import Collection, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from lapledger.ledger.errors import UserError
from lapledger.replay.criteria import Criterion
from lapledger.replay.loading import JudgedCampaign, Snapshot

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
