"""`lap replay`: ask stored results a question, under one criterion or two, without running anything."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import click
import numpy as np

from ledger.questions import Questions
from replay.criteria import Criterion
from replay.estimates import Estimate, estimate, resolution_warning
from replay.gates import Flip, Status, Verdicts, flips
from replay.measurements import Outcome, ProblemMeasurements
from replay.shell import Calibration, Snapshot, judge_all, load
from tui.criteria import criterion_options, read_criterion
from tui.output import at_option, campaign_option, json_option, ledger_option, print_json, print_table, say, write_whole
from tui.session import asking
from tui.settings import read_settings

COLUMNS = (
    "criterion",
    "maker",
    "problems",
    "programs",
    "refs",
    "missing",
    "undecided",
    "pass@{k} %",
    "95% interval",
    "at most %",
)


@dataclass(frozen=True, slots=True)
class Answer:
    """One criterion's verdicts over a snapshot, with its estimates and warning."""

    name: str
    criterion: Criterion
    measured: Sequence[ProblemMeasurements]
    verdicts: Sequence[Verdicts]
    estimates: Sequence[Estimate]
    warning: str


@click.command()
@criterion_options
@click.option(
    "--tau",
    "taus",
    multiple=True,
    metavar="PERCENT",
    help="p_tau; repeat for several rows.  [default: the criterion's]",
)
@click.option("--against", default=None, metavar="NAME|FILE", help="A second criterion: count the verdicts that flip.")
@click.option("--flips", "name_flips", is_flag=True, help="Name every program whose verdict flips.")
@click.option("--k", default=1, type=click.IntRange(1), help="pass@k.  [default: 1]")
@click.option("--from", "source", default=None, metavar="ID", help="Campaign that the calibration comes from.")
@click.option("--plot", default=None, metavar="FILE", type=click.Path(), help="Draw pass@1 against tau (.png or .svg).")
@campaign_option
@ledger_option
@at_option
@json_option
def command(
    word: str | None,
    taus: tuple[str, ...],
    against: str | None,
    name_flips: bool,
    k: int,
    source: str | None,
    plot: str | None,
    campaign: str | None,
    ledger: str | None,
    at: str | None,
    as_json: bool,
    **flags: Any,
) -> None:
    """Say which programs are correct and among the fastest tau percent, from stored results alone.

    \b
    Example:
      lap replay --tau 100 --tau 50 --tau 30
      lap replay --criterion top-30 --against per-test-top-30 --flips
      lap replay --plot curve.png
    """
    name, criterion = read_criterion(word, flags)
    prefix = "" if criterion == Criterion() else f"{name} "
    criteria = [(f"{prefix}p_{tau}", replace(criterion, tau=tau)) for tau in taus] or [(name, criterion)]
    with asking(read_settings(ledger=ledger).location, at) as questions:
        snapshot = load(questions, campaign)
        answers = [_answer(questions, snapshot, *named, k=k, source=source) for named in criteria]
        second = None
        if against is not None:
            second = _answer(questions, snapshot, *read_criterion(against, {}), k=k, source=source)
        flipped = _flips(answers, second)
        if plot:
            draw(answers[0], Path(plot), snapshot)
        if as_json:
            print_json(_as_json([*answers, *([second] if second else [])], snapshot, flipped))
        else:
            _show([*answers, *([second] if second else [])], snapshot, flipped, name_flips=name_flips)


def _answer(
    questions: Questions, snapshot: Snapshot, name: str, criterion: Criterion, *, k: int, source: str | None
) -> Answer:
    calibration = _calibration(questions, snapshot, criterion, source)
    measured, verdicts = judge_all(snapshot, criterion, calibration)
    sizes = np.concatenate([v.pool_size[v.candidate] for v in verdicts])
    warning = resolution_warning(sizes, criterion)
    return Answer(name, criterion, measured, verdicts, estimate(verdicts, measured, k), warning)


def _calibration(
    questions: Questions, snapshot: Snapshot, criterion: Criterion, source: str | None
) -> Calibration | None:
    from consumers.calibrator import find_calibration

    return find_calibration(questions, snapshot.name, criterion, source=source)


