"""What every export asks: a criterion put to one campaign, at one cut, perhaps through a calibration."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from lapledger.cli.criterion_options import CriterionFlags, criterion_options
from lapledger.cli.options import at_option, campaign_option, from_option, json_option, ledger_option

if TYPE_CHECKING:
    from lapledger.consumers.exports.judged_export import ExportRequest

FILE = click.argument("path", type=click.Path(path_type=Path), metavar="FILE")
FOLDER = click.argument("path", type=click.Path(path_type=Path), metavar="DIR")


def question_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """Adds what every export asks: criterion, tau, calibration, campaign, ledger, cut and --json."""
    options = (
        criterion_options(tau=True),
        from_option,
        campaign_option,
        ledger_option,
        at_option,
        json_option,
    )
    for option in reversed(options):
        function = option(function)
    return function


def request_of(flags: Mapping[str, Any]) -> "ExportRequest":
    """The question that the flags state; UserError for a criterion that is none."""
    from lapledger.consumers.exports.judged_export import ExportRequest

    criterion_flags: CriterionFlags = flags["criterion_flags"]
    name, criterion = criterion_flags.read()
    return ExportRequest(name, criterion, flags["campaign"], flags["source"])
