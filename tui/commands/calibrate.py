"""`lap calibrate`: fit the map of one campaign's stored reference durations into another campaign's state."""

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import click

from ledger.store.location import Location
from tui.criteria import criterion_options, read_criterion
from tui.output import json_option, ledger_option, print_json, print_table, say
from tui.services import lease_option, log_option, serving
from tui.session import writing
from tui.settings import read_settings

if TYPE_CHECKING:
    from consumers.services.deriving import CalibrationOrder
    from tui.logs import Form


@click.command()
@criterion_options
@click.option("--from", "source", required=True, metavar="ID", help="Campaign whose stored durations are mapped.")
@click.option("--to", "target", required=True, metavar="ID", help="Campaign into whose state they are mapped.")
@ledger_option
@click.option("--follow", is_flag=True, help="Wait for both campaigns, and fit again when late facts come.")
@lease_option
@log_option
@json_option
def command(
    word: str | None, source: str, target: str, ledger: str | None, follow: bool, as_json: bool, **flags: Any
) -> None:
    """Fit fresh = a * stored + b on the references measured in both campaigns, and keep the fit as an event.

    The fit is judged out of fold, beside no map at all, and refused when it does not beat it.

    \b
    Example:
      lap calibrate --from main --to recheck
      lap calibrate --from main --to recheck --follow
    """
    from consumers.services.deriving import CalibrationOrder

    service = {name: flags.pop(name) for name in ("log", "lease_seconds")}
    _, criterion = read_criterion(word, flags)
    place, order = read_settings(ledger=ledger).location, CalibrationOrder(criterion, source, target)
    if follow:
        _follow(place, order, **service)
    else:
        _once(place, order, as_json=as_json)


def _follow(place: Location, order: "CalibrationOrder", *, log: "Form", lease_seconds: float) -> None:
    from consumers.services.deriving import CalibrationFollower

    with serving(place, "calibrate", log, lease_seconds) as service:
        service.derive(service.alone(), CalibrationFollower(service.ledger, service.producer, order, service.edge))


def _once(place: Location, order: "CalibrationOrder", *, as_json: bool) -> None:
    from consumers.calibrator import calibrate

    source, target = order.source, order.target
    with writing(place, "lap calibrate") as open_:
        fitted = calibrate(open_.ledger, open_.producer, order.criterion, source=source, target=target)
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
