"""What `lap compare` says: one table for each question, with intervals and bounds in columns of their own."""

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

import click

from lapledger.render.intervals import at_most, of_shares, percent
from lapledger.render.output import print_table, say, tell
from lapledger.render.speed_tables import show_speeds
from lapledger.replay.estimates import Interval
from lapledger.replay.estimates.multiple import METHODS
from lapledger.workflows.analysis.compare import Asked, Comparison, DifferenceRow, PassRow
from lapledger.workflows.analysis.comparison_arms import Arms

PASSES = (
    "tau",
    "arm",
    "runs",
    "problems",
    "samples",
    "pass@{k} %",
    "95% over problems",
    "bootstrap",
    "two-stage",
    "95% over runs",
    "at most %",
)
DIFFERENCES = (
    "tau",
    "tier",
    "problems",
    "A %",
    "B %",
    "A - B, points",
    "95% over problems",
    "bootstrap",
    "95% over runs",
    "if undecided",
    "gain %",
    "95% of gain",
    "gain if undecided",
    "p",
    "{method} p",
)
NAMED = 8
"""Problems that are named in a line; JSON names all."""


def as_json(arms: Arms, asked: Asked, found: Comparison, followed: str) -> dict[str, Any]:
    """All that the tables show and more, as plain data; shares in [0, 1]."""
    criterion = arms.a.judged.criterion
    return {
        "cut": arms.a.judged.cut,
        "a": {"pattern": arms.a.pattern, "runs": arms.a.runs, "campaign": arms.a.campaign},
        "b": {"pattern": arms.b.pattern, "runs": arms.b.runs, "campaign": arms.b.campaign},
        "criterion": {"hash": criterion.hash, "canonical": criterion.canonical().decode()},
        "calibration": None if arms.calibration is None else arms.calibration.calibration_id,
        "through": arms.through,
        "tiers": followed,
        **asdict(asked),
        **asdict(found),
    }


def show(arms: Arms, asked: Asked, found: Comparison, followed: str) -> None:
    """Prints every table, then what was left out, and the warnings on stderr."""
    cut = arms.a.judged.cut
    where = arms.a.campaign if arms.one_campaign else f"{arms.a.campaign} and {arms.b.campaign}"
    title = f"A = {arms.a.pattern}, B = {arms.b.pattern}: campaign {where}"
    print_table([c.format(k=asked.k) for c in PASSES], [_pass(row) for row in found.passes], title=title)
    columns = [c.format(method=METHODS[asked.adjust]) for c in DIFFERENCES]
    print_table(columns, [_difference(row) for row in found.differences], title=f"A - B in pairs; {followed}")
    show_speeds(found)
    click.echo(f"criterion {arms.a.judged.criterion.hash[:12]}, seed {asked.seed}, {asked.resamples} resamples")
    if arms.through:
        click.echo(arms.through)
    click.echo(f"cut {cut}")
    for line in _named(found):
        say(line)
    tell(found.warnings)


def _pass(row: PassRow) -> tuple[object, ...]:
    one = row.estimate
    return (
        row.tau,
        row.arm,
        len(one.runs),
        one.problems,
        one.samples,
        percent(one.value),
        of_shares(one.over_problems, one.method),
        of_shares(one.bootstrapped),
        of_shares(one.two_stage),
        of_shares(one.over_runs),
        at_most(100 * one.value, 100 * one.upper_bound),
    )


def _difference(row: DifferenceRow) -> tuple[object, ...]:
    one = row.found
    return (
        row.tau,
        row.tier,
        one.problems,
        percent(one.a),
        percent(one.b),
        percent(one.difference),
        of_shares(one.over_problems),
        of_shares(one.bootstrapped),
        of_shares(one.over_runs),
        _open(one.bounds),
        "-" if one.gain is None else percent(one.gain),
        of_shares(one.gain_interval),
        _open(one.gain_bounds),
        _p(one.p),
        _p(row.adjusted_p),
    )


def _named(found: Comparison) -> list[str]:
    """Problems left out of the differences, and ties, undecided and left out ones of the win rates."""
    lines = []
    gone = sorted({problem for row in found.differences for problem in row.found.left_out})
    if gone:
        lines.append(f"left out, as one arm lacks them or the filter keeps no test: {_some(gone)}")
    lines += [f"ties by the {one.reading}: {_some(one.ties)}" for one in found.wins if one.ties]
    lines += [f"undecided by the {one.reading}: {_some(one.undecided)}" for one in found.wins if one.undecided]
    if found.wins and found.wins[0].left_out:
        lines.append(f"no win or loss, as one arm has no correct sample: {_some(found.wins[0].left_out)}")
    return lines


def _some(names: Sequence[str]) -> str:
    more = f" and {len(names) - NAMED} more; --json names all" if len(names) > NAMED else ""
    return ", ".join(names[:NAMED]) + more


def _open(bounds: Interval | None) -> str:
    """Bounds where they leave anything open."""
    return of_shares(bounds) if bounds is not None and bounds[0] < bounds[1] else "-"


def _p(value: float | None) -> str:
    return "-" if value is None else f"{value:.3g}"
