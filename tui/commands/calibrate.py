"""`lap calibrate`: fit the map of one campaign's stored reference durations into another campaign's state."""

from dataclasses import asdict
from typing import Any

import click

from tui.criteria import criterion_options, read_criterion
from tui.output import json_option, ledger_option, print_json, print_table, say
from tui.session import writing
from tui.settings import read_settings


@click.command()
@criterion_options
@click.option("--from", "source", required=True, metavar="ID", help="Campaign whose stored durations are mapped.")
@click.option("--to", "target", required=True, metavar="ID", help="Campaign into whose state they are mapped.")
@ledger_option
@json_option
def command(word: str | None, source: str, target: str, ledger: str | None, as_json: bool, **flags: Any) -> None:
    """Fit fresh = a * stored + b on the references measured in both campaigns, and keep the fit as an event.

    The fit is judged out of fold, beside no map at all, and refused when it does not beat it.

    \b
    Example:
      lap calibrate --from main --to recheck
    """
    from consumers.calibrator import calibrate

    _, criterion = read_criterion(word, flags)
    with writing(read_settings(ledger=ledger).ledger, "lap calibrate") as open_:
        fitted = calibrate(open_.ledger, open_.producer, criterion, source=source, target=target)
    if as_json:
        print_json(asdict(fitted))
        return
    rows = [
        ("a", fitted.a, ""),
        ("b, ms", fitted.b_ns / 1e6, ""),
        ("leave-one-problem-out R squared", fitted.r2, ""),
        ("median relative error, out of fold", fitted.error_map, fitted.error_none),
        ("percentile points moved, out of fold", fitted.points_map, fitted.points_none),
        ("Spearman of reference scores", fitted.spearman_after, fitted.spearman_before),
    ]
    title = f"{source} -> {target}: {fitted.pairs} pairs of {fitted.problems} problems, {fitted.clock} clock"
    print_table(("figure", "with the map", "no map"), rows, title=title, cut=fitted.cut)
    if fitted.refused:
        say(f"refused: {fitted.refused}")
