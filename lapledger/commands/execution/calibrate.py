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
from lapledger.render.output import print_json, print_message, print_table, print_warnings, progress
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
    "R²",
    "relative error",
    "percentile error",
    "Spearman",
    "result",
)
Row = tuple[str, str, str, str, str, str, str, str, str]


@click.command()
@criterion_options(tau=False, calibration=False)
@click.option("--from", "source", required=True, metavar="ID", help="Campaign whose reference durations are mapped.")
@click.option("--to", "target", required=True, metavar="ID", help="Campaign they are mapped to.")
@click.option(
    "--kind",
    type=click.Choice([*KINDS, ALL]),
    default=None,
    help="Kind of fit; `all` tries every kind and keeps the best.  [default: the criterion's, else affine]",
)
@ledger_option
@click.option("--follow", is_flag=True, help="Wait for both campaigns, and refit when late results arrive.")
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
    """Fit a map on references measured in both campaigns, and store it as an event.

    Each fit is validated with every problem held out in turn, and rejected unless it beats no calibration. One result
    is stored per call: the best usable fit, or the rejection.

    \b
    Example:
      lap calibrate --from main --to recheck
      lap calibrate --from main --to recheck --kind all
      lap calibrate --from main --to recheck --follow
    """
    from lapledger.consumers.derive.calibrator import CalibrationOrder

    service = {name: flags.pop(name) for name in ("log", "lease_seconds")}
    if criterion_flags.overrides.get("calibration") == "none":
        raise UserError("--calibration none: nothing to fit; choose a kind with --kind")
    _, criterion = criterion_flags.read()
    kinds_wanted = kind or (criterion.calibration if criterion.calibration != "none" else "affine")
    order = CalibrationOrder(criterion, source, target, tuple(KINDS) if kinds_wanted == ALL else (kinds_wanted,))
    location = read_settings(ledger=ledger).location
    if follow:
        _follow(location, order, **service)
    else:
        _once(location, order, as_json=as_json)


def _follow(location: Location, order: "CalibrationOrder", *, log: "Form", lease_seconds: float) -> None:
    from lapledger.consumers.services.derive import CalibrationFollower

    with serving(location, "calibrate", log, lease_seconds) as service:
        name = group_name("calibrators", order.criterion.hash, order.source, order.target, *order.kinds)
        group = service.group(name, (CONTROL,))
        service.derive(group, CalibrationFollower(service.ledger, service.producer, order, service.context))


def _once(location: Location, order: "CalibrationOrder", *, as_json: bool) -> None:
    from lapledger.consumers.derive.calibrator import calibrate

    with open_writer(location, "lap calibrate", TERMINAL) as writer, progress("fitting", len(order.kinds)) as bar:
        done = calibrate(writer.ledger, writer.producer, order, on_fitted=lambda _kind: bar.advance(bar.task_ids[0]))
    if as_json:
        warning = outside_warning(done.kept)
        more = {"warnings": [warning] if warning else [], "tried": [asdict(fit) for fit in done.fits]}
        print_json({**asdict(done.kept), **more})
    else:
        _show(done, order)


def _show(done: "Calibrated", order: "CalibrationOrder") -> None:
    kept = done.kept
    title = f"{order.source} -> {order.target}: {kept.pairs} pairs of {kept.problems} problems, {kept.clock} clock"
    rows = [_no_map(kept), *(_row(fit, kept) for fit in done.fits)]
    print_table(COLUMNS, rows, title=f"{title}; held-out figures", cut=kept.cut)
    for fit in done.fits:
        if fit.refused:
            print_message(f"{fit.kind} fit rejected: {fit.refused}")
    if kept.refused:
        print_message("no usable calibration; evaluate with --calibration none (rejection stored)")
    else:
        print_message(f"stored: calibration {kept.calibration_id[:12]}; use it with `--calibration {kept.kind}`")
    print_warnings([outside_warning(kept)] if kept.outside else [])


def _no_map(fit: "CalibrationFitted") -> Row:
    return (
        "none",
        "-",
        "-",
        "-",
        *_figures((fit.r2_none, fit.error_none, fit.points_none, fit.spearman_before)),
        "baseline",
    )


def _row(fit: "CalibrationFitted", kept: "CalibrationFitted") -> Row:
    chosen = "stored" if fit.calibration_id == kept.calibration_id else ""
    state = "rejected" if fit.refused else chosen
    figures = _figures((fit.r2, fit.error_map, fit.points_map, fit.spearman_after))
    return fit.kind, f"{fit.a:.4g}", f"{fit.b_ns / 1e6:.2f}", f"{fit.power:.4g}", *figures, state


def _figures(values: Sequence[float | None]) -> tuple[str, str, str, str]:
    r2, error, points, spearman = ("-" if value is None else f"{value:.4g}" for value in values)
    return r2, error, points, spearman