def _flips(answers: Sequence[Answer], second: Answer | None) -> list[tuple[str, str, list[Flip]]]:
    """Flips between each two criteria that follow each other: (before, after, flips)."""
    chain = [*answers, *([second] if second else [])]
    return [(a.name, b.name, flips(a.verdicts, b.verdicts)) for a, b in pairwise(chain)]


def draw(answer: Answer, path: Path, snapshot: Snapshot) -> None:
    """Writes the picture of pass@1 against tau; UserError when the file's ending is not .png or .svg."""
    from ledger.errors import UserError
    from replay.plots import curve_plot, tau_curve

    kind = path.suffix.lower().lstrip(".")
    if kind not in ("png", "svg"):
        raise UserError(f"--plot {path}: the ending says the format; use .png or .svg")
    curves = tau_curve(answer.measured, answer.criterion, [*range(5, 101, 5)])
    title = f"campaign {snapshot.name}: {len(snapshot.problems)} problems"
    data = curve_plot(curves, title, f"criterion {answer.criterion.hash[:12]}, cut {snapshot.cut}", fmt=kind)  # type: ignore[arg-type]
    write_whole(path, data)
    say(f"picture written to {path}")


def _show(
    answers: Sequence[Answer],
    snapshot: Snapshot,
    flipped: list[tuple[str, str, list[Flip]]],
    *,
    name_flips: bool,
) -> None:
    rows = [_row(answer, one) for answer in answers for one in answer.estimates]
    columns = [name.format(k=answers[0].estimates[0].k) for name in COLUMNS]
    print_table(columns, rows, title=f"campaign {snapshot.name}", cut=snapshot.cut)
    for answer in answers:
        click.echo(f"{answer.name}: criterion {answer.criterion.hash[:12]}")
    for answer in answers:
        if answer.warning:
            say(f"warning: {answer.warning}")
    for before, after, found in flipped:
        click.echo(f"{before} -> {after}: {len(found)} verdicts flipped, nothing was run")
        if name_flips and found:
            print_table(("program", "before", "after"), [(f.program, _word(f.before), _word(f.after)) for f in found])


def _row(answer: Answer, one: Estimate) -> tuple[object, ...]:
    interval = "-" if one.interval is None else f"{100 * one.interval[0]:.1f} .. {100 * one.interval[1]:.1f}"
    sizes = sorted({one.references_min, one.references_max})
    return (
        answer.name,
        one.maker,
        one.problems,
        one.programs,
        "..".join(map(str, sizes)),
        _missing(answer.measured),
        one.undecided,
        f"{100 * one.value:.1f}",
        interval,
        f"{100 * one.upper_bound:.1f}" if one.undecided else "-",
    )


def _missing(measured: Sequence[ProblemMeasurements]) -> int:
    """Program-test pairs of candidates without any outcome."""
    return sum(int((m.outcome[m.candidate] == Outcome.MISSING).sum()) for m in measured)


def _word(status: Status) -> str:
    return status.name.lower()


def _as_json(
    answers: Sequence[Answer], snapshot: Snapshot, flipped: list[tuple[str, str, list[Flip]]]
) -> dict[str, Any]:
    return {
        "cut": snapshot.cut,
        "campaign": snapshot.name,
        "problems": [m.problem for m in snapshot.problems],
        "criteria": [
            {
                "name": answer.name,
                "hash": answer.criterion.hash,
                "canonical": answer.criterion.canonical().decode(),
                "missing": _missing(answer.measured),
                "warning": answer.warning,
                "estimates": [asdict(one) for one in answer.estimates],
                "verdicts": [verdict for v in answer.verdicts for verdict in _verdicts(v)],
            }
            for answer in answers
        ],
        "flips": [
            {
                "before": before,
                "after": after,
                "count": len(found),
                "programs": [{"program": f.program, "before": _word(f.before), "after": _word(f.after)} for f in found],
            }
            for before, after, found in flipped
        ],
    }


def _verdicts(v: Verdicts) -> list[dict[str, Any]]:
    return [
        {
            "program": program,
            "status": _word(Status(int(v.status[row]))),
            "q": [int(v.q_lo[row]), int(v.q_hi[row]), int(v.q_den[row])],
            "references": int(v.pool_size[row]),
            "reason": v.reason[row],
        }
        for row, program in enumerate(v.programs)
        if v.candidate[row]
    ]
