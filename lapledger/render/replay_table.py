"""What a command says of answers: the tables and the JSON of `lap replay`.

A sampling interval, a bound that undecided verdicts leave, and what was never run stand in columns of their own.
"""

import math
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

import click
import numpy as np

from lapledger.render.amounts import unit_of
from lapledger.render.intervals import of_shares
from lapledger.render.output import print_table, tell
from lapledger.replay.estimates import Estimate
from lapledger.replay.explanations.flips import Change, tally
from lapledger.replay.judging.gates import Status, Verdicts, share_within
from lapledger.replay.loading import Snapshot
from lapledger.replay.studies.warnings import killed_before
from lapledger.workflows.judge import Answer, kept, missing, undecided, within

COLUMNS = (
    "criterion",
    "model",
    "problems",
    "left out",
    "programs",
    "refs",
    "missing",
    "undecided",
    "pass@{k} %",
    "95% interval",
    "at most %",
)


def show(answers: Sequence[Answer], snapshot: Snapshot) -> None:
    """Prints the estimates, what each criterion stands on, and what it left open."""
    lacking = [missing(answer.measured) for answer in answers]
    rows = [
        _row(answer, one, cells) for answer, cells in zip(answers, lacking, strict=True) for one in answer.estimates
    ]
    columns = [name.format(k=answers[0].estimates[0].k) for name in COLUMNS]
    print_table(columns, rows, title=f"campaign {snapshot.name}", cut=snapshot.cut)
    for answer in answers:
        click.echo(f"{answer.name}: criterion {answer.criterion.hash[:12]}{_stands_on(answer)}")
    _show_within(answers)
    _show_undecided(answers)
    tell(dict.fromkeys(warning for answer in answers for warning in answer.warnings))


def _row(answer: Answer, one: Estimate, lacking: int) -> tuple[object, ...]:
    sizes = sorted({one.references_min, one.references_max})
    return (
        answer.name,
        one.model,
        one.problems,
        one.left_out,
        one.programs,
        "..".join(map(str, sizes)),
        lacking,
        one.undecided,
        "-" if math.isnan(one.value) else f"{100 * one.value:.1f}",
        of_shares(one.interval, one.method),
        f"{100 * one.upper_bound:.1f}" if one.undecided else "-",
    )


def _stands_on(answer: Answer) -> str:
    """What a filter keeps and where the pool comes from, in words."""
    words = ""
    if answer.criterion.filters:
        found = kept(answer)
        doubt = f", {found.undecided} undecided" if found.undecided else ""
        words += f"; keeps {found.kept} of {found.tests} optimization tests{doubt}"
        words += f"; {len(found.left_out)} of {found.problems} problems left out"
        words += f": {', '.join(found.left_out[:5])}{' ...' if len(found.left_out) > 5 else ''}" * bool(found.left_out)
    if answer.calibration:
        stored = answer.calibration.stored.name
        words += f"; references of {stored} through calibration {answer.calibration.calibration_id[:12]}"
    return words


def _show_within(answers: Sequence[Answer]) -> None:
    rows = [
        (answer.name, one.model, one.tests, *(f"{100 * n / one.tests:.1f}" for n in (one.least, one.most)))
        for answer in answers
        for one in within(answer)
        if one.tests
    ]
    if rows:
        columns = ("criterion", "model", "tests", "within tau, %", "at most %")
        print_table(columns, rows, title="share of tests with a percentile of at most tau")


def _show_undecided(answers: Sequence[Answer]) -> None:
    rows = [(answer.name, model, kind, count) for answer in answers for model, kind, count in undecided(answer)]
    if rows:
        print_table(("criterion", "model", "undecided because", "programs"), rows)


def show_flips(before: str, after: str, changes: Sequence[Change], *, name_flips: bool) -> None:
    """Prints how many verdicts flipped, and with `name_flips` which."""
    click.echo(f"{before} -> {after}: {len(changes)} verdicts flipped, nothing was run")
    if name_flips and changes:
        rows = [(c.program, word(c.before), word(c.after), c.reason_after) for c in changes]
        print_table(("program", "before", "after", "because"), rows)


def word(status: Status) -> str:
    """`pass`, `fail` or `undecided`."""
    return status.name.lower()


def as_json(answers: Sequence[Answer], snapshot: Snapshot, flipped: Sequence[tuple[str, str, list[Change]]]) -> Any:
    """Everything that `lap replay` prints, and every verdict."""
    return {
        "cut": snapshot.cut,
        "campaign": snapshot.name,
        "problems": [m.problem for m in snapshot.problems],
        "criteria": [_criterion(answer) for answer in answers],
        "flips": [_flips(*found) for found in flipped],
    }


def _flips(before: str, after: str, changes: Sequence[Change]) -> dict[str, Any]:
    programs = [
        {"program": c.program, "before": word(c.before), "after": word(c.after), "reason": c.reason_after}
        for c in changes
    ]
    return {"before": before, "after": after, "count": len(changes), "tally": tally_rows(changes), "programs": programs}


def tally_rows(changes: Sequence[Change]) -> list[dict[str, Any]]:
    """Flips by model and kind."""
    return [{"model": model, "kind": kind, "count": count} for model, kind, count in tally(changes)]


def _criterion(answer: Answer) -> dict[str, Any]:
    runs, programs = killed_before(answer.measured, answer.criterion)
    calibration = answer.calibration
    return {
        "name": answer.name,
        "hash": answer.criterion.hash,
        "canonical": answer.criterion.canonical().decode(),
        "unit": unit_of(answer.criterion.clock),
        "calibration": calibration and {"id": calibration.calibration_id, "from": calibration.stored.name},
        "missing": missing(answer.measured),
        "filter": asdict(kept(answer)) if answer.criterion.filters else None,
        "beyond": {"runs": runs, "programs": programs},
        "within": [asdict(one) for one in within(answer)],
        "undecided": [{"model": model, "reason": kind, "programs": count} for model, kind, count in undecided(answer)],
        "warnings": list(answer.warnings),
        "estimates": answer.rows,
        "verdicts": [verdict for v in answer.verdicts for verdict in _verdicts(v, answer)],
    }


def _verdicts(v: Verdicts, answer: Answer) -> list[dict[str, Any]]:
    shares = share_within(v, answer.criterion) if answer.criterion.reading == "score" else None
    return [
        {
            "program": v.programs[row],
            "status": word(Status(int(v.status[row]))),
            "q": [int(v.q_lo[row]), int(v.q_hi[row]), int(v.q_den[row])],
            "references": int(v.pool_size[row]),
            "reason": v.reason[row],
            "beyond": int(v.beyond[row]),
            **({} if shares is None else {"within": [int(part[row]) for part in shares]}),
        }
        for row in np.flatnonzero(v.candidate).tolist()
    ]
