"""`lap calibrate`: fit the map of one campaign's stored reference durations into another campaign's state."""

from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import click

from lapledger.cli.criterion_options import CriterionFlags, criterion_options
from lapledger.cli.options import json_option, ledger_option
from lapledger.cli.service_options import lease_option, log_option, serving
from lapledger.ledger.errors import UserError
from lapledger.ledger.events import CONTROL
from lapledger.ledger.store.location import Location
from lapledger.render.output import print_json, print_table, progress, say, tell
from lapledger.render.terminal import TERMINAL
from lapledger.replay.calibration import outside_warning
from lapledger.replay.criteria import describe
from lapledger.settings import read_settings
from lapledger.workflows.service_runtime import group_name
from lapledger.workflows.session import open_writer

if TYPE_CHECKING:
    from lapledger.consumers.derive.calibrator import Calibrated, CalibrationOrder
    from lapledger.ledger.events import CalibrationFitted
    from lapledger.workflows.logs import Form

ALL = "all"
KINDS = next(field.allowed.split(" | ")[1:] for field in describe() if field.name == "calibration")
COLUMNS = (
    "kind",
    "a",
    "b, ms",
    "power",
    "R squared",
    "relative error",
    "points moved",
    "Spearman",
    "kept",
)
Row = tuple[str, str, str, str, str, str, str, str, str]


@click.command()
@criterion_options(tau=False)
@click.option("--from", "source", required=True, metavar="ID", help="Campaign whose stored durations are mapped.")
@click.option("--to", "target", required=True, metavar="ID", help="Campaign into whose state they are mapped.")
@click.option(
    "--kind",
    type=click.Choice([*KINDS, ALL]),
    default=None,
    help="Kind of map; `all` tries every kind and keeps the best.  [default: the criterion's, else affine]",
)
@ledger_option
@click.option("--follow", is_flag=True, help="Wait for both campaigns, and fit again when late facts come.")
@lease_option
@log_option
@json_option
def command(
    criterion_flags: CriterionFlags,
    source: str,
    target: str,
    kind: str | None,
    ledger: str | None,
    follow: bool,
    as_json: bool,
    **flags: Any,
) -> None:
    """Fit a map on the references measured in both campaigns, and keep it as an event.

    Each map is judged with every problem left out of its own fit, beside no map at all, and refused when it does not
    beat it. One fit is kept for each call: the best usable one, or the refusal.

    \b
    Example:
      lap calibrate --from main --to recheck
      lap calibrate --from main --to recheck --kind all
      lap calibrate --from main --to recheck --follow
    """
    from lapledger.consumers.derive.calibrator import CalibrationOrder

    service = {name: flags.pop(name) for name in ("log", "lease_seconds")}
    if criterion_flags.overrides.get("calibration") == "none":
        raise UserError("--calibration none: there is no such map to fit; say with --kind which one is wanted")
    _, criterion = criterion_flags.read()
    asked = kind or (criterion.calibration if criterion.calibration != "none" else "affine")
    order = CalibrationOrder(criterion, source, target, tuple(KINDS) if asked == ALL else (asked,))
    place = read_settings(ledger=ledger).location
    if follow:
        _follow(place, order, **service)
    else:
        _once(place, order, as_json=as_json)


def _follow(place: Location, order: "CalibrationOrder", *, log: "Form", lease_seconds: float) -> None:
    from lapledger.consumers.services.derive import CalibrationFollower

    with serving(place, "calibrate", log, lease_seconds) as service:
        name = group_name("calibrators", order.criterion.hash, order.source, order.target, *order.kinds)
        group = service.group(name, (CONTROL,))
        service.derive(group, CalibrationFollower(service.ledger, service.producer, order, service.context))


def _once(place: Location, order: "CalibrationOrder", *, as_json: bool) -> None:
    from lapledger.consumers.derive.calibrator import calibrate

    with open_writer(place, "lap calibrate", TERMINAL) as writer, progress("fitting", len(order.kinds)) as bar:
        done = calibrate(writer.ledger, writer.producer, order, on_fitted=lambda _kind: bar.advance(bar.task_ids[0]))
    if as_json:
        found = outside_warning(done.kept)
        told = {"warnings": [found] if found else [], "tried": [asdict(one) for one in done.fits]}
        print_json({**asdict(done.kept), **told})
    else:
        _show(done, order)


def _show(done: "Calibrated", order: "CalibrationOrder") -> None:
    kept = done.kept
    title = f"{order.source} -> {order.target}: {kept.pairs} pairs of {kept.problems} problems, {kept.clock} clock"
    rows = [_no_map(kept), *(_row(one, kept) for one in done.fits)]
    print_table(COLUMNS, rows, title=f"{title}; figures with each problem left out of its own fit", cut=kept.cut)
    for one in done.fits:
        if one.refused:
            say(f"{one.kind} refused: {one.refused}")
    if kept.refused:
        say("no map may be used: judge with calibration 'none'; the refusal is kept")
    else:
        say(f"kept: calibration {kept.calibration_id[:12]}, asked for with `--calibration {kept.kind}`")
    tell([outside_warning(kept)] if kept.outside else [])


def _no_map(one: "CalibrationFitted") -> Row:
    return (
        "none",
        "-",
        "-",
        "-",
        *_figures((one.r2_none, one.error_none, one.points_none, one.spearman_before)),
        "no map",
    )


def _row(one: "CalibrationFitted", kept: "CalibrationFitted") -> Row:
    chosen = "kept" if one.calibration_id == kept.calibration_id else ""
    word = "refused" if one.refused else chosen
    figures = _figures((one.r2, one.error_map, one.points_map, one.spearman_after))
    return one.kind, f"{one.a:.4g}", f"{one.b_ns / 1e6:.2f}", f"{one.power:.4g}", *figures, word


def _figures(values: Sequence[float | None]) -> tuple[str, str, str, str]:
    r2, error, points, spearman = ("-" if value is None else f"{value:.4g}" for value in values)
    return r2, error, points, spearman
