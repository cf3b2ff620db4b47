"""What a command shows of judged campaigns: the tables and the JSON of `lap replay`.

A sampling interval, a bound that undecided verdicts leave, and what was never run stand in columns of their own.
"""

import math
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

import numpy as np

from lapledger.render.intervals import of_shares
from lapledger.render.output import count, print_line, print_table, print_warnings
from lapledger.replay.estimates import Estimate
from lapledger.replay.explanations.flips import Change, tally
from lapledger.replay.judging.gates import Status, Verdicts, share_within
from lapledger.replay.loading import JudgedCampaign
from lapledger.replay.measurements import unit_of
from lapledger.replay.studies.warnings import killed_before
from lapledger.workflows.analysis.judge import kept, missing, undecided, within

COLUMNS = (
    "criterion",
    "model",
    "problems",
    "excluded",
    "programs",
    "references",
    "missing",
    "undecided",
    "pass@{k}, %",
    "95% interval",
    "upper bound, %",
)


def show(campaigns: Sequence[JudgedCampaign]) -> None:
    """Prints the estimates, the basis of each criterion, and what stayed undecided."""
    lacking = [missing(judged.measurements) for judged in campaigns]
    rows = [
        _row(judged, row, cells) for judged, cells in zip(campaigns, lacking, strict=True) for row in judged.estimates
    ]
    columns = [name.format(k=campaigns[0].k) for name in COLUMNS]
    print_table(columns, rows, title=f"campaign {campaigns[0].campaign}", cut=campaigns[0].cut)
    for judged in campaigns:
        print_line(f"{judged.name}: criterion {judged.criterion.hash[:12]}{_stands_on(judged)}")
    _show_within(campaigns)
    _show_undecided(campaigns)
    print_warnings(dict.fromkeys(warning for judged in campaigns for warning in judged.warnings))


def _row(judged: JudgedCampaign, row: Estimate, lacking: int) -> tuple[object, ...]:
    sizes = sorted({row.references_min, row.references_max})
    return (
        judged.name,
        row.model,
        row.problems,
        row.excluded,
        row.programs,
        "..".join(map(str, sizes)),
        lacking,
        row.undecided,
        "-" if math.isnan(row.value) else f"{100 * row.value:.1f}",
        of_shares(row.interval, row.method),
        f"{100 * row.upper_bound:.1f}" if row.undecided else "-",
    )


def _stands_on(judged: JudgedCampaign) -> str:
    """What a filter keeps and where the pool comes from, as text."""
    text = ""
    if judged.criterion.filters:
        filtered = kept(judged)
        doubt = f", {filtered.undecided} undecided" if filtered.undecided else ""
        text += f"; keeps {filtered.kept} of {filtered.tests} optimization tests{doubt}"
        text += f"; {len(filtered.excluded)} of {filtered.problems} problems excluded"
        text += f": {', '.join(filtered.excluded[:5])}{' ...' if len(filtered.excluded) > 5 else ''}" * bool(
            filtered.excluded
        )
    if judged.calibration:
        stored = judged.calibration.stored.name
        text += f"; references of campaign {stored} by calibration {judged.calibration.calibration_id[:12]}"
    return text


def _show_within(campaigns: Sequence[JudgedCampaign]) -> None:
    rows = [
        (judged.name, row.model, row.tests, *(f"{100 * n / row.tests:.1f}" for n in (row.least, row.most)))
        for judged in campaigns
        for row in within(judged)
        if row.tests
    ]
    if rows:
        columns = ("criterion", "model", "tests", "within tau, %", "upper bound, %")
        print_table(columns, rows, title="share of tests with a percentile of at most tau")


def _show_undecided(campaigns: Sequence[JudgedCampaign]) -> None:
    rows = [(judged.name, model, kind, count) for judged in campaigns for model, kind, count in undecided(judged)]
    if rows:
        print_table(("criterion", "model", "reason undecided", "programs"), rows)


def show_flips(before: str, after: str, changes: Sequence[Change], *, name_flips: bool) -> None:
    """Prints how many verdicts flipped, and with `name_flips` which."""
    print_line(f"{before} -> {after}: {count(len(changes), 'verdict')} flipped; no programs were re-executed")
    if name_flips and changes:
        rows = [(c.program, status_name(c.before), status_name(c.after), c.reason_after) for c in changes]
        print_table(("program", "before", "after", "reason"), rows)


def status_name(status: Status) -> str:
    """`pass`, `fail` or `undecided`."""
    return status.name.lower()


def as_json(campaigns: Sequence[JudgedCampaign], flipped: Sequence[tuple[str, str, list[Change]]]) -> Any:
    """Everything that `lap replay` prints, and every verdict, as plain data."""
    return {
        "cut": campaigns[0].cut,
        "campaign": campaigns[0].campaign,
        "problems": [m.problem for m in campaigns[0].measurements],
        "criteria": [_criterion(judged) for judged in campaigns],
        "flips": [_flips(*filtered) for filtered in flipped],
    }


def _flips(before: str, after: str, changes: Sequence[Change]) -> dict[str, Any]:
    programs = [
        {"program": c.program, "before": status_name(c.before), "after": status_name(c.after), "reason": c.reason_after}
        for c in changes
    ]
    return {"before": before, "after": after, "count": len(changes), "tally": tally_rows(changes), "programs": programs}


def tally_rows(changes: Sequence[Change]) -> list[dict[str, Any]]:
    """Flips by model and kind."""
    return [{"model": model, "kind": kind, "count": count} for model, kind, count in tally(changes)]


def _criterion(judged: JudgedCampaign) -> dict[str, Any]:
    runs, programs = killed_before(judged.measurements, judged.criterion)
    calibration = judged.calibration
    return {
        "name": judged.name,
        "hash": judged.criterion.hash,
        "canonical": judged.criterion.canonical().decode(),
        "unit": unit_of(judged.criterion.clock),
        "calibration": calibration and {"id": calibration.calibration_id, "from": calibration.stored.name},
        "missing": missing(judged.measurements),
        "filter": asdict(kept(judged)) if judged.criterion.filters else None,
        "beyond": {"runs": runs, "programs": programs},
        "within": [asdict(row) for row in within(judged)],
        "undecided": [{"model": model, "reason": kind, "programs": count} for model, kind, count in undecided(judged)],
        "warnings": list(judged.warnings),
        "estimates": judged.estimate_rows,
        "verdicts": verdict_rows(judged),
    }


def verdict_rows(judged: JudgedCampaign) -> list[dict[str, Any]]:
    """The verdict of every candidate as plain data: status, q as [lower, upper, denominator], pool size and reason."""
    return [row for v in judged.verdicts for row in _verdicts(v, judged)]


def _verdicts(v: Verdicts, judged: JudgedCampaign) -> list[dict[str, Any]]:
    shares = share_within(v, judged.criterion) if judged.criterion.reading == "score" else None
    return [
        {
            "program": v.programs[row],
            "status": status_name(Status(int(v.status[row]))),
            "q": [int(v.q_lo[row]), int(v.q_hi[row]), int(v.q_den[row])],
            "references": int(v.pool_size[row]),
            "reason": v.reason[row],
            "beyond": int(v.censored_below_limit[row]),
            **({} if shares is None else {"within": [int(part[row]) for part in shares]}),
        }
        for row in np.flatnonzero(v.candidate).tolist()
    ]
