"""Tables of `lap compare`: one per question, with intervals and bounds in separate columns."""

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from lapledger.render.intervals import at_most, of_shares, percent
from lapledger.render.output import print_line, print_message, print_table, print_warnings
from lapledger.render.speed_tables import show_speeds
from lapledger.replay.estimates import Interval
from lapledger.replay.estimates.multiple import METHODS
from lapledger.workflows.analysis.compare import Comparison, ComparisonOptions, DifferenceRow, PassRow
from lapledger.workflows.analysis.comparison_arms import Arms

PASSES = (
    "tau",
    "arm",
    "runs",
    "problems",
    "samples",
    "pass@{k}, %",
    "95% over problems",
    "bootstrap",
    "two-stage",
    "95% over runs",
    "upper bound, %",
)
DIFFERENCES = (
    "tau",
    "tier",
    "problems",
    "A, %",
    "B, %",
    "A - B, points",
    "95% over problems",
    "bootstrap",
    "95% over runs",
    "bounds if undecided",
    "gain, %",
    "95% of gain",
    "gain bounds if undecided",
    "p",
    "{method} p",
)
NAMED = 8
"""Problems that a line names; JSON names all."""


def as_json(arms: Arms, settings: ComparisonOptions, comparison: Comparison, tiers_used: str) -> dict[str, Any]:
    """All that the tables show and more, as plain data; shares in [0, 1]."""
    criterion = arms.a.judged.criterion
    return {
        "cut": arms.a.judged.cut,
        "a": {"pattern": arms.a.pattern, "runs": arms.a.runs, "campaign": arms.a.campaign},
        "b": {"pattern": arms.b.pattern, "runs": arms.b.runs, "campaign": arms.b.campaign},
        "criterion": {"hash": criterion.hash, "canonical": criterion.canonical().decode()},
        "calibration": None if arms.calibration is None else arms.calibration.calibration_id,
        "through": arms.through,
        "tiers": tiers_used,
        **asdict(settings),
        **asdict(comparison),
    }


def show(arms: Arms, settings: ComparisonOptions, comparison: Comparison, tiers_used: str) -> None:
    """Prints every table, then exclusions and warnings on stderr."""
    cut = arms.a.judged.cut
    where = arms.a.campaign if arms.one_campaign else f"{arms.a.campaign} and {arms.b.campaign}"
    title = f"A = {arms.a.pattern}, B = {arms.b.pattern}: campaign {where}"
    print_table([c.format(k=settings.k) for c in PASSES], [_pass(row) for row in comparison.passes], title=title)
    columns = [c.format(method=METHODS[settings.adjust]) for c in DIFFERENCES]
    print_table(
        columns, [_difference(row) for row in comparison.differences], title=f"paired difference A - B; {tiers_used}"
    )
    show_speeds(comparison)
    print_line(f"criterion {arms.a.judged.criterion.hash[:12]}, seed {settings.seed}, {settings.resamples} resamples")
    if arms.through:
        print_line(arms.through)
    print_line(f"cut {cut}")
    for line in _named(comparison):
        print_message(line)
    print_warnings(comparison.warnings)


def _pass(row: PassRow) -> tuple[object, ...]:
    estimate = row.estimate
    return (
        row.tau,
        row.arm,
        len(estimate.runs),
        estimate.problems,
        estimate.samples,
        percent(estimate.value),
        of_shares(estimate.over_problems, estimate.method),
        of_shares(estimate.bootstrapped),
        of_shares(estimate.two_stage),
        of_shares(estimate.over_runs),
        at_most(100 * estimate.value, 100 * estimate.upper_bound),
    )


def _difference(row: DifferenceRow) -> tuple[object, ...]:
    estimate = row.estimate
    return (
        row.tau,
        row.tier,
        estimate.problems,
        percent(estimate.a),
        percent(estimate.b),
        percent(estimate.difference),
        of_shares(estimate.over_problems),
        of_shares(estimate.bootstrapped),
        of_shares(estimate.over_runs),
        _if_open(estimate.bounds),
        "-" if estimate.gain is None else percent(estimate.gain),
        of_shares(estimate.gain_interval),
        _if_open(estimate.gain_bounds),
        _p(estimate.p),
        _p(row.adjusted_p),
    )


def _named(comparison: Comparison) -> list[str]:
    """Problems excluded from the differences, and ties, undecided and excluded ones of the win rates."""
    lines = []
    gone = sorted({problem for row in comparison.differences for problem in row.estimate.excluded})
    if gone:
        lines.append(f"excluded, as one arm lacks them or the filter removes all their tests: {_some(gone)}")
    lines += [
        f"ties by the {estimate.reading}: {_some(estimate.ties)}" for estimate in comparison.wins if estimate.ties
    ]
    lines += [
        f"undecided by the {estimate.reading}: {_some(estimate.undecided)}"
        for estimate in comparison.wins
        if estimate.undecided
    ]
    if comparison.wins and comparison.wins[0].excluded:
        lines.append(f"no win or loss, as one arm has no correct sample: {_some(comparison.wins[0].excluded)}")
    return lines


def _some(names: Sequence[str]) -> str:
    more = f" and {len(names) - NAMED} more; --json names all" if len(names) > NAMED else ""
    return ", ".join(names[:NAMED]) + more


def _if_open(bounds: Interval | None) -> str:
    """Bounds where they differ."""
    return of_shares(bounds) if bounds is not None and bounds[0] < bounds[1] else "-"


def _p(value: float | None) -> str:
    return "-" if value is None else f"{value:.3g}"
